"""What training finds: clusters by hand, what claims say of made-up weights; weights that are not isotropic are noticed."""

import dataclasses

import numpy as np
import pytest
import xarray as xr

import attnflow as af
from attnflow_gallery import training_finds_attention as experiment
from attnflow_gallery.training_finds_attention import compare, simulate
from tests.experiments.mutants import mutation

CORE = dataclasses.replace(experiment.QUICK, dim=3, tokens=6, layers=2, starts=3, least=2, prompts=4)
RNG = np.random.default_rng(0)


def weights(matrices, layers=None):
    """A part of training with these Q, K and V (mark, seed, ...), and test losses that fall to 0.05."""
    names = ("weight_value", "weight_features_key", "weight_features_query")  # in no particular order
    given = dict(zip(("weight_features_query", "weight_features_key", "weight_value"), matrices, strict=True))
    dims = ("mark", "seed", *(("layer",) if layers else ()), "a", "b")
    marks, seeds = matrices[0].shape[:2]
    loss = np.linspace(0.3, 0.05, marks)[:, None] * np.ones(seeds)
    rows = {name: (dims, given[name]) for name in names} | {"test_loss": (("mark", "seed"), loss)}
    return xr.Dataset(rows | {"mark_step": ("mark", np.arange(marks))}, {"seed": np.arange(seeds)})


def made_up():
    """Random weights that become multiples of the identity, energies that rise in the end, and a plateau."""
    start, eye = RNG.standard_normal((3, 1, 3, 3, 3)), np.broadcast_to(np.eye(3), (3, 1, 3, 3, 3))
    shared = weights(np.concatenate([start, 2.0 * eye], axis=1))
    own = weights(RNG.standard_normal((3, 2, 1, 2, 3, 3)), layers=2)
    gain = np.stack([RNG.standard_normal((3, 4, 2)) - 1, np.ones((3, 4, 2))])
    clusters = np.broadcast_to([6, 4, 2], (2, 3, 4, 3))
    dims = ("mark", "seed", "prompt")
    seen = xr.Dataset({"gain": ((*dims, "layer"), gain), "clusters": ((*dims, "depth"), clusters)})
    large = weights(start)
    large["test_loss"][:] = 0.5
    before = xr.Dataset({"gain": (("start", "prompt", "layer"), RNG.standard_normal((64, 4, 2)))})
    grid = xr.Dataset({"loss": (("beta", "v"), [[0.049]]), "input": 0.18})
    return {"shared": shared, "own": own, "shared-seen": seen, "before": before, "grid": grid, "start-2": large}


def verdicts(data):
    return [claim.holds for claim in compare.claims(CORE, data)]


def test_verdicts_on_made_up_weights():
    assert verdicts(made_up()) == [True] * 8


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        (lambda data: data["shared"]["test_loss"].values.__setitem__(-1, 0.2), [0]),
        (lambda data: data["start-2"]["test_loss"].values.__setitem__(-1, 0.3), [1]),
        (lambda data: data["shared"]["weight_value"].values.__setitem__((-1, 1, 0, 0), 2.5), [2]),
        (lambda data: data["shared"]["weight_features_key"].values.__setitem__((-1, 1, 0, 1), 1.0), [2, 3]),
        (lambda data: data["shared-seen"]["gain"].values.__setitem__((-1, 2, 3, 0), -1e-3), [4]),
        (lambda data: data["before"]["gain"].values.__setitem__(slice(None), 1.0), [5]),
        (lambda data: data["shared-seen"].update({"clusters": 0 * data["shared-seen"]["clusters"] + 6}), [6]),
        (lambda data: data["own"]["weight_value"].values.__setitem__(slice(None), np.eye(3)), [7]),
    ],
)
def test_every_claim_can_fail(change, lost):
    data = made_up()
    change(data)
    assert [k for k, holds in enumerate(verdicts(data)) if not holds] == lost


def test_the_energy_rises_under_isotropic_weights_and_not_where_tokens_are_repelled():
    part, last = made_up()["shared"], {"mark": [-1], "seed": [0]}
    part = part.isel(last)
    assert compare.rises(simulate.look(part, CORE)) == 1
    with mutation(experiment, "tokens of the tests are repelled").applied():
        assert compare.rises(simulate.look(part, CORE)) == 0


def test_clusters_are_those_of_the_library():
    """Chords of 0.3 are angles of 2 asin(0.15)."""
    path = RNG.standard_normal((2, 2, 9, 3)) * [1.0, 0.3, 0.3] + [1.5, 0, 0]
    path /= np.linalg.norm(path, axis=-1, keepdims=True)
    angle = 2 * np.arcsin(simulate.LINK / 2)
    known = [
        [af.observe.cluster_count(af.from_array(x, space=af.Sphere(3)), scale=angle) for x in prompt] for prompt in path
    ]
    np.testing.assert_array_equal(simulate.clusters(path), known)
    assert 1 < np.min(known) < 9


def test_shapes_of_matrices():
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    assert compare.anisotropy(3 * np.eye(2)) == 0
    assert compare.anisotropy(turn) == 1
    assert compare.skewness(turn) == 1
    assert compare.skewness(np.eye(2) + turn) == pytest.approx(np.sqrt(0.5))
    assert compare.scale(np.diag([1.0, 3.0])) == 2
