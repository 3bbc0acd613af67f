"""The uniform measure under general weights, against reference numbers of an independent program, to their digits."""

import numpy as np
import pytest
from scipy.special import roots_legendre

from attnflow.errors import InvalidInput
from attnflow.theory import uniform

LAST = 6e-9
"""Reference numbers have eight or nine decimals."""


def circle(n=256):
    angles = 2 * np.pi * np.arange(n) / n
    return np.stack([np.cos(angles), np.sin(angles)], axis=1), np.full(n, 1 / n)


def sphere(n=40):
    c, masses = roots_legendre(n)
    around, _ = circle(2 * n)
    flat = np.sqrt(1 - c**2)[:, None, None] * around
    up = np.broadcast_to(c[:, None, None], (n, 2 * n, 1))
    return np.concatenate([flat, up], axis=-1).reshape(-1, 3), np.repeat(masses / 2, 2 * n) / (2 * n)


def second_moments(matrix, model):
    x, masses = circle() if len(matrix) == 2 else sphere()
    return 2 * masses @ (x * uniform.uniform_velocity(x, matrix, np.eye(len(matrix)), model=model))


@pytest.mark.parametrize(
    ("entries", "model", "expected"),
    [
        ((2, 1), "SA", (0.0978403579, -0.0978403579)),
        ((2, 1), "USA", (0.1687774545, -0.1687774545)),
        ((4, 1), "SA", (0.2155680210, -0.2155680210)),
        ((4, 1), "USA", (0.9882303393, -0.9882303393)),
        ((2, 1, 1), "SA", (0.0778934899, -0.0778934899 / 2, -0.0778934899 / 2)),
        ((4, 1, 1), "SA", (0.1925178448, -0.1925178448 / 2, -0.1925178448 / 2)),
        ((3, 2, 1), "SA", (0.1031661642, 0.0033949279, -0.1065610921)),
        ((3, 2, 1), "USA", (0.2175859168, -0.0140658262, -0.2035200906)),
    ],
)
def test_symmetric_interactions_with_plain_values_move_second_moments(entries, model, expected):
    matrix = np.diag(np.array(entries, dtype=float))
    np.testing.assert_allclose(second_moments(matrix, model), expected, atol=1e-10)
    assert uniform.stationarity_defect(matrix, np.eye(len(matrix))) > 0.1


@pytest.mark.parametrize(
    ("phi", "psi", "model", "expected"),
    [
        (0.7, 0.0, "SA", (0.18862433 + 0.42520008j, 0.24569595 + 0.60995083j, -0.05412088 + 1.07438043j)),
        (0.7, 0.0, "USA", (2.24959012 + 3.65310302j, 3.50823221 + 3.37529934j, 1.03274856 + 4.48533813j)),
        (0.7, 0.7, "SA", (0.20650364 - 0.17393562j, 0.10424874 - 0.60442205j, -0.29781713 - 0.50922159j)),
        (np.pi / 2, 0.0, "SA", (0.07392873 + 0.80998529j, 1.35854876j, -0.31228892 + 2.42995588j)),
    ],
)
def test_rates_on_the_circle(phi, psi, model, expected):
    k, delta = np.arange(1, 4), psi - phi
    found = uniform.turning_rates(3.0, 2, k, angle=k * phi, scale=np.cos(delta), spin=k * np.sin(delta), model=model)
    np.testing.assert_allclose(found, expected, rtol=0, atol=LAST)


def test_rates_on_the_sphere():
    """Rotation by 0.7 about z, c = 0.6, S = 0.8 times the generator about z."""
    k, m = np.array([1, 1, 2, 2, 2]), np.array([0, 1, 0, 1, 2])
    found = uniform.turning_rates(3.0, 3, k, angle=0.7 * m, scale=0.6, spin=0.8 * m)
    expected = [0.26865460, 0.03796858 - 0.90925586j, 0.39403621, 0.18171256 - 0.93322316j, -0.29911990 - 1.52606380j]
    np.testing.assert_allclose(found, expected, rtol=0, atol=LAST)


def test_plain_rates_and_clocks():
    """Without a turn the rates are those of the spectrum; the clocks of USA and USA0 differ by e^beta."""
    k = np.arange(1, 6)
    for model in ("SA", "USA0", "USA"):
        plain = uniform.turning_rates(3.0, 5, k, model=model)
        np.testing.assert_allclose(plain, uniform.growth_rates(3.0, 5, k=k, model=model), rtol=1e-14)
    turned = [uniform.turning_rates(3.0, 4, 2, angle=0.4, spin=0.3, model=model) for model in ("USA", "USA0")]
    assert turned[0] == pytest.approx(np.exp(3.0) * turned[1], rel=1e-13)


def test_which_weights_keep_the_uniform_measure():
    """The divergence of the velocity on S^2 by central differences: zero if and only if the defect is."""
    about_z, about_x = np.zeros((3, 3)), np.zeros((3, 3))
    about_z[1, 0], about_z[0, 1] = about_x[2, 1], about_x[1, 2] = 1.0, -1.0
    wide, x = np.diag([2.0, 2.0, 1.0]), sphere(12)[0]
    for skew, expected in ((about_z, 0.0), (about_x, 0.022218)):
        value = skew @ np.linalg.inv(wide)
        outer = [_slope(x, one, wide, value) @ one for one in np.eye(3)]
        masses = sphere(12)[1]
        divergence = sum(outer) / 2e-5
        assert np.sqrt(masses @ divergence**2) == pytest.approx(expected, abs=6e-7)
        assert (uniform.stationarity_defect(wide, value) < 1e-15) == (expected == 0)
    rotation = np.linalg.qr(np.array([[1.0, 2.0, 3.0], [0.0, 1.0, 4.0], [5.0, 6.0, 0.0]]))[0]
    some = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0], [0.3, 0.0, 2.0]])
    assert uniform.stationarity_defect(3 * rotation, rotation) < 1e-14
    assert uniform.stationarity_defect(some, np.linalg.inv(some).T) < 1e-14
    assert uniform.stationarity_defect(some, np.linalg.inv(some)) > 0.1
    assert uniform.stationarity_defect(np.diag([3.0, -3.0]), np.eye(2)) > 0.1


def _slope(x, direction, matrix, value):
    ahead, behind = (uniform.uniform_velocity(_unit(x + e * direction), matrix, value) for e in (1e-5, -1e-5))
    return ahead - behind


def _unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: uniform.uniform_velocity([[1.0, 0.0]], np.eye(2), np.eye(2), model="USA0"), "'USA'"),
        (lambda: uniform.stationarity_defect(np.eye(2), np.eye(3)), "two d x d matrices"),
        (lambda: uniform.turning_rates(1.0, 2, 0), "`k` is 0"),
        (lambda: uniform.turning_rates(1.0, 2, 1, spin=np.inf), "`spin` is inf"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(InvalidInput, match=words):
        call()


def test_no_velocity_is_no_defect():
    assert uniform.stationarity_defect(np.eye(2), np.zeros((2, 2))) == 0.0


@pytest.mark.parametrize("points", [[[2.0, 0.0]], [[1.0, 0.0, 0.0]], [[np.nan, 0.0]], 1.0])
def test_a_velocity_needs_points_of_the_sphere(points):
    with pytest.raises(InvalidInput, match="points"):
        uniform.uniform_velocity(points, np.eye(2), np.eye(2))
