"""Joint scalings of depth: a frozen network and the ODE hold on a small version, and wrong layers are found out."""

import dataclasses

import numpy as np
import pytest

from attnflow import theory
from attnflow_gallery import depth_scalings
from attnflow_gallery.depth_scalings import compare, simulate
from tests.experiments.mutants import mutation

QUICK = depth_scalings.QUICK
CORE = dataclasses.replace(
    QUICK, frozen=((1 / 16, 1, 16, 3_200),), ballistic=((1 / 10, 1, 10, 800), (1 / 30, 1, 30, 800))
)


def part(kind, index, mean_value):
    network = getattr(CORE, kind)[index]
    return simulate.overlaps(CORE, network, mean_value, index)


def core(moments):
    """Claims about frozen networks and the ODE, which need one number of heads alone."""
    data = {
        "moments": moments,
        "frozen0": part("frozen", 0, 0.0),
        "ballistic0": part("ballistic", 0, 1.0),
        "ballistic1": part("ballistic", 1, 1.0),
    }
    return [*compare._frozen(CORE, data), *compare._ballistic(CORE, data)]


def test_the_core_holds_and_longer_steps_are_found_out():
    moments = simulate.moments(CORE)  # of one layer: no steps
    assert [(claim.statement, claim.found) for claim in core(moments) if not claim.holds] == []
    with mutation(depth_scalings, "steps 15 % longer").applied():
        wrong = [claim.statement for claim in core(moments) if not claim.holds]
    assert any("standard deviation" in one for one in wrong)
    assert any("without noise" in one for one in wrong)


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
