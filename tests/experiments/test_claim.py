"""Claims: the verdict is computed, and cannot be had for nothing."""

import json

import numpy as np
import pytest

from attnflow.errors import InvalidInput
from attnflow.experiments import Claim

MAKERS = [Claim.equal, Claim.at_most, Claim.at_least]


@pytest.mark.parametrize(
    ("maker", "measured", "holds"),
    [
        (Claim.equal, 1.25, True),
        (Claim.equal, 0.75, True),
        (Claim.equal, np.nextafter(1.25, 2), False),
        (Claim.equal, np.nextafter(0.75, 0), False),
        (Claim.equal, np.inf, False),
        (Claim.at_most, 1.25, True),
        (Claim.at_most, -np.inf, True),
        (Claim.at_most, np.nextafter(1.25, 2), False),
        (Claim.at_least, 0.75, True),
        (Claim.at_least, np.inf, True),
        (Claim.at_least, np.nextafter(0.75, 0), False),
    ],
)
def test_verdicts_at_their_edges(maker, measured, holds):
    assert maker("x", 1.0, measured, 0.25, "binary fractions").holds is holds


@pytest.mark.parametrize("maker", MAKERS)
def test_a_number_that_is_none_never_holds(maker):
    assert not maker("x", 1.0, np.nan, 1e300, "s").holds
    assert not maker("x", 1.0, np.nan, np.nan, "s").holds
    assert not maker("x", 1.0, 1.0, np.nan, "s").holds  # a tolerance computed from data that were lost


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize(
    ("predicted", "tolerance", "source"),
    [(1.0, np.inf, "s"), (1.0, -1.0, "s"), (np.nan, 1.0, "s"), (np.inf, 1.0, "s"), (1.0, 1.0, " ")],
)
def test_claims_that_could_not_fail_or_hold_are_refused(maker, predicted, tolerance, source):
    with pytest.raises(InvalidInput):
        maker("x", predicted, 1.0, tolerance, source)


def test_truths():
    assert Claim.true("x", True, "seen", "s").holds
    assert not Claim.true("x", np.bool_(False), "seen", "s").holds
    with pytest.raises(InvalidInput, match="True or False"):
        Claim.true("x", 1, "seen", "s")
    with pytest.raises(TypeError):
        Claim("x", None, 1.0, 2.0, 0.0, "s", holds=True)


@pytest.mark.parametrize(
    "claim",
    [
        Claim.equal("a", 1.0, 2.0, 0.5, "s"),
        Claim.at_least("b", 1.0, np.inf, 0.5, "s"),
        Claim.at_most("c", 1.0, np.nan, np.nan, "s"),
        Claim.true("d", False, "nothing", "s"),
    ],
)
def test_json_keeps_claims(claim):
    entries = json.loads(json.dumps(claim.to_json(), allow_nan=False))
    again = Claim.from_json(entries | {"holds": not claim.holds})  # a verdict on disk is not believed
    assert again.holds is claim.holds is entries["holds"]
    assert again.to_json() == claim.to_json()


def test_digits_follow_the_tolerance():
    assert Claim.equal("x", 3.14159265, 3.14159266, 1e-6, "s").as_text() == ("3.1415927", "3.1415927", "1.0e-06")
    assert Claim.at_most("x", 0.0, 2e-14, 1e-9, "s").as_text() == ("≤ 0", "2e-14", "1.0e-09")
    assert Claim.at_least("x", 1.0, np.nan, 0.0, "s").as_text() == ("≥ 1", "nan", "0.0e+00")
    assert Claim.true("x", True, "all of them", "s").as_text() == ("true", "all of them", "–")
