"""Figures are looked at by people; here: they exist, show what they should, and are vector graphics."""

import io
import json

import numpy as np
import pytest

import attnflow as af
from attnflow import plots
from attnflow.errors import AttnflowError
from attnflow.plots.overlaps import LARGER_SAMPLE, SAMPLE, sampled
from attnflow.plots.report import headline
from attnflow.runs import execute, open_run, parse_spec
from attnflow.spaces import CentredSphere, Euclidean, Product, Torus
from tests.marks import graded
from tests.plots.flows import FigureData, player_data


@pytest.fixture(
    scope="module", params=[2, pytest.param(3, marks=pytest.mark.slow), pytest.param(6, marks=pytest.mark.slow)]
)
def data(request):
    tokens = af.tokens.clustered(af.Sphere(request.param), centres=np.eye(request.param)[:2], n=20, spread=0.1, seed=0)
    times = af.saving.LogSpaced(30, 0.05)
    return FigureData.of(af.solve(af.Attention(9.0), tokens, 30.0, save=times, method=af.Fixed(0.25)))


@pytest.mark.long
@pytest.mark.slow
def test_all_figures_are_drawn(data):
    figures = [plots.plot, plots.draw_snapshots]
    if data.flow.space.dim == 2:  # these do not look at the space
        figures += [plots.draw_energy_and_count, plots.draw_overlaps, plots.draw_attention]
    for draw in figures:
        stream = io.StringIO()
        draw(data).savefig(stream, format="svg")
        assert "<path" in stream.getvalue()


def test_overlaps_of_many_tokens_are_those_of_a_sample_and_say_so(data, faults):
    label = [axes.get_ylabel() for axes in plots.draw_overlaps(data).axes]
    assert "share of pairs" in label
    faults.replace("tokens of an overlap map", 7)
    chosen, weights = sampled(np.ones(20))
    np.testing.assert_array_equal(chosen, sampled(np.ones(20))[0])
    np.testing.assert_array_equal(weights, 1.0)
    assert len(set(chosen.tolist())) == 7
    assert set(chosen.tolist()) <= set(range(20))
    assert "share of pairs (of 7 tokens)" in [axes.get_ylabel() for axes in plots.draw_overlaps(data).axes]


def test_the_story_is_right(data):
    assert [p.clusters for p in data.plateaus] == [2]
    assert set(data.labels) == {0, 1}
    assert len(set(data.labels[:10])) == 1
    summary = plots.summarise(data)
    assert summary["clusters_at_end"] == 2
    # two clusters at a right angle: the pair term is e^(-9), the clusters have contracted by e^(-30)
    assert summary["energy_at_end"] == pytest.approx(
        af.theory.landscape.energy_of_clusters([0.5, 0.5], 9.0), rel=2 * np.exp(-9.0)
    )


def test_the_report_has_a_player(data):
    page = plots.account(data.flow).player
    assert page.count("<canvas") == page.count('<input type="range"') == 1
    made = player_data(page)
    assert max(made["frame"]) == 30  # all 31 frames
    assert made["views"][0]["count"] == 20


def test_the_player_of_frames_that_percolate_holds_only_numbers():
    tokens = af.uniform(af.Sphere(2), n=12, seed=0)
    flow = af.solve(af.Attention(2.0), tokens, 20.0, save=10, method=af.Fixed(0.25))
    assert np.isnan(FigureData.of(flow).counts[1][0])
    made = player_data(plots.animate(flow, seconds=12.0, fps=12, width=900))
    assert None in made["panels"][1]["y"]
    json.dumps(made, allow_nan=False)


@pytest.mark.slow  # the README runs as a test
def test_the_ten_line_script():
    tokens = af.uniform(af.Sphere(3), n=50, seed=0)
    field = af.Attention(beta=9.0)
    assert field.velocity(tokens).dtype == np.float64
    flow = af.solve(field, tokens, until=40.0)
    assert flow.energy.dims == ("time",)
    assert flow.energy.dtype == np.float64
    assert flow.clusters()["label"].dims == ("time", "token")
    assert af.theory.uniform.growth_rates(beta=9.0, d=3)[0] == pytest.approx(0.197531, abs=1e-6)
    assert af.plot(flow).axes


@pytest.mark.slow
def test_batches_and_fields_without_energy_are_drawn():
    tokens = af.uniform(af.Sphere(3), n=12, seed=range(2))
    field = af.Attention(af.Along("beta", [2.0, 4.0]), value=-np.eye(3))
    flow = af.solve(field, tokens, 2.0, save=10, method=af.Fixed(0.25))
    assert plots.plot(flow).axes
    assert "energy" not in flow.dataset


@graded(
    ("space", "rows", "labels"),
    [
        (Torus(1), 1, ("", "")),
        (Torus(2), 1, ("$a_{1}$", "$a_{2}$")),
        (Torus(3), 2, ("$a_{1}$", "$a_{2}$")),
        (Euclidean(1), 1, ("$x_{1}$", "")),
        (Euclidean(2), 1, ("$x_{1}$", "$x_{2}$")),
        (Product(Euclidean(5), Torus(1)), 2, None),
        (CentredSphere(4, [1.0, 2.0, 1.0, 1.0]), 1, ("", "")),
    ],
    ids=str,
    slow=1,
)
def test_every_space_has_figures(space, rows, labels):
    flow = af.solve(
        af.Attention(2.0), af.uniform(space, n=12, seed=1), 1.0, save=af.saving.Evenly(4), method=af.Fixed(0.125)
    )
    story = FigureData.of(flow)
    figure = plots.draw_snapshots(story, frames=[0, 4])
    assert len(figure.axes) == 2 * rows
    first = figure.axes[0]
    if labels is None:  # principal components, with their shares
        assert [label[:4] for label in (first.get_xlabel(), first.get_ylabel())] == ["PC 1", "PC 2"]
    else:
        assert (first.get_xlabel(), first.get_ylabel()) == labels
    figure.savefig(io.BytesIO(), format="svg")
    made = plots.animate(flow, seconds=3.0, fps=4, width=240)
    assert next(made.pictures()).shape[1] == 240
    assert [view["count"] for view in player_data(made)["views"]] == [12] * rows
    assert plots.summarise(story)["clusters_at_end"] >= 1


@pytest.mark.slow
def test_the_square_of_a_torus_shows_the_angles():
    torus = Torus(2)
    angles = np.array([[3.0, -1.0], [0.5, 2.0], [-2.0, 0.1]])
    tokens = af.Tokens(torus.at(angles), space=torus)
    flow = af.solve(af.Attention(2.0), tokens, 0.1, save=1, method=af.Fixed(0.125))
    axes = plots.draw_snapshots(flow, frames=[0]).axes[0]
    dots = np.concatenate([np.asarray(part.get_offsets()) for part in axes.collections])
    assert np.abs(dots[:, None] - angles[None]).sum(axis=-1).min(axis=0).max() < 1e-12
    assert axes.get_xlim() == axes.get_ylim() == (-np.pi, np.pi)
    moving = plots.animate(flow, seconds=2, fps=2, width=240)
    dots = np.asarray(moving.scene.dots[0].get_offsets())
    assert np.abs(dots[:, None] - angles[None]).sum(axis=-1).min(axis=0).max() < 1e-12


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
method = { name = "fixed", step = 0.125 }
"""


@graded(
    "table",
    [
        '{ name = "torus", circles = 2 }',
        '{ name = "product", factors = [{ name = "sphere", dim = 3 }, { name = "torus", circles = 1 }] }',
    ],
    slow=0,
)
def test_a_specification_of_a_torus_or_a_product(table, tmp_path):
    spec = parse_spec(SPEC.replace('{ name = "SPACE" }', table))
    run, flow = execute(spec, tmp_path / "run")
    if isinstance(flow.space, Torus):  # figures of products are drawn above
        plots.draw_run(run, flow)
        assert (run.figures / "snapshots.pdf").exists()
    again = open_run(tmp_path / "run")
    assert again.space == flow.space == spec.work.tokens.space
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


def test_a_sample_of_overlaps_sees_what_has_mass():
    masses = np.zeros(1000)
    masses[[3, 500, 999]] = 1.0
    chosen, weights = sampled(masses)
    np.testing.assert_array_equal(chosen, [3, 500, 999])
    np.testing.assert_array_equal(weights, 1.0)
    assert len(sampled(np.ones(5000))[0]) == SAMPLE
    unequal = 1.0 + (np.arange(20_000) < 100) * 1000.0
    chosen, weights = sampled(unequal)
    assert weights.sum() == LARGER_SAMPLE
    # of the mass, 100 * 1001/(100 * 1001 + 19900) = 0.834 is in the first hundred; 5 standard deviations of 4096 draws
    assert weights[chosen < 100].sum() / LARGER_SAMPLE == pytest.approx(0.834, abs=5 * 0.006)
    heavy = np.where(np.arange(1000) < 3, 1e6, 1.0)
    assert len(sampled(heavy)[0]) == 1000


@pytest.mark.slow
def test_a_flow_of_few_masses_and_many_test_particles_is_drawn():
    masses = np.zeros(600)
    masses[-4:] = 1.0
    tokens = af.Tokens(af.uniform(af.Sphere(3), n=600, seed=0).positions, masses, space=af.Sphere(3))
    flow = af.solve(af.Attention(2.0), tokens, 0.5, save=2, method=af.Fixed(0.25))
    figure = plots.draw_overlaps(flow)
    assert np.isfinite(figure.axes[0].collections[0].get_array().filled(np.nan)).any()


def test_the_top_of_a_report_says_beta_n_d_and_seed():
    table = {
        "tokens": {"name": "uniform", "n": 64, "seed": [0, 1, 2], "space": {"name": "sphere", "dim": 3}},
        "field": {"name": "total", "beta": 9.0, "noise": {"kappa": 0.5}},
    }
    assert headline(table) == "β = 9.0 · κ = 0.5 · n = 64 · d = 3 · seed = [0, 1, 2]"
    array = {"tokens": {"name": "array", "positions": [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]}, "field": {"beta": 2.0}}
    assert headline(array) == "β = 2.0 · n = 3 · d = 2"
