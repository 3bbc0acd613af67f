"""Claims that an effect lies beyond its standard errors state the effect that they expect, and hold with that power."""

import numpy as np
import pytest

from attnflow.errors import InvalidInput
from attnflow.experiments.kit import LEVEL, Effects, student


def power(draws, expected, tests=1):
    """How many standard errors a claim about so many means takes off, and the probability that chance fails it."""
    effects = Effects(draws, expected)
    effects.add(0.0, np.zeros(tests), 1.0, "a row")
    claim = effects.above("all are positive", "Student's test")
    return -claim.measured, claim.level


@pytest.mark.parametrize(("draws", "expected"), [(8, 9.0), (200, 7.0)])
def test_the_probability_of_a_chance_failure_is_that_of_simulated_means(draws, expected):
    """The law of mean/error at another multiple k of the errors, where failures are frequent enough to be counted."""
    from scipy.stats import nct

    values = np.random.default_rng(8128).standard_normal((100_000, draws)) + expected / np.sqrt(draws)
    ratios = values.mean(axis=1) / values.std(axis=1, ddof=1) * np.sqrt(draws)
    k = expected - 1.5
    probability = float(nct.cdf(k, draws - 1, expected))
    # five standard deviations of the number of failures of so many runs
    assert abs(np.mean(ratios < k) - probability) < 5 * np.sqrt(probability / 100_000)
    multiple, level = power(draws, expected)
    assert level <= LEVEL * (1 + 1e-6)
    assert multiple == pytest.approx(min(student(LEVEL, draws), nct.ppf(LEVEL, draws - 1, expected)), rel=1e-9)


def test_more_tests_and_smaller_effects_leave_less_to_take_off():
    assert power(100, 8.0, tests=10)[0] < power(100, 8.0)[0] < power(100, 9.0)[0]
    assert power(100, 40.0)[0] == student(LEVEL, 100)
    assert power(100, 40.0)[1] < 1e-20
    assert 2.0 <= power(256, 6.91)[0] < 2.01


@pytest.mark.parametrize(("draws", "expected"), [(256, 4.7), (256, 6.9), (256, 0.0), (3, 9.0), (256, np.nan)])
def test_an_effect_that_chance_can_hide_is_refused(draws, expected):
    """4.7 standard errors of 256 prompts were the fall of a sum that five of seven salts did not show.

    Fewer than 2 are never taken off: of 256 prompts, 6.9 would leave 1.991.
    """
    with pytest.raises(InvalidInput, match="too few for a claim"):
        power(draws, expected)


def test_means_are_compared_beyond_their_errors_on_either_side():
    k = power(400, 12.0)[0]
    for mean, holds in ((k + 0.01, True), (k - 0.01, False), (np.nan, False)):
        above, below = Effects(400, 12.0), Effects(400, 12.0)
        above.add(3.0, 3.0 + 0.1 * mean, 0.1, "a row")
        below.add(3.0, 3.0 - 0.1 * mean, 0.1, "a row")
        claims = above.above("it is larger", "Student's test"), below.below("it is smaller", "Student's test")
        assert [claim.holds for claim in claims] == [holds, holds]
        assert all(0 < claim.level <= LEVEL for claim in claims)
        assert all("12 or more are expected" in claim.reason for claim in claims)


def test_every_row_of_a_claim_counts_as_a_test():
    effects = Effects(400, 12.0)
    effects.add(0.0, [1.3, 1.4, 2.0], [0.1, 0.1, 0.0], ["first", "second", "exact"])
    claim = effects.above("all are positive", "Student's test")
    assert claim.holds
    assert f"{power(400, 12.0, tests=2)[0]:.1f} standard errors off" in claim.reason
