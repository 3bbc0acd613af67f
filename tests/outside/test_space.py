"""A space from outside: one file is enough for flows, noise, maps, stability, clusters and figures."""

from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import expm, logm
from scipy.spatial.transform import Rotation

import attnflow as af
from attnflow import plots, stability
from attnflow.errors import InvalidInput
from attnflow.runs import open_run
from tests.cli.test_cli import attnflow
from tests.outside.space import SKEW, Rotations

SPEC = """
name = "rotations"
[tokens]
name = "uniform"
n = 12
seed = 1
space = { name = "rotations" }
[field]
name = "attention"
beta = 3.0
[solve]
until = 6.0
save = { name = "evenly", count = 6 }
"""


@pytest.mark.long
def test_a_run_of_a_plugin_with_figures(tmp_path):
    (tmp_path / "mine.toml").write_text(SPEC)
    plugin, run = str(Path(__file__).parent / "space.py"), tmp_path / "run"
    attnflow("run", "mine.toml", "--plugin", plugin, "--out", "run", cwd=tmp_path, check=0)
    assert (run / "figures/summary.png").exists()
    assert open_run(run).dataset.sizes["time"] == 7
    assert open_run(run, plugins=[plugin]).tokens(0).space.volume == Rotations().volume
    with pytest.raises(InvalidInput, match="comes from a plugin; open it with open_run"):
        plots.plot(open_run(run))


@pytest.mark.long
def test_flow_map_noise_and_stability():
    space, rng = Rotations(), np.random.default_rng(0)
    tokens, points = af.uniform(space, n=6, seed=0), space.sample(rng, 3)
    for method in (af.Fixed(0.05), af.Layers(0.25)):
        phi = af.flow_map(af.Attention(1.0), tokens, 1.0, method=method)
        h = 1e-5
        turns = [np.eye(3), *(expm(s * h * e) for e in SKEW for s in (1, -1))]
        around = np.einsum("nij,kjl->knil", points.reshape(-1, 3, 3), turns).reshape(-1, 9)
        end, logdet = phi.push(around)
        end = end.reshape(7, 3, 3, 3)
        # left-invariant charts u -> X e^(u . SKEW) carry Haar measure to Lebesgue measure at u = 0
        moved = np.einsum("nji,snjl->snil", end[0], (end[1::2] - end[2::2]) / (2 * h))
        numeric = np.linalg.slogdet(np.einsum("kil,snil->nks", SKEW, moved))[1]
        np.testing.assert_allclose(logdet[:3], numeric, atol=1e-6)
    assert stability.spectrum(af.Attention(1.0), tokens).eigenvalues.shape == (18,)
    # the trace of the matrix decays at half the eigenvalue of the angle metric, l (l+1) = 2 for l = 1: e^(-kappa t)
    kappa, until = 0.3, 0.5
    many = af.Tokens(np.tile(np.eye(3).ravel(), (4096, 1)), space=space)
    still = af.Perceptron(np.zeros((1, 9)), np.zeros(1), np.zeros((9, 1)), activation="tanh")
    method, noise = af.Layers(0.005, af.layer_updates.ProjectRenormalise()), af.Brownian(kappa, seed=1)
    x = af.solve(still, many, until, save=af.saving.Evenly(1), method=method, noise=noise).positions.values[-1]
    trace = x.reshape(-1, 3, 3).trace(axis1=1, axis2=2) / 3
    # four standard errors, and the step: weak order 1 with relative error about rate^2 until h
    assert abs(trace.mean() - np.exp(-kappa * until)) < 4 * trace.std() / 64 + kappa**2 * until * 0.005 * 4


@pytest.mark.long
def test_distance_and_clusters():
    space, rng = Rotations(), np.random.default_rng(1)
    x, y = space.sample(rng, 8), space.sample(rng, 8)
    angles = Rotation.from_matrix(np.einsum("nji,njk->nik", x.reshape(-1, 3, 3), y.reshape(-1, 3, 3))).magnitude()
    np.testing.assert_allclose(space.distance(x, y), 2**0.5 * angles, rtol=1e-7)
    one = logm(x[0].reshape(3, 3).T @ y[0].reshape(3, 3)).real
    assert space.distance(x[0], y[0]) == pytest.approx(np.linalg.norm(one), rel=1e-7)
    tokens = af.tokens.clustered(space, centres=x[:3], n=60, spread=0.02, seed=0)
    assert af.observe.clusters(tokens, scale=0.4).count == 3
    flow = af.solve(af.Attention(3.0), af.uniform(space, n=10, seed=0), 2.0, save=af.saving.Evenly(4))
    assert len(plots.draw_snapshots(flow).axes) % 3 == 0
