"""The spectrum of V: the core holds, small changes of beta and V are found out, rates are those of the Jacobian."""

import dataclasses

import numpy as np
import pytest

from attnflow.fields import Attention
from attnflow.stability import jacobian
from attnflow.tokens import Tokens
from attnflow_gallery import value_spectrum
from attnflow_gallery.value_spectrum.compare import pair_rates
from attnflow_gallery.value_spectrum.simulate import cases
from tests.experiments.mutants import noticed

QUICK = value_spectrum.QUICK


@pytest.mark.long
def test_slightly_wrong_beta_and_value_are_found_out():
    """Consensus does not depend on beta, cross-ratios and two clusters do; at beta = 0 any V will do."""
    names = ("beta larger by 0.0001", "V 0.01 % larger")
    small = dataclasses.replace(QUICK, tokens=6, draws=2, betas=(0.3,), states=20)
    beta, value = noticed(value_spectrum, small, names, "short-*")
    assert {key[:4] for key in beta} == {"β = ", "Two "}
    assert {key[:4] for key in value} == {"Tigh", "Two "}
    assert len(value) == 3


def test_rates_are_those_of_the_jacobian():
    """Of two tokens at phi and -phi: both bend and turn towards both other eigenvectors; 4 by 4, by differentiation."""
    for case in [one for one in cases(QUICK) if one.kind == "pair"][:2]:
        field = Attention(case.beta, query=case.query, key=case.key, value=case.value)
        found = np.linalg.eigvals(jacobian(field, Tokens(np.outer([1, -1], case.frame[:, 0]))))
        swapped = case._replace(spectra=case.spectra[:, [0, 2, 1]])
        expected = [*pair_rates(case), *pair_rates(swapped)]
        # rates of order 1, by sums of a few terms; equal ones split by the root of that
        np.testing.assert_allclose(np.sort(found.real), np.sort(expected), atol=1e-7)
        np.testing.assert_allclose(found.imag, 0.0, atol=1e-7)
