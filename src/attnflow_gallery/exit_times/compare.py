"""Distributions of log T over seeds, and every seed, against closed forms and cascades of pairs."""

import functools
import math
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import Rows
from attnflow.observe import exit_distribution
from attnflow_gallery.exit_times.simulate import Parameters, chord

LIMIT = published("geshkovski2024metastability")
PAIRS = consequence("Two random tokens")
CASCADE = consequence("Cascade of pairs")
CLEAR = 0.1
"""Largest first-order error of a cascade, in log T, up to which it is compared with its own seed."""
EXITS = {"first merge": 0, "exit from two clusters": -1}


def title(part: xr.Dataset) -> str:
    """Model and beta."""
    return f"{part.attrs['model']}, β = {part.attrs['beta']:g}"


def until(parameters: Parameters, part: xr.Dataset) -> float:
    """The angle at which clusters count as one."""
    return 2 * math.asin(chord(parameters, part.attrs["beta"]) / 2)


def pairs_of(data: dict[str, xr.Dataset]) -> list[xr.Dataset]:
    """The parts with two tokens."""
    return [part for part in data.values() if part.attrs["n"] == 2]


def several_of(data: dict[str, xr.Dataset]) -> list[xr.Dataset]:
    """The parts with more."""
    return [part for part in data.values() if part.attrs["n"] > 2]


@functools.lru_cache(maxsize=16)
def _cascades(starts: bytes, n: int, model: str, beta: float, until: float) -> tuple[np.ndarray, ...]:
    """log T, error and slope of all merges of all starts."""
    x = np.frombuffer(starts).reshape(-1, n, 3)
    found = [theory.merging.pair_cascade(one, np.full(n, 1 / n), beta, model=model, until=until) for one in x]
    return tuple(np.array([getattr(c, name) for c in found]) for name in ("log_time", "disturbance", "slope"))


def cascades(parameters: Parameters, part: xr.Dataset, starts: np.ndarray) -> tuple[np.ndarray, ...]:
    """log T, error and slope of all merges: arrays (start, merge)."""
    attrs = part.attrs
    return _cascades(starts.tobytes(), attrs["n"], attrs["model"], float(attrs["beta"]), until(parameters, part))


def other_starts(parameters: Parameters) -> np.ndarray:
    """Independent starts: normal vectors, divided by their norms."""
    x = parameters.rng(3, parameters.n).standard_normal((parameters.others, parameters.n, 3))
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def limits(parameters: Parameters, model: str) -> np.ndarray:
    """s of all merges in the limit, of the other starts: array (start, merge)."""
    masses = np.full(parameters.n, 1 / parameters.n)
    return np.array([theory.merging.limit_staircase(x, masses, model=model).s for x in other_starts(parameters)])


def distance(sample: np.ndarray, other: np.ndarray) -> float:
    """Kolmogorov distance of two samples; NaN if a merge of the first was not made, or has no known time."""
    if not (sample < np.inf).all():
        return math.nan
    at = np.concatenate([sample, other])
    first, second = (np.searchsorted(np.sort(one), at, side="right") / len(one) for one in (sample, other))
    return float(np.abs(first - second).max())


def critical(parameters: Parameters, comparisons: int) -> float:
    """What the distance of two samples exceeds with probability `level`, in any of so many comparisons.

    sqrt(log(2 comparisons/level)/2 (1/n + 1/m)): the limit distribution of Kolmogorov and Smirnov, first term.
    """
    sizes = 1 / parameters.starts + 1 / parameters.others
    return math.sqrt(math.log(2 * comparisons / parameters.level) / 2 * sizes)


def steps_off(parameters: Parameters, part: xr.Dataset, slope: np.ndarray) -> np.ndarray:
    """Error of log T by the steps: of each tol, tol at the meeting, and what tol/(1 + beta) of a coordinate does."""
    tol, beta = parameters.tol, part.attrs["beta"]
    moved = 2 * math.sqrt(part.attrs["dim"]) * tol / (1 + beta) * np.maximum.accumulate(slope, axis=1)
    return np.asarray(part["evaluations"].values / 15 * (2 * tol + moved))


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """The limit, distributions without slack, and seed by seed."""
    pairs, several = pairs_of(data), several_of(data)
    return [
        _limit(parameters, several),
        *(_distribution(parameters, several, *one) for one in EXITS.items()),
        _pair_distribution(parameters, pairs),
        _pair_seeds(parameters, pairs),
        _seeds(parameters, several),
    ]


def _level(parameters: Parameters, comparisons: int) -> str:
    size = critical(parameters, comparisons)
    return f"level {parameters.level:g}; a distance of {2 * size:.2g} would almost surely be seen"


def _limit(parameters: Parameters, several: list[xr.Dataset]) -> Claim:
    part = max((one for one in several if one.attrs["model"] == "USA0"), key=lambda one: one.attrs["beta"])
    s, beta, rows = limits(parameters, "USA0"), part.attrs["beta"], Rows()
    for words, k in EXITS.items():
        found = distance(part["log_time"].values[:, k] / beta, s[:, k])
        rows.add(0.0, found, critical(parameters, 2), words)
    words = f"{parameters.n} tokens, USA0, β = {beta:g}: Kolmogorov distance of (log T)/β from the limit β → ∞"
    return rows.at_most(words, _level(parameters, 2), origin=LIMIT, level=parameters.level)


def _distribution(parameters: Parameters, several: list[xr.Dataset], words: str, merge: int) -> Claim:
    rows, starts = Rows(), other_starts(parameters)
    for part in several:
        expected = cascades(parameters, part, starts)[0][:, merge]
        found = distance(part["log_time"].values[:, merge], expected)
        rows.add(0.0, found, critical(parameters, len(several)), title(part))
    words = f"{parameters.n} tokens, {words}: Kolmogorov distance of log T from cascades of other starts"
    return rows.at_most(words, _level(parameters, len(several)), origin=CASCADE, level=parameters.level)


def _pair_distribution(parameters: Parameters, pairs: list[xr.Dataset]) -> Claim:
    rows = Rows()
    for part in pairs:
        beta, dim, model = float(part.attrs["beta"]), int(part.attrs["dim"]), str(part.attrs["model"])
        exits = exit_distribution(part["log_time"].values[:, 0], 1 - parameters.level / len(pairs))
        end = until(parameters, part)
        one = exits.kolmogorov(functools.partial(_probability, beta=beta, dim=dim, model=model, end=end))
        found = one.distance if exits.exits == exits.n else math.nan
        rows.add(0.0, found, one.critical, f"S^{dim - 1}, {title(part)}")
    words = "2 tokens: Kolmogorov distance of log T from its closed-form distribution"
    reason = f"exact test, {parameters.pair_starts} seeds, level {parameters.level:g}"
    return rows.at_most(words, reason, origin=PAIRS, level=parameters.level)


def _probability(times: Any, beta: float, dim: int, model: str, end: float) -> Any:
    return theory.merging.pair_time_probability(times, beta, dim, model=model, until=end)


def pair_times(parameters: Parameters, part: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """The closed form of log T of every pair and its slope in the angle; minus infinity for one that starts merged."""
    x, y = np.moveaxis(part["start"].values, 1, 0)
    angle = 2 * np.arctan2(np.linalg.norm(x - y, axis=1), np.linalg.norm(x + y, axis=1))
    beta, model = float(part.attrs["beta"]), str(part.attrs["model"])
    end = until(parameters, part)
    apart = np.maximum(angle, end * (1 + 1e-9))
    log_time = theory.merging.log_merge_time(apart, beta, masses=(0.5, 0.5), until=end, model=model)
    log_time = np.where(angle > end, log_time, -np.inf)
    q = np.exp(-2 * beta * np.sin(angle / 2) ** 2)
    speed = q * np.sin(angle) * (2 / (1 + q) if model == "SA" else 1.0)
    with np.errstate(over="ignore"):
        return log_time, np.exp(-log_time) / speed


def _pair_seeds(parameters: Parameters, pairs: list[xr.Dataset]) -> Claim:
    rows = Rows()
    for part in pairs:
        log_time, slope = pair_times(parameters, part)
        apart = log_time > -np.inf
        allowed = steps_off(parameters, part, slope[:, None])[apart, 0]
        names = [f"S^{part.attrs['dim'] - 1}, seed {seed}" for seed in np.flatnonzero(apart)]
        rows.add(log_time[apart], part["log_time"].values[apart, 0], allowed, names)
    return rows.equal("2 tokens: log T of every seed, from its angle", "errors of steps", origin=PAIRS)


def own_cascades(parameters: Parameters, part: xr.Dataset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(log T, first-order error, tolerance) of every seed and merge, from its own start."""
    log_time, missed, slope = cascades(parameters, part, part["start"].values)
    return log_time, missed, missed + steps_off(parameters, part, slope)


def _seeds(parameters: Parameters, several: list[xr.Dataset]) -> Claim:
    rows = Rows()
    for part in several:
        log_time, missed, tolerance = own_cascades(parameters, part)
        clear = (missed <= CLEAR) & (np.abs(log_time) < np.inf)
        names = [f"{title(part)}, seed {seed}, merge {merge + 1}" for seed, merge in np.argwhere(clear)]
        rows.add(log_time[clear], part["log_time"].values[clear], tolerance[clear], names)
    words = f"{parameters.n} tokens: log T of every merge with a clear cascade, from its own start"
    return rows.equal(words, "pull of other pairs, to first order, doubled; errors of steps", origin=CASCADE)
