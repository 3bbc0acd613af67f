"""Many heads: every claim holds at a small size, and each is broken by wrong physics."""

import dataclasses

import pytest

from attnflow_gallery import many_heads
from tests.experiments.mutants import noticed

CORE = dataclasses.replace(many_heads.QUICK, samples=512, repeats=100, averaged=(16, 32))


@pytest.mark.slow
def test_every_mutation_is_noticed_and_every_claim_notices_one():
    names = tuple(one.name for one in many_heads.MUTATIONS)
    found = dict(zip(names, noticed(many_heads, CORE, names), strict=True))
    assert all(found.values()), [name for name, claims in found.items() if not claims]
    assert len(set().union(*found.values())) == 9


def test_a_bias_is_found_out():
    """Heads with a constant coordinate fit e_1: both claims about parity fail."""
    few = dataclasses.replace(CORE, sizes=((2, 2), (4, 2)), heads=(4, 8, 16), samples=256, repeats=50)
    lost = noticed(many_heads, few, "heads with a bias", "fits-2-2")
    assert {claim.split(":")[0] for claim in lost} >= {"even target e_#"}
