"""Figures are looked at by people; here: they exist, show what they should, and are vector graphics."""

import io

import numpy as np
import pytest

import attnflow as af
from attnflow import plots
from attnflow.plots.figure_data import FigureData
from attnflow.plots.interactive import interactive


@pytest.fixture(
    scope="module", params=[2, pytest.param(3, marks=pytest.mark.slow), pytest.param(6, marks=pytest.mark.slow)]
)
def data(request):
    tokens = af.clustered(af.Sphere(request.param), centres=np.eye(request.param)[:2], n=10, spread=0.1, seed=0)
    return FigureData.of(af.solve(af.Attention(9.0), tokens, 30.0, save=af.LogSpaced(30, 0.05)))


def test_all_figures_are_drawn(data):
    for figure in (
        plots.plot(data),
        plots.draw_snapshots(data),
        plots.draw_energy_and_count(data),
        plots.draw_overlaps(data),
        plots.draw_attention(data),
    ):
        stream = io.StringIO()
        figure.savefig(stream, format="svg")
        assert "<path" in stream.getvalue()


def test_the_story_is_right(data):
    assert [p.clusters for p in data.plateaus] == [2]
    assert set(data.labels) == {0, 1}
    assert len(set(data.labels[:10])) == 1
    summary = plots.summarise(data)
    assert summary["clusters_at_end"] == 2
    # two clusters at a right angle: the pair term is e^(-9), the clusters have contracted by e^(-30)
    assert summary["energy_at_end"] == pytest.approx(
        af.theory.energy_of_clusters([0.5, 0.5], 9.0), rel=2 * np.exp(-9.0)
    )


def test_the_interactive_figure_has_a_slider(data):
    figure = interactive(data)
    steps = figure.layout.sliders[0].steps
    assert len(steps) == len(figure.frames) == 31
    last = figure.frames[-1].data[0]
    assert len(last.x) == 20


@pytest.mark.slow  # the README runs as a test
def test_the_ten_line_script():
    tokens = af.uniform(af.Sphere(3), n=50, seed=0)
    field = af.Attention(beta=9.0)
    assert field.velocity(0.0, None, tokens).dtype == np.float64
    flow = af.solve(field, tokens, until=40.0)
    assert flow.energy.dims == ("time",)
    assert flow.energy.dtype == np.float64
    assert flow.clusters()["label"].dims == ("time", "token")
    assert af.theory.growth_rates(beta=9.0, d=3)[0] == pytest.approx(0.197531, abs=1e-6)
    assert af.plot(flow).axes


def test_batches_and_fields_without_energy_are_drawn():
    tokens = af.uniform(af.Sphere(3), n=12, seed=range(2))
    flow = af.solve(af.Attention(af.Along("beta", [2.0, 4.0]), value=-np.eye(3)), tokens, 2.0, save=af.Evenly(10))
    assert plots.plot(flow).axes
    assert "energy" not in flow.dataset
