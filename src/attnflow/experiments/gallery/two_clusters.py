"""Two weighted clusters merge at the time and at the point that the two-body formulas give.

Clusters of masses m and 1 - m at an angle close up on their great circle. For softmax attention (SA) and for its
gradient-flow variant (USA0) the time to the angle 0.01 is a one-dimensional integral (in exponential integrals for
USA0 and for equal masses), growing like e^(beta (1 - cos angle)); the point where they meet is the mass mean for USA0
and approaches the mean weighted by squares of masses for SA as beta grows (arXiv:2410.06833, arXiv:2312.10794).

Shown: simulated pairs on the circle and on the sphere against the integrals, and how fast the large-beta expansion of
the time sets in. Not shown: clusters of finite size, or more than two of them; pairs so far apart that their speed
nears round-off (beta (1 - cos angle) above `reach`) are left out.

The flow knows no formula: the crossing of the angle is searched for in saved frames. An error of angle at one step
shifts the crossing by that error over the closing speed, which gives the tolerances.
"""

import dataclasses
import functools
import itertools
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.errors import FlowFailed
from attnflow.experiments.claim import Claim, worst
from attnflow.experiments.study import Study
from attnflow.fields import Attention, Softmax, Unnormalised
from attnflow.flows import Adaptive, Evenly, LogSpaced, Trajectory, When, solve
from attnflow.plots.style import COLOURS, INK, PAGE, styled
from attnflow.tokens import Tokens

PAPERS = ("arXiv:2410.06833", "arXiv:2312.10794")

MODELS = {"SA": Softmax(), "USA0": Unnormalised()}
HORIZON = 1e7
"""Where the search for a crossing gives up."""
AFTER = 30.0
"""How long a pair is followed beyond the crossing; the angle falls like e^(-t), to round-off."""


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is simulated."""

    betas: tuple[float, ...] = (1.0, 3.0, 5.0, 10.0, 20.0, 40.0, 100.0)
    angles: tuple[float, ...] = (0.5, 1.0, 1.5, 2.0)
    masses: tuple[float, ...] = (0.5, 0.7, 0.9)
    """Mass of the first cluster."""
    dims: tuple[int, ...] = (2, 3)
    until: float = 0.01
    """The angle at which the clusters count as merged."""
    reach: float = 14.0
    """Largest beta (1 - cos angle)."""
    rtol: float = 1e-11
    atol: float = 1e-12
    large_beta: float = 1000.0
    """Where the large-beta expansion is tried."""
    seed: int = 0
    """Of the great circles."""


QUICK = Parameters(betas=(1.0, 5.0), angles=(1.0, 1.5), masses=(0.5, 0.7), dims=(3,))


def run(parameters: Parameters, study: Study) -> xr.Dataset:
    """Merge time and meeting point of every pair, with what their errors depend on."""
    pairs = [
        (beta, angle, mass)
        for beta, angle, mass in itertools.product(parameters.betas, parameters.angles, parameters.masses)
        if beta * (1 - np.cos(angle)) <= parameters.reach
    ]
    parts = list(itertools.product(MODELS, parameters.dims))

    def make(index: int, model: str, dim: int) -> xr.Dataset:
        rng = np.random.default_rng([parameters.seed, dim])
        rows = []
        for k, (beta, angle, mass) in enumerate(pairs):
            study.progress(
                f"{model} on S^{dim - 1}: pair {k + 1} of {len(pairs)}", (index + k / len(pairs)) / len(parts)
            )
            labels = {"model": model, "dim": dim, "beta": beta, "angle": angle, "mass": mass}
            rows.append(labels | follow(model, beta, place(angle, mass, dim, rng), parameters))
        return xr.Dataset({name: ("pair", np.array([row[name] for row in rows])) for name in rows[0]})

    made = [study.part(f"{m}-S{d - 1}", functools.partial(make, k, m, d)) for k, (m, d) in enumerate(parts)]
    return xr.concat(made, dim="pair")


def place(angle: float, mass: float, dim: int, rng: np.random.Generator) -> Tokens:
    """Two clusters at `angle` on a random great circle."""
    frame, _ = np.linalg.qr(rng.standard_normal((dim, 2)))
    return Tokens(np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]]) @ frame.T, [mass, 1 - mass])


def follow(model: str, beta: float, tokens: Tokens, parameters: Parameters) -> dict[str, float]:
    """One pair: search for the crossing, flow there in one go, and on until the clusters have met."""
    field = Attention(beta, normaliser=MODELS[model])
    method = Adaptive(parameters.rtol, parameters.atol)
    close, rate = _search(field, tokens, method, parameters.until)
    there = solve(field, tokens, close, save=Evenly(15), method=method)
    last = there.positions.values[-1]
    time = close + np.log(_angle(last) / parameters.until) / rate
    after = solve(field, Tokens(last, tokens.masses), AFTER, save=Evenly(15), method=method)
    begin, end = np.asarray(tokens.positions), after.positions.values[-1]
    normal = begin[1] - (begin[0] @ begin[1]) * begin[0]
    circle = np.array([begin[0], normal / np.linalg.norm(normal)])
    along = circle @ end[0]
    return {
        "time": time,
        "travelled": float(np.arctan2(along[1], along[0])),
        "aside": float(np.linalg.norm(end - end @ circle.T @ circle, axis=1).max()),
        "rest": _angle(end),
        "steps_to_time": there.steps["accepted"],
        "steps": there.steps["accepted"] + after.steps["accepted"],
        "slowness": float(np.max(1 / there.dataset["speed"].values)),
        "floor": float(np.max(there.dataset["floor"].values)),
    }


def _search(field: Attention, tokens: Tokens, method: Adaptive, until: float) -> tuple[float, float]:
    """A time close to the crossing of the angle `until`, and the rate at which log(angle) falls there.

    Frames around the crossing are taken ever denser, until the angle falls by less than 1% between two of them.
    """
    crossed = When(lambda frame: _angle(frame.positions) <= until, f"the angle is {until:g}")
    flow = solve(field, tokens, HORIZON, save=LogSpaced(800, 0.1), method=method, stop=crossed)
    begin = 0.0
    while True:
        span, fall, begin, tokens = _bracket(flow, begin, tokens)
        if fall < 0.01:
            rate = fall / span
            return begin + float(np.log(_angle(np.asarray(tokens.positions)) / until)) / rate, rate
        flow = solve(field, tokens, span, save=Evenly(64), method=method, stop=crossed)


def _bracket(flow: Trajectory, begin: float, tokens: Tokens) -> tuple[float, float, float, Tokens]:
    """Length of the last interval between frames, fall of log(angle) over it, and its beginning."""
    if flow.outcome.ending.value != "stopped":
        raise FlowFailed(f"the clusters did not merge: {flow.outcome.message}", flow)
    before, after = flow.positions.values[-2:]
    low, high = flow.time.values[-2:]
    fall = np.log(_angle(before)) - np.log(max(_angle(after), 1e-300))
    return float(high - low), float(fall), begin + float(low), Tokens(before, tokens.masses)


def _angle(positions: np.ndarray) -> Any:
    """The angle of a pair, accurate when it is small: positions (..., 2, dim)."""
    x, y = positions[..., 0, :], positions[..., 1, :]
    return 2 * np.arctan2(np.linalg.norm(x - y, axis=-1), np.linalg.norm(x + y, axis=-1))


def compare(parameters: Parameters, data: xr.Dataset) -> xr.Dataset:
    """Predictions and tolerances beside the measurements."""
    rows = [{str(name): data[name].values[k] for name in data} for k in range(data.sizes["pair"])]
    time, travelled = [], []
    for row in rows:
        masses, model = (float(row["mass"]), 1 - float(row["mass"])), str(row["model"])
        time.append(theory.merge_time(row["angle"], row["beta"], masses, parameters.until, model))
        travelled.append(theory.meeting_point(row["angle"], row["beta"], masses, model))
    # every coordinate of a token is off by at most rtol + atol per step, and going back to the sphere may double that
    step = 2 * np.sqrt(data["dim"]) * (parameters.rtol + parameters.atol)
    late = data["slowness"] * (2 * step * data["steps_to_time"] + 2 * data["floor"] * data["time"])
    # where a pair meets moves by at most what a token is moved: both derivatives are in [0, 1] and add to 1
    off = step * data["steps"] + data["floor"] * (data["time"] + AFTER)
    return data.assign(
        predicted_time=("pair", np.array(time)),
        predicted_travelled=("pair", np.array(travelled)),
        time_tolerance=late,
        travelled_tolerance=off + data["rest"],
        aside_tolerance=off,
    )


def claims(parameters: Parameters, data: xr.Dataset) -> list[Claim]:
    """Per model and beta the pair that uses most of its tolerance; per model the large-beta expansion."""
    pairs, made = compare(parameters, data), []
    for model, beta in itertools.product(MODELS, parameters.betas):
        chosen = pairs.isel(pair=(pairs["model"] == model) & (pairs["beta"] == beta))
        if chosen.sizes["pair"] == 0:
            continue
        for name, words in (("time", "merge time"), ("travelled", "way of cluster 1 to the meeting point")):
            row, label = _worst(chosen, chosen[name] - chosen[f"predicted_{name}"], chosen[f"{name}_tolerance"])
            count = int(row["steps_to_time" if name == "time" else "steps"])
            source = f"{count} steps, each off by at most 2√d (rtol + atol)"
            source += ", over the closing speed; round-off" if name == "time" else "; round-off; the angle left"
            made.append(
                Claim.equal(
                    f"{model}, β = {beta:g}: {words} ({label})",
                    float(row[f"predicted_{name}"]), float(row[name]), float(row[f"{name}_tolerance"]), source,
                )
            )  # fmt: skip
    for model in MODELS:
        chosen = pairs.isel(pair=pairs["model"] == model)
        row, label = _worst(chosen, chosen["aside"], chosen["aside_tolerance"])
        tolerance = float(row["aside_tolerance"])
        source = f"{int(row['steps'])} steps, each off by at most 2√d (rtol + atol); round-off"
        made.append(
            Claim.at_most(
                f"{model}: distance from the great circle ({label})", 0.0, float(row["aside"]), tolerance, source
            )
        )
    for model, angle in itertools.product(MODELS, parameters.angles):
        beta, mass = parameters.large_beta, max(parameters.masses)
        first, second = _expansion(angle)
        excess = float(theory.log_merge_time(angle, beta, (mass, 1 - mass), parameters.until, model))
        excess -= float(_log_leading(angle, beta, mass, model))
        made.append(
            Claim.equal(
                f"{model}, β = {beta:g}, angle {angle:g}: exact integral, β (T/T_leading - 1) is 2 cos/sin²",
                first, beta * float(np.expm1(excess)), 2 * abs(second) / beta, "twice the next term of the expansion",
            )
        )  # fmt: skip
    return made


def _worst(chosen: xr.Dataset, error: xr.DataArray, tolerance: xr.DataArray) -> tuple[xr.Dataset, str]:
    """The pair that uses most of its tolerance (one that is not a number uses all of it), and what to call it."""
    used = np.abs(error.values) / tolerance.values
    row = chosen.isel(pair=worst(used)[0])
    where = f"S^{int(row['dim']) - 1}, angle {float(row['angle']):g}, mass {float(row['mass']):g}"
    return row, f"worst of {chosen.sizes['pair']}: {where}"


def _log_leading(angle: Any, beta: Any, mass: float, model: str) -> Any:
    """Log of the leading term: e^(beta u)/(beta sin^2 M), u = 1 - cos; M = 1 (USA0), m1/m2 + m2/m1 (SA)."""
    rate = 1.0 if model == "USA0" else mass / (1 - mass) + (1 - mass) / mass
    return 2 * beta * np.sin(angle / 2) ** 2 - np.log(beta * np.sin(angle) ** 2 * rate)


def _expansion(angle: float) -> tuple[float, float]:
    """T/T_leading = 1 + first/beta + second/beta^2 + ...: derivatives of f = 1/(u (2-u)), -f'/f and f''/f."""
    f, cos = 1 / np.sin(angle) ** 2, np.cos(angle)
    return float(2 * cos * f), float(2 * f + 8 * cos**2 * f**2)


def draw(parameters: Parameters, data: xr.Dataset) -> Any:
    """Simulated pairs (marks: full SA, open USA0) and theory (lines: solid SA, dashed USA0).

    (a) Merge time against the initial angle. (b) The share of the angle that cluster 1 travels. (c) What the simulation
    misses, and what it may miss. (d) Relative error of the large-beta approximations of the merge time.
    """
    pairs = compare(parameters, data)
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 5.0))
        axes = fig.subplots(2, 2)
        _draw_times(axes[0, 0], parameters, pairs)
        _draw_places(axes[0, 1], parameters, pairs)
        _draw_errors(axes[1, 0], pairs)
        _draw_expansion(axes[1, 1], parameters, pairs)
        for letter, one in zip("abcd", axes.flat, strict=True):
            one.set_title(f"({letter})", loc="left", fontweight="bold")
        return fig


LINES = {"SA": "-", "USA0": "--"}
FILLS = {"SA": None, "USA0": "white"}


def _some(pairs: xr.Dataset, **labels: Any) -> xr.Dataset:
    keep = np.ones(pairs.sizes["pair"], dtype=bool)
    for name, value in labels.items():
        keep &= pairs[name].values == value
    return pairs.isel(pair=keep)


def _draw_times(axes: Any, parameters: Parameters, pairs: xr.Dataset) -> None:
    """Merge time against angle, for masses as equal as there are."""
    mass = min(parameters.masses, key=lambda m: abs(m - 0.5))
    betas = sorted(parameters.betas)
    betas = [betas[k] for k in np.unique(np.linspace(0, len(betas) - 1, 5).astype(int))]
    widest = min(max(parameters.angles) + 0.15, 3.0)
    for beta, colour in zip(betas, COLOURS, strict=False):
        last = float(np.arccos(max(1 - parameters.reach / beta, np.cos(widest))))
        angles = np.linspace(3 * parameters.until, last, 200)
        for model, line in LINES.items():
            times = theory.merge_time(angles, beta, (mass, 1 - mass), parameters.until, model)
            axes.plot(angles, times, line, color=colour, lw=1.0)
            found = _some(pairs, beta=beta, mass=mass, model=model)
            axes.plot(found["angle"], found["time"], "o", ms=4, mec=colour, mfc=FILLS[model] or colour, mew=0.9)
        steep = last < 0.999 * widest
        axes.annotate(
            rf"$\beta = {beta:g}$", (last, times[-1]), xytext=(0, 3) if steep else (3, 0), color=colour, fontsize=7,
            textcoords="offset points", ha="center" if steep else "left", va="bottom" if steep else "center",
        )  # fmt: skip
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.5)
    axes.set_xlim(0, widest + 0.4)
    axes.set_xlabel(r"initial angle $\theta_0$")
    axes.set_ylabel(rf"merge time $T$   ($m_1 = {mass:g}$)")
    axes.plot([], [], "-o", color=INK, ms=4, lw=1.0, label="SA")
    axes.plot([], [], "--o", color=INK, ms=4, lw=1.0, mfc="white", label="USA0")
    axes.legend(loc="lower right", handlelength=2.4, ncols=2)


def _draw_places(axes: Any, parameters: Parameters, pairs: xr.Dataset) -> None:
    """Share of the angle that cluster 1 travels, against beta."""
    angle = min(parameters.angles, key=lambda a: (-len(_some(pairs, angle=a)["beta"]), -a))
    betas = np.geomspace(min(parameters.betas) / 2, 10 * max(parameters.betas), 120)
    for mass, colour in zip(sorted(parameters.masses), COLOURS, strict=False):
        masses = (mass, 1 - mass)
        share = theory.meeting_point(angle, betas, masses) / angle
        axes.plot(betas, share, color=colour, lw=1.0, label=f"$m_1 = {mass:g}$")
        axes.axhline(1 - mass, color=colour, lw=1.0, ls="--")
        axes.axhline(float(theory.meeting_point_limit(angle, masses)) / angle, color=colour, lw=0.9, ls=":")
        for model in MODELS:
            found = _some(pairs, angle=angle, mass=mass, model=model)
            face = FILLS[model] or colour
            axes.plot(found["beta"], found["travelled"] / angle, "o", ms=4, mec=colour, mfc=face, mew=0.9)
    axes.plot([], [], ":", color=INK, lw=0.9, label=r"SA, $\beta \to \infty$")
    axes.set_xscale("log")
    axes.set_ylim(0, 0.72)
    axes.set_xlabel(r"inverse temperature $\beta$")
    axes.set_ylabel(rf"way of cluster 1 / $\theta_0$   ($\theta_0 = {angle:g}$)")
    axes.legend(loc="upper right", ncols=2)


def _draw_errors(axes: Any, pairs: xr.Dataset) -> None:
    """What the simulation misses, and what it may miss."""
    kinds = (("time", "$T$, relative", "s"), ("travelled", "meeting point", "^"))
    for (name, words, marker), colour in zip(kinds, (COLOURS[0], COLOURS[4]), strict=True):
        scale = pairs["predicted_time"] if name == "time" else 1.0
        error = np.abs(pairs[name] - pairs[f"predicted_{name}"]) / scale
        axes.plot(pairs["time"], pairs[f"{name}_tolerance"] / scale, "_", ms=6, mew=0.8, color=colour)
        axes.plot(pairs["time"], np.maximum(error, 1e-17), marker, ms=3, mfc="none", mec=colour, mew=0.6, label=words)
    axes.plot([], [], "_", ms=6, mew=0.8, color=INK, label="tolerance")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(1e-18, 1e-3)
    axes.set_xlabel("merge time $T$")
    axes.set_ylabel("|measured $-$ predicted|")
    axes.legend(loc="upper right", ncols=3, columnspacing=1.0, handletextpad=0.2)


def _draw_expansion(axes: Any, parameters: Parameters, pairs: xr.Dataset) -> None:
    """Relative error of the large-beta approximations of the merge time."""
    mass = max(parameters.masses)
    angle = min(parameters.angles, key=lambda a: abs(a - 1))
    first, _ = _expansion(angle)
    betas = np.geomspace(2.0, 10 * parameters.large_beta, 160)
    for model, line in LINES.items():
        exact = theory.log_merge_time(angle, betas, (mass, 1 - mass), parameters.until, model)
        excess = exact - _log_leading(angle, betas, mass, model)
        axes.plot(betas, np.abs(np.expm1(-excess)), line, color=COLOURS[0], lw=1.0)
        two = np.abs(np.expm1(np.log1p(first / betas) - excess))
        axes.plot(betas, two, line, color=COLOURS[4], lw=1.0)
        found = _some(pairs, angle=angle, mass=mass, model=model)
        found = found.isel(pair=found["beta"].values >= betas[0])
        leading = _log_leading(angle, found["beta"].values, mass, model)
        for colour, factor in ((COLOURS[0], 1.0), (COLOURS[4], 1 + first / found["beta"].values)):
            error = np.abs(np.exp(leading) * factor / found["time"].values - 1)
            axes.plot(found["beta"], error, "o", ms=4, mec=colour, mfc=FILLS[model] or colour, mew=0.9)
    axes.plot([], [], color=COLOURS[0], label="leading term")
    axes.plot([], [], color=COLOURS[4], label=r"with $1 + 2\cos\theta_0/(\beta\sin^2\theta_0)$")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(r"inverse temperature $\beta$")
    axes.set_ylabel(rf"$|T_{{approx}}/T - 1|$   ($\theta_0 = {angle:g}$)")
    axes.legend(loc="upper right")
