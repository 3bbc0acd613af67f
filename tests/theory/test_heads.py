"""Several heads: merge times and thresholds against printed values, rates against matrices by differences."""

import numpy as np
import pytest

from attnflow.errors import InvalidInput
from attnflow.theory import landscape, merging

PAIRS = ((2, 20), (5, 20), (10, 20), (10, 30))
TIMES = {
    1.0: ((7.1962138, 6.3635863), (11.066026, 8.2597596), (37.376004, 21.321223), (39.048532, 22.332981)),
    1.5: ((11.524938, 9.0616313), (51.524290, 29.022436), (2272.4874, 1139.4082), (2275.2224, 1140.9536)),
    2.0: ((22.852907, 15.239494), (526.93173, 267.24004), (318473.01, 159240.18), (318476.77, 159242.24)),
}


def test_merge_times_of_two_heads():
    """Eight digits are printed: half a unit of the last is at most 5e-8 of the value."""
    for angle, row in TIMES.items():
        found = [
            [merging.merge_time_of_heads(angle, betas, (0.5, 0.5), model=model) for model in ("USA0", "SA")]
            for betas in PAIRS
        ]
        np.testing.assert_allclose(found, row, rtol=5e-8)
    unequal = merging.merge_time_of_heads(1.5, (5, 20), (0.5, 0.5), masses=(0.4, 0.6))
    np.testing.assert_allclose(unequal, 27.361124, rtol=5e-8)
    weak = [merging.merge_time_of_heads(1.5, (2, 20), (e, 1 - e), model="USA0") for e in (1e-7, 1e-6, 1e-4, 0.01)]
    np.testing.assert_allclose(weak, [3318170.9, 890989.6, 19654.33, 295.4533], rtol=3e-7)


def test_one_head_is_the_plain_formula_and_bad_heads_are_refused():
    for model in ("SA", "USA0"):
        plain = merging.merge_time(1.5, 9.0, masses=(0.3, 0.7), until=0.01, model=model)
        split = merging.merge_time_of_heads(1.5, (9.0, 9.0), (0.2, 0.8), masses=(0.3, 0.7), model=model)
        np.testing.assert_allclose(split, plain, rtol=1e-13)  # some 100 panels, each to 1e-16
    for wrong in ({"weights": (1.0,)}, {"weights": (1.0, 0.0)}, {"weights": (1, 1), "model": "USA"}):
        with pytest.raises(InvalidInput):
            merging.merge_time_of_heads(1.5, (1.0, 2.0), **wrong)


def test_thresholds_of_axis_heads():
    """Eight digits after the point are printed."""
    found = [landscape.axis_pair_threshold(m) for m in (0.5, 0.6, 0.7, 0.8, 0.9)]
    np.testing.assert_allclose(found, [np.arcsinh(1), 0.89832396, 0.95431751, 1.07062000, 1.32439751], atol=5e-9)
    crosses = [landscape.axis_cross_threshold(d) for d in (2, 3, 4, 8)]
    np.testing.assert_allclose(crosses, [1.72911690, 2.12446619, 2.38533802, 2.99802657], atol=5e-9)


def field(x, masses, beta, softmax):
    """Axis heads in NumPy."""
    logits = np.exp(beta * x[:, None, :] * x[None, :, :]) * masses[None, :, None]
    if softmax:
        logits /= logits.sum(axis=1, keepdims=True)
    drive = np.einsum("ijh,jh->ih", logits, x)
    return drive - np.sum(drive * x, axis=1, keepdims=True) * x


def largest_rate(x, masses, beta, softmax, h=1e-5):
    """By central differences: off by h^2 e^beta beta^3 and rounding over h, together below 1e-7."""
    n = len(x)
    bases = [np.linalg.svd(one[None])[2][1:] for one in x]
    rows = []
    for i in range(n):
        for v in bases[i]:
            sides = []
            for sign in (1, -1):
                y = x.copy()
                y[i] += sign * h * v
                y[i] /= np.linalg.norm(y[i])
                sides.append(field(y, masses, beta, softmax))
            slope = (sides[0] - sides[1]) / (2 * h)
            rows.append(np.concatenate([bases[j] @ slope[j] for j in range(n)]))
    return np.linalg.eigvals(np.array(rows).T).real.max()


@pytest.mark.parametrize("model", ["USA", "SA"])
def test_rates_of_axis_heads_are_those_of_the_field(model):
    softmax = model == "SA"
    pair = np.array([[1.0, 0.0], [-1.0, 0.0]])
    for mass in (0.5, 0.7):
        rate = largest_rate(pair, np.array([mass, 1 - mass]), 1.3, softmax)
        np.testing.assert_allclose(landscape.axis_pair_rates(1.3, mass=mass, model=model)[0], rate, atol=1e-6)
    for d in (2, 3):
        rate = largest_rate(np.concatenate([np.eye(d), -np.eye(d)]), np.full(2 * d, 0.5 / d), 1.3, softmax)
        np.testing.assert_allclose(max(landscape.axis_cross_rates(1.3, d, model=model)), rate, atol=1e-6)
