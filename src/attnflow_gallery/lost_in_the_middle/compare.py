"""Profiles against the matrix exponential of the paper, where the minimum lies, and where the formula ends."""

import itertools

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import NUMERICS, Claim, consequence, reported
from attnflow.experiments.kit import LEVEL, Effects, Rows, averaged, student
from attnflow_gallery.lost_in_the_middle.simulate import EDGES, Parameters, groups, soft_weights

PAPER = "duerinckx2026kinetic"
CLOSURE = reported(PAPER, "abstract and authors' code: the correlations exp(t a W) to first order in 1/N")
MIDDLE = reported(PAPER, "abstract: the U-shaped profile and its minimum")
SMALL = reported(
    PAPER, "abstract: one interior minimum under an explicit smallness condition; the condition by a transcription"
)
SOFT = reported(PAPER, "authors' code: the soft accuracy of retrieval")
NEXT = consequence("The next order in 1/N")
FALLING = consequence("No middle without a slope")
THRESHOLD = consequence("The threshold of recency")
DILUTION = consequence("Softmax")
END = consequence("Where the formula ends")
BINS = len(EDGES) - 1
FAR = 2
"""Bins before this one hold sources of the first fifth, where the expansion in 1/N is poor."""
BIAS = 2.56
"""N times the relative error of the closure up to a t = 0.6: 2 % at N = 128."""
SOFT_BIAS = 5.0
"""The same for the soft profile, whose second degree errs by more."""


def rate(parameters: Parameters, clock: str = "grad", d: int = 2, degree: int = 1) -> float:
    """The rate a_k of a clock."""
    return float(theory.causal.rates(degree, parameters.beta, d, model=clock))


def closure(c: float, n: int, slope: float, dilution: float | None = None) -> np.ndarray:
    """N times the last row of exp(cW), averaged over the bins."""
    row = n * theory.causal.last_row_correlations(c, n, slope, dilution=dilution)[:-1]
    return np.array([np.mean(row[some]) for some in groups(n)])


def profile(parameters: Parameters, data: dict[str, xr.Dataset], n: int, slope: float) -> np.ndarray:
    """(prompt, bin) at n tokens and a slope."""
    return np.asarray(data[f"profile-{n}"]["first"].values[parameters.slopes.index(slope)])


def place_of(k: int) -> str:
    """A bin in words."""
    return f"j/N in ({EDGES[k]:g}, {EDGES[k + 1]:g}]"


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """The closure and its next order; shape; threshold; softmax; soft accuracy; dimensions; the end of the formula."""
    shape = _closure, _next_order, _falling, _middle, _small, _threshold
    others = _softmax, _soft, _sphere, _plain, _turned, _ended
    return [make(parameters, data) for make in (*shape, *others)]


def _closure(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows, cases = Rows(), list(itertools.product(parameters.sizes, parameters.slopes))
    limit = student(LEVEL, min(parameters.prompts), len(cases) * (BINS - FAR))
    for n, slope in cases:
        predicted = closure(rate(parameters) * parameters.time, n, slope)[FAR:]
        mean, error = averaged(profile(parameters, data, n, slope)[:, FAR:])
        labels = [f"N = {n}, slope {slope:g}, {place_of(k)}" for k in range(FAR, BINS)]
        rows.add(1.0, mean / predicted, BIAS / n + limit * error / predicted, labels)
    words = "circle: the profile N E<x_N(t), x_j(0)> over that of exp(a t W), for all slopes and N, j > N/5"
    return rows.equal(words, f"{BIAS:g}/N for the next order, {limit:.1f} standard errors", origin=CLOSURE, level=LEVEL)


def _next_order(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    """Extrapolated to N to infinity, the mean over slopes and far bins; they share no prompts over slopes."""
    off, square, depth = [], [], rate(parameters) * parameters.time
    for n in parameters.sizes:
        rows = [profile(parameters, data, n, slope) / closure(depth, n, slope) for slope in parameters.slopes]
        means, errors = np.array([averaged(one[:, FAR:].mean(axis=1)) for one in rows]).T
        off.append(np.mean(means))
        square.append(np.mean(errors**2) / len(errors))
    found, error = 2 * off[1] - off[0], np.sqrt(4 * square[1] + square[0])
    limit, second = student(LEVEL, min(parameters.prompts)), (BIAS / parameters.sizes[0]) ** 2 / 2
    times = ", ".join(f"{n * (one - 1):.2f}" for n, one in zip(parameters.sizes, off, strict=True))
    words = "circle: the closure errs by order 1/N alone: measured over closure, extrapolated from two N"
    reason = f"{limit:.1f} standard errors, and half the square of the error at the smaller N"
    detail = f"N times the error is {times}"
    return Claim.equal(words, 1.0, found, limit * error + second, reason, origin=NEXT, level=LEVEL, detail=detail)


def _falling(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    found = profile(parameters, data, parameters.sizes[1], 0.0)
    step, error = averaged(found[:, :-1] - found[:, 1:])
    steps = Effects(len(found), parameters.expected_steps)
    steps.add(0.0, step, error, [f"from {place_of(k)}" for k in range(len(step))])
    words = "slope 0: the later the source, the less is kept: fall from bin to bin, less its standard errors"
    detail = f"smallest in standard errors {np.min(step / error):.1f}"
    return steps.above(words, "paired differences", origin=FALLING, detail=detail)


def _middle(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    """Means over both N of differences between bins."""
    heights, smallest = Effects(min(parameters.prompts), parameters.expected_heights), np.inf
    for slope in (one for one in parameters.slopes if one > 0):
        place = theory.causal.find_middle(rate(parameters) * parameters.time, slope).place
        lowest = int(np.searchsorted(EDGES, place)) - 1
        others = [k for k in range(BINS) if k != lowest]
        kept = [profile(parameters, data, n, slope) for n in parameters.sizes]
        above, error = of_both([one[:, others] - one[:, [lowest]] for one in kept])
        heights.add(0.0, above, error, [f"slope {slope:g}, {place_of(k)} over {place_of(lowest)}" for k in others])
        smallest = min(smallest, np.min(above / error))
    words = "slopes above 0: the bin with the predicted minimum is the lowest: height of the others over it"
    test = "paired differences of the same prompts, mean of both N"
    return heights.above(words, test, origin=MIDDLE, detail=f"smallest in standard errors {smallest:.1f}")


def of_both(differences: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The mean over both N of means over prompts, and its standard error."""
    means, errors = np.array([averaged(one) for one in differences]).swapaxes(0, 1)
    return np.mean(means, axis=0), np.sqrt(np.sum(errors**2, axis=0)) / len(errors)


def _small(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    """The condition of the theorem holds for every slope, and so does what it promises."""
    slopes, t, beta = [one for one in parameters.slopes if one > 0], parameters.time, parameters.beta
    heights = Effects(min(parameters.prompts), parameters.expected_soft)
    ends = np.array([theory.causal.theorem_time(beta, one) for one in slopes])
    heights.add(0.0, ends - t, 0.0, [f"slope {one:g}, time left until the condition ends" for one in slopes])
    for slope in slopes:
        place = theory.causal.find_soft_middle(t, beta, slope, vocabulary=parameters.vocabulary).place
        lowest, at = int(np.searchsorted(EDGES, place)) - 1, parameters.slopes.index(slope)
        pairs = [(0, lowest), (BINS - 1, lowest), (BINS - 1, BINS - 2)]
        kept = [data[f"profile-{n}"]["soft"].values[at] for n in parameters.sizes]
        above, error = of_both([np.stack([one[:, a] - one[:, b] for a, b in pairs], axis=1) for one in kept])
        labels = [f"slope {slope:g}, {place_of(a)} over {place_of(b)}" for a, b in pairs]
        heights.add(0.0, above, error, labels)
    words = "t below min(3 - √3, 2 (1 - e^-slope))/sup n² I_n(β): the soft profile begins and ends above the predicted"
    statement = f"{words} minimum, and rises at the end: differences of bins, less their standard errors"
    test = "paired differences of the same prompts, mean of both N"
    detail = f"slopes {', '.join(f'{one:g}' for one in slopes)}: t below {', '.join(f'{one:.2f}' for one in ends)}"
    return heights.above(statement, test, origin=SMALL, detail=detail)


def recency(rows: np.ndarray) -> np.ndarray:
    """What is kept of the sources in (0.6, 1] less that of (0.05, 0.6], for every prompt; bins count alike."""
    return np.asarray(rows[..., 4:].mean(axis=-1) - rows[..., 1:4].mean(axis=-1))


def _threshold(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    early = profile(parameters, data, parameters.sizes[0], 1.0)
    threshold = float(theory.causal.recency_threshold(1.0))
    recent, leads = Effects(parameters.late_prompts, parameters.expected_leads), []
    for time, found in ((parameters.time, early), (parameters.late, data["late"]["first"].values)):
        lead, error = averaged(recency(found))
        recent.add(0.0, np.sign(threshold - rate(parameters) * time) * lead, error, f"t = {time:g}")
        leads.append(f"{lead:.3f} ± {error:.3f}")
    words = "late sources lead those of the middle before the threshold 2 (1 - 1/e) of a t, and trail after it"
    statement = f"slope 1: {words}: |lead| less its standard errors"
    return recent.above(statement, "paired differences", origin=THRESHOLD, detail="lead " + ", ".join(leads))


def _softmax(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    depth, n = rate(parameters, "SA") * parameters.time, parameters.sizes[0]
    predicted = closure(depth, n, 1.0, float(theory.causal.softmax_dilution(parameters.beta, 2)))
    more = float(np.max(closure(depth, n, 1.0) / predicted))
    rows, limit = _over(predicted, data["softmax"]["first"].values, n, 0)
    words = "softmax, slope 1: the profile over that of exp(a t W) with the token's own weight in W, all j"
    detail = f"without it W would give up to {more:.2f} times as much"
    return rows.equal(words, f"{BIAS:g}/N and {limit:.1f} standard errors", origin=DILUTION, level=LEVEL, detail=detail)


def _sphere(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    n = parameters.sizes[0]
    predicted = closure(rate(parameters, "USA", 3) * parameters.time, n, 1.0)
    rows, limit = _over(predicted, data["sphere"]["first"].values, n, FAR)
    words = "S²: the profile over that of exp(a t W), slope 1, j > N/5"
    return rows.equal(words, f"{BIAS:g}/N and {limit:.1f} standard errors", origin=CLOSURE, level=LEVEL)


def _over(predicted: np.ndarray, found: np.ndarray, n: int, first: int) -> tuple[Rows, float]:
    """Means over what is predicted, from a bin on, and how many standard errors they may be off."""
    rows, limit = Rows(), student(LEVEL, len(found), BINS - first)
    mean, error = (one[first:] / predicted[first:] for one in averaged(found))
    rows.add(1.0, mean, BIAS / n + limit * error, [place_of(k) for k in range(first, BINS)])
    return rows, limit


def soft_formula(parameters: Parameters, n: int, slope: float) -> tuple[np.ndarray, np.ndarray]:
    """The soft profile in the bins: of the paper, for infinite N, and with the matrix W of n tokens."""
    places = np.arange(1, n) / n
    smooth = theory.causal.soft_profile(
        parameters.time, places, parameters.beta, slope=slope, vocabulary=parameters.vocabulary
    )
    weights = soft_weights(parameters.vocabulary)[:12]
    matrix = sum(
        w * closure(rate(parameters, degree=k) * parameters.time, n, slope) for k, w in enumerate(weights, start=1)
    )
    return np.array([np.mean(smooth[some]) for some in groups(n)]), np.asarray(matrix)


def _soft(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows, cases = Rows(), list(itertools.product(parameters.sizes, parameters.slopes))
    limit = student(LEVEL, min(parameters.prompts), len(cases) * (BINS - FAR))
    for n, slope in cases:
        smooth, matrix = (one[FAR:] for one in soft_formula(parameters, n, slope))
        found = data[f"profile-{n}"]["soft"].values[parameters.slopes.index(slope)]
        mean, error = averaged(found[:, FAR:])
        room = np.abs(smooth - matrix) + SOFT_BIAS / n * smooth + limit * error
        rows.add(smooth, mean, room, [f"N = {n}, slope {slope:g}, {place_of(k)}" for k in range(FAR, BINS)])
    words = f"circle: the soft profile S_t of a vocabulary of {parameters.vocabulary} words, j > N/5"
    reason = f"what W of N tokens changes, {SOFT_BIAS:g}/N for the next order, {limit:.1f} standard errors"
    return rows.equal(words, reason, origin=SOFT, level=LEVEL)


def _plain(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    n, part, rows = parameters.sizes[0], data["plain"], Rows()
    limit = student(LEVEL, int(part["prompts"].values.min()), len(parameters.plain_dims) * (BINS - FAR))
    for k, d in enumerate(parameters.plain_dims):
        predicted = closure(rate(parameters, "USA", d) * parameters.time, n, 1.0)
        mean, error = (part[name].values[k, FAR:] / predicted[FAR:] for name in ("mean", "error"))
        rows.add(1.0, mean, BIAS / n + limit * error, [f"d = {d}, {place_of(b)}" for b in range(FAR, BINS)])
    words = "the profile over that of exp(a t W), slope 1, j > N/5"
    statement = f"plain averages with control variates, d = 2 and 8: {words}"
    return rows.equal(statement, f"{BIAS:g}/N and {limit:.1f} standard errors", origin=NUMERICS, level=LEVEL)


def closure_sums(parameters: Parameters, times: np.ndarray) -> np.ndarray:
    """The sum over all sources of exp(a t W), near e^(a t) - 1."""
    n = parameters.sizes[0]
    return np.array([np.sum(theory.causal.last_row_correlations(rate(parameters) * t, n, 1.0)[:-1]) for t in times])


def _turned(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows, both = data["end"]["first"].sel(time=[3.0, 8.0]).values, np.array([3.0, 8.0])
    fall, error = averaged(rows[:, 0] - rows[:, 1])
    (early, late), formula = rows.mean(axis=0), closure_sums(parameters, both)
    words = "the sum over all sources falls from t = 3 to 8, where the formula grows: fall less its standard errors"
    bound = f"no mean exceeds √(N-1) = {np.sqrt(parameters.sizes[0] - 1):.1f}"
    detail = f"measured {early:.2f}, {late:.2f}; formula {formula[0]:.2f}, {formula[1]:.1f}; {bound}"
    falls = Effects(len(rows), parameters.expected_fall)
    falls.add(0.0, fall, error, "from t = 3 to 8")
    return falls.above(words, "paired differences", origin=END, detail=detail)


def _ended(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    part, rows = data["end"].isel(time=-1), Rows()
    total = float(np.sum(soft_weights(parameters.vocabulary)))
    late = 2 * np.sqrt(parameters.sizes[0]) / parameters.end_prompts
    limit = student(LEVEL, parameters.end_prompts, 2)
    for name, label, predicted in (("first", "degree 1", 1.0), ("soft", "soft profile", total)):
        mean, error = averaged(part[name])
        rows.add(predicted, mean, limit * error + late, label)
    words = (
        "in the end the last token is the first one: the sums over all sources are 1 and the sum of the soft weights"
    )
    return rows.equal(
        words, f"{limit:.1f} standard errors, and room for one prompt that is late", origin=END, level=LEVEL
    )
