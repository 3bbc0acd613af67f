"""Figures are looked at by people; here: they exist, show what they should, and are vector graphics."""

import io

import numpy as np
import pytest

import attnflow as af
from attnflow import plots
from attnflow.errors import AttnflowError
from attnflow.plots.figure_data import FigureData
from attnflow.plots.interactive import interactive
from attnflow.runs import execute, open_run, parse_spec
from attnflow.spaces import CentredSphere, Euclidean, Product, Torus


@pytest.fixture(
    scope="module", params=[2, pytest.param(3, marks=pytest.mark.slow), pytest.param(6, marks=pytest.mark.slow)]
)
def data(request):
    tokens = af.tokens.clustered(af.Sphere(request.param), centres=np.eye(request.param)[:2], n=10, spread=0.1, seed=0)
    return FigureData.of(af.solve(af.Attention(9.0), tokens, 30.0, save=af.save.LogSpaced(30, 0.05)))


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
    flow = af.solve(af.Attention(af.Along("beta", [2.0, 4.0]), value=-np.eye(3)), tokens, 2.0, save=af.save.Evenly(10))
    assert plots.plot(flow).axes
    assert "energy" not in flow.dataset


@pytest.mark.parametrize(
    ("space", "rows", "labels"),
    [
        (Torus(1), 1, ("", "")),
        (Torus(2), 1, ("$a_{1}$", "$a_{2}$")),
        (Torus(3), 2, ("$a_{1}$", "$a_{2}$")),
        (Euclidean(1), 1, ("$x_{1}$", "")),
        (Euclidean(2), 1, ("$x_{1}$", "$x_{2}$")),
        (Product(Euclidean(5), Torus(1)), 2, ("", "")),
        (CentredSphere(4, [1.0, 2.0, 1.0, 1.0]), 1, ("", "")),
    ],
    ids=str,
)
def test_every_space_has_figures(space, rows, labels):
    flow = af.solve(
        af.Attention(2.0), af.uniform(space, n=12, seed=1), 1.0, save=af.save.Evenly(4), method=af.Fixed(0.125)
    )
    story = FigureData.of(flow)
    figure = plots.draw_snapshots(story, frames=[0, 4])
    assert len(figure.axes) == 2 * rows
    first = figure.axes[0]
    assert (first.get_xlabel(), first.get_ylabel()) == labels
    figure.savefig(io.BytesIO(), format="svg")
    live = interactive(story)
    clouds = live.frames[-1].data[:-1]
    assert len(clouds) == rows
    assert all(len(cloud.x) == 12 for cloud in clouds)
    assert plots.summarise(story)["clusters_at_end"] >= 1


def test_the_square_of_a_torus_shows_the_angles():
    torus = Torus(2)
    angles = np.array([[3.0, -1.0], [0.5, 2.0], [-2.0, 0.1]])
    flow = af.solve(af.Attention(2.0), af.Tokens(torus.at(angles), space=torus), 0.1, save=af.save.Evenly(1))
    axes = plots.draw_snapshots(flow, frames=[0]).axes[0]
    dots = np.concatenate([np.asarray(part.get_offsets()) for part in axes.collections])
    assert np.abs(dots[:, None] - angles[None]).sum(axis=-1).min(axis=0).max() < 1e-12
    assert axes.get_xlim() == axes.get_ylim() == (-np.pi, np.pi)


SPEC = """
name = "circles"
[tokens]
name = "uniform"
n = 10
seed = 1
space = { name = "SPACE" }
[field]
name = "attention"
beta = 4.0
[solve]
until = 2.0
save = { name = "evenly", count = 4 }
"""


@pytest.mark.parametrize(
    "table",
    [
        '{ name = "torus", circles = 2 }',
        '{ name = "product", factors = [{ name = "sphere", dim = 3 }, { name = "torus", circles = 1 }] }',
    ],
)
def test_a_specification_of_a_torus_or_a_product(table, tmp_path):
    spec = parse_spec(SPEC.replace('{ name = "SPACE" }', table))
    run, flow = execute(spec, tmp_path / "run")
    plots.draw_run(run, flow)
    assert (run.figures / "snapshots.pdf").exists()
    again = open_run(tmp_path / "run")
    assert again.space == flow.space == spec.build()["tokens"].space
    assert np.array_equal(again.positions.values, flow.positions.values)


def test_bad_products_are_one_sentence():
    for table, words in (
        ('{ name = "product", factors = [] }', "factors"),
        ('{ name = "product", factors = [{ name = "sphere", dim = 1 }] }', "`dim` of Sphere is 1"),
        ('{ name = "product", factors = [{ name = "spere", dim = 3 }] }', "did you mean 'sphere'"),
        ('{ name = "product", factors = [3] }', "factors"),
        ('{ name = "torus" }', "needs the key 'circles'"),
    ):
        with pytest.raises(AttnflowError, match=words) as refused:
            parse_spec(SPEC.replace('{ name = "SPACE" }', table))
        assert str(refused.value).endswith((".", "?"))
