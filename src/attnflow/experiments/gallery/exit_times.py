"""Over many seeds, exit times from plateaus follow the starts, pushed through the merge times of pairs.

Two iid tokens on a sphere are at a random angle, and they meet in a time that is an increasing function of it: the
distribution of log T has a closed form. Of more tokens the nearest two meet first, and so on; as long as the next
nearest pair is much slower (a factor e^(beta gap)) each merge is that of a pair, and the exit time from every plateau
is a sum of pair times, the staircase. As beta -> infinity only (log T)/beta remains, which is the largest u = 1 - cos
of the angles so far: the limit distribution is that of a random variable made of positions alone (arXiv:2410.06833,
arXiv:2312.10794).

Shown: distributions over seeds of log T of two tokens, of the first merge of several, and of the exit from their last
plateau, that of two clusters, with intervals that assume no shape. Seeds in which two pairs are about equally fast are
counted as unclear and left out of the comparison seed by seed, not of the distributions. Not shown: many tokens, where
the first plateaus are crowded.
"""

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.claim import Claim
from attnflow.experiments.study import Study
from attnflow.fields import Attention, Softmax, Unnormalised
from attnflow.flows import LongTime, merge_times
from attnflow.observe import exit_distribution
from attnflow.plots.style import COLOURS, GREY, INK, PAGE, styled
from attnflow.spaces import Sphere
from attnflow.tokens import uniform

PAPERS = ("arXiv:2410.06833", "arXiv:2312.10794")

MODELS = {"SA": Softmax(), "USA0": Unnormalised()}
UNCLEAR = 0.1
"""A seed is unclear if others change the speed of a merging pair by more than this share, or the staircase by that."""
KINDS = {"first merge": "first merge", "exit": "exit from two clusters"}


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is simulated."""

    seeds: int = 1000
    pairs: tuple[tuple[int, str], ...] = ((2, "SA"), (3, "USA0"))
    """Two tokens: dimension and model."""
    pair_beta: float = 25.0
    n: int = 8
    """Tokens on S^2 whose exits are looked at."""
    cases: tuple[tuple[str, float], ...] = (("USA0", 25.0), ("USA0", 100.0), ("USA0", 400.0), ("SA", 100.0))
    """Model and beta of these."""
    confidence: float = 0.999
    tol: float = 1e-6


QUICK = Parameters(seeds=32, pairs=((3, "USA0"),), cases=(("USA0", 100.0),))


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Log times of all merges of all seeds, and what theory makes of the same starts."""
    jobs = [(2, dim, model, parameters.pair_beta) for dim, model in parameters.pairs]
    jobs += [(parameters.n, 3, model, beta) for model, beta in parameters.cases]
    found = {}
    for k, (n, dim, model, beta) in enumerate(jobs):
        study.progress(f"{n} tokens on S^{dim - 1}, {model}, beta = {beta:g}", k / len(jobs))
        make = functools.partial(_merges, parameters, n, dim, model, beta, study, (k, len(jobs)))
        found[_name(n, dim, model, beta)] = study.part(_name(n, dim, model, beta), make)
    return found


def _name(n: int, dim: int, model: str, beta: float) -> str:
    return f"{n}-S{dim - 1}-{model}-{beta:g}"


def _chord(beta: float, tol: float) -> float:
    """Where clusters count as one."""
    return min(math.sqrt(tol) / beta, 1e-3 / math.sqrt(beta))


def _merges(
    parameters: Parameters, n: int, dim: int, model: str, beta: float, study: Study, place: tuple[int, int]
) -> xr.Dataset:
    chord = _chord(beta, parameters.tol)
    tokens = uniform(Sphere(dim), n=n, seed=range(parameters.seeds))
    found = merge_times(
        Attention(beta, normaliser=MODELS[model]),
        tokens,
        method=LongTime(parameters.tol, angle=chord),
        on_progress=lambda p: study.progress(
            f"{n} tokens on S^{dim - 1}, {model}, beta = {beta:g}", (place[0] + p.frames / p.of) / place[1]
        ),
    )
    stairs = [staircase(x, np.full(n, 1 / n), beta, model, 2 * math.asin(chord / 2)) for x in tokens.positions]
    fresh = uniform(Sphere(dim), n=n, seed=range(parameters.seeds, 2 * parameters.seeds))
    limits, others = (
        np.array([theory.limit_staircase(x, np.full(n, 1 / n), model).s for x in starts.positions])
        for starts in (tokens, fresh)
    )
    return xr.Dataset(
        {
            "log_time": (("seed", "merge"), found["log_time"].values),
            "undetermined": (("seed", "merge"), found["undetermined"].values),
            "evaluations": (("seed", "merge"), found["evaluations"].values),
            "pairwise": (("seed", "merge"), np.array([stair.log_time for stair in stairs])),
            "doubt": (("seed", "merge"), np.array([stair.doubt for stair in stairs])),
            "bound": (("seed", "merge"), np.array([stair.bound for stair in stairs])),
            "slope": (("seed", "merge"), np.array([stair.slope for stair in stairs])),
            "limit": (("seed", "merge"), limits),
            "limit_of_others": (("seed", "merge"), others),
            "angle": (("seed",), np.array([_angles(x)[0, 1] for x in tokens.positions])),
        },
        attrs={"n": n, "dim": dim, "model": model, "beta": beta},
    )


class Staircase(NamedTuple):
    """Merges of clusters, pair by pair."""

    log_time: np.ndarray
    bound: np.ndarray
    """Error of log_time by what the other clusters do, to first order."""
    doubt: np.ndarray
    """The largest share so far by which others change the speed of a merging pair, or its time."""
    slope: np.ndarray
    """How log of a pair's time changes with its angle."""


def staircase(x: np.ndarray, m: np.ndarray, beta: float, model: str, until: float) -> Staircase:
    """The nearest two clusters meet as if alone, the others stand still, again and again; times add up.

    What that leaves out, in shares of 1. Of the pair's speed: the pull of others at the start of its way, and their
    tide (1 + beta) sum M e^(-beta u) at the end. Of standing still: a cluster moves meanwhile by its speed times the
    pair's time, and speeds change over 1/beta, or over an angle if that is less. Of the start: earlier such moves
    shift the angle, in which log of a pair's time has the slope 1/(time x speed).
    Weights are in units of e^(-beta u) of the pair, and times in units of its inverse, so that nothing overflows.
    """
    x, m = x.copy(), m.copy()
    rows = []
    total, late, shift, worst = -np.inf, -np.inf, 0.0, 0.0
    while len(m) > 1:
        angles = _angles(x) + 4 * np.eye(len(m))
        p, q = divmod(int(np.argmin(angles)), len(m))
        angle, masses = float(angles[p, q]), (float(m[p]), float(m[q]))
        u = np.where(np.eye(len(m), dtype=bool), np.inf, 2 * np.sin(angles / 2) ** 2)
        log_time = float(theory.log_merge_time(angle, beta, masses, until, model)) if angle > until else -np.inf
        time = math.exp(log_time - beta * u[p, q])
        way = float(theory.meeting_point(angle, beta, masses, model))
        met = np.sin(angle - way) * x[p] + np.sin(way) * x[q]
        met /= np.linalg.norm(met)
        others = np.delete(np.arange(len(m)), [p, q])
        at_end = float(np.exp(beta * (x[others] @ met - 1)) @ m[others])
        listens = m + np.exp(-beta * u) @ m if model == "SA" else np.ones(len(m))
        pull = np.exp(beta * (u[p, q] - u)) * np.abs(np.sin(angles)) * m / listens[:, None]
        speed = pull[p, q] + pull[q, p]
        pull[p, q] = pull[q, p] = 0.0
        outside = pull.sum(axis=1)
        moved = time * float(outside.max())
        slope = 1 / (time * speed) if time > 0 else 0.0
        following = float(np.min(np.where(angles > angle, angles, np.inf), initial=np.inf))
        tide = (1 + beta) * at_end / (min(masses) if model == "SA" else sum(masses))
        doubt = max((outside[p] + outside[q]) / speed, tide) + 2 * shift * slope + 2 * moved * (beta + 1 / following)
        shift, worst = shift + moved, max(worst, doubt)
        total = float(np.logaddexp(total, log_time))
        late = float(np.logaddexp(late, log_time + math.log(max(doubt, 1e-300))))
        rows.append((total, math.exp(late - total) if np.isfinite(total) else 0.0, worst, slope))
        x[p], m[p] = met, m[p] + m[q]
        x, m = np.delete(x, q, axis=0), np.delete(m, q)
    return Staircase(*np.array(rows).T)


def _angles(x: np.ndarray) -> np.ndarray:
    apart, mean = x[:, None] - x[None, :], x[:, None] + x[None, :]
    return 2 * np.arctan2(np.linalg.norm(apart, axis=2), np.linalg.norm(mean, axis=2))


@functools.cache
def pair_law(dim: int, beta: float, model: str, until: float) -> tuple[np.ndarray, np.ndarray]:
    """(log times, probabilities): the distribution function of log T of two iid tokens.

    The angle has the distribution angle/pi on the circle and (1 - cos angle)/2 on S^2. Points are 0.03 apart in log
    tan(angle/2) and a line between them is off by less than 1e-4.
    """
    z = np.linspace(math.log(math.tan(until / 2)) + 1e-9, 16.0, 1000)
    angle = 2 * np.arctan(np.exp(z))
    share = angle / np.pi if dim == 2 else np.sin(angle / 2) ** 2
    return theory.log_merge_time(angle, beta, (0.5, 0.5), until, model), share


def steps_off(part: xr.Dataset, tol: float) -> np.ndarray:
    """Error of log T by the steps: of each tol, tol at the meeting, and what tol/(1 + beta) of a coordinate does."""
    beta = part.attrs["beta"]
    moved = 2 * math.sqrt(part.attrs["dim"]) * tol / (1 + beta) * np.maximum.accumulate(part["slope"].values, axis=1)
    return np.asarray(part["evaluations"].values / 15 * (2 * tol + moved))


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Distributions against their limits, and seed by seed the one that uses most of its tolerance."""
    made = []
    for part in data.values():
        beta, n = float(part.attrs["beta"]), int(part.attrs["n"])
        title = f"{n} tokens on S^{part.attrs['dim'] - 1}, {part.attrs['model']}, β = {beta:g}"
        lost, doubtful = int(np.isinf(part["log_time"]).sum()), int(part["undetermined"].sum())
        made.append(Claim.equal(f"{title}: merges not made, or changed by rounding", 0, lost + doubtful, 0, "a count"))
        made += _pair_claims(parameters, part, title) if n == 2 else _exit_claims(parameters, part, title)
    return made


def _pair_claims(parameters: Parameters, part: xr.Dataset, title: str) -> list[Claim]:
    beta, dim, model = float(part.attrs["beta"]), int(part.attrs["dim"]), str(part.attrs["model"])
    until = 2 * math.asin(_chord(beta, parameters.tol) / 2)
    exits = exit_distribution(part["log_time"].values[:, 0], parameters.confidence)
    log_times, shares = pair_law(dim, beta, model, until)
    found = exits.kolmogorov(lambda at: np.interp(at, log_times, shares))
    level = f"{exits.n} seeds, level {1 - exits.confidence:.1g}"
    middle = float(theory.log_merge_time(np.pi / 2, beta, (0.5, 0.5), until, model))
    return [
        Claim.at_most(
            f"{title}: Kolmogorov distance of log T to its closed-form distribution",
            0.0,
            found.distance,
            found.critical,
            level,
        ),
        _median(f"{title}: median of log T", exits, middle, 0.0, "order statistics, " + level),
        _worst(
            f"{title}: log T is that of the angle", part, 0, np.full(exits.n, True), steps_off(part, parameters.tol)
        ),
    ]


def _exit_claims(parameters: Parameters, part: xr.Dataset, title: str) -> list[Claim]:
    beta, n = float(part.attrs["beta"]), int(part.attrs["n"])
    # a pair takes e^(beta u)/(beta rate sin^2), 1/n < rate < n, and at most n - 1 of them add up
    slack, made = math.log(n * beta) / beta, []
    tolerance = part["bound"].values / (1 - 2 * UNCLEAR) + steps_off(part, parameters.tol)
    for merge, words in zip((0, n - 2), KINDS.values(), strict=True):
        clear = part["doubt"].values[:, merge] <= UNCLEAR
        scaled, limit = part["log_time"].values[:, merge] / beta, part["limit"].values[:, merge]
        exits = exit_distribution(scaled, parameters.confidence)
        if clear.any():
            made.append(_worst(f"{title}: {words}, log T is a sum of pairs'", part, merge, clear, tolerance))
        if part.attrs["model"] == "SA" and merge > 0:
            continue  # meeting points, and with them s, approach their limit only like beta^(-1/2)
        source = "log(nβ)/β, powers of β in the time of a pair"
        if clear.any():
            off = np.abs(scaled - limit)[clear].max()
            made.append(
                Claim.at_most(f"{title}: {words}, |(log T)/β - s|, {clear.sum()} clear seeds", 0.0, off, slack, source)
            )
        about = f"{source}; order statistics, {exits.n} seeds, level {1 - exits.confidence:.1g}"
        made.append(_median(f"{title}: {words}, median of (log T)/β", exits, float(np.median(limit)), slack, about))
        made.append(
            Claim.at_most(
                f"{title}: {words}, (log T)/β leaves its limit distribution (other seeds), moved by log(nβ)/β, by",
                0.0, _leaves(scaled, part["limit_of_others"].values[:, merge], slack), 2 * exits.band,
                f"bands of both samples, level {1 - exits.confidence:.1g} each",
            )
        )  # fmt: skip
    return made


def _worst(words: str, part: xr.Dataset, merge: int, chosen: np.ndarray, tolerance: np.ndarray) -> Claim:
    """The chosen seed that uses most of its tolerance."""
    measured, predicted = part["log_time"].values[:, merge], part["pairwise"].values[:, merge]
    used = np.abs(measured - predicted) / tolerance[:, merge]
    seed = int(np.argmax(np.where(chosen, np.where(np.isnan(used), np.inf, used), -1.0)))
    source = "errors of steps" if part.attrs["n"] == 2 else "pull of the others, first order; errors of steps"
    statement = f"{words} (worst of {int(chosen.sum())}: seed {seed})"
    return Claim.equal(statement, predicted[seed], measured[seed], tolerance[seed, merge], source)


def _median(words: str, exits: Any, predicted: float, slack: float, source: str) -> Claim:
    value, low, high = exits.quantile(0.5)
    return Claim.equal(words, predicted, float(value), float(max(value - low, high - value)) + slack, source)


def _leaves(sample: np.ndarray, other: np.ndarray, slack: float) -> float:
    """How much the distribution of `sample` leaves that of `other` moved by up to `slack` either way."""
    at = np.sort(np.concatenate([sample, other - slack, other + slack]))

    def share(values: np.ndarray, x: np.ndarray) -> np.ndarray:
        return np.asarray(np.searchsorted(np.sort(values), x, side="right") / len(values))

    above = share(sample, at) - share(other - slack, at)
    below = share(other + slack, at) - share(sample, at)
    return float(max(above.max(), below.max(), 0.0))


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Distributions over seeds; shaded are the bands that hold the true distribution at all times at once.

    (a) Two tokens: share that has not met, and its closed form (dashed). (b), (c) The first merge of several tokens on
    S^2, and the exit from their last plateau, two clusters, with the limit distribution for beta -> infinity (dashed,
    of other seeds). (d) Seeds that are clear: what the staircase of pairs misses of log T of the exit, against the
    bound that the pull of the others gives; on the line the bound would be reached.
    """
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 4.8))
        axes = fig.subplots(2, 2)
        _draw_pairs(axes[0, 0], parameters, [part for part in data.values() if part.attrs["n"] == 2])
        several = [part for part in data.values() if part.attrs["n"] > 2]
        for one, merge, words in zip((axes[0, 1], axes[1, 0]), (0, parameters.n - 2), KINDS, strict=True):
            _draw_law(one, parameters, several, merge, words)
        _draw_bound(axes[1, 1], several, parameters.n - 2)
        for letter, one in zip("abcd", axes.flat, strict=True):
            one.set_title(f"({letter})", loc="left", fontweight="bold")
        return fig


def _label(part: xr.Dataset) -> str:
    return rf"{part.attrs['model']}, $\beta = {part.attrs['beta']:g}$"


def _survival(axes: Any, exits: Any, at: np.ndarray, colour: str, label: str) -> None:
    value, low, high = exits.survival(at)
    axes.fill_between(at, low, high, color=colour, alpha=0.2, lw=0)
    axes.plot(at, value, color=colour, label=label)


def _draw_pairs(axes: Any, parameters: Parameters, parts: list[xr.Dataset]) -> None:
    for part, colour in zip(parts, COLOURS, strict=False):
        beta, dim, model = part.attrs["beta"], part.attrs["dim"], part.attrs["model"]
        log_times, shares = pair_law(dim, beta, model, 2 * math.asin(_chord(beta, parameters.tol) / 2))
        at = np.linspace(0.0, log_times[shares < 1 - 1e-6][-1], 400)
        exits = exit_distribution(part["log_time"].values[:, 0], parameters.confidence)
        _survival(axes, exits, at, colour, f"S$^{dim - 1}$, {_label(part)}")
        axes.plot(at, 1 - np.interp(at, log_times, shares), color=INK, lw=0.7, ls="--")
    axes.set(xlabel=r"$\log t$", ylabel=r"$P(\log T > \log t)$, two tokens", ylim=(0, 1.02))
    axes.legend(loc="lower left")


def _draw_law(axes: Any, parameters: Parameters, parts: list[xr.Dataset], merge: int, words: str) -> None:
    last = max(float(np.max(part["limit"].values[:, merge])) for part in parts)
    at = np.linspace(0, 1.05 * last, 400)
    for part, colour in zip(parts, COLOURS, strict=False):
        exits = exit_distribution(part["log_time"].values[:, merge] / part.attrs["beta"], parameters.confidence)
        _survival(axes, exits, at, colour, _label(part))
    limit = np.sort(parts[0]["limit_of_others"].values[:, merge])
    axes.plot(at, 1 - np.searchsorted(limit, at) / len(limit), color=INK, lw=0.9, ls="--", label=r"$\beta \to \infty$")
    axes.set(xlabel=r"$(\log t)/\beta$", ylabel=f"share before the {words}", ylim=(0, 1.02), xlim=(0, at[-1]))
    axes.legend(loc="upper right" if merge == 0 else "lower left")


def _draw_bound(axes: Any, parts: list[xr.Dataset], merge: int) -> None:
    for part, colour in zip(parts, COLOURS, strict=False):
        clear = part["doubt"].values[:, merge] <= UNCLEAR
        off = np.abs(part["log_time"].values - part["pairwise"].values)[clear, merge]
        axes.plot(part["bound"].values[clear, merge], off, "o", ms=2, mec="none", color=colour, alpha=0.7)
        axes.plot([], [], "o", ms=3, color=colour, label=f"{_label(part)}: {clear.sum()}")
    axes.plot([1e-9, 1], [1e-9, 1], color=GREY, lw=0.8)
    axes.set(xscale="log", yscale="log", xlim=(1e-9, 0.2), ylim=(1e-10, 0.2), xlabel="bound by the pull of the others")
    axes.set_ylabel(r"|$\log T$ $-$ staircase of pairs|")
    axes.legend(loc="upper left", title="clear seeds", title_fontsize=7, handletextpad=0.1)
