"""What a notebook shows: small pictures beside tables, and figures although nothing imports pyplot."""

import types

import numpy as np
from matplotlib.figure import Figure

import attnflow as af
from attnflow import control, learn, random_layers, sketches
from attnflow.fields import Drift, ReluUnit
from tests.marks import graded

TOKENS = af.uniform(af.Sphere(3), n=12, seed=0)
FOUR = af.uniform(af.Sphere(3), n=4, seed=[0, 1])


def schedule():
    return control.Schedule(af.Euclidean(2), [(ReluUnit([1, 0], [0, 1], 0.5), 1.0), (Drift([0, 1]), 0.3)])


def trained():
    task = learn.Clustering(dim=2, tokens=3, centres=2, layers=1)
    return learn.train(learn.attention_block(2), task, steps=3, batch=2, seeds=(0,), test=2)


SHOWN = {
    "tokens": lambda: TOKENS,
    "clusters": lambda: af.observe.clusters(TOKENS, scale=0.3),
    "exits": lambda: af.observe.exit_distribution(np.array([0.5, 1.0, 2.0, np.inf]), until=3.0),
    "merges": lambda: af.merge_times(af.Attention(2.0), FOUR, until=1e3),
    "schedule": schedule,
    "path": lambda: random_layers.gram_layers(0.0, 1.0, 0.3, 4, d=8, n=3, heads=1, replicas=2, save=4),
    "training": trained,
}


@graded("name", SHOWN, fast=3)
def test_a_table_has_a_small_picture(name):
    found = SHOWN[name]()._repr_html_()
    assert found.count("<svg") == 1
    assert "nan" not in found
    assert len(found) < 10_000


def test_bars_are_as_high_as_their_numbers():
    found = sketches.bars([1.0, 2.0], "masses")
    assert found.count("<rect") == 2
    assert 'height="43.0"' in found
    assert 'height="86.0"' in found
    assert sketches.bars([], "masses") == sketches.bars([np.nan], "masses") == ""


def test_a_figure_is_shown_although_nothing_imports_pyplot(faults):
    formatter = types.SimpleNamespace(type_printers={})
    shell = types.SimpleNamespace(display_formatter=types.SimpleNamespace(formatters={"image/png": formatter}))
    asked = []

    def select_figure_formats(shell, formats, **how):
        asked.append(formats)
        formatter.type_printers[Figure] = how

    tools = types.SimpleNamespace(select_figure_formats=select_figure_formats)
    faults.module("IPython", types.SimpleNamespace(get_ipython=lambda: shell, version_info=(9, 0)))
    faults.module("IPython.core.pylabtools", tools)
    TOKENS.plot()
    assert asked == []
    faults.module("ipykernel", types.SimpleNamespace())
    TOKENS.plot()
    TOKENS.plot()
    assert asked == [{"png"}]
