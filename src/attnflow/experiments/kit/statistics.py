"""Statistics that several experiments use: means and counts with bounds, root mean squares, weighted fits, levels."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnflow.experiments.claim import share_interval

LEVEL = 5e-7
"""The probability that a true claim of the gallery fails by chance: of 200 claims one fails in 10,000 reproductions."""
CONFIDENCE = 0.999
"""Of the bounds that `counted` gives."""


def share_of(hits: np.ndarray) -> str:
    """How many of all, in words."""
    return f"{int(np.sum(hits))} of {np.size(hits)}"


def counted(hits: np.ndarray) -> str:
    """How many of independent draws are hits, and the exact binomial bound on the probability of the others."""
    _, high = share_interval(np.sum(~hits), hits.size, CONFIDENCE)
    return f"{share_of(hits)}; others have probability at most {float(high):.1e} (confidence {100 * CONFIDENCE:g} %)"


def refusal_bound(most: int, draws: int, confidence: float = 0.99) -> str:
    """What at most `most` refusals of independent draws say: the reason of a claim that counts refusals."""
    from scipy.stats import beta

    high = float(beta.ppf(confidence, most + 1, draws - most))
    return (
        f"fixed beforehand: with so few of {draws} the probability of a refusal is at most {high:.2g} "
        f"(exact binomial, one-sided, confidence {100 * confidence:g} %)"
    )


def fit(terms: Sequence[np.ndarray], values: np.ndarray, errors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted least squares: coefficients of `terms` and their standard errors."""
    matrix = np.stack(terms, axis=1) / errors[:, None]
    covariance = np.linalg.inv(matrix.T @ matrix)
    return covariance @ matrix.T @ (values / errors), np.sqrt(np.diag(covariance))


def log_rms(square: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log of the root of the mean over the last axis (independent draws), and its standard error."""
    mean, error = square.mean(axis=-1), square.std(axis=-1, ddof=1) / np.sqrt(square.shape[-1])
    return np.log(mean) / 2, error / mean / 2


def averaged(rows: Any, axis: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Mean along an axis of independent draws, and its standard error."""
    values = np.asarray(rows, dtype=np.float64)
    return values.mean(axis=axis), values.std(axis=axis, ddof=1) / np.sqrt(values.shape[axis])


def mean_error(counts: Any) -> tuple[float, float]:
    """Mean and standard error of whole numbers; the variance is raised by 1/draws, as if one draw were off by one.

    Draws that are all alike then have a standard error of 1/draws, not 0.
    """
    values = np.asarray(counts, dtype=np.float64)
    return float(values.mean()), float(np.sqrt((values.var(ddof=1) + 1 / values.size) / values.size))


def student(level: float, draws: int, tests: int = 1) -> float:
    """How many standard errors a mean of `draws` may be off: Student's two-sided test.

    With `tests` of them the probability that any fails by chance is at most `level` (Bonferroni).
    """
    from scipy.stats import t

    return float(t.isf(level / 2 / max(tests, 1), draws - 1))


def reduced(value: np.ndarray, control: np.ndarray) -> np.ndarray:
    """`value` less its regression on controls of mean 0; coefficients come from the other half of the draws."""
    even, found = np.arange(len(value)) % 2 == 0, np.empty_like(value)
    for own in (even, ~even):
        y, z = value[~own], control[~own]
        found[own] = value[own] - control[own] @ np.linalg.lstsq(z - z.mean(axis=0), y - y.mean(axis=0), rcond=None)[0]
    return found


def many_tokens(sizes: np.ndarray, off: np.ndarray, error: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The constant of the line in 1/n through the last two sizes, its standard error, and room for a term e/n^2.

    `off` and `error` have the sizes, three or more, as first axis. The room is the change of the slope in 1/n, from the
    two sizes before to the last two, over the last size: for n, 2n, 4n the line is off by e/(8 n^2), and this is
    3 e/(16 n^2).
    """
    n = np.asarray(sizes, dtype=np.float64)
    slopes = [(off[k] - off[k - 1]) / (1 / n[k] - 1 / n[k - 1]) for k in (-1, -2)]
    few, many = -n[-2] / (n[-1] - n[-2]), n[-1] / (n[-1] - n[-2])
    left = many * off[-1] + few * off[-2]
    return left, np.hypot(many * error[-1], few * error[-2]), np.abs(slopes[0] - slopes[1]) / n[-1]
