"""Stability of measures and contraction of caps, against reference numbers of an independent program."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from attnflow.errors import InvalidInput
from attnflow.theory import landscape


@pytest.mark.parametrize(
    ("beta", "omega", "other", "softmax"),
    [
        (0.5, 0.41405760, 0.92231758, 1.0),
        (1.0, 0.36787944, 0.79950924, 1.25),
        (4.0, 0.41008864, 0.82017728, 4.0625),
        (9.0, 0.42876464, 0.85752928, 9.02777778),
    ],
)
def test_constants(beta, omega, other, softmax):
    assert float(landscape.expansion_rate(beta)) == pytest.approx(omega, abs=6e-9)
    assert float(landscape.stability_rate(beta, d=3, p=1)) == pytest.approx(other, abs=6e-9)
    assert float(landscape.stability_rate(beta, d=2, p=2)) == pytest.approx(omega, abs=6e-9)
    assert float(landscape.stability_rate(beta, d=3, p=2)) == pytest.approx(2 * omega, abs=2e-8)
    assert float(landscape.softmax_lipschitz(beta)) == pytest.approx(softmax, abs=6e-9)


@pytest.mark.parametrize("beta", [0.0, 0.1, 1 / 3, 0.4, 2.0, 1e4])
def test_constants_are_maxima(beta):
    """By a grid and a search around its best point."""

    def pull(c, general):
        q = beta * (1 - c**2) - c
        return np.exp(beta * (c - 1)) * (q + np.maximum(1, np.abs(q)) if general else q)

    for general, found in (
        (False, landscape.expansion_rate(beta)),
        (True, landscape.stability_rate(beta, d=4, p=np.inf)),
    ):
        grid = np.sort(np.concatenate([np.linspace(-1, 1, 4001), 1 - np.geomspace(1e-6, 1, 2000)]))
        best = int(np.argmax(pull(grid, general)))
        around = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        search = minimize_scalar(
            lambda c, g=general: -pull(c, g), bounds=around, method="bounded", options={"xatol": 1e-12}
        )
        assert float(found) == pytest.approx(max(-search.fun, pull(grid[best], general)), rel=1e-7)


def test_limits_of_steep_kernels():
    assert float(landscape.expansion_rate(1e6)) == pytest.approx(2 * np.exp(-1.5), rel=1e-5)
    assert np.all(landscape.stability_rate(np.geomspace(1, 1e6, 50), d=3, p=1) <= 4 * np.exp(-1.5))


@pytest.mark.parametrize(
    ("d", "expected"),
    [
        (2, (4.69372659, 4.98976750, 6.55062669, 16.45594377)),
        (3, (4.87094308, 5.22230506, 7.12753945, 19.78357429)),
    ],
)
def test_times_of_caps(d, expected):
    for beta, time in zip((0.0, 1.0, 4.0, 9.0), expected, strict=True):
        assert float(landscape.cap_time(0.01, beta, d=d, start=1.0)) == pytest.approx(time, abs=6e-9)
        assert float(landscape.cap_diameter(time, beta, d=d, start=1.0)) == pytest.approx(0.01, rel=1e-8)
    assert float(landscape.cap_diameter(0.0, 3.0, d=d, start=1.0)) == 1.0  # where nothing is integrated


def test_the_spread_of_a_cloud():
    for start, expected in ((1.0, (0.27846454, 0.04747849, 0.00091105)), (4.0, (2.47860034, 1.20216787, 0.06841772))):
        found = 1000 * landscape.softmax_spread([1.0, 2.0, 4.0], 1000.0, start / 1000)
        np.testing.assert_allclose(found, expected, rtol=0, atol=6e-9)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: landscape.stability_rate(1.0, d=2, p=0.5), "p >= 1"),
        (lambda: landscape.cap_time(0.1, 1.0, d=3, start=2.0), "`start` is 2.0"),
        (lambda: landscape.cap_time(1.5, 1.0, d=2, start=1.0), "at most start"),
        (lambda: landscape.softmax_spread(1.0, 0.0, 1.0), "`beta` is 0"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(InvalidInput, match=words):
        call()


def test_a_cap_shrinks_like_exp_minus_t_to_the_smallest_numbers():
    """Late D falls at the rate 1 up to D^2, from 1e-8 to 1e-86; at t = 1000 it is below every float."""
    early, late, last = landscape.cap_diameter([20.0, 200.0, 1000.0], 4.0, d=2, start=1.0)
    assert np.log(early / late) == pytest.approx(180.0, abs=1e-9)
    assert last == 0.0
