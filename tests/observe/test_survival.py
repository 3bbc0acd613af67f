"""Censored times: by hand, beside SciPy's ecdf, and the coverage of every interval at a level fixed beforehand."""

import numpy as np
import pytest
from scipy import stats

from attnflow import observe
from attnflow.errors import InvalidInput

TIMES = [1.0, 2.0, np.nan, 4.0, np.inf]
UNTIL = [9.0, 9.0, 3.0, 9.0, 5.0]


def test_by_hand():
    """Five seeds, of which the third was watched until 3 and the fifth until 5."""
    found = observe.survival(TIMES, UNTIL)
    assert (found.n, found.censored, found.end) == (5, 2, 5.0)
    np.testing.assert_allclose(found([0.5, 1, 2.5, 3.9, 4, 5]).value, [1, 4 / 5, 3 / 5, 3 / 5, 3 / 10, 3 / 10])
    beyond = found(5.1)
    assert np.isnan(beyond.value)
    assert (beyond.low, beyond.high) == (0, found(5).high)
    assert found.quantile(0.5).value == 4
    assert found.quantile(0.9).value == np.inf
    # 1 + (2 - 1) 4/5 + (4 - 2) 3/5 + (5 - 4) 3/10; the rests after 1, 2, 4 are 2.3, 1.5, 0.3
    mean = found.mean()
    assert mean.value == pytest.approx(3.3)
    variance = 2.3**2 / (5 * 4) + 1.5**2 / (4 * 3) + 0.3**2 / (2 * 1)
    assert mean.standard_error == pytest.approx(np.sqrt(variance * 3 / 2))
    assert found.mean(to=1.5).value == pytest.approx(1.4)
    total = found.exponential_mean()
    assert total.value == pytest.approx((1 + 2 + 3 + 4 + 5) / 3)
    assert total.low == pytest.approx(30 / stats.chi2.isf(0.025, 8))
    assert total.high == pytest.approx(30 / stats.chi2.ppf(0.025, 6))


def test_without_censoring_it_is_the_sample():
    x = np.random.default_rng(5).normal(size=40)
    found = observe.survival(x)
    mean = found.mean()
    assert mean.value == pytest.approx(x.mean())
    assert mean.standard_error == pytest.approx(x.std(ddof=1) / np.sqrt(40))
    assert found(x.max()).value == pytest.approx(0, abs=1e-15)
    assert found(x.max()).high == pytest.approx(found(np.sort(x)[-2]).high)
    same = observe.exit_distribution(x)
    np.testing.assert_allclose(found(np.sort(x)).value, same.survival(np.sort(x)).value, atol=1e-14)
    np.testing.assert_array_equal(found.quantile([0.1, 0.5, 0.9]).value, same.quantile([0.1, 0.5, 0.9]).value)


def test_the_curve_is_that_of_scipy():
    """Times on a grid, so that several coincide with each other and with ends of observation."""
    rng = np.random.default_rng(11)
    times, ends = (np.ceil(4 * rng.exponential(size=60)) / 4 for _ in range(2))
    seen = times <= ends
    found = observe.survival(np.where(seen, times, np.nan), ends, confidence=0.9)
    other = stats.ecdf(stats.CensoredData(uncensored=times[seen], right=ends[~seen])).sf
    np.testing.assert_allclose(found(found.times).value, other.evaluate(found.times), rtol=1e-12)
    interval = other.confidence_interval(0.9, method="log-log")
    inside = found(found.times).value > 0
    for ours, theirs in zip(found(found.times)[1:], (interval.low, interval.high), strict=True):
        np.testing.assert_allclose(ours[inside], theirs.evaluate(found.times)[inside], rtol=1e-12)


COVERAGE, REPLICATES, SEEDS, LEVEL = 0.9, 1500, 40, 1e-4
"""Fixed before the first run. A share that is right misses the bounds below with probability LEVEL/2 each."""


@pytest.mark.slow
def test_known_censored_exponentials():
    """Mean 2, ends of observation uniform in (0, 5): every interval holds the truth as often as it says.

    The interval of the exponential mean may hold it more often. The others are right for many seeds; 40 of which about
    40 % are censored are allowed to miss 2.5 % more often than stated (their error is of order 1/n).
    """
    rng, mean, to = np.random.default_rng(2026), 2.0, 3.0
    truth = {
        "exponential": mean,
        "restricted": mean * -np.expm1(-to / mean),
        "median": mean * np.log(2),
        "S(2)": np.exp(-1),
    }
    hits = dict.fromkeys(truth, 0)
    restricted = []
    naive = []
    for _ in range(REPLICATES):
        times, ends = rng.exponential(mean, SEEDS), np.maximum(rng.uniform(0, 5, SEEDS), np.r_[to, np.zeros(SEEDS - 1)])
        seen = times <= ends
        found = observe.survival(np.where(seen, times, np.nan), ends, confidence=COVERAGE)
        whole = float(found.watched.max()) >= to
        limited = found.mean(to) if whole else found.mean()
        intervals = {"exponential": found.exponential_mean(), "restricted": limited}
        intervals |= {"median": found.quantile(0.5), "S(2)": found(2.0)}
        restricted.append(limited.value)
        naive.append(times[seen].mean())
        for name, one in intervals.items():
            hits[name] += bool(one.low <= truth[name] <= one.high)
    least = stats.binom.ppf(LEVEL / 2, REPLICATES, COVERAGE - 0.025)
    most = stats.binom.isf(LEVEL / 2, REPLICATES, COVERAGE + 0.025)
    assert hits["exponential"] >= stats.binom.ppf(LEVEL / 2, REPLICATES, COVERAGE)
    for name in ("restricted", "median", "S(2)"):
        assert least <= hits[name] <= most, (name, hits[name] / REPLICATES)
    # without bias, where the mean of the times that were seen is a third too small
    error = np.std(restricted) / np.sqrt(REPLICATES)
    assert np.mean(restricted) == pytest.approx(truth["restricted"], abs=4 * error)
    assert np.mean(naive) < 0.75 * mean


def test_nothing_seen():
    found = observe.survival([np.nan, np.inf], until=3.0)
    assert found(3.0).value == 1
    assert found.quantile(0.5) == (np.inf, np.inf, np.inf)
    assert found.mean().value == 3
    assert np.isnan(found.mean().standard_error)
    assert found.exponential_mean()[0] == np.inf
    assert found.exponential_mean().low == pytest.approx(12 / stats.chi2.isf(0.025, 2))
    assert "2 censored" in repr(found)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: observe.survival([]), "one for each seed"),
        (lambda: observe.survival([[1.0]]), r"shape \(1, 1\)"),
        (lambda: observe.survival([1.0, 4.0], until=[2.0, 3.0]), r"times\[1\] is 4, after its end of observation 3"),
        (lambda: observe.survival([1.0], until=np.nan), "`until` is nan"),
        (lambda: observe.survival([1.0, 2.0], until=[3.0]), "one for each of 2"),
        (lambda: observe.survival([1.0], confidence=1.0), "`confidence` is 1.0"),
        (lambda: observe.survival([1.0])(np.nan), "`t` is nan"),
        (lambda: observe.survival([1.0]).quantile(1.0), "`q` is 1.0"),
        (lambda: observe.survival([1.0, np.nan], until=3.0).mean(to=4.0), "nothing was watched beyond 3"),
        (lambda: observe.survival([1.0, np.nan]).mean(), "give `until`, or `to`"),
        (lambda: observe.survival([-1.0]).exponential_mean(), "not their logarithms"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(InvalidInput, match=message):
        call()
