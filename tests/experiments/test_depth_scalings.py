"""Joint scalings of depth: a frozen network and the ODE hold on a small version, and wrong layers are found out."""

import dataclasses

import numpy as np
import pytest

from attnflow import theory
from attnflow_gallery import depth_scalings
from attnflow_gallery.depth_scalings import compare, paths, simulate
from tests.experiments.mutants import mutation

QUICK = depth_scalings.QUICK
CORE = dataclasses.replace(
    QUICK,
    frozen=((1 / 32, 1, 32, 1_600),),
    ballistic=((1 / 10, 1, 10, 800), (1 / 30, 1, 30, 1_600)),
)


def core(kept):
    """Claims that need one number of heads alone; `kept` are the parts that no network changes."""
    data, (eta, heads, layers, count) = dict(kept), CORE.frozen[0]
    for kind, mean_value in (("frozen", 0.0), ("ballistic", 1.0)):
        for index, network in enumerate(getattr(CORE, kind)):
            data[f"{kind}{index}"] = simulate.overlaps(CORE, network, mean_value, index)
    data["longer0"] = simulate.overlaps(CORE, (2 * eta, heads, layers, count), 0.0, 0)
    return data, [*compare._frozen(CORE, data), *compare._ballistic(CORE, data)]


@pytest.mark.long
def test_the_core_holds_and_longer_steps_are_found_out():
    kept = {"moments": simulate.moments(CORE)}
    data, right = core(kept)
    assert [(claim.statement, claim.found) for claim in right if not claim.holds] == []
    with mutation(depth_scalings, "steps 15 % longer").applied():
        wrong = [claim.statement for claim in core(kept)[1] if not claim.holds]
    assert any("half the mean" in one for one in wrong)
    assert any("standard deviation" in one for one in wrong)
    assert any("without noise" in one for one in wrong)
    data["longer0"]["mean"][3] = np.nan
    assert [claim.holds for claim in compare._frozen(CORE, data)] == [False, True]


def test_estimates_of_the_diffusion_have_the_drift_of_the_first_moment():
    """One step of time 1 has the drift of orthonormal tokens, (d - 2) s_ij/d, and steps of any length stay on it."""
    few = dataclasses.replace(QUICK, paths=20_000)
    found = paths.estimates(few, 1, few.rng(0))
    known = 0.75 * float(simulate.moments(few).sel(level=0.0)["shared"])
    error = np.hypot(found.std() / np.sqrt(20_000), 0.75 * float(simulate.moments(few).sel(level=0.0)["shared_error"]))
    assert abs(found.mean() - known) < 5 * error


def test_layers_without_noise_by_vectors_and_in_the_limit():
    """Three orthonormal tokens that all move by the mean token; many short layers are the ODE."""
    x = np.eye(3)
    for _ in range(4):
        x = x + 0.3 * x.mean(axis=0)
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    assert compare.euler(3, 0.3, 4) == pytest.approx(x[0] @ x[1], abs=1e-14)
    # Euler's method has an error of order eta with a constant below 1
    assert compare.euler(4, 1e-4, 10_000) == pytest.approx(compare.ode(4, 1.0), abs=1e-4)
    assert compare.ode(4, 1.0) == pytest.approx(0.6150, abs=5e-5)


def test_moments_of_orthonormal_tokens_are_near_those_of_many_keys():
    """E|m|^2 and E<m_i, m_j> at d_k = 8 against quadratures for d_k -> inf: corrections of order b^4/d_k times 0.1."""
    found = simulate.moments(QUICK).sel(level=0.0)
    assert float(found["own"]) == pytest.approx(float(theory.random_layers.simplex_weights(4, 1.0, 1.0)), abs=0.02)
    assert float(found["shared"]) == pytest.approx(0.25, abs=0.01)
    # sum_ik <w_i, w_k> s_ik for orthonormal tokens: <w_i, w_k> = n - 1 on the diagonal and n - 2 off it
    want = 4 / 144 * 4 * (3 * float(found["own"]) + 3 * 2 * float(found["shared"]))
    assert float(found["noise"]) == pytest.approx(want, rel=1e-12)


def test_the_distance_of_two_distributions():
    from scipy.stats import ks_2samp

    one, other = np.random.default_rng(0).normal(size=(2, 300))
    assert compare.distance(one, other + 0.1) == pytest.approx(ks_2samp(one, other + 0.1).statistic, abs=1e-12)
