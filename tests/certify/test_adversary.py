"""Certificates edited by hand to claim what is false, or to say nothing clearly: the checker confirms none of them."""

import json
import math

import numpy as np
import pytest

import attnflow as af
from attnflow import certify
from tests.certify.false import changed, claim, places, put
from tests.certify.shapes import ring

UP = math.nextafter(1.25, 2)


@pytest.fixture(scope="module")
def true():
    """A certificate of every kind, as plain values."""
    found = [
        certify.equilibrium(ring(3, 2), -0.66),
        certify.branch(ring(3, 2), (1.0, 1.25)),
        certify.circle_equilibria(n=3, beta=2.0),
        certify.dominant_degree((5.0, 6.0), 2),
        certify.unstable_modes(9.0, 3, 0.01),
        certify.circle_modes([0.3, 1.0, 4.0], 9.0),
        certify.stay_apart(af.Tokens(np.array([[1.0, 0.0], [0.0, 1.0]])), 8.0, [0, 1]),
        certify.circle_flow([0.3, 2.0, 4.5], 2.0, 0.25, ball=1e-3),
        certify.circle_consensus([0.2, 1.9, 3.3, 5.1], 2.0, ball=1e-4),
    ]
    return {one.kind: one.to_json() for one in found}


def another_beta(one):
    """The proof stays at -0.66, where the triangle has two unstable directions; at -1 it has none."""
    one["claims"]["beta"] = one["data"]["boxes"][0]["beta"] = [-1.0, -1.0]


def twice(one):
    one["data"]["boxes"] = one["data"]["boxes"][:1] * 2


def reversed_boxes(one):
    one["data"]["boxes"].reverse()


def beyond(one):
    """Remainders in beta would be taken from a middle outside the slice."""
    one["claims"]["beta"][1] = one["data"]["boxes"][-1]["beta"][1] = 1.5


def consensus_again(one):
    """Consensus is a zero of the cut forces as well, in a box of its own; as a root it would be counted twice."""
    one["data"]["slices"][0]["roots"].append([0.0, 0.0])
    one["data"]["slices"][0]["radii"].append(0.05)
    one["claims"]["classes"].insert(0, {"sizes": [3], "unstable": 0, "labelled": 1})
    one["claims"]["euler"] += 1


def slices_apart(one):
    """Two slices with a hole of one unit in the last place."""
    part = one["data"]["slices"][0]
    low = math.nextafter(2.0, 1)
    one["data"]["slices"] = [part | {"beta": [low, low]}, part]
    one["claims"]["beta"] = [low, 2.0]


def doubled_slice(one):
    """The same slice twice, in place of the next one."""
    part = one["data"]["slices"][0]
    one["data"]["slices"] = [part, part | {"beta": [2.0, 2.0]}]
    one["claims"]["beta"] = [2.0, 2.5]


def swapped(one):
    """Two classes exchange their indices."""
    two, three = one["claims"]["classes"][1:]
    two["unstable"], three["unstable"] = three["unstable"], two["unstable"]


def overlapping(one):
    """Groups in caps that overlap stay a negative distance apart: a statement about nothing."""
    one["claims"] |= {"gap": -1.0, "time": 100.0}


def light(one):
    """A token without mass, so that the other one stays where it is."""
    one["data"]["masses"][0] = 0.0


ATTACKS = [
    ("equilibrium", another_beta),
    ("equilibrium", lambda one: one.update(kind="branch")),
    ("equilibrium", twice),
    ("equilibrium", put(("data", "boxes", 0, "middle"), math.nextafter(-0.66, 0))),
    ("equilibrium", put(("data", "boxes", 0, "centre"), [0.0, 0.0, 0.0])),
    ("equilibrium", put(("data", "planes"), [])),
    ("equilibrium", put(("data", "planes"), [[0, 1], [0, 1]])),
    ("equilibrium", put(("data", "masses", 0), 1e300)),
    ("equilibrium", put(("data", "masses", 0), 5e-324)),
    ("equilibrium", light),
    ("equilibrium", claim(distance=5e-324)),
    ("equilibrium", claim(distance=1e300)),
    ("branch", lambda one: one["claims"].pop("rotations")),
    ("branch", twice),
    ("branch", reversed_boxes),
    ("branch", beyond),
    ("branch", lambda one: one["data"]["boxes"].pop(0)),
    ("branch", lambda one: one["data"]["boxes"].clear()),
    ("branch", lambda one: one["data"]["boxes"][0]["beta"].__setitem__(1, UP)),
    ("branch", claim(beta=[1.0, UP])),
    ("circle list", consensus_again),
    ("circle list", slices_apart),
    ("circle list", doubled_slice),
    ("circle list", swapped),
    ("circle list", claim(n=4)),
    ("circle list", claim(n=2)),
    ("circle list", claim(euler=1)),
    ("circle list", claim(beta=[2.0, math.nextafter(2.0, 3)])),
    ("circle list", lambda one: one["claims"]["classes"].reverse()),
    ("circle list", lambda one: one["data"]["slices"].clear()),
    ("circle list", lambda one: one["data"]["slices"][0]["roots"].clear()),
    ("circle list", lambda one: one["data"]["slices"][0].update(roots=[], radii=[])),
    ("dominant degree", claim(beta=[5.0, 6.25])),
    ("dominant degree", claim(beta=[6.0, 5.0])),
    ("dominant degree", claim(d=8)),  # degree 2 grows fastest
    ("dominant degree", claim(d=1)),
    ("dominant degree", claim(beta=[0.0, 6.0])),
    ("unstable modes", claim(noise=0.0)),
    ("unstable modes", claim(noise=-0.01)),
    ("unstable modes", claim(degree=-1, modes=0)),
    ("circle modes", claim(modes=0)),
    ("circle modes", claim(beta=[1e300, 1e300])),
    ("circle modes", put(("data", "angles"), [0.3, 1e300])),
    ("stay apart", overlapping),
    ("stay apart", light),
    ("stay apart", claim(gap=1e-3)),
    ("stay apart", claim(beta=[-8.0, -8.0])),
    ("stay apart", put(("data", "groups"), [0, 0])),
    ("stay apart", put(("data", "groups"), [0, 2])),
    ("stay apart", put(("data", "centres", 1), [0.0, 0.0])),
    ("stay apart", put(("data", "centres", 1), [-1.0, 0.0])),
    ("circle flow", claim(radius=0.0)),
    ("circle flow", claim(ball=-1e-3)),
    ("circle flow", claim(until=0.0)),
    ("circle flow", put(("data", "order"), 0)),
    ("circle flow", put(("data", "masses", 0), 1e300)),
    ("circle flow", lambda one: one["data"]["times"].insert(1, one["data"]["times"][1])),
    ("circle flow", lambda one: one["data"]["times"].reverse()),
    ("consensus", claim(beta=[-2.0, -2.0])),
    ("consensus", lambda one: one.update(kind="circle flow")),
    ("consensus", lambda one: (one["claims"].update(time=0.0), one["data"].update(times=[0.0]))),
]


@pytest.mark.slow
def test_edited_certificates_are_rejected(true):
    assert {kind for kind, _ in ATTACKS} == set(true)
    for kind, change in ATTACKS:
        other = changed(true[kind], change)
        assert other != true[kind]
        verdict = certify.check(other)
        assert not verdict.confirmed, verdict.statement
        assert verdict.reason


def test_no_place_takes_another_type(true):
    """Texts, truth values, empty lists, numbers beyond floats, NaN: in every place of claims and data, of every kind."""
    odd = (None, "1", True, [], {}, math.nan, math.inf, 10**400, 2**53 + 1)
    free = {"centre", "slope"}  # None is "at the tokens" there
    for kind, one in true.items():
        for path in [("kind",), ("format",), *places(one["claims"], "claims"), *places(one["data"], "data")]:
            for value in odd:
                if path == ("data", "slices") or (path[-1] in free and value is None):
                    continue
                verdict = certify.check(changed(one, put(path, value)))
                assert not verdict.confirmed, (kind, path, value)


@pytest.mark.slow
def test_every_claim_is_known_and_the_words_are_those_of_the_claims(true):
    for kind, one in true.items():
        if kind != "consensus":  # seconds, as in test_circle_flows.py
            assert certify.check(one).statement == one["statement"]
        assert not certify.check(changed(one, claim(besides="all of it"))).confirmed, kind
        assert "statement" in certify.check(one | {"statement": "There are no equilibria."}).reason
        assert not certify.check(one | {"more": 1}).confirmed
        assert not certify.check({key: value for key, value in one.items() if key != "statement"}).confirmed


def test_files_that_two_readers_read_differently_are_rejected(true, tmp_path):
    text = json.dumps(true["dominant degree"])
    path = tmp_path / "degree.json"
    for odd, reason in (
        (text.replace('"degree": 3', '"degree": 2, "degree": 3'), "twice"),
        (text.replace('"beta": [5.0, 6.0]', '"beta": [5.0, NaN]'), "NaN"),
        (text.replace('"beta": [5.0, 6.0]', '"beta": [5.0, 1e999]'), "finite"),
        ("[" * 50 + "]" * 50, "object"),
    ):
        assert odd != text
        path.write_text(odd)
        verdict = certify.check(path)
        assert not verdict.confirmed
        assert reason in verdict.reason


def test_a_list_that_is_wrong_only_in_a_later_box_is_rejected(true):
    """A root listed twice changes nothing, and is no reason to reject; a radius that reaches another zero is."""
    one = true["circle list"]
    slices = one["data"]["slices"][0]
    again = changed(one, lambda c: [c["data"]["slices"][0][key].append(slices[key][0]) for key in ("roots", "radii")])
    assert certify.check(again).confirmed
    for radius in (0.999, 5e-324):
        assert not certify.check(changed(one, put(("data", "slices", 0, "radii", -1), radius))).confirmed
