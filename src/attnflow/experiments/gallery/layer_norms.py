"""Where a network normalises sets how tokens collapse: exponentially (post, nGPT), like t^-2 (pre, peri, mix) or t^-1.

With x = r theta and A the softmax average of the directions, directions turn as theta' = P A/s, and a placement chooses
s: 1 (Post-LN), r (Pre-LN), r |A| (Peri-LN), |A|/alpha (nGPT), 1 then r (Mix-LN), r sqrt(1+t) (LN-scaling).
Radii grow like t, so the gap 1 - rho to consensus falls like e^(-2t), t^-2, t^-2, e^(-2 alpha t), t^-2 and t^-1
(arXiv:2510.22026).

Shown: the flow of every placement from orthonormal tokens against the two scalar equations for rho and r, which hold
for equal overlaps, and the exponents at late times, from orthonormal and from iid tokens (root mean square of their
distances). Not shown: gains, LayerNorm's subtraction of the mean, matrices; with the identity as values |A| -> 1.

Rates fall like 1/t where radii grow, so a step in proportion to t is as accurate late as early: a few hundred steps
reach t = 10^4. Every flow is done with a step and with half of it, and the difference is the tolerance.
"""

import dataclasses
import functools
import itertools
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.claim import Claim
from attnflow.experiments.study import Study
from attnflow.fields import AbstractField, Attention, Mix, Ngpt, Peri, Pre, Scaled
from attnflow.flows import Fixed, advance
from attnflow.plots.style import COLOURS, GREY, PAGE, styled
from attnflow.spaces import Euclidean, Sphere
from attnflow.tokens import Tokens, orthonormal, uniform

PAPERS = ("arXiv:2510.22026", "arXiv:2312.10794")

NAMES = {
    "post": "Post-LN", "pre": "Pre-LN", "peri": "Peri-LN", "ngpt": "nGPT", "mix": "Mix-LN", "ln-scaling": "LN-scaling",
}  # fmt: skip
STARTS = ("orthonormal", "iid")
STEPS = 16
"""Steps from one frame to the next."""
EPS = float(np.finfo(float).eps)


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is simulated."""

    n: int = 8
    beta: float = 2.0
    alpha: float = 0.5
    """Of nGPT."""
    switch: float = 1.0
    """Of Mix-LN: the time at which it goes over from post to pre."""
    last: int = 14
    """Frames are at 1/8, 1/4, ..., 1, sqrt(2), 2, ..., 2^last where the collapse is algebraic."""
    gap: float = 1e-10
    """Where an exponential collapse is left, well above rounding."""
    seed: int = 0


QUICK = Parameters(last=8)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Gap and radius at every frame, per placement and start."""
    found = {}
    for k, placement in enumerate(NAMES):
        study.progress(f"{NAMES[placement]}, step and half the step", k / len(NAMES))
        found[placement] = study.part(placement, functools.partial(_follow, parameters, placement))
    return found


def field(parameters: Parameters, placement: str) -> AbstractField:
    """The placement around plain softmax attention."""
    inner = Attention(parameters.beta)
    made: dict[str, AbstractField] = {
        "post": inner, "pre": Pre(inner), "peri": Peri(inner), "ngpt": Ngpt(inner, parameters.alpha),
        "mix": Mix(inner, parameters.switch), "ln-scaling": Scaled(inner),
    }  # fmt: skip
    return made[placement]


def starts(parameters: Parameters, placement: str) -> Tokens:
    """Orthonormal and iid tokens, side by side."""
    n, flat = parameters.n, decay(parameters, placement)[0] == "algebraic"
    positions = [orthonormal(Sphere(n), n=n).positions, uniform(Sphere(n), n=n, seed=parameters.seed).positions]
    return Tokens(np.stack(positions), space=Euclidean(n) if flat else Sphere(n), dims=("start",))


def decay(parameters: Parameters, placement: str) -> tuple[str, float]:
    """Kind and exponent of the collapse, from the theory."""
    return theory.norm_decay(placement, parameters.alpha)  # type: ignore[arg-type]


def times(parameters: Parameters, placement: str) -> np.ndarray:
    """Frames: in proportion where radii grow, evenly where they do not; the switch is one of them."""
    kind, rate = decay(parameters, placement)
    if kind == "exponential":
        span = -np.log(parameters.gap) / rate
        return np.linspace(0.0, span, int(np.ceil(2 * span)) + 1)
    frames = np.concatenate([[0.0], np.geomspace(0.125, 1.0, 4), 2.0 ** (np.arange(1, 2 * parameters.last + 1) / 2)])
    return np.unique(np.append(frames, parameters.switch)) if placement == "mix" else frames


def _follow(parameters: Parameters, placement: str) -> xr.Dataset:
    frames, made = times(parameters, placement), field(parameters, placement)
    coarse = fine = starts(parameters, placement)
    rows = [(gaps(fine), gaps(coarse), radii(fine))]
    for begin, end in itertools.pairwise(frames):
        coarse, middle = _leg(made, coarse, begin, end), (begin + end) / 2
        fine = _leg(made, _leg(made, fine, begin, middle), middle, end)
        rows.append((gaps(fine), gaps(coarse), radii(fine)))
    names, values = ("gap", "coarse", "radius"), [np.array(column) for column in zip(*rows, strict=True)]
    return xr.Dataset(
        {name: (("time", "start"), column) for name, column in zip(names, values, strict=True)},
        {"time": frames, "start": list(STARTS)},
    )


def _leg(made: AbstractField, tokens: Tokens, begin: float, end: float) -> Tokens:
    """Equal steps, as many for every leg: one compiled program."""
    return advance(made, tokens, float(begin), float(end), Fixed((end - begin) / STEPS))


def gaps(tokens: Tokens) -> np.ndarray:
    """Mean of 1 - <theta_i, theta_j> over pairs, without cancellation."""
    x = np.asarray(tokens.positions)
    theta = x / np.linalg.norm(x, axis=-1, keepdims=True)
    squares = np.sum((theta[..., :, None, :] - theta[..., None, :, :]) ** 2, axis=-1)
    n = x.shape[-2]
    return np.asarray(np.sum(squares, axis=(-1, -2)) / (2 * n * (n - 1)))


def radii(tokens: Tokens) -> np.ndarray:
    """Mean radius."""
    return np.asarray(np.mean(np.linalg.norm(np.asarray(tokens.positions), axis=-1), axis=-1))


def exponents(parameters: Parameters, placement: str, part: xr.Dataset, start: str) -> tuple[np.ndarray, float]:
    """The last two local exponents, over a factor of four in t or over two units of time, and their rounding error."""
    log_gap, time = np.log(part["gap"].sel(start=start).values), part["time"].values
    clock, lag = (time, 4) if decay(parameters, placement)[0] == "exponential" else (np.log(np.maximum(time, EPS)), 4)
    picked = [-1 - 2 * lag, -1 - lag, -1]
    found = -np.diff(log_gap[picked]) / np.diff(clock[picked])
    # distances are off by a few units in the last place of 1, relative to sqrt(2 gap)
    rounding = 2 * rounding_error(parameters, np.exp(log_gap[-1])) / (clock[-1] - clock[-1 - lag])
    return np.asarray(found), float(rounding)


def rounding_error(parameters: Parameters, gap: Any) -> Any:
    """Of log gap: coordinates are off by eps per step at random, n coordinates, relative to the distance of a pair."""
    return 2 * EPS * np.sqrt(parameters.n * 40 * STEPS) / np.sqrt(2 * gap)


def compare(parameters: Parameters, placement: str, part: xr.Dataset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(log gap - theory, log radius - theory, tolerance) at the frames of orthonormal tokens."""
    own = part.sel(start="orthonormal")
    path = theory.norm_overlap(
        part["time"].values, parameters.beta, parameters.n, placement,  # type: ignore[arg-type]
        alpha=parameters.alpha, switch=parameters.switch,
    )  # fmt: skip
    gap = own["gap"].values
    halving = np.maximum.accumulate(np.abs(np.log(own["coarse"].values / gap)))
    # the scalar equations are integrated to 1e-11
    tolerance = halving + rounding_error(parameters, gap) + 1e-9
    return np.log(gap) - path.log_gap, np.log(own["radius"].values / path.radius), tolerance


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Per placement the whole path of orthonormal tokens, and the exponent from both starts."""
    made = []
    for placement, name in NAMES.items():
        gap, radius, tolerance = compare(parameters, placement, data[placement])
        used = np.maximum(np.abs(gap), np.abs(radius))
        worst = int(np.argmax(np.where(np.isnan(used), np.inf, used / tolerance)))
        made.append(
            Claim.at_most(
                f"{name}, orthonormal tokens: |log gap - theory| and |log r - theory|"
                f" (worst of {len(used)} frames: t = {data[placement]['time'].values[worst]:.3g})",
                0.0, used[worst], tolerance[worst],
                "change of log gap when the step is halved, rounding, and 1e-9 for the integration of the theory",
            )
        )  # fmt: skip
    for placement, name in NAMES.items():
        kind, predicted = decay(parameters, placement)
        what = "rate of e^(-ct)" if kind == "exponential" else "exponent of t^-p"
        rows = []
        for start in STARTS:
            found, rounding = exponents(parameters, placement, data[placement], start)
            # LN-scaling lives on the clock sqrt(t): over a factor of four its correction halves, others fall faster
            tolerance = 2 * abs(found[-1] - found[-2]) + rounding
            used = abs(found[-1] - predicted) / tolerance
            rows.append((np.inf if np.isnan(used) else used, start, found[-1], tolerance))
        _, start, measured, tolerance = max(rows)
        made.append(
            Claim.equal(f"{name}: {what} (worse of {' and '.join(STARTS)} tokens: {start})", predicted, measured,
                        tolerance, "twice the last change of the local exponent, and rounding")
        )  # fmt: skip
    return made


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """The gap to consensus under six layer norms: flows (full marks orthonormal, open iid tokens) and theory (lines).

    (a) Doubly logarithmic, the collapse of the residual streams shows as straight lines; grey: slopes -1 and -2.
    (b) Semilogarithmic, that of the normalised ones does. (c) Mean radius from orthonormal tokens.
    """
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 2.9))
        axes = fig.subplots(1, 3, width_ratios=(1.35, 0.9, 0.9))
        for (placement, name), colour in zip(NAMES.items(), COLOURS, strict=False):
            _draw_one(axes, parameters, placement, name, colour, data[placement])
        last = 2.0**parameters.last
        for power, height, side in ((2, 0.15, "top"), (1, 100.0, "bottom")):
            late = np.array([last / 30, last])
            axes[0].plot(late, height * late ** -float(power), color=GREY, lw=0.7)
            middle = float(np.sqrt(late.prod()))
            axes[0].annotate(
                f"$t^{{-{power}}}$", (middle, height * middle**-power), color=GREY, fontsize=7, va=side,
                ha="right" if side == "top" else "left",
            )  # fmt: skip
        axes[0].set_xlabel("time $t$")
        axes[0].set_ylabel(r"gap $1 - \rho$")
        axes[0].set_ylim(parameters.gap / 3, 2.0)
        axes[0].legend(loc="lower left", handlelength=1.6)
        axes[1].set_xlim(0, -np.log(parameters.gap) / 2 * 1.05)
        axes[1].set_ylim(parameters.gap / 3, 2.0)
        axes[1].set_yscale("log")
        axes[1].set_xlabel("time $t$")
        axes[2].set_xlabel("time $t$")
        axes[2].set_ylabel("radius $r$")
        axes[0].set_xscale("log")
        axes[0].set_yscale("log")
        axes[2].set_xscale("log")
        axes[2].set_yscale("log")
        for letter, one in zip("abc", axes, strict=True):
            one.set_title(f"({letter})", loc="left", fontweight="bold")
        return fig


def _draw_one(axes: Any, parameters: Parameters, placement: str, name: str, colour: str, part: xr.Dataset) -> None:
    frames = part["time"].values
    line = np.geomspace(frames[1], frames[-1], 200)
    path = theory.norm_overlap(
        line, parameters.beta, parameters.n, placement,  # type: ignore[arg-type]
        alpha=parameters.alpha, switch=parameters.switch,
    )  # fmt: skip
    for one in axes[:2]:
        one.plot(line, np.exp(path.log_gap), color=colour, lw=0.9, label=name)
        for start, face, every in (("orthonormal", colour, 2), ("iid", "white", 4)):
            seen = part.sel(start=start).isel(time=slice(1, None, every))
            one.plot(seen["time"], seen["gap"], "o", ms=2.8, mec=colour, mfc=face, mew=0.7)
    axes[2].plot(line, path.radius, color=colour, lw=0.9)
    seen = part.sel(start="orthonormal").isel(time=slice(1, None, 2))
    axes[2].plot(seen["time"], seen["radius"], "o", ms=2.8, color=colour)
