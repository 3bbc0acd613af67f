"""Bank: the closed form has the reference values, a field has its root there, and wrong physics does not."""

import pytest

from attnflow_gallery import bank
from attnflow_gallery.bank import compare, simulate
from tests.experiments.mutants import mutation


def test_reference_values():
    """Eight digits of an independent derivation."""
    assert compare.threshold(2.0, 0.6) == pytest.approx(0.86780442, abs=5.1e-9)
    assert compare.threshold(6.0, 0.6) == pytest.approx(0.30588028, abs=5.1e-9)


def test_the_field_has_its_root_at_the_formula_and_a_word_that_is_elsewhere_has_not():
    """Rounding of logits of size 6; xtol of the root."""
    assert simulate.root(6.0, 0.6) == pytest.approx(compare.threshold(6.0, 0.6), rel=1e-12)
    with mutation(bank, "the word 0.1 % nearer to topic 1").applied():
        assert simulate.root(6.0, 0.6) != pytest.approx(compare.threshold(6.0, 0.6), rel=1e-4)


def test_first_order_is_the_derivative_of_the_drift():
    """Central differences of the drift in NumPy, step 1e-6: errors of 1e-9 relative."""
    import numpy as np

    beta, angle, h = 8.0, 0.6, 1e-6
    ratio = compare.threshold(beta, angle)

    def drift(phi, first, second, log_ratio):
        a = np.exp(log_ratio + beta * np.cos(phi - first))
        b = np.exp(beta * np.cos(second - phi))
        return (b * np.sin(second - phi) - a * np.sin(phi - first)) / (a + b)

    at = np.array([angle, 0.0, np.pi / 2, np.log(ratio)])
    by = [(drift(*(at + h * row)) - drift(*(at - h * row))) / (2 * h) for row in np.eye(4)]
    e = np.exp(-beta)
    expected = -(by[1] * e / (ratio + e) - by[2] * ratio * e / (1 + ratio * e)) / (by[0] * by[3])
    assert compare.first_order(beta, angle)[0] == pytest.approx(expected, rel=1e-6)
