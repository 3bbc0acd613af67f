"""Laws of exit times: small cases by hand, exact coverage, and coverage in simulation."""

import numpy as np
import pytest
from scipy import stats

from attnflow.errors import InvalidInput
from attnflow.observe import exit_distribution

EPS = np.finfo(float).eps


def test_survival_by_hand():
    distribution = exit_distribution([3.0, 1.0, np.nan, 2.0, np.inf], 0.9)
    assert (distribution.n, distribution.exits) == (5, 3)
    band = np.sqrt(np.log(2 / 0.1) / 10)
    found = distribution.survival([0.0, 1.0, 1.5, 2.0, 3.0, 1e9])
    np.testing.assert_allclose(found.value, [1, 0.8, 0.8, 0.6, 0.4, 0.4], rtol=4 * EPS)
    np.testing.assert_allclose(found.low, np.maximum(found.value - band, 0), rtol=8 * EPS)
    np.testing.assert_allclose(found.high, np.minimum(found.value + band, 1), rtol=4 * EPS)
    assert distribution.survival(2.0).value.shape == ()


def test_nothing_is_said_after_the_end_of_observation():
    distribution = exit_distribution([3.0, 1.0, np.nan, 2.0], until=4.0)
    found = distribution.survival([4.0, 5.0])
    np.testing.assert_array_equal(found.value, [0.25, np.nan])
    assert found.low[1] == 0
    assert found.high[0] == found.high[1]
    assert np.isnan(distribution.mean)
    assert np.isnan(distribution.standard_error)


def test_mean_by_hand():
    distribution = exit_distribution([1.0, 2.0, 6.0])
    assert distribution.mean == 3
    assert distribution.standard_error == pytest.approx(np.sqrt((4 + 1 + 9) / 2 / 3), rel=4 * EPS)
    assert np.isnan(exit_distribution([1.0]).standard_error)


def test_quantiles_by_hand():
    # P(Bin(6, 1/2) = 0) = 1/64 < .025 < 7/64 = P(Bin <= 1): the smallest and the largest of six, at confidence 62/64
    six = exit_distribution(np.arange(6.0))
    found = six.quantile(0.5)
    assert (found.value, found.low, found.high) == (2, 0, 5)
    five = exit_distribution(np.arange(5.0)).quantile([0.2, 0.5, 0.6])  # 1/32 > .025: five are too few
    np.testing.assert_array_equal(five.value, [0, 2, 2])
    np.testing.assert_array_equal(five.low, [-np.inf, -np.inf, 0])  # .4^5 = .01 is little enough again
    np.testing.assert_array_equal(five.high, [3, np.inf, np.inf])  # P(Bin(5, .2) >= 4) = .0067, and >= 3: .058
    late = exit_distribution([*np.arange(7.0), np.nan, np.nan, np.nan]).quantile([0.5, 0.7, 0.71])
    np.testing.assert_array_equal(late.value, [4, 6, np.inf])
    assert exit_distribution(np.arange(1000.0)).quantile(0.29).value == 289  # 1000 * .29 = 290 to rounding


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.999])
@pytest.mark.parametrize("n", [1, 2, 7, 40, 1000])
def test_quantiles_cover_and_no_shorter_interval_does(n, confidence):
    """Coverage is a sum of binomial probabilities; one order statistic less on either side has too little of it."""
    distribution, tail = exit_distribution(np.arange(1.0, n + 1), confidence), (1 - confidence) / 2
    for q in [0.01, 0.3, 0.5, 0.77, 0.99]:
        found = distribution.quantile(q)
        below, above = (
            (0 if found.low == -np.inf else int(found.low)),
            (n + 1 if found.high == np.inf else int(found.high)),
        )
        mass = stats.binom.pmf(np.arange(n + 1), n, q)
        # sums of n + 1 probabilities, each with some hundred roundings
        assert mass[:below].sum() <= tail + 1e-12
        assert mass[above:].sum() <= tail + 1e-12
        assert mass[: below + 1].sum() >= tail - 1e-12
        assert mass[above - 1 :].sum() >= tail - 1e-12
        assert found.low <= found.value <= found.high


def failures_allowed(repeats, probability):
    """More misses than this have probability 1e-9 or less."""
    return stats.binom.isf(1e-9, repeats, probability)


@pytest.mark.slow
def test_coverage_in_simulation():
    """Exponential times, observed for a while: the band holds at every x at once, the intervals hold the truth."""
    rng, repeats, n, confidence = np.random.default_rng(0), 150, 40, 0.8
    until = np.log(stats.expon.ppf(0.9))
    grid = np.linspace(-8, until, 500)
    truth = np.exp(-np.exp(grid))
    q = np.array([0.2, 0.5, 0.95])
    true_quantiles = np.log(stats.expon.ppf(q))
    misses = np.zeros(5)
    for _ in range(repeats):
        log_times = np.log(rng.exponential(size=n))
        distribution = exit_distribution(np.where(log_times > until, np.nan, log_times), confidence, until=until)
        _, low, high = distribution.survival(grid)
        found = distribution.quantile(q)
        misses[0] += np.any((truth < low) | (truth > high))
        # an end that did not exit is somewhere after `until`
        misses[1:4] += (np.where(np.isinf(found.low) & (found.low > 0), until, found.low) > true_quantiles) | (
            found.high < true_quantiles
        )
        misses[4] += distribution.kolmogorov(lambda x: -np.expm1(-np.exp(x))).rejects
    assert np.all(misses <= failures_allowed(repeats, 1 - confidence))


def test_the_band_misses_as_often_as_the_kolmogorov_law_says():
    """Over all x the band of an atomless distribution fails with a known probability, a little below 1 - confidence."""
    rng, repeats, n, confidence = np.random.default_rng(2), 1000, 12, 0.7
    misses = 0
    for _ in range(repeats):
        distribution = exit_distribution(np.log(rng.exponential(size=n)), confidence)
        x = np.concatenate([distribution.log_times, np.nextafter(distribution.log_times, -np.inf)])  # where the sup is
        _, low, high = distribution.survival(x)
        misses += np.any((np.exp(-np.exp(x)) < low) | (np.exp(-np.exp(x)) > high))
    exact = stats.kstwo.sf(distribution.band, n)
    assert exact < 1 - confidence
    assert stats.binom.ppf(1e-6, repeats, exact) <= misses <= stats.binom.isf(1e-6, repeats, exact)


def test_the_kolmogorov_distance_is_that_of_scipy():
    rng = np.random.default_rng(1)
    times = rng.standard_normal(30)
    found = exit_distribution(times, 0.95).kolmogorov(stats.norm.cdf)
    other = stats.kstest(times, "norm")
    assert found.distance == pytest.approx(other.statistic, rel=16 * EPS)
    # at the critical value the p-value of the exact distribution is what confidence leaves
    assert stats.kstwo.sf(found.critical, 30) == pytest.approx(0.05, rel=1e-6)
    assert found.rejects == (other.pvalue < 0.05)
    for moved in (times + 2, times - 2):  # early and late: the sup is before a jump and after one
        late = exit_distribution(moved).kolmogorov(stats.norm.cdf)
        assert late.distance == pytest.approx(stats.kstest(moved, "norm").statistic, rel=16 * EPS)
        assert late.rejects
    # one seed: sup |F_1 - F| > 1 - a/2 has probability a
    assert exit_distribution([0.0], 0.9).kolmogorov(stats.norm.cdf) == (0.5, pytest.approx(0.95, rel=1e-6))


def test_the_kolmogorov_distance_of_seeds_that_did_not_exit():
    # nobody left by `until`, although the distribution says that a half should
    distribution = exit_distribution([np.nan] * 20, until=0.0)
    assert distribution.kolmogorov(stats.norm.cdf).distance == 0.5
    assert distribution.kolmogorov(stats.norm.cdf).rejects
    assert (
        exit_distribution([np.nan] * 20).kolmogorov(stats.norm.cdf).distance == 0
    )  # no end of observation: nothing seen
    half = exit_distribution([-1.0, np.inf], until=0.5).kolmogorov(stats.norm.cdf)
    at = stats.norm.cdf([-1.0, 0.5])
    assert half.distance == pytest.approx(max(0.5 - at[0], at[0], at[1] - 0.5), rel=4 * EPS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: exit_distribution([]), "log_times"),
        (lambda: exit_distribution([[1.0]]), "log_times"),
        (lambda: exit_distribution([1.0], 1.0), "confidence"),
        (lambda: exit_distribution([1.0], np.nan), "confidence"),
        (lambda: exit_distribution([1.0], until=0.5), "until"),
        (lambda: exit_distribution([1.0], until=np.nan), "until"),
        (lambda: exit_distribution([1.0], until="late"), "`until` is 'late'"),
        (lambda: exit_distribution([1.0], until=[2.0, 3.0]), "`until` is"),
        (lambda: exit_distribution([1.0]).survival(np.nan), "`x` is"),
        (lambda: exit_distribution([1.0]).quantile(1.0), "`q` is"),
        (lambda: exit_distribution([1.0]).quantile([0.5, np.nan]), "`q` is"),
        (lambda: exit_distribution([1.0]).kolmogorov(lambda x: x + 3), "`cdf` gave"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(InvalidInput, match=message):
        call()
