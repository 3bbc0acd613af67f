"""The spectrum of V: the quick version holds, rates are those of the Jacobian, and wrong physics is found out."""

import numpy as np
import pytest

from attnflow.experiments import Study
from attnflow.experiments.gallery import value_spectrum
from attnflow.fields import Attention
from attnflow.stability import jacobian
from attnflow.tokens import Tokens

QUICK = value_spectrum.QUICK


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return value_spectrum.run(QUICK, Study(tmp_path_factory.mktemp("spectrum")))


def failures(data):
    found = [claim.statement for claim in value_spectrum.claims(QUICK, data) if not claim.holds]
    words = ("consensus", "chord", "cross-ratio", "bend", "turn", "end in two", "one head", "two such")
    return {word for word in words for one in found if word in one}


def test_the_quick_version_holds(data):
    assert len(value_spectrum.claims(QUICK, data)) == 8
    assert failures(data) == set()


def test_rates_are_those_of_the_jacobian():
    """Of two tokens at phi and -phi: both bend and turn towards both other eigenvectors; 4 by 4, by differentiation."""
    for case in [one for one in value_spectrum.cases(QUICK) if one.kind == "pair"][:2]:
        field = Attention(case.beta, query=case.query, key=case.key, value=case.value)
        found = np.linalg.eigvals(jacobian(field, Tokens(np.outer([1, -1], case.frame[:, 0]))))
        swapped = case._replace(spectra=case.spectra[:, [0, 2, 1]])
        expected = [*value_spectrum.pair_rates(case), *value_spectrum.pair_rates(swapped)]
        # rates of order 1, by sums of a few terms; equal ones split by the root of that
        np.testing.assert_allclose(np.sort(found.real), np.sort(expected), atol=1e-7)
        np.testing.assert_allclose(found.imag, 0.0, atol=1e-7)


def followed(data, tmp_path, monkeypatch, **changes):
    """The short frames again with changed weights, the rest as it is; compiled programs are shared."""

    def wrong(beta, **rest):
        beta = beta.map(lambda values: values + changes.get("beta", 0.0))
        value = rest.pop("value").map(lambda values: values * changes.get("value", 1.0))
        return Attention(beta, value=value, **rest)

    monkeypatch.setattr(value_spectrum, "Attention", wrong)
    return data | {"short": value_spectrum._follow(QUICK, Study(tmp_path), QUICK.until, (0.0, 1.0))}


def test_attention_that_is_not_uniform_is_found_out(data, tmp_path, monkeypatch):
    """beta off by 1e-4: consensus does not care, cross-ratios and two clusters do."""
    assert failures(followed(data, tmp_path, monkeypatch, beta=1e-4)) == {"cross-ratio", "bend", "turn"}


@pytest.mark.slow
def test_a_slightly_wrong_value_is_found_out(data, tmp_path, monkeypatch):
    """V off by 1e-4: at beta = 0 any V will do."""
    assert failures(followed(data, tmp_path, monkeypatch, value=1 + 1e-4)) == {"consensus", "chord", "bend", "turn"}


def test_two_clusters_that_last_are_found_out(data):
    part = data["long"].copy(deep=True)
    start = next(k for k, case in enumerate(value_spectrum.cases(QUICK)) if case.kind == "start" and case.beta < 0.5)
    part["fine"][-1, start, :6] *= -1
    assert failures(data | {"long": part}) == {"end in two"}


def test_energies_of_either_sign_are_found_out(data):
    """Heads taken for each other: one that climbs for two, and the other way round."""
    part = data["energy"].isel(kind=[1, 0])
    assert failures(data | {"energy": part}) == {"one head", "two such"}
