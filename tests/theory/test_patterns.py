"""Quadratic terms and skewness of patterns, rates of the tetrahedron, against reference numbers to their digits."""

import numpy as np
import pytest

from attnflow.errors import InvalidInput
from attnflow.theory import landscape, uniform


@pytest.mark.parametrize(
    ("k", "beta", "variance", "soft", "plain"),
    [
        (2, 3.0, 0.136054, 0.274137, 0.408163),
        (3, 6.0, 0.0, 0.0, 0.0),
        (4, 10.0, 0.061114, 0.196939, 0.305569),
        (6, 20.0, 0.034437, 0.158146, 0.241056),
    ],
)
def test_skewness_of_random_harmonics(k, beta, variance, soft, plain):
    found = uniform.pattern_skewness(3, k)
    assert found.variance == pytest.approx(variance, abs=6e-7)
    assert found.bias * uniform.pattern_coefficient(beta, 3, k) == pytest.approx(soft, abs=6e-7)
    assert found.bias * uniform.pattern_coefficient(beta, 3, k, model="USA") == pytest.approx(plain, abs=6e-7)


def test_skewness_by_sampling_on_another_sphere():
    """Degree 2 in d = 4 is <x, A x> with A symmetric and traceless: mean of u^3 = 8 tr A^3/(d (d+2) (d+4))."""
    d, rng = 4, np.random.default_rng(5)
    a = rng.standard_normal((40000, d, d))
    a = a + np.swapaxes(a, 1, 2)
    a -= np.trace(a, axis1=1, axis2=2)[:, None, None] * np.eye(d) / d
    a *= np.sqrt(d * (d + 2) / 2 / np.sum(a**2, axis=(1, 2)))[:, None, None]
    w = 8 * np.trace(a @ a @ a, axis1=1, axis2=2) / (d * (d + 2) * (d + 4))
    # a standard error of the variance is below 2 % of it
    assert np.mean(w**2) == pytest.approx(uniform.pattern_skewness(d, 2).variance, rel=0.08)


def test_coefficients():
    for k, beta, expected in ((2, 3.0, 0.335818), (4, 10.0, 0.322250)):
        assert uniform.pattern_coefficient(beta, 3, k) == pytest.approx(expected, abs=6e-7)
    assert uniform.pattern_coefficient(3.0, 3, 2, model="USA0") == 0.5


@pytest.mark.parametrize(("model", "beta"), [("SA", 0.7), ("USA0", 3.0)])
def test_tetrahedron(model, beta):
    """Central differences of the velocities in plain NumPy, error 1e-10."""
    x = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / np.sqrt(3)

    def velocity(points, seen):
        weights = np.exp(beta * (points @ seen.T - 1)) / 4
        drive = weights @ seen / (weights.sum(1, keepdims=True) if model == "SA" else 1)
        return drive - np.sum(drive * points, axis=1, keepdims=True) * points

    def unit(y):
        return y / np.linalg.norm(y, axis=1, keepdims=True)

    columns = []
    for move in np.eye(12).reshape(12, 4, 3):
        ahead, behind = (velocity(unit(x + e * move), unit(x + e * move)) for e in (1e-5, -1e-5))
        columns.append((ahead - behind).ravel() / 2e-5)
    found = np.sort(np.linalg.eigvals(np.array(columns).T).real)[::-1]
    rates = landscape.tetrahedron_rates(beta, model=model)
    expected = np.sort([*[rates.double] * 2, *[rates.triple] * 3, *[0.0] * 7])[::-1]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    side = np.array([[1.0, -1.0, 0.0]]) / np.sqrt(2)
    near = unit(x[:1] + 1e-5 * side)
    assert (velocity(near, x) @ side.T).item() / 1e-5 == pytest.approx(float(rates.splitting), abs=1e-8)


def test_clocks_of_the_tetrahedron():
    slow, fast = (landscape.tetrahedron_rates(2.0, model=model) for model in ("USA0", "USA"))
    np.testing.assert_allclose(fast, np.exp(2.0) * np.array(slow))
    with pytest.raises(InvalidInput, match="USA0"):
        landscape.tetrahedron_rates(800.0, model="USA")
