"""Linear response of overlaps: derivatives of their flow, and the spread of collapse times."""

import numpy as np
import pytest

from attnflow import theory


@pytest.mark.parametrize("model", ["SA", "USA0"])
def test_rates_are_derivatives_of_the_flow_of_the_overlaps(model):
    """Central differences of G_ij' = sum_k A_ik (G_kj - G_ik G_ij) + (i <-> j) along one deviation of each kind."""
    n, beta, gamma, h = 6, 2.3, 0.3, 1e-5

    def flow(gram):
        weights = np.exp(beta * (gram - 1)) / n
        if model == "SA":
            weights = weights / weights.sum(axis=1, keepdims=True)
        pulled = weights @ gram
        half = pulled - np.sum(weights * gram, axis=1)[:, None] * gram
        return half + half.T

    first = np.zeros((n, n))
    u = np.array([1.0, -2.0, 0.5, 0.5, 1.0, -1.0])  # sums to zero
    first[0, 1] = first[2, 3] = 1.0
    first[1, 2] = first[0, 3] = -1.0  # row sums are zero
    kinds = [np.ones((n, n)), u[:, None] + u[None, :], first + first.T]
    start = (1 - gamma) * np.eye(n) + gamma
    speed, rates = theory.uniform.overlap_rates(gamma, beta, n, model=model)
    assert flow(start)[0, 1] == pytest.approx(float(speed), abs=1e-14)
    for kind, rate in zip(kinds, rates, strict=True):
        kind = kind - np.diag(np.diag(kind))
        moved = (flow(start + h * kind) - flow(start - h * kind)) / (2 * h)
        np.testing.assert_allclose(moved - np.diag(np.diag(moved)), rate * kind, atol=1e-8)  # h^2 and eps/h


def test_a_mean_deviation_grows_with_the_speed_of_the_common_overlap():
    """It is a shift along the solution: the factor is gamma'(gamma)/gamma'(0)."""
    for model in ("SA", "USA0"):
        speeds = theory.uniform.overlap_rates(np.array([0.0, 0.7]), 3.0, 8, model=model)[0]
        assert theory.uniform.overlap_growth(0.7, 3.0, 8, model=model)[0] == pytest.approx(
            speeds[1] / speeds[0], rel=1e-12
        )
    assert theory.uniform.overlap_spread(1e-12, 3.0, 8) == pytest.approx(1.0)  # variance 1/d at the start


def test_the_spread_of_times_is_the_slope_of_the_closed_form():
    n, d, beta, shift = 8, 512, 2.0, 1e-5
    slope = (
        theory.uniform.equiangular_time(0.6, beta, n, overlap0=-shift)
        - theory.uniform.equiangular_time(0.6, beta, n, overlap0=shift)
    ) / (2 * shift)
    expected = slope * np.sqrt(2 / (n * (n - 1) * d))
    assert theory.uniform.collapse_time_spread(beta, n=n, d=d) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: theory.uniform.overlap_rates(0.1, 1.0, 2), "`n` is 2"),
        (lambda: theory.uniform.overlap_rates(0.1, 1.0, 8, model="USA"), "USA0"),
        (lambda: theory.uniform.overlap_rates(0.1, -1.0, 8), "`beta` is"),
    ],
)
def test_bad_arguments_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
