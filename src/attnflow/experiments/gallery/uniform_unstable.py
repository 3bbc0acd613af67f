"""Every harmonic of a nearly uniform density grows at the rate of the spectrum, in a straight line over decades.

The density 1 + a h, h a spherical harmonic of degree k on S^(d-1), solves the continuity equation of attention with
a' = lambda_k a while a is small, lambda_k = k (k+d-2) I_(k+d/2-1)(beta) / (beta I_(d/2-1)(beta)) under softmax
attention (SA) and the mean weight times that under its gradient-flow variant (USA0): arXiv:2312.10794, Funk and Hecke.

Shown: the continuity equation itself, solved in harmonics, on the circle, on S^2 (harmonics that are not zonal) and for
zonal densities on higher spheres, from a = 1e-9 up by decades; and, on the circle, how the line begins to bend: by
third-order terms that are known in closed form. Starts with +a and -a are subtracted, which leaves the odd powers of a:
what one start alone shows is off by a itself where a harmonic is part of its own square (S^2, even degrees).
Not shown: what becomes of the mode once a is of order 1 (only drawn), or tokens (see uniform-spectrum).

Tolerances: DOPRI5 multiplies by e^z - z^6/3600 in a step of length z/lambda, and the steps are the intervals of the
frames; the pair leaves terms of relative size a^2 (on the circle a^4 beyond the known bend); and round-off.
"""

import dataclasses
import functools
import itertools
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.claim import Claim, share_used
from attnflow.experiments.study import Study
from attnflow.fields import Attention, Softmax, Unnormalised
from attnflow.meanfield import (
    AbstractBasis,
    CircleBasis,
    SphereBasis,
    ZonalBasis,
    evolve,
    needed_degree,
    perturbed,
)
from attnflow.plots.style import PAGE, styled

PAPERS = ("arXiv:2312.10794",)

MODELS = {"SA": Softmax(), "USA0": Unnormalised()}
EPS = float(np.finfo(np.float64).eps)
START, GROWN = 1e-9, 1e-4
SPACES = ("circle", "sphere", "zonal")


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is simulated."""

    circle_betas: tuple[float, ...] = (2.0, 9.0, 100.0)
    circle_degrees: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
    sphere_betas: tuple[float, ...] = (5.0, 20.0)
    sphere_degrees: tuple[int, ...] = (1, 2, 3, 4, 6)
    zonal_betas: tuple[float, ...] = (5.0, 20.0)
    zonal_degrees: tuple[int, ...] = (1, 2, 3, 4)
    dims: tuple[int, ...] = (4, 8, 64)
    """Of the spaces R^d around the spheres with zonal densities."""
    decades: float = 5.0
    """That a mode grows by, if its rate is at least half of the largest one; others have the time of such a one."""
    frames: int = 160
    bends: tuple[float, ...] = (2.0, 9.0)
    """Inverse temperatures at which modes of the circle are followed until they stop growing."""


QUICK = Parameters(
    circle_betas=(5.0,), circle_degrees=(1, 3, 5), sphere_betas=(), zonal_betas=(5.0,), zonal_degrees=(2,), dims=(8,),
    bends=(5.0,),
)  # fmt: skip


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Amplitudes of modes along pairs of flows."""
    flows = [("circle", 2, beta, parameters.circle_degrees) for beta in parameters.circle_betas]
    flows += [("zonal", d, beta, parameters.zonal_degrees) for d in parameters.dims for beta in parameters.zonal_betas]
    flows += [("sphere", 3, beta, parameters.sphere_degrees) for beta in parameters.sphere_betas]
    todo = list(itertools.product(MODELS, flows))

    def grow(index: int, model: str, space: str, d: int, beta: float, degrees: tuple[int, ...]) -> xr.Dataset:
        study.progress(f"{model}, beta {beta:g}, {space}, d = {d}", 0.8 * index / len(todo))
        return grown(model, space, d, beta, degrees, parameters)

    data = {}
    for k, (model, (space, d, beta, degrees)) in enumerate(todo):
        name = f"{model}-{space}-d{d}-beta{beta:g}"
        data[name] = study.part(name, functools.partial(grow, k, model, space, d, beta, degrees))
    for model, beta in itertools.product(MODELS, parameters.bends):
        name = f"{model}-bend-beta{beta:g}"
        study.progress(f"{model}, beta {beta:g}, to the end of the growth", 0.9)
        data[name] = study.part(name, functools.partial(bent, model, beta, parameters))
    return data


def basis_of(space: str, d: int, beta: float) -> AbstractBasis:
    """Degrees with room for the kernel to rounding, and for powers of each mode."""
    if space == "circle":
        return CircleBasis(128)
    return SphereBasis(max(needed_degree(beta, d, 1e-13), 24)) if space == "sphere" else ZonalBasis(d, 64)


def grown(model: str, space: str, d: int, beta: float, degrees: tuple[int, ...], parameters: Parameters) -> xr.Dataset:
    """Amplitudes from +START and -START along the flow: (degree, sign, frame), the frames `interval` apart."""
    field, basis = Attention(beta, normaliser=MODELS[model]), basis_of(space, d, beta)
    rates = theory.growth_rates(beta, d, np.arange(1, 60), model)
    spans = parameters.decades * np.log(10) / np.maximum(rates[np.array(degrees) - 1], rates.max() / 2)
    rows = [
        [_amplitudes(field, basis, k, sign * START, float(span), parameters.frames, space) for sign in (1, -1)]
        for k, span in zip(degrees, spans, strict=True)
    ]
    return xr.Dataset(
        {"amplitude": (("degree", "sign", "frame"), np.array(rows)), "interval": ("degree", spans / parameters.frames)},
        {"degree": list(degrees), "sign": [1, -1], "frame": np.arange(parameters.frames + 1)},
        {"model": model, "space": space, "d": d, "beta": beta},
    )


def _amplitudes(
    field: Attention, basis: AbstractBasis, k: int, size: float, until: float, frames: int, space: str
) -> np.ndarray:
    """The coefficient of the seeded harmonic, in units in which the harmonic has the maximum 1."""
    order = k // 2 if space == "sphere" else 0
    flow = evolve(field, perturbed(basis, k, size, order), until, save=frames, check=False)
    shape = np.asarray(basis.harmonic(k, order)).reshape(-1)
    place = int(np.argmax(np.abs(shape)))
    found = np.full(frames + 1, np.nan)
    rows = flow.dataset["coefficients"].values.reshape(len(flow.time), -1)[: frames + 1, place]
    reached = np.isclose(flow.time.values, np.arange(len(rows)) * until / frames)  # the last one may lie between
    found[: len(rows)][reached] = rows[reached] / shape[place]
    return found


def bent(model: str, beta: float, parameters: Parameters) -> xr.Dataset:
    """Modes on the circle from k_max on, from 1e-4 until the density is no longer resolved."""
    field, basis = Attention(beta, normaliser=MODELS[model]), basis_of("circle", 2, beta)
    degrees = int(theory.dominant_degree(beta, 2)) + np.arange(3)
    rates = theory.growth_rates(beta, 2, degrees, model)
    spans, frames = 13.0 / rates, 2 * parameters.frames
    rows = [
        _amplitudes(field, basis, int(k), GROWN, float(span), frames, "circle")
        for k, span in zip(degrees, spans, strict=True)
    ]
    return xr.Dataset(
        {"amplitude": (("degree", "frame"), np.array(rows)), "interval": ("degree", spans / frames)},
        {"degree": degrees, "frame": np.arange(frames + 1)},
        {"model": model, "space": "bend", "d": 2, "beta": beta},
    )


def bend(t: np.ndarray, start: float, beta: float, k: int, model: str) -> np.ndarray:
    """By how much log a falls short of log a(0) + lambda_k t on the circle, up to relative a^4; h = a cos(k theta).

    With b the amplitude of cos(2k theta), r_j = a_j/a_0 of the kernel for SA (0 for USA0) and l_j = lambda_(jk),
    b' = l_2 b + l_1 (1 - r_1) a^2 and a' = l_1 a (1 - r_1 (1 - r_1) a^2/4) - (l_1 (1 + r_2)/2 - l_2/4) a b.
    """
    one, two = theory.growth_rates(beta, 2, np.array([k, 2 * k]), model)
    r1, r2 = (beta * one / k**2, beta * two / (2 * k) ** 2) if model == "SA" else (0.0, 0.0)
    square = start**2 * np.expm1(2 * one * t) / (2 * one)  # the integral of a^2
    double = one * (1 - r1) / (2 * one - two) * (square - start**2 * np.expm1(two * t) / two)  # of b
    return np.asarray(-one * r1 * (1 - r1) / 4 * square - (one * (1 + r2) / 2 - two / 4) * double)


def lines(data: dict[str, xr.Dataset]) -> list[dict[str, Any]]:
    """One row per mode: the odd amplitude, its times, the rate by theory, what may be missed of log a and of the rate.

    `one` is the deviation of the start +START alone.
    """
    rows = []
    for part in data.values():
        model, beta, d = part.attrs["model"], float(part.attrs["beta"]), int(part.attrs["d"])
        for k in part["degree"].values if part.attrs["space"] in SPACES else ():
            pair = part["amplitude"].sel(degree=k).values
            odd, t = (pair[0] - pair[1]) / 2, part["frame"].values * float(part["interval"].sel(degree=k))
            rate = float(theory.growth_rates(beta, d, int(k), model))
            with np.errstate(invalid="ignore", divide="ignore"):
                gap = np.log(odd / odd[0]) - rate * t
                one = np.log(pair[0] / pair[0][0]) - rate * t
            step = rate * t * (rate * t[1]) ** 5 / 3600
            tolerance = 1.2 * step + odd**2 + 32 * EPS * np.sqrt(6.0 * len(t)) * (1 + rate * t)
            rows.append(
                {"space": part.attrs["space"], "d": d, "model": model, "beta": beta, "k": int(k), "t": t, "odd": odd}
                | {"rate": rate, "gap": gap, "one": one, "tolerance": tolerance}
                | {"decades": float(np.log10(odd[-1] / odd[0])), "measured": rate + gap[-1] / t[-1]}
            )
    return rows


def bends(data: dict[str, xr.Dataset]) -> list[dict[str, Any]]:
    """One row per mode that is followed to its end: a, log a(0) + lambda t - log a, and what theory says."""
    rows = []
    for part in data.values():
        model, beta = part.attrs["model"], float(part.attrs["beta"])
        for k in part["degree"].values if part.attrs["space"] == "bend" else ():
            found = part["amplitude"].sel(degree=k).values
            t = part["frame"].values * float(part["interval"].sel(degree=k))
            rate = float(theory.growth_rates(beta, 2, int(k), model))
            with np.errstate(invalid="ignore", divide="ignore"):
                gap = np.log(found / found[0]) - rate * t
            tolerance = found**4 + 1.2 * rate * t * (rate * t[1]) ** 5 / 3600 + 1e-9
            rows.append(
                {"model": model, "beta": beta, "k": int(k), "t": t, "a": found, "gap": gap, "rate": rate}
                | {"bend": bend(t, float(found[0]), beta, int(k), model), "tolerance": tolerance}
            )
    return rows


SOURCE = "the step's (λh)⁵/3600 of the rate; a², which pairs of starts leave; round-off"
WORDS = {"circle": "the circle", "sphere": "S²", "zonal": "higher spheres, zonal"}


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """For each kind of sphere the worst rate and the worst deviation from a straight line; the bend; decades."""
    rows, made = lines(data), []
    for space in (s for s in SPACES if any(row["space"] == s for row in rows)):
        some = [row for row in rows if row["space"] == space]
        worst = max(some, key=lambda row: share_used(row["gap"][-1], 0.0, row["tolerance"][-1]))
        statement = f"{WORDS[space]}: a mode grows at the rate λ_k (worst of {len(some)}: {_where(worst)})"
        tolerance = worst["tolerance"][-1] / worst["t"][-1]
        made.append(Claim.equal(statement, worst["rate"], worst["measured"], tolerance, SOURCE))
        long = [row for row in some if row["decades"] > parameters.decades - 1e-6] or some
        shares = [list(map(share_used, row["gap"], np.zeros_like(row["gap"]), row["tolerance"])) for row in long]
        worst, used = max(zip(long, shares, strict=True), key=lambda both: max(both[1]))
        at = int(np.argmax(used))
        statement = (
            f"{WORDS[space]}: |log a(t) - log a(0) - λ_k t| over {min(row['decades'] for row in long):.2f} decades or "
            f"more (worst of {len(long)} modes: {_where(worst)})"
        )
        made.append(Claim.at_most(statement, 0.0, abs(worst["gap"][at]), worst["tolerance"][at], SOURCE))
    last = []
    for row in bends(data):
        # where the bend is a hundred times the term of the next order, but can be told from the steps
        at = int(np.nanargmax(np.where(row["a"] < 0.1, row["a"], np.nan)))
        last.append((row, at))
    if last:
        row, at = max(last, key=lambda both: share_used(*(both[0][n][both[1]] for n in ("gap", "bend", "tolerance"))))
        statement = f"the circle: log a bends by third-order terms (worst of {len(last)} modes: {_where(row)})"
        source = "a⁴ of the terms of fifth order; the step's (λh)⁵/3600 of the rate"
        made.append(Claim.equal(statement, row["bend"][at], row["gap"][at], row["tolerance"][at], source))
    return made


def _where(row: dict[str, Any]) -> str:
    where = "" if row.get("space") != "zonal" else f"S^{row['d'] - 1}, "
    return f"{where}{row['model']}, β = {row['beta']:g}, k = {row['k']}"


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Growth of harmonics of a nearly uniform density: the continuity equation (marks) and theory (lines).

    (a) Amplitudes on the circle, pairs of starts. (b) Their rates on the circle (full: SA, open: USA0), in units of the
    mean weight. (c) Deviation of log a from a straight line on S^2 or higher spheres, by one start and by the pair;
    lines: a and a^2. (d) The end of the growth on the circle; lines: the bend of third order.
    """
    from attnflow.experiments.gallery import _uniform_unstable_figure as panels

    rows = lines(data)
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 5.0))
        axes = fig.subplots(2, 2)
        panels.draw_growth(axes[0, 0], rows)
        panels.draw_rates(axes[0, 1], rows)
        panels.draw_deviation(axes[1, 0], rows)
        panels.draw_bends(axes[1, 1], bends(data))
        for letter, one in zip("abcd", axes.flat, strict=True):
            one.set_title(f"({letter})", loc="left", fontweight="bold")
        return fig
