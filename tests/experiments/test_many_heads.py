"""Many heads: even targets are missed without a bias, averages of independent heads; wrong physics is found out."""

import dataclasses

from attnflow_gallery import many_heads
from attnflow_gallery.many_heads import compare, simulate
from tests.experiments.mutants import mutation

CORE = dataclasses.replace(many_heads.QUICK, samples=256, repeats=100, averaged=(16, 32))


def test_a_bias_is_found_out():
    """Heads without a bias miss e_1 entirely, to rounding of an error of 1; heads with a constant coordinate fit it."""
    even, options = simulate.target_of("even", CORE), {"heads": 8, "tokens": 3, "dim": 2, "samples": 256}
    assert abs(simulate.fitted(even, **options) - 1) < compare.ROUNDING
    with mutation(many_heads, "heads with a bias").applied():
        assert simulate.fitted(even, **options) < compare.ROUNDING


def test_heads_in_pairs_are_found_out():
    """H times the mean square error is the variance of one head; twice that if only half of the heads are independent.

    A square has a relative standard deviation of about 1, so 100 averages for two numbers of heads give a ratio to 7 %:
    1.5 is seven standard errors from 1, and 3.6 from 2.
    """

    def ratio():
        found = simulate.averages(CORE)
        return float(found["square"].mean() / found["variance"].mean())

    assert abs(ratio() - 1) < 0.5
    with mutation(many_heads, "heads in pairs of equal ones").applied():
        assert ratio() > 1.5
