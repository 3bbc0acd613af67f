"""Many heads: every claim holds at a small size, and each is broken by wrong physics."""

import dataclasses

import numpy as np
import pytest

from attnflow_gallery import many_heads
from attnflow_gallery.many_heads import compare, simulate
from tests.experiments.mutants import mutation, noticed

CORE = dataclasses.replace(many_heads.QUICK, samples=512, repeats=100, averaged=(16, 32))


@pytest.mark.slow
def test_every_mutation_is_noticed_and_every_claim_notices_one():
    names = tuple(one.name for one in many_heads.MUTATIONS)
    found = dict(zip(names, noticed(many_heads, CORE, names), strict=True))
    assert all(found.values()), [name for name, claims in found.items() if not claims]
    assert len(set().union(*found.values())) == 9


def test_a_bias_is_found_out():
    """Heads without a bias miss e_1 entirely, to rounding of an error of 1; heads with a constant coordinate fit it."""
    few = dataclasses.replace(CORE, heads=(4, 8), samples=256)
    np.testing.assert_allclose(simulate.fits(2, 2, few)["error"].sel(target="even"), 1, atol=compare.ROUNDING)
    with mutation(many_heads, "heads with a bias").applied():
        assert (simulate.fits(2, 2, few)["error"].sel(target="even") < compare.ROUNDING).all()
