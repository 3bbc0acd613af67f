"""Profiles against the matrix exponential of the paper, where the minimum lies, and where the formula ends."""

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import NUMERICS, Claim, consequence, published
from attnflow.experiments.kit import student
from attnflow_gallery.lost_in_the_middle.simulate import EDGES, Parameters, groups, soft_weights

PAPER = "duerinckx2026kinetic"
CLOSURE = published(PAPER, "the correlations exp(t a W) to first order in 1/N")
MIDDLE = published(PAPER, "the U-shaped profile and its minimum")
SOFT = published(PAPER, "the soft accuracy of retrieval")
NEXT = consequence("The next order in 1/N")
FALLING = consequence("No middle without a slope")
THRESHOLD = consequence("The threshold of recency")
DILUTION = consequence("Softmax")
END = consequence("Where the formula ends")
LEVEL = 1e-4
"""The probability that any comparison of a claim fails by chance; there are at most nine statistical claims."""
FAR = 2
"""Bins before this one hold sources of the first fifth, where the expansion in 1/N is poor."""
BIAS = 2.56
"""N times the relative error of the closure up to a t = 0.6: 2 % at N = 128."""
SOFT_BIAS = 5.0
"""The same for the soft profile, whose second degree errs by more."""


def rate(parameters: Parameters, clock: str = "grad", d: int = 2, degree: int = 1) -> float:
    """The rate a_k of a clock."""
    return float(theory.causal.rates(degree, parameters.beta, d, clock))


def closure(c: float, n: int, slope: float, dilution: float | None = None) -> np.ndarray:
    """N times the last row of exp(cW), averaged over the bins."""
    row = n * theory.causal.last_row_correlations(c, n, slope, dilution)[:-1]
    return np.array([np.mean(row[some]) for some in groups(n)])


def moments(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over prompts, the first axis, and its standard error."""
    return rows.mean(axis=0), rows.std(axis=0, ddof=1) / np.sqrt(len(rows))


def place_of(k: int) -> str:
    """A bin in words."""
    return f"j/N in ({EDGES[k]:g}, {EDGES[k + 1]:g}]"


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """The closure and its next order; shape; threshold; softmax; soft accuracy; dimensions; the end of the formula."""
    return [
        _closure(parameters, data),
        _next_order(parameters, data),
        _falling(parameters, data),
        _middle(parameters, data),
        _threshold(parameters, data),
        _softmax(parameters, data),
        _soft(parameters, data),
        _sphere(parameters, data),
        _plain(parameters, data),
        _turned(parameters, data),
        _ended(parameters, data),
    ]


def ratios(parameters: Parameters, data: dict[str, xr.Dataset]) -> tuple[np.ndarray, np.ndarray]:
    """Measured over closure and its standard error, (size, slope, bin)."""
    found = []
    for n in parameters.sizes:
        rows = data[f"profile-{n}"]["first"].values
        for k, slope in enumerate(parameters.slopes):
            predicted = closure(rate(parameters) * parameters.time, n, slope)
            found.append([one / predicted for one in moments(rows[k])])
    whole = np.array(found).reshape(len(parameters.sizes), len(parameters.slopes), 2, -1)
    return whole[:, :, 0], whole[:, :, 1]


def _closure(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    found, error = (one[..., FAR:] for one in ratios(parameters, data))
    limit = student(LEVEL, min(parameters.prompts), found.size)
    bias = BIAS / np.array(parameters.sizes)[:, None, None]
    return Claim.equal(
        "circle: the profile N E<x_N(t), x_j(0)> over that of exp(a t W), for all slopes and N, j > N/5", 1.0, found,
        bias + limit * error, f"{BIAS:g}/N for the next order, {limit:.1f} standard errors", origin=CLOSURE,
        labels=lambda at: f"N = {parameters.sizes[at[0]]}, slope {parameters.slopes[at[1]]:g}, {place_of(at[2] + FAR)}",
    )  # fmt: skip


def _next_order(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    """Extrapolated to N to infinity, the mean over slopes and far bins; they share no prompts over slopes."""
    off, square = [], []
    for n in parameters.sizes:
        rows = data[f"profile-{n}"]["first"].values
        depth = rate(parameters) * parameters.time
        each = [
            moments(np.mean(rows[k] / closure(depth, n, slope), axis=1, where=_far()))
            for k, slope in enumerate(parameters.slopes)
        ]
        off.append(np.mean([one[0] for one in each]))
        square.append(np.sum([one[1] ** 2 for one in each]) / len(each) ** 2)
    found, error = 2 * off[1] - off[0], np.sqrt(4 * square[1] + square[0])
    limit = student(LEVEL, min(parameters.prompts))
    second = (BIAS / parameters.sizes[0]) ** 2 / 2
    words = ", ".join(f"{n * (one - 1):.2f}" for n, one in zip(parameters.sizes, off, strict=True))
    return Claim.equal(
        "circle: the closure errs by order 1/N alone: measured over closure, extrapolated from two N", 1.0, found,
        limit * error + second, f"{limit:.1f} standard errors, and half the square of the error at the smaller N",
        origin=NEXT, detail=f"N times the error is {words}",
    )  # fmt: skip


def _far() -> np.ndarray:
    return np.arange(len(EDGES) - 1) >= FAR


def _falling(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows = data[f"profile-{parameters.sizes[1]}"]["first"].values[parameters.slopes.index(0.0)]
    step, error = moments(rows[:, :-1] - rows[:, 1:])
    limit = student(LEVEL, len(rows), len(step))
    return Claim.at_least(
        "slope 0: the later the source, the less is kept: fall from bin to bin, less its standard errors", 0.0,
        step - limit * error, 0.0, f"paired differences; {limit:.1f} standard errors are taken off", origin=FALLING,
        labels=lambda at: f"from {place_of(at[0])}", detail=f"smallest in standard errors {np.min(step / error):.1f}",
    )  # fmt: skip


def _middle(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    """Means over both N of differences between bins."""
    depth = rate(parameters) * parameters.time
    labels: list[str] = []
    above, errors = [], []
    for k, slope in enumerate(parameters.slopes):
        if slope == 0:
            continue
        lowest = int(np.searchsorted(EDGES, theory.causal.find_middle(depth, slope).place)) - 1
        others = [b for b in range(len(EDGES) - 1) if b != lowest]
        rows = [data[f"profile-{n}"]["first"].values[k] for n in parameters.sizes]
        found = [moments(one[:, others] - one[:, [lowest]]) for one in rows]
        above.extend(np.mean([mean for mean, _ in found], axis=0))
        errors.extend(np.sqrt(np.sum([error**2 for _, error in found], axis=0)) / len(found))
        labels.extend(f"slope {slope:g}, {place_of(b)} over {place_of(lowest)}" for b in others)
    return Claim.at_least(
        "slopes above 0: the bin with the predicted minimum is the lowest: height of the others over it", 0.0, above,
        0.0, "paired differences of the same prompts, mean of both N; predicted to be 4 standard errors or more",
        origin=MIDDLE, labels=labels, detail=f"smallest in standard errors {np.min(np.array(above) / errors):.1f}",
    )  # fmt: skip


def recency(rows: np.ndarray) -> np.ndarray:
    """What is kept of the sources in (0.6, 1] less that of (0.05, 0.6], for every prompt; bins count alike."""
    return np.asarray(rows[..., 4:].mean(axis=-1) - rows[..., 1:4].mean(axis=-1))


def _threshold(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    early = data[f"profile-{parameters.sizes[0]}"]["first"].values[parameters.slopes.index(1.0)]
    found = [moments(recency(rows)) for rows in (early, data["late"]["first"].values)]
    limit = student(LEVEL, parameters.late_prompts, 2)
    threshold = float(theory.causal.recency_threshold(1.0))
    signs = [np.sign(threshold - rate(parameters) * t) for t in (parameters.time, parameters.late)]
    lower = [sign * mean - limit * error for sign, (mean, error) in zip(signs, found, strict=True)]
    return Claim.at_least(
        "slope 1: late sources lead those of the middle before the threshold 2 (1 - 1/e) of a t, and trail after it: "
        "|lead| less its standard errors", 0.0, lower, 0.0, f"paired differences; {limit:.1f} standard errors",
        origin=THRESHOLD, labels=[f"t = {t:g}" for t in (parameters.time, parameters.late)],
        detail="lead " + ", ".join(f"{mean:.3f} ± {error:.3f}" for mean, error in found),
    )  # fmt: skip


def _softmax(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    n = parameters.sizes[0]
    dilution = float(theory.causal.softmax_dilution(parameters.beta, 2))
    predicted = closure(rate(parameters, "SA") * parameters.time, n, 1.0, dilution)
    more = float(np.max(closure(rate(parameters, "SA") * parameters.time, n, 1.0) / predicted))
    mean, error = moments(data["softmax"]["first"].values)
    limit = student(LEVEL, parameters.softmax_prompts, len(mean))
    return Claim.equal(
        "softmax, slope 1: the profile over that of exp(a t W) with the token's own weight in W, all j", 1.0,
        mean / predicted, BIAS / n + limit * error / predicted, f"{BIAS:g}/N and {limit:.1f} standard errors",
        origin=DILUTION, labels=[place_of(k) for k in range(len(mean))],
        detail=f"without it W would give up to {more:.2f} times as much",
    )  # fmt: skip


def soft_formula(parameters: Parameters, n: int, slope: float) -> tuple[np.ndarray, np.ndarray]:
    """The soft profile in the bins: of the paper, for infinite N, and with the matrix W of n tokens."""
    places = np.arange(1, n) / n
    smooth = theory.causal.soft_profile(parameters.time, places, parameters.beta, slope, parameters.vocabulary)
    weights = soft_weights(parameters.vocabulary)[:12]
    matrix = sum(
        w * closure(rate(parameters, degree=k) * parameters.time, n, slope) for k, w in enumerate(weights, start=1)
    )
    return np.array([np.mean(smooth[some]) for some in groups(n)]), np.asarray(matrix)


def _soft(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    labels: list[str] = []
    predicted: list[float] = []
    measured: list[float] = []
    tolerance = []
    tests = len(parameters.sizes) * len(parameters.slopes) * (len(EDGES) - 1 - FAR)
    limit = student(LEVEL, min(parameters.prompts), tests)
    for n in parameters.sizes:
        for k, slope in enumerate(parameters.slopes):
            smooth, matrix = soft_formula(parameters, n, slope)
            mean, error = moments(data[f"profile-{n}"]["soft"].values[k])
            room = np.abs(smooth - matrix) + SOFT_BIAS / n * smooth + limit * error
            predicted.extend(smooth[FAR:])
            measured.extend(mean[FAR:])
            tolerance.extend(room[FAR:])
            labels.extend(f"N = {n}, slope {slope:g}, {place_of(b)}" for b in range(FAR, len(mean)))
    return Claim.equal(
        f"circle: the soft profile S_t of a vocabulary of {parameters.vocabulary} words, j > N/5", predicted, measured,
        tolerance, f"what W of N tokens changes, {SOFT_BIAS:g}/N for the next order, {limit:.1f} standard errors",
        origin=SOFT, labels=labels,
    )  # fmt: skip


def _sphere(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    n = parameters.sizes[0]
    predicted = closure(rate(parameters, "USA", 3) * parameters.time, n, 1.0)[FAR:]
    mean, error = (one[FAR:] for one in moments(data["sphere"]["first"].values))
    limit = student(LEVEL, parameters.sphere_prompts, len(mean))
    return Claim.equal(
        "S²: the profile over that of exp(a t W), slope 1, j > N/5", 1.0, mean / predicted,
        BIAS / n + limit * error / predicted, f"{BIAS:g}/N and {limit:.1f} standard errors", origin=CLOSURE,
        labels=[place_of(k + FAR) for k in range(len(mean))],
    )  # fmt: skip


def _plain(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    n, part = parameters.sizes[0], data["plain"]
    predicted = [closure(rate(parameters, "USA", d) * parameters.time, n, 1.0)[FAR:] for d in parameters.plain_dims]
    error = part["error"].values[:, FAR:] / predicted
    limit = student(LEVEL, int(part["prompts"].values.min()), error.size)
    return Claim.equal(
        "plain averages with control variates, d = 2 and 8: the profile over that of exp(a t W), slope 1, j > N/5", 1.0,
        part["mean"].values[:, FAR:] / predicted, BIAS / n + limit * error,
        f"{BIAS:g}/N and {limit:.1f} standard errors", origin=NUMERICS,
        labels=lambda at: f"d = {parameters.plain_dims[at[0]]}, {place_of(at[1] + FAR)}",
    )  # fmt: skip


def closure_sums(parameters: Parameters, times: np.ndarray) -> np.ndarray:
    """The sum over all sources of exp(a t W), near e^(a t) - 1."""
    n = parameters.sizes[0]
    return np.array([np.sum(theory.causal.last_row_correlations(rate(parameters) * t, n, 1.0)[:-1]) for t in times])


def _turned(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows, times = data["end"]["first"].values, np.array(parameters.ends)
    early, late = (int(np.flatnonzero(times == t)[0]) for t in (3.0, 8.0))
    fall, error = moments(rows[:, early] - rows[:, late])
    limit = student(LEVEL, len(rows))
    formula = closure_sums(parameters, times[[early, late]])
    means = rows[:, [early, late]].mean(axis=0)
    return Claim.at_least(
        "the sum over all sources falls from t = 3 to 8, where the formula grows: fall less its standard errors", 0.0,
        fall - limit * error, 0.0, f"paired differences; {limit:.1f} standard errors", origin=END,
        detail=f"measured {means[0]:.2f}, {means[1]:.2f}; formula {formula[0]:.2f}, {formula[1]:.1f}; no mean exceeds "
        f"√(N-1) = {np.sqrt(parameters.sizes[0] - 1):.1f}",
    )  # fmt: skip


def _ended(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    part = data["end"].isel(time=-1)
    total = float(np.sum(soft_weights(parameters.vocabulary)))
    found = [moments(part[name].values) for name in ("first", "soft")]
    late = 2 * np.sqrt(parameters.sizes[0]) / parameters.end_prompts
    limit = student(LEVEL, parameters.end_prompts, 2)
    return Claim.equal(
        "in the end the last token is the first one: the sums over all sources are 1 and the sum of the soft weights",
        (1.0, total), [mean for mean, _ in found], [limit * error + late for _, error in found],
        f"{limit:.1f} standard errors, and room for one prompt that is late", origin=END,
        labels=["degree 1", "soft profile"],
    )  # fmt: skip
