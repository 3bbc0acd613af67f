"""The checker bounds its own time: a certificate that asks for more than a stated amount of work is rejected at once."""

import re
import time

import pytest

from attnflow import certify
from tests.certify import adversaries as make
from tests.certify.mutated import SOURCES, Checker

CIRCLE = [0.0, 1.5]
GROUPS = make.apart(8.0, "USA0", 0.5, 110.0, CIRCLE)


def repeated(certificate, name, count):
    """A certificate with one list of its data repeated."""
    data = certificate["data"] | {name: certificate["data"][name] * count}
    return make.certificate(certificate["kind"], certificate["claims"], data)


AT_ONCE = [
    (make.unstable([9.0, 9.0], 3, 1e-9, 10**15, 1), "10,000 degrees"),
    (repeated(GROUPS, "centres", 2_000), "4,000,000 coordinates of pairs of groups"),
    (
        repeated(repeated(GROUPS, "centres", 900), "tokens", 3_000),
        "10,000,000 pairs of a token and a group",
    ),
    (
        make.flow(CIRCLE, 2.0, [k / 2**14 for k in range(40_000)], 80, CIRCLE, 1.0),
        "1,000,000,000 products of coefficients",
    ),
    (
        make.orbit([0.0] * 400, (399, 0), [make.box([1.0, 1.125], 1e-6, [0.0] * 400)] * 20),
        "1,000,000,000 products of matrix entries",
    ),
    (make.at_half([make.TRIANGLE] * 20_001, [make.ONE, make.TWO, make.THREE]), "20,000 roots"),
]


@pytest.mark.parametrize(("certificate", "work"), AT_ONCE, ids=[case["kind"] for case, _ in AT_ONCE])
def test_work_that_can_be_counted_is_counted_before_it_starts(certificate, work):
    start = time.process_time()
    verdict = certify.check(certificate)
    assert verdict.reason == f"the check takes more than {work}, which is its limit"
    assert time.process_time() - start < 5  # each would take minutes to weeks


@pytest.mark.parametrize(
    ("certificate", "file", "name", "work"),
    [
        (make.density([1e5, 1e5], [0.3, 1.0, 4.0], 3), "forms", "TERMS", "terms of the density estimate"),
        (make.at_half([make.LEFT, make.RIGHT], [make.ONE, make.TWO]), "lists", "CUBES", "cubes of gaps"),
    ],
    ids=["circle modes", "circle list"],
)
def test_work_that_shows_on_the_way_is_counted_as_it_is_done(certificate, file, name, work):
    """With a limit of 10, as the limits themselves take a minute to reach."""
    (limit,) = re.findall(rf"^{name} = [\d_]+$", SOURCES[file], re.MULTILINE)
    verdict = Checker([(file, limit, f"{name} = 10")]).check(certificate)
    assert verdict.reason == f"the check takes more than 10 {work}, which is its limit"


@pytest.mark.parametrize("beta", [1e3, 99_999.0])
def test_the_time_of_groups_is_summed_over_as_many_pieces_at_every_beta(beta):
    """At 10^5 there were 3·10^7 pieces; the limit of beta is another sentence."""
    start = time.process_time()
    verdict = certify.check(make.apart(beta, "USA0", 1.4, 1e300, CIRCLE))
    assert time.process_time() - start < 5
    assert re.fullmatch(r"the time is at least \S+, not more", verdict.reason) or verdict.confirmed
    assert "beta" in certify.check(make.apart(1e5, "USA0", 1.4, 1.0, CIRCLE)).reason
