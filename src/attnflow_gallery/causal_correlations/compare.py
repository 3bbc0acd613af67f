"""Monte Carlo against exp(cW), its square, its dilution by softmax, and the noise of the mean."""

import dataclasses
import itertools

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, Origin, consequence, published
from attnflow.experiments.kit import student
from attnflow_gallery.causal_correlations.simulate import CASES, EDGES, FINE, QUARTERS, Parameters

CLOSURE = published("duerinckx2026kinetic", "correlations to first order in 1/N")
BIAS = consequence("What is left at order 1/N²")
PAIRS = consequence("Two tokens at one time")
DILUTION = consequence("Softmax counts the token itself")
UNIFORM = consequence("One token stays uniform")
NOISE = consequence("Noise of the mean")
LEVEL = 1e-3
"""Probability that chance alone makes a claim fail, each."""
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
        """The constant of a fit by 1, 1/N and 1/N^2, and its standard error."""
        return self._fit(0)

    @property
    def coefficient(self) -> tuple[float, float]:
        """The coefficient of 1/N of a fit by 1/N and 1/N^2, and its standard error."""
        return self._fit(1)

    def curve(self, n: np.ndarray) -> np.ndarray:
        """The fit by 1/N and 1/N^2."""
        terms = 1 / self.sizes[:, None] ** np.array([1, 2])
        scaled = np.linalg.lstsq(terms / self.error[:, None], self.off / self.error, rcond=None)[0]
        return np.asarray(scaled[0] / n + scaled[1] / n**2)

    def _fit(self, first: int) -> tuple[float, float]:
        matrix = (1.0 / self.sizes[:, None] ** np.arange(first, 3)) / self.error[:, None]
        covariance = np.linalg.inv(matrix.T @ matrix)
        found = covariance @ matrix.T @ (self.off / self.error)
        return float(found[0]), float(np.sqrt(max(covariance[0, 0], 0.0)))


def depth(parameters: Parameters, name: str) -> float:
    """c = a_k t of a case."""
    d, clock, degree, until = CASES[name]
    return float(theory.causal.rates(degree, parameters.beta, d, clock)) * until


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
        predicted = np.array([
            whole[n][a * n // 4 : (a + 1) * n // 4, b * n // 4 : (b + 1) * n // 4].mean() for n in whole
        ])  # fmt: skip
        off, error = part["mean"].values[:, at] / predicted - 1, part["error"].values[:, at] / predicted
        found.append(Deviation(f"quarters {a + 1} and {b + 1}", sizes, off, error))
    return found


def diluted(parameters: Parameters, part: xr.Dataset, with_self: bool) -> tuple[np.ndarray, np.ndarray]:
    """Relative deviation of softmax by bins from the closure with or without the token's own weight; its error."""
    n, c = int(part["size"]), float(theory.causal.rates(1, parameters.beta, 3, "SA"))
    weight = float(theory.causal.softmax_dilution(parameters.beta, 3)) if with_self else None
    predicted = binned(theory.causal.last_row_correlations(c, n, 0.0, weight), FINE)
    return part["mean"].values / predicted - 1, part["error"].values / predicted


def predicted_noise(parameters: Parameters, mask: str, times: np.ndarray, n: int) -> np.ndarray:
    """N E|F|^2 of linear theory for N tokens of softmax."""
    rate = float(theory.causal.rates(1, parameters.beta, 2, "SA"))
    own = float(theory.causal.softmax_dilution(parameters.beta, 2))
    if mask == "masked":
        return np.array([theory.causal.discrete_prefix_noise(rate * t, n, 0.0, own) for t in times])
    return np.exp(2 * rate * times * (n - 1) / (n - 1 + own))


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Limits and coefficients of deviations; softmax; one token; noise."""
    return [
        _limit("the last token keeps [exp(cW)]_Nj of source j", retrievals(parameters, data), parameters.prompts,
               CLOSURE),
        _limit("two tokens at one time correlate like exp(cW) exp(cWᵀ)", quarters(parameters, data),
               parameters.pair_prompts, PAIRS),
        _negative(parameters, data), _softmax(parameters, data["softmax"]), _one_token(parameters, data["pairs"]),
        _noise(parameters, data),
    ]  # fmt: skip


def _limit(words: str, found: list[Deviation], prompts: tuple[int, ...], origin: Origin) -> Claim:
    limits, errors = np.array([one.limit for one in found]).T
    allowed = student(LEVEL, min(prompts), len(found))
    return Claim.equal(
        f"{words}: relative deviation for 1/N → 0", 0.0, limits, allowed * errors,
        f"Student's test over prompts, level {LEVEL:g} for all {len(found)}; fits by 1, 1/N and 1/N²", origin=origin,
        labels=[one.label for one in found],
        detail=f"at N = {found[0].sizes[-1]} itself {found[0].off[-1]:+.4f} ± {found[0].error[-1]:.4f} in the first",
    )  # fmt: skip


def _negative(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    found = retrievals(parameters, data)
    coefficients, errors = np.array([one.coefficient for one in found[: len(EDGES) - 1]]).T
    rest = ", ".join(f"{one.label}: {one.coefficient[0]:.2f} ± {one.coefficient[1]:.2f}" for one in found)
    # the error of a mean is at most the mean of the errors, however bins are correlated
    return Claim.at_most(
        "S¹, degree 1: exp(cW) is too large at finite N: coefficient of 1/N in the relative deviation, mean over bins",
        0.0, np.mean(coefficients) + student(LEVEL, min(parameters.prompts)) * np.mean(errors), 0.0,
        f"its upper bound by Student's test, level {LEVEL:g}; fits by 1/N and 1/N²", origin=BIAS, detail=rest,
    )  # fmt: skip


def _softmax(parameters: Parameters, part: xr.Dataset) -> Claim:
    (off, error), (plain, _) = diluted(parameters, part, True), diluted(parameters, part, False)
    some = np.array(FINE[:-1]) >= EDGES[0]
    return Claim.at_most(
        "S², softmax: with the token's own weight in W at most a quarter of the deviation from exp(cW) is left",
        np.abs(plain[some]) / 4, np.abs(off[some]),
        student(LEVEL, int(part["prompts"]), int(np.sum(some))) * error[some],
        f"Student's test, level {LEVEL:g} for all bins", origin=DILUTION,
        labels=lambda at: f"bin that ends at j/N = {np.array(FINE[1:])[some][at[0]]:g}",
        detail=f"mean over bins {np.mean(off[some]):+.4f} with, {np.mean(plain[some]):+.4f} without",
    )  # fmt: skip


def _one_token(parameters: Parameters, part: xr.Dataset) -> Claim:
    values = part["student"].values
    # fewer prompts make the test wider; the smallest number stands for all
    allowed = student(LEVEL, min(parameters.pair_prompts), values.size)
    moments = ("x", "y", "x² − 1/2", "xy")
    return Claim.equal(
        "S¹: every token stays uniform at t = 1: Student's t of E x, E y, E x² − 1/2, E xy", 0.0, values, allowed,
        f"Student's test over prompts, level {LEVEL:g} for all {values.size}", origin=UNIFORM,
        labels=lambda at: f"row {at[0]}, {moments[at[1]]}",
    )  # fmt: skip


def _noise(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    n, times = parameters.noise_size, np.array(parameters.noise_times)
    rate = float(theory.causal.rates(1, parameters.beta, 2, "SA"))
    allowed = student(LEVEL, parameters.noise_prompts, 2 * len(times))
    labels: list[str] = []
    predicted, measured, tolerance = [], [], []
    for mask in ("masked", "unmasked"):
        linear = predicted_noise(parameters, mask, times, n)
        # the square of the relative noise of a prefix: e^{4c}/N, and e^{2c}/N without a mask
        second = 2 * np.exp((4 if mask == "masked" else 2) * rate * times) / n
        predicted.append(linear)
        measured.append(data[mask]["mean"].values)
        tolerance.append(allowed * data[mask]["error"].values + second * linear)
        labels.extend(f"{mask}, t = {t:g}" for t in times)
    return Claim.equal(
        "S¹, softmax: N E|F|² of the mean F is |exp(cWᵀ) 1|²/N", np.concatenate(predicted), np.concatenate(measured),
        np.concatenate(tolerance),
        f"Student's test, level {LEVEL:g} for all; second order of the noise, 2 e^(4c)/N masked, 2 e^(2c)/N not",
        origin=NOISE, labels=labels,
        detail=f"at the end {measured[0][-1]:.3f} masked, {measured[1][-1]:.3f} not; many tokens: "
        f"{float(theory.causal.prefix_noise(rate * times[-1])):.3f} and {np.exp(2 * rate * times[-1]):.3f}",
    )  # fmt: skip
