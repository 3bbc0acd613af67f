"""What notebooks and legends say: short, with the numbers that matter, never whole arrays."""

import re

import jax
import numpy as np
import pytest
from PIL import Image

import attnflow as af
from attnflow.describe import differences, named, nested
from attnflow.errors import InvalidInput
from tests.plots.flows import density_flow


@pytest.fixture(scope="module")
def flow():
    return af.solve(af.Attention(9.0), af.uniform(af.Sphere(3), n=8, seed=0), 1.0, save=4, method=af.Fixed(0.25))


@pytest.mark.slow
def test_a_flow_is_a_sequence_of_frames(flow):
    assert len(flow) == 5
    np.testing.assert_array_equal(flow[3].positions, flow.positions.values[3])
    np.testing.assert_array_equal(flow[-1].positions, flow.positions.values[-1])
    assert [one.n for one in flow] == [8] * 5
    some = flow[::2]
    assert isinstance(some, af.flows.Trajectory)
    np.testing.assert_array_equal(some.time, [0.0, 0.5, 1.0])
    for wrong in (5, -6):
        with pytest.raises(InvalidInput, match="the flow has 5"):
            flow[wrong]
    with pytest.raises(IndexError):
        flow[5]
    with pytest.raises(InvalidInput, match="`at` is"):
        flow[0.5]


def test_a_flow_is_said_in_one_line(flow):
    text = repr(flow)
    assert len(text) < 250
    for words in ("5 to t = 1", "8 on Sphere(dim=3)", "Attention(beta=9", "reached t = 1"):
        assert words in text
    assert "<xarray" not in text
    assert "beta=9" in flow._repr_html_()
    assert flow._repr_html_().count("<tr>") == 5
    tokens = af.uniform(af.Sphere(3), n=8, seed=[0, 1])
    batch = af.solve(af.Attention(9.0), tokens, 1.0, save=4, method=af.Fixed(0.25), keep=["positions"])
    assert "2 seed" in repr(batch)


def test_a_flow_draws_itself(flow):
    assert len(flow.plot().subfigs) == 2


@pytest.mark.parametrize(
    ("field", "said"),
    [
        (lambda: af.Attention(9.0), "Attention(beta=9)"),
        (lambda: af.Attention(0.5, mask=af.Window(3)), "Attention(beta=0.5, mask=Window(width=3))"),
        (lambda: af.Attention(af.Along("beta", range(1, 9))), "Attention(beta=Along('beta', [1.0, 2.0, …, 8.0]))"),
        (lambda: af.Attention(1.0, value=np.eye(3)), "Attention(beta=1, value=array(3, 3))"),
        (lambda: af.Attention(kernel=af.kernels.Gaussian(4.0)), "Attention(kernel=Gaussian(beta=4))"),
    ],
)
def test_fields_are_said_as_they_are_written(field, said):
    assert repr(field()) == said
    assert "beta" in field()._repr_html_()


def test_other_normalisers_are_said():
    assert "Hardmax()" in repr(af.Attention(1.0, normaliser=af.Hardmax()))
    assert "clock=USA0" in repr(af.Attention(1.0, normaliser=af.Unnormalised()))


def test_traced_fields_and_tokens_are_said_without_values():
    seen = []

    @jax.jit
    def look(beta, x):
        seen.extend([repr(af.Attention(beta)), repr(af.Measure(x))])
        return beta

    look(2.0, np.eye(3))
    assert "traced" in seen[0]


def test_tokens_are_said_in_one_line():
    assert repr(af.uniform(af.Sphere(3), n=8, seed=0)) == "Tokens(n: 8, space: Sphere(dim=3), masses: equal)"
    several = af.stack("k", [1, 2], [af.uniform(af.Sphere(2), n=n, seed=0) for n in (3, 5)])
    assert "k: [1, 2]" in repr(several)
    assert "8 of 10 rows" in repr(several)
    heavy = af.from_array(np.eye(2), masses=[0.25, 0.75])
    assert "0.25 to 0.75" in repr(heavy)
    assert "<table>" in heavy._repr_html_()


def test_notebooks_show_small_pictures(flow, tmp_path):
    """One disc a token, areas as masses; a curve of the energy; few kilobytes, whatever the size."""
    heavy = af.from_array(np.eye(2), masses=[0.1, 0.9])._repr_html_()
    radii = sorted(float(r) for r in re.findall(r'<circle cx="[^"]+" cy="[^"]+" r="([^"]+)"/>', heavy))
    assert radii[1] / radii[0] == pytest.approx(3, rel=0.1)  # radii are printed to one decimal
    assert flow._repr_html_().count("<circle") == 1 + 8
    together = af.from_array(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))._repr_html_()
    assert together.count("<circle") == 1 + 2
    assert "<polyline" in flow._repr_html_()
    batch = af.uniform(af.Sphere(5), n=3_000, seed=[0, 1])
    flat = af.uniform(af.Euclidean(1), n=3, seed=0)
    for one in (
        batch,
        flat,
        flow,
        density_flow(),
        af.meanfield.perturbed(af.meanfield.SphereBasis(8), degree=2, amplitude=0.1),
    ):
        assert 300 < len(one._repr_html_()) < 20_000
        assert re.search(r"<svg|<img", one._repr_html_())
    assert "nan" not in batch._repr_html_()


def test_notebooks_show_the_figure_of_a_run(tmp_path):
    assert "manifest" in af.runs.Run(tmp_path)._repr_html_()
    with af.runs.Run.creating(tmp_path / "run", af.runs.load_spec("metastability")) as run:
        pass
    assert "<img" not in run._repr_html_()
    run.figures.mkdir()
    Image.fromarray(np.zeros((900, 1200), dtype=np.uint8)).save(run.figures / "mine.png")
    assert "created" in run._repr_html_()
    assert "<img" in run._repr_html_()
    assert len(run._repr_html_()) < 20_000


def test_names_say_what_differs():
    tables = [nested({"field": {"beta": b}, "tokens": {"n": n, "seed": 0}}) for b, n in ((4.0, 8), (9.0, 16))]
    assert differences(tables) == {"field.beta": [4.0, 9.0], "tokens.n": [8, 16]}
    assert named(differences(tables), 2) == ["beta = 4, n = 8", "beta = 9, n = 16"]
    clash = [nested({"field": {"seed": 1}, "tokens": {"seed": s}}) for s in (1, 2)]
    assert named(differences(clash), 2) == ["seed = 1", "seed = 2"]
    both = [nested({"field": {"seed": s}, "tokens": {"seed": s}}) for s in (1, 2)]
    assert named(differences(both), 2)[0] == "field.seed = 1, tokens.seed = 1"


@pytest.mark.slow
def test_frames_of_a_flow_say_that_there_is_more(flow):
    long = af.solve_long(af.Attention(9.0), af.uniform(af.Sphere(3), n=8, seed=1))
    k = len(long) // 2
    part = long[:k]
    assert part.outcome.ending.value == "interrupted"
    assert "longer flow" in part.outcome.message
    assert part.dataset.sizes["merge"] < long.dataset.sizes["merge"]
    part.plot()
    assert long[:].outcome == long.outcome
    for at in (slice(2, None), slice(None, None, 2)):
        with pytest.raises(InvalidInput, match="from its start"):
            long[at]
    assert flow[::2].outcome == flow.outcome
    assert flow[:2].outcome != flow.outcome
    with pytest.raises(InvalidInput, match="forwards"):
        flow[::-1]
    assert flow[0:0].clusters(scale=0.1).sizes["time"] == 0
    assert flow[0:0].overlap_histogram().shape == (0, 100)


def test_tab_shows_what_loads_later():
    assert {"execute", "open_run"} <= set(dir(af.runs))
    assert "reproduce" in dir(af.experiments)


def test_equal_names_are_refused(flow):
    with pytest.raises(InvalidInput, match="names that differ"):
        af.plot({1: flow, "1": flow})


def test_densities_schedules_and_laws_are_said_in_one_line():
    """What a notebook shows of them, never whole arrays."""
    from attnflow.control import Schedule
    from attnflow.fields import Drift

    rho = af.meanfield.perturbed(af.meanfield.CircleBasis(8), degree=1, amplitude=0.5)
    schedule = Schedule(af.Sphere(3), [(Drift([0.0, 0, 1]), 2.0)])
    law = af.observe.exit_distribution(np.r_[np.arange(9.0), np.inf])
    for one, words in ((rho, "CircleBasis of degree 8"), (schedule, "1 Drift"), (law, "10, of which 9 exit")):
        assert words in repr(one)
        assert words in one._repr_html_()
        assert len(repr(one)) < 200
    assert "to 1.5 on the grid" in repr(rho)


def test_a_flow_of_a_density_is_said_in_one_line():
    flow = density_flow()
    text = repr(flow)
    assert len(text) < 250
    assert "<xarray" not in text
    for words in ("2 to t = 1", "CircleBasis of degree 8", "Attention(beta=4)", "reached"):
        assert words in text
        assert words in flow._repr_html_()


def test_a_flow_says_why_clusters_need_a_scale(flow):
    """A kernel without a range, several kernels, and a field that only a plugin can make."""
    import dataclasses

    other = af.Attention(kernel=af.kernels.Cosine(), normaliser=af.Unnormalised())
    for field, words in (
        (None, "the field of this run, which a plugin makes"),
        (other, r"the kernel Cosine on Sphere\(dim=3\) has no range"),
        (af.Attention(4.0) + other, "Total has 2 kernels"),
    ):
        with pytest.raises(InvalidInput, match=words):
            dataclasses.replace(flow, field=field).clusters()
