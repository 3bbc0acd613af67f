"""Monte Carlo against exp(cW), its square, its dilution by softmax, and the noise of the mean."""

import dataclasses
import itertools

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import NUMERICS, Claim, Origin, consequence, observed, reported
from attnflow.experiments.kit import LEVEL, Effects, Rows, fit, student
from attnflow_gallery.causal_correlations.simulate import CASES, EDGES, FINE, QUARTERS, Parameters, quarter

CLOSURE = reported("duerinckx2026kinetic", "abstract and authors' code: correlations to first order in 1/N")
NEXT = consequence("What is left at order 1/N²")
SIGN = observed("What is left at order 1/N²")
PAIRS = consequence("Two tokens at one time")
DILUTION = consequence("Softmax counts the token itself")
NOISE = consequence("Noise of the mean")
WORDS = {"circle-1": "S¹, degree 1", "circle-2": "S¹, degree 2", "sphere-1": "S², degree 1"}


@dataclasses.dataclass(frozen=True)
class Deviation:
    """Relative deviation of one bin from the closure at every size, and what is left of it for 1/N -> 0."""

    label: str
    sizes: np.ndarray
    off: np.ndarray
    error: np.ndarray

    @property
    def limit(self) -> tuple[float, float]:
        """The constant of the line in 1/N through the two largest sizes, and its standard error."""
        (few, many), share = self.sizes[-2:], np.array([-1.0, 1.0]) * self.sizes[-2:]
        found, error = share @ self.off[-2:], np.linalg.norm(share * self.error[-2:])
        return float(found / (many - few)), float(error / (many - few))

    @property
    def left_out(self) -> float:
        """What the next term may add to the constant of that line: the square of the deviation."""
        return float(self.off[-2] ** 2)

    @property
    def coefficient(self) -> tuple[float, float]:
        """The coefficient of 1/N of a fit by 1/N and 1/N^2, and its standard error."""
        found, error = self._fit()
        return float(found[0]), float(error[0])

    def curve(self, n: np.ndarray) -> np.ndarray:
        """The fit by 1/N and 1/N^2."""
        (first, second), _ = self._fit()
        return np.asarray(first / n + second / n**2)

    def _fit(self) -> tuple[np.ndarray, np.ndarray]:
        return fit([1.0 / self.sizes, 1.0 / self.sizes**2], self.off, self.error)


def depth(parameters: Parameters, name: str) -> float:
    """c = a_k t of a case."""
    d, clock, degree, until = CASES[name]
    return float(theory.causal.rates(degree, parameters.beta, d, model=clock)) * until


def binned(row: np.ndarray, edges: tuple[float, ...]) -> np.ndarray:
    """N times the mean over the sources j < N of each bin of a last row, edges[b] < j/N <= edges[b+1]."""
    n = len(row)
    place = np.arange(1, n) / n
    rows = [row[:-1][(place > low + 1e-12) & (place <= high + 1e-12)] for low, high in itertools.pairwise(edges)]
    return n * np.array([np.mean(one) for one in rows])


def closure(parameters: Parameters, name: str, n: int, edges: tuple[float, ...]) -> np.ndarray:
    """The prediction exp(cW) for `profiles` of the simulation."""
    return binned(theory.causal.last_row_correlations(depth(parameters, name), n, parameters.slope), edges)


def retrievals(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Deviation]:
    """One for every case and bin."""
    found = []
    for name, words in WORDS.items():
        sizes = data[name]["size"].values
        predicted = np.array([closure(parameters, name, int(n), EDGES) for n in sizes])
        off, error = data[name]["mean"].values / predicted - 1, data[name]["error"].values / predicted
        for b in range(len(EDGES) - 1):
            label = f"{words}, j/N in {EDGES[b]:g} to {EDGES[b + 1]:g}"
            found.append(Deviation(label, sizes, off[:, b], error[:, b]))
    return found


def quarters(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Deviation]:
    """One for every pair of quarters."""
    c, part = depth(parameters, "circle-1"), data["pairs"]
    sizes, found = part["size"].values, []
    whole = {int(n): n * theory.causal.equal_time_correlations(c, int(n), parameters.slope) for n in sizes}
    for at, (a, b) in enumerate(QUARTERS):
        predicted = np.array([one[quarter(n, a), quarter(n, b)].mean() for n, one in whole.items()])
        off, error = part["mean"].values[:, at] / predicted - 1, part["error"].values[:, at] / predicted
        found.append(Deviation(f"quarters {a + 1} and {b + 1}", sizes, off, error))
    return found


def diluted(parameters: Parameters, part: xr.Dataset, with_self: bool) -> tuple[np.ndarray, np.ndarray]:
    """Relative deviation of softmax by bins from the closure with or without the token's own weight; its error."""
    n, c = int(part["size"]), float(theory.causal.rates(1, parameters.beta, 3, model="SA"))
    weight = float(theory.causal.softmax_dilution(parameters.beta, 3)) if with_self else None
    predicted = binned(theory.causal.last_row_correlations(c, n, 0.0, dilution=weight), FINE)
    return part["mean"].values / predicted - 1, part["error"].values / predicted


def predicted_noise(parameters: Parameters, mask: str, times: np.ndarray, n: int) -> np.ndarray:
    """N E|F|^2 of linear theory for N tokens of softmax."""
    rate = float(theory.causal.rates(1, parameters.beta, 2, model="SA"))
    own = float(theory.causal.softmax_dilution(parameters.beta, 2))
    if mask == "masked":
        return np.array([theory.causal.discrete_prefix_noise(rate * t, n, slope=0.0, dilution=own) for t in times])
    return np.exp(2 * rate * times * (n - 1) / (n - 1 + own))


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Limits and coefficients of deviations; softmax; one token; noise."""
    kept, pairs = retrievals(parameters, data), quarters(parameters, data)
    return [
        _limit("the last token keeps [exp(cW)]_Nj of source j", kept, parameters.prompts, CLOSURE),
        _limit("two tokens at one time correlate like exp(cW) exp(cWᵀ)", pairs, parameters.pair_prompts, PAIRS),
        _negative(parameters, kept),
        _softmax(parameters, data["softmax"]),
        _one_token(parameters, data["pairs"]),
        _noise(parameters, data),
    ]


def _limit(words: str, found: list[Deviation], prompts: tuple[int, ...], origin: Origin) -> Claim:
    rows, allowed = Rows(), student(LEVEL, min(prompts), len(found))
    for one in found:
        limit, error = one.limit
        rows.add(0.0, limit, allowed * error + one.left_out, one.label)
    test = f"Student's test over prompts, level {LEVEL:g} for all {len(found)}"
    itself = f"{found[0].off[-1]:+.4f} ± {found[0].error[-1]:.4f}"
    return rows.equal(
        f"{words}: relative deviation for 1/N → 0",
        f"{test}; a line in 1/N through N = {found[0].sizes[-2]} and {found[0].sizes[-1]}, and the square of the "
        "deviation for the next order",
        origin=origin,
        level=LEVEL,
        detail=f"at N = {found[0].sizes[-1]} itself {itself} in the first",
    )


def _negative(parameters: Parameters, found: list[Deviation]) -> Claim:
    coefficients, errors = np.array([one.coefficient for one in found[: len(EDGES) - 1]]).T
    rest = ", ".join(f"{one.label}: {one.coefficient[0]:.2f} ± {one.coefficient[1]:.2f}" for one in found)
    # the error of a mean is at most the mean of the errors, however bins are correlated
    mean_coefficient = Effects(min(parameters.prompts), parameters.expected_coefficient)
    mean_coefficient.add(0.0, np.mean(coefficients), np.mean(errors), "mean over bins")
    words = "exp(cW) is too large at finite N: coefficient of 1/N in the relative deviation, mean over bins"
    return mean_coefficient.below(f"S¹, degree 1: {words}", "fits by 1/N and 1/N²", origin=SIGN, detail=rest)


def _softmax(parameters: Parameters, part: xr.Dataset) -> Claim:
    some = np.array(FINE[:-1]) >= EDGES[0]
    (off, error), (plain, _) = (np.compress(some, diluted(parameters, part, own), axis=1) for own in (True, False))
    rows, allowed = Rows(), student(LEVEL, int(part["prompts"]), len(off))
    labels = [f"bin that ends at j/N = {end:g}" for end in np.array(FINE[1:])[some]]
    rows.add(np.abs(plain) / 4, np.abs(off), allowed * error, labels)
    words = "with the token's own weight in W at most a quarter of the deviation from exp(cW) is left"
    reason = f"Student's test, level {LEVEL:g} for all bins"
    detail = f"mean over bins {np.mean(off):+.4f} with, {np.mean(plain):+.4f} without"
    return rows.at_most(f"S², softmax: {words}", reason, origin=DILUTION, level=LEVEL, detail=detail)


def _one_token(parameters: Parameters, part: xr.Dataset) -> Claim:
    values, moments = part["student"].values, ("x", "y", "x² − 1/2", "xy")
    # fewer prompts make the test wider; the smallest number stands for all
    allowed = student(LEVEL, min(parameters.pair_prompts), values.size)
    labels = [f"row {row}, {moment}" for row in range(len(values)) for moment in moments]
    words = "S¹: every token stays uniform at t = 1: Student's t of E x, E y, E x² − 1/2, E xy"
    reason = f"Student's test over prompts, level {LEVEL:g} for all {values.size}"
    return Claim.equal(words, 0.0, values.ravel(), allowed, reason, origin=NUMERICS, level=LEVEL, labels=labels)


def _noise(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    n, times, rows = parameters.noise_size, np.array(parameters.noise_times), Rows()
    c = float(theory.causal.rates(1, parameters.beta, 2, model="SA")) * times
    allowed = student(LEVEL, parameters.noise_prompts, 2 * len(times))
    # the square of the relative noise of a prefix: e^{4c}/N, and e^{2c}/N without a mask
    for mask, power in (("masked", 4), ("unmasked", 2)):
        linear, part = predicted_noise(parameters, mask, times, n), data[mask]
        second = 2 * np.exp(power * c) / n * linear
        rows.add(linear, part["mean"], allowed * part["error"] + second, [f"{mask}, t = {t:g}" for t in times])
    test = f"Student's test, level {LEVEL:g} for all"
    masked, unmasked = (float(data[mask]["mean"][-1]) for mask in ("masked", "unmasked"))
    limits = f"many tokens: {float(theory.causal.prefix_noise(c[-1])):.3f} and {np.exp(2 * c[-1]):.3f}"
    return rows.equal(
        "S¹, softmax: N E|F|² of the mean F is |exp(cWᵀ) 1|²/N",
        f"{test}; second order of the noise, 2 e^(4c)/N masked, 2 e^(2c)/N not",
        origin=NOISE,
        level=LEVEL,
        detail=f"at the end {masked:.3f} masked, {unmasked:.3f} not; {limits}",
    )
