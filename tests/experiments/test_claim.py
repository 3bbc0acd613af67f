"""Claims: the verdict is computed, and cannot be had for nothing."""

import json

import numpy as np
import pytest

from attnflow.errors import InvalidInput
from attnflow.experiments import NUMERICS, Claim, consequence, published, reported

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
    assert not maker("x", np.nan, 1.0, 1e300, "s").holds
    assert not maker("x", 1.0, 1.0, np.nan, "s").holds  # a tolerance computed from data that were lost


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize(
    ("predicted", "tolerance", "source"),
    [(1.0, np.inf, "s"), (1.0, -1.0, "s"), (np.inf, 1.0, "s"), (1.0, 1.0, " ")],
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


def test_what_a_table_shows():
    def shown(claim):
        return claim.expected, claim.found

    equal = Claim.equal("x", 3.14159265, 3.14159266, 1e-6, "s")
    assert shown(equal) == ("3.1415927", "off by +1.0e-08 of ±1.0e-06 (1 %)")
    assert shown(Claim.at_most("x", 0.0, 2e-14, 1e-9, "s")) == ("≤ 0", "2e-14 (± 1.0e-09)")
    assert shown(Claim.at_least("x", 1.0, np.nan, 0.0, "s")) == ("≥ 1", "nan")
    assert shown(Claim.equal("x", 3, 3, 0, "s")) == ("3", "3")
    assert shown(Claim.true("x", True, "all of them", "s")) == ("true", "all of them")


@pytest.mark.parametrize("maker", MAKERS)
def test_of_many_values_the_worst_counts(maker):
    sign = -1 if maker == Claim.at_least else 1
    measured, tolerance = sign * np.array([[0.1, 0.5], [0.9, 0.2]]), np.array([1.0, 0.25])
    found = maker("x", 0.0, measured, tolerance, "s", labels=lambda at: "abcd"[2 * at[0] + at[1]], detail="more")
    assert (found.measured, found.tolerance, found.holds) == (sign * 0.5, 0.25, False)
    assert found.detail == "worst of 4: b; more"
    assert maker("x", 0.0, [0.0, np.nan, sign * 9.0], 1.0, "s", labels="abc").detail == "worst of 3: b"
    assert not maker("x", 0.0, [], 1.0, "s").holds
    assert maker("x", 0.0, [0.0, 0.0], 0.0, "s").holds


def test_without_a_tolerance_the_largest_counts():
    assert Claim.at_most("x", 1.0, [0.2, 0.7, 0.5], 0.0, "s").measured == 0.7
    assert Claim.at_least("x", 0.0, [0.2, 0.7, 0.1], 0.0, "s").measured == 0.1
    assert Claim.equal("x", 0.0, [0.0, 2.0, 5.0], 0.0, "s").measured == 5.0
    assert np.isnan(Claim.at_most("x", 1.0, [0.2, np.nan, 5.0], 0.0, "s").measured)


def test_keys_forget_numbers_only():
    a = Claim.equal("n = 24, 120 starts: S^2, USA0, β = 1e-3, −2.5", 0, 0, 0, "s")
    b = Claim.equal("n = 6, 12 starts: S^3, USA0, β = 7, 8", 0, 0, 0, "s")
    assert a.key == b.key == "n = #, # starts: S^#, USA0, β = #, #"


@pytest.mark.parametrize(
    ("origin", "words"),
    [(published("a2020", "Theorem 3"), "published a2020, Theorem 3"), (published("a2020"), "published a2020"),
     (consequence("A heading"), "consequence A heading"), (NUMERICS, "numerics")],
)  # fmt: skip
def test_origins(origin, words):
    claim = Claim.equal("x", 1.0, 1.0, 0.0, "s", origin=origin)
    assert str(claim.origin) == words
    assert Claim.from_json(json.loads(json.dumps(claim.to_json()))) == claim


@pytest.mark.parametrize(
    ("maker", "predicted", "measured", "tolerance", "used"),
    [
        (Claim.equal, 1.0, 0.75, 0.5, 0.5),
        (Claim.equal, 1.0, 1.0, 0.0, None),
        (Claim.at_most, 0.0, 0.75, 1.0, 0.75),
        (Claim.at_most, 1.0, 0.5, 1.0, 0.0),
        (Claim.at_most, 1.0, 0.998, 0.0, 0.998),
        (Claim.at_least, 0.5, 0.625, 0.0, 0.8),
        (Claim.at_least, 0.5, 0.25, 0.5, 0.5),
        (Claim.at_most, 0.0, -1.0, 0.0, None),
    ],
)
def test_inequalities_use_their_bounds_too(maker, predicted, measured, tolerance, used):
    assert maker("x", predicted, measured, tolerance, "binary fractions").used == used


def test_a_level_is_a_probability_and_survives_json():
    claim = Claim.equal(
        "x", 1.0, [1.0, 2.0], 3.0, "s", level=1e-6, origin=reported("koubbi2026homogenized", "abstract")
    )
    assert Claim.from_json(json.loads(json.dumps(claim.to_json()))) == claim
    assert str(claim.origin) == "reported koubbi2026homogenized, abstract"
    with pytest.raises(InvalidInput, match="probability below 1"):
        Claim.equal("x", 1.0, 1.0, 1.0, "s", level=1.0)
