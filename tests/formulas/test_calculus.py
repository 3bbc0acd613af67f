"""The integrator, the root finder and the solver that formulas use: right to what they state, or refused."""

import mpmath as mp
import numpy as np
import pytest
from scipy import special as sp

from attnflow.errors import InvalidInput, NotAccurate
from attnflow.special.curves import curve
from attnflow.special.integrals import integral, log_integral
from attnflow.special.roots import root
from tests.formulas.points import Integers, Reals, Word, formula

BETAS = np.array([0.0, 1.0, 10.0, 1e3, 1e6, 1e8])


def bump(x, beta):
    return np.exp(-2 * beta * np.sin(x / 2) ** 2)


def test_integrals_with_a_peak_at_an_end_are_exact_to_rounding():
    """pi e^-b I_0(b): a peak of width b^(-1/2), down to 1e-5 of the interval."""
    exact = np.pi * sp.ive(0, BETAS)
    np.testing.assert_allclose(integral(bump, 0.0, np.pi, BETAS), exact, rtol=1e-13)
    np.testing.assert_allclose(integral(bump, np.pi, 0.0, BETAS), -exact, rtol=1e-13)


def test_integrals_take_shapes_and_points():
    """A peak of width 1e-8 inside is found where a point announces it."""
    centres = np.array([[0.1], [0.7]])

    def peak(x, centre, width):
        return 1 / (1 + ((x - centre) / width) ** 2)

    widths = np.array([1e-8, 1e-4, 1.0])
    points = centres[..., None] + np.array([-100, 0, 100]) * widths[:, None]
    exact = widths * (np.arctan((1 - centres) / widths) + np.arctan(centres / widths))
    np.testing.assert_allclose(integral(peak, 0.0, 1.0, centres, widths, points=points), exact, rtol=1e-8)  # x - centre


def test_an_integral_that_cannot_be_had_is_refused():
    with pytest.raises(NotAccurate, match="cancel"):
        integral(np.sin, 0.0, 2 * np.pi)
    with pytest.raises(NotAccurate, match="halvings|not finite"):
        integral(lambda x: np.sqrt(np.abs(x - 1 / 3)) ** -1.0, 0.0, 1.0, rtol=1e-12)
    with pytest.raises(NotAccurate, match="not finite"):
        integral(lambda x: x * np.nan, 0.0, 1.0)


def test_logarithms_of_integrals_leave_float_range():
    """log int e^(b (2 + cos - 1)) = 2 b + log(pi e^-b I_0(b)), up to e^(2e8)."""
    logs = log_integral(lambda x, beta: 2 * beta * np.cos(x / 2) ** 2, 0.0, np.pi, BETAS[:-1])
    np.testing.assert_allclose(logs, 2 * BETAS[:-1] + np.log(np.pi * sp.ive(0, BETAS[:-1])), rtol=1e-15, atol=1e-12)
    assert log_integral(lambda x: x, 1.0, 1.0) == -np.inf


@pytest.mark.parametrize("guess", [(0.0, 1.0), (-3.0, -2.0), (700.0, 701.0)])
def test_roots_do_not_depend_on_the_guess(guess):
    values = np.array([1e-300, 1e-10, 1.0, 7.0, 1e300])
    np.testing.assert_allclose(root(lambda x, a: np.exp(x) - a, *guess, values), np.log(values), rtol=1e-14, atol=1e-16)
    assert root(lambda x: float(x**3 - 8.0), *guess) == pytest.approx(2.0, rel=1e-15)


def test_an_equation_without_a_root_is_refused():
    for function in (lambda x: x * x + 1, lambda x: x * 0 - 1.0):
        with pytest.raises(NotAccurate, match="no root"):
            root(function, 0.0, 1.0, smallest=-10.0, largest=1e5)
    with pytest.raises(NotAccurate):
        root(lambda x: x * np.nan, 0.0, 1.0)


def test_curves_are_accurate_or_refused():
    """y' = -y; beyond a blow-up, and where chaos amplifies rounding by e^54, there is no answer."""
    times = np.linspace(0.0, 20.0, 5)
    np.testing.assert_allclose(curve(lambda t, y: -y, 1.0, times, rtol=1e-11)[0], np.exp(-times), rtol=1e-11)
    assert curve(lambda t, y: -y, 3.0, [1.0, 1.0], rtol=1e-11)[0, 1] == 3.0
    repeated = curve(lambda t, y: -y, 1.0, [0.0, 0.0, 1.0, 1.0, 2.0], rtol=1e-11)[0]
    np.testing.assert_allclose(repeated, np.exp([-0.0, 0, -1, -1, -2]), rtol=1e-11)
    with pytest.raises(NotAccurate, match="cannot be integrated"):
        curve(lambda t, y: y**2, 1.0, [0.0, 2.0], rtol=1e-9)
    with pytest.raises(NotAccurate, match="not integrated"):
        curve(
            lambda t, y: [10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]],
            [1, 1, 1],
            [0, 60],
            rtol=1e-9,
        )


@formula(
    x=Reals(0.0, 2.0, ends="left"), n=Integers(1, scalar=True), model=Word(("SA", "USA0")), relative="4e-16 * (1 + x)"
)
def power(x, n, *, model="SA"):
    """x^n."""
    if x.size and x.max() > 1.9:
        raise NotAccurate("too near the end.")
    return x**n


def test_a_declared_formula_refuses_converts_and_documents():
    assert power([0.5, 1], 2).tolist() == [0.25, 1.0]
    for arguments, sentence in (
        ((2.0, 2), r"`x` is 2\.0; give numbers in \[0, 2\)\."),
        ((np.nan, 2), "`x` is nan; give numbers"),
        (("1", 2), "`x` is '1'; give numbers"),
        ((1.0, 0), r"`n` is 0; give an integer from 1 to 2\^53\."),
        ((1.0, [2]), r"`n` is \[2\]; give an integer"),
        ((1.0, 2.5), r"`n` is 2\.5"),
        ((1.0, 10**400), "`n` is"),
        ((1.95, 2), r"power\(x=1\.95, n=2, model='SA'\): too near the end\."),
    ):
        with pytest.raises(InvalidInput, match=sentence):
            power(*arguments)
    with pytest.raises(InvalidInput, match="`model` is 'sa'; use 'SA' or 'USA0'"):
        power(1.0, 1, model="sa")
    assert "Domain: x: numbers in [0, 2); n: an integer from 1 to 2^53; model: 'SA' or 'USA0'." in power.__doc__
    assert "Accuracy: 4e-16 * (1 + x) relative." in power.__doc__
    with pytest.raises(TypeError, match="declares"):
        formula(relative=1.0, y=Reals())(lambda x: x)


def test_mpmath_is_what_oracles_think_it_is():
    with mp.workdps(50):
        assert abs(mp.quad(mp.exp, [0, 1]) - (mp.e - 1)) < mp.mpf(10) ** -48
