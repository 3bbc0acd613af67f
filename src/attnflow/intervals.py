"""Intervals of means over texts, by a bootstrap."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def mean_ends(values: Any, shares: Sequence[float], *, resamples: int, seed: Any) -> np.ndarray:
    """Ends of an interval of the mean over the first axis, texts: the true mean is below an end with chance its share.

    Texts are drawn with replacement, and an end is a quantile of the means of such draws. Few texts make these
    quantiles too narrow: for n normal values they lie z √((n-1)/n) standard errors from the mean, where Student's
    interval has t. Distances from the mean are therefore multiplied by (t/z) √(n/(n-1)); of normal values the interval
    is then Student's one, and of others it keeps the skewness that the resamples show.

    Arguments:
        values: (text, ...) numbers of texts, at least two.
        shares: of the ends, such as (0.025, 0.975); none of them 0.5.
        resamples: number of draws.
        seed: of the draws.

    Returns: one entry a share as first axis.
    """
    from scipy.stats import norm, t

    rows = np.asarray(values, np.float64)
    n = len(rows)
    counts = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=resamples)
    mean, many = rows.mean(axis=0), counts @ rows.reshape(n, -1) / n
    wider = t.ppf(shares, n - 1) / norm.ppf(shares) * np.sqrt(n / (n - 1))
    ends = np.quantile(many, shares, axis=0).reshape(len(wider), *rows.shape[1:])
    return np.asarray(mean + (ends - mean) * wider.reshape(-1, *[1] * mean.ndim))
