"""Many tokens move as the density that solves the continuity equation, up to the sampling noise that the flow carries.

As n grows the tokens of attention become a density rho with d rho/dt + div(rho X[rho]) = 0 (arXiv:2312.10794). Tokens
drawn from the density at the start miss its harmonics and its energy by a standard error n^(-1/2) times a constant
that grows with time, for attention amplifies the noise; the constant comes from the linearised equation. Tokens spread
quietly over the density (quantiles) miss it by far less: on the circle by no more than the steps in time do.

Shown: softmax attention (SA) and its gradient-flow variant (USA0) on the circle and on S^2, from a smooth start; that
what tokens miss is what the equation itself makes of the harmonics that they missed at the start, to all orders; finite
volumes against harmonics; and the hand-over to tokens when the density is no longer resolved, up to clusters.
Not shown: the rate in n (see propagation-of-chaos), noise on the tokens, spikes on S^2.

Times of USA0 are in units of the inverse of the largest K * rho at the start, where it then is as fast as SA.
"""

import dataclasses
import functools
from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.claim import Claim
from attnflow.experiments.gallery import _carried as carried
from attnflow.experiments.study import Study
from attnflow.fields import Attention, Softmax, Unnormalised
from attnflow.flows import At, Fixed, advance
from attnflow.meanfield import (
    AbstractBasis,
    CircleBasis,
    Density,
    SphereBasis,
    cells_from_density,
    circle_cells,
    empirical,
    evolve,
    evolve_cells,
    mixture,
    multipliers,
    quiet,
    sample,
    von_mises_fisher,
)
from attnflow.observe import cluster_scale, clusters
from attnflow.plots.style import PAGE, styled
from attnflow.tokens import Tokens

PAPERS = ("arXiv:2312.10794",)

MODELS = {"SA": Softmax(), "USA0": Unnormalised()}
BUMPS = {
    "circle": ((0.45, 0.33, 0.22), ((0.92, 0.39), (-0.86, 0.52), (-0.21, -0.98))),
    "sphere": ((0.35, 0.27, 0.22, 0.16), ((1.0, 0.0, 0.2), (-0.6, 0.8, 0.3), (-0.4, -0.9, -0.1), (0.2, 0.1, -1.0))),
}
"""Masses and directions of the bumps of the start."""
HEIGHT = 3.0
"""Their concentration."""


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is simulated."""

    circle: tuple[str, ...] = ("SA", "USA0")
    """Models on the circle."""
    sphere: tuple[str, ...] = ("SA", "USA0")
    """Models on S^2."""
    circle_beta: float = 9.0
    sphere_beta: float = 6.0
    n: int = 100_000
    """Tokens."""
    many: int = 1_000_000
    """Tokens of one more flow of SA on the circle; 0 leaves it out."""
    circle_degree: int = 128
    sphere_degree: int = 48
    circle_until: float = 2.0
    sphere_until: float = 1.2
    legs: int = 4
    """Times at which tokens and density are compared, beyond the start: an even number."""
    steps: int = 4
    """Of RK4 between two such times."""
    cells: tuple[int, ...] = (128, 256, 512, 1024)
    lost_degree: int = 48
    """Of the basis which the density outgrows."""
    end: float = 10.0
    """How long the tokens of the hand-over go on."""
    seed: int = 0


QUICK = Parameters(
    circle=("SA",),
    sphere=("USA0",),
    n=2000,
    many=0,
    circle_degree=64,
    sphere_degree=24,
    circle_until=1.2,
    sphere_until=0.6,
    legs=2,
    cells=(64, 128, 256),
)

LOW = {"circle": 4, "sphere": 3}
"""The harmonics that are compared have degrees from 1 to this."""
SEEN = 32
"""Degree up to which coefficients of tokens are kept: the kernel has nothing beyond."""
CHECKED = 256
"""Tokens with which the error of the steps is found."""


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Densities and tokens of every case; cells; the hand-over."""
    cases = [("circle", model) for model in parameters.circle] + [("sphere", model) for model in parameters.sphere]
    data: dict[str, xr.Dataset] = {}

    def say(text: str) -> None:
        study.progress(text, min(len(data) / (len(cases) + 3), 1.0))

    for space, model in cases:
        say(f"{model} on the {space}")
        name = f"{space}-{model}"
        data[name] = study.part(name, functools.partial(compared, space, model, parameters))
    if parameters.many:
        say(f"{parameters.many:,} tokens on the circle")
        data["many"] = study.part("many", functools.partial(compared, "circle", "SA", parameters, parameters.many))
    say("finite volumes")
    data["cells"] = study.part("cells", functools.partial(volumes, parameters))
    say("the hand-over to tokens")
    data["clusters"] = study.part("clusters", functools.partial(handed_over, parameters))
    return data


def setting(space: str, model: str, parameters: Parameters) -> tuple[Attention, Density, float, float]:
    """The field, the start, the time between two comparisons and the unit of time."""
    on_circle = space == "circle"
    basis: AbstractBasis = CircleBasis(parameters.circle_degree) if on_circle else SphereBasis(parameters.sphere_degree)
    beta = parameters.circle_beta if on_circle else parameters.sphere_beta
    until = parameters.circle_until if on_circle else parameters.sphere_until
    density = start(basis, space)
    unit = 1.0
    if model == "USA0":
        kernel = np.asarray(multipliers(beta, basis.dim, basis.degree))[basis.degrees]
        unit = 1 / float(np.max(basis.synthesis(kernel * np.asarray(density.coefficients))))
    return Attention(beta, normaliser=MODELS[model]), density, unit * until / parameters.legs, unit


def start(basis: AbstractBasis, space: str) -> Density:
    """A mixture of von Mises-Fisher densities."""
    masses, directions = BUMPS[space]
    return mixture(masses, [von_mises_fisher(basis, HEIGHT, direction) for direction in directions])


def compared(space: str, model: str, parameters: Parameters, many: int = 0) -> xr.Dataset:
    """One model in one space: the density, iid and quiet tokens, the standard errors, and what steps in time miss."""
    field, density, gap, unit = setting(space, model, parameters)
    counts, low, basis = (parameters.legs, parameters.steps), LOW[space], density.basis
    times = gap * np.arange(parameters.legs + 1)
    flow = evolve(field, density, float(times[-1]), save=times)
    coefficients = flow.dataset["coefficients"].values
    truth = carried.observe(field, basis, low, coefficients)
    found = carried.influence(field, density, low, gap, counts)
    small = basis.refined(min(SEEN, basis.degree))
    kinds = {"iid": sample(density, many or parameters.n, seed=parameters.seed)}
    if not many:
        kinds["quiet"] = quiet(density, parameters.n)
    seen, predicted, shown = [], [], []
    for tokens in kinds.values():
        frames = carried.follow(field, tokens, gap, counts, lambda now: (empirical(small, now), _shown(space, now)))
        seen.append(carried.observe(field, small, low, np.array([c for c, _ in frames])))
        shown.append(np.array([picture for _, picture in frames]))
        predicted.append(carried.galerkin(field, density, low, empirical(basis, tokens), gap, counts))
    by = ("tokens", "time", "observable")
    dataset = xr.Dataset(
        {
            "measured": (by, np.array(seen)),
            "predicted": (by, np.array(predicted)),
            "density": (by[1:], truth),
            "deviation": (by[1:], carried.deviations(density, found)),
            "coefficients": (("time", *(f"axis{i}" for i in range(basis.mask.ndim))), coefficients),
            "shown": (("tokens", "time", *(f"place{i}" for i in range(shown[0].ndim - 1))), np.array(shown)),
            "cut": carried.last_degrees(density, found),
            "step": _step_error(field, density, low, small, gap, counts),
            "unit": unit,
        },
        {"tokens": list(kinds), "time": times / unit},
    )  # fmt: skip
    dataset.attrs |= {"space": space, "model": model, "n": many or parameters.n}
    return dataset


def _shown(space: str, tokens: Tokens) -> np.ndarray:
    """For the figure: a histogram of the angle, or some of the tokens on S^2."""
    x = np.asarray(tokens.positions)
    if space == "sphere":
        return x[:: max(len(x) // 1200, 1)][:1200]
    counts = np.histogram(np.mod(np.arctan2(x[:, 1], x[:, 0]), 2 * np.pi), 90, (0, 2 * np.pi))[0]
    return np.asarray(counts * (90 / len(x)))


def _step_error(field: Attention, density: Density, low: int, basis: AbstractBasis, gap: float, counts: Any) -> float:
    """By how much steps of half the number change the observables: some 15 times the error of the steps used.

    The larger one of RK4 for a few quiet tokens and RK4 for the coefficients.
    """
    tokens = quiet(density, CHECKED)
    legs, steps = counts
    rows = []
    for width, number in ((gap, legs), (2 * gap, legs // 2)):
        frames = carried.follow(field, tokens, width, (number, steps), functools.partial(empirical, basis))
        rows.append(carried.observe(field, basis, low, np.array(frames)))
    c = density.coefficients
    fine, coarse = (carried.galerkin(field, density, low, c, width, counts) for width in (gap, 2 * gap))
    missed = [rows[0][::2] - rows[1], fine[::2] - coarse[: legs // 2 + 1]]
    return float(max(np.abs(one).max() for one in missed))


def volumes(parameters: Parameters) -> xr.Dataset:
    """Finite volumes of several widths against harmonics, in L^1, on the circle at the last time of comparison."""
    rows = []
    for model in parameters.circle:
        field, density, gap, _ = setting("circle", model, parameters)
        until = parameters.legs * gap
        truth = evolve(field, density, until, save=1).density()
        for count in parameters.cells:
            cells = circle_cells(count)
            masses = cells_from_density(cells, density)
            found = evolve_cells(field, cells, masses, until, tolerance=1e-6, save=At([until])).masses.values[-1]
            rows.append(np.sum(np.abs(found - cells_from_density(cells, truth))))
    return xr.Dataset(
        {"error": (("model", "count"), np.reshape(rows, (-1, len(parameters.cells))))},
        {"model": list(parameters.circle), "count": list(parameters.cells)},
    )


def handed_over(parameters: Parameters) -> xr.Dataset:
    """SA on the circle to clusters: harmonics while they resolve, then tokens; tokens alone; cells alone."""
    field = Attention(parameters.circle_beta)
    density = start(CircleBasis(parameters.lost_degree), "circle")
    flow = evolve(field, density, parameters.end, save=np.linspace(0, parameters.end, 81), check=False)
    lost = float(flow.time[-1])
    tokens = flow.hand_over()
    cells = circle_cells(max(parameters.cells))
    volume = evolve_cells(
        field, cells, cells_from_density(cells, density), parameters.end,
        save=At(np.linspace(0, parameters.end, 81)[1:].tolist()),
    )  # fmt: skip
    step, last = Fixed(0.1), volume.masses.values[-1]
    ends = {
        "handed over": advance(field, tokens, 0.0, parameters.end - lost, step),
        "tokens alone": advance(field, quiet(density, tokens.n), 0.0, parameters.end, step),
        "cells": _heavy(volume.hand_over(), 1 / cells.count),
    }
    scale = cluster_scale(parameters.circle_beta)
    found = {name: clusters(end, scale=scale) for name, end in ends.items()}
    most = max(one.count for one in found.values())
    masses = [np.pad(one.masses, (0, most - one.count)) for one in found.values()]
    angles = [np.pad(np.arctan2(one.centres[:, 1], one.centres[:, 0]), (0, most - one.count)) for one in found.values()]
    return xr.Dataset(
        {
            "count": ("way", [one.count for one in found.values()]),
            "masses": (("way", "cluster"), np.array(masses)),
            "angles": (("way", "cluster"), np.mod(np.array(angles), 2 * np.pi)),
            "left": float(np.sum(last[last < 1 / cells.count])),
            "condensed": ("way", [one.condensed for one in found.values()]),
            "border": _border(density),
            "tokens": tokens.n,
            "lost": lost,
            "frame_time": ("frame", flow.time.values),
            "harmonics": (("frame", "angle"), flow.values),
            "cells": (("time", "cell"), volume.values),
            "energy": ("time", volume.energy.values),
        },
        {"way": list(found), "time": volume.time.values, "angle": flow.basis.points(), "cell": cells.centres},
        {"message": flow.outcome.message, "ok": int(flow.outcome.ok)},
    )


def _heavy(tokens: Tokens, least: float) -> Tokens:
    """Those of at least this mass: cells between clusters are never quite empty."""
    masses = np.asarray(tokens.masses)
    return Tokens(np.asarray(tokens.positions)[masses >= least], masses[masses >= least])


def _border(density: Density) -> float:
    """The largest of the minima of rho: where the basins of clusters meet, it only falls with time."""
    rho = np.asarray(density.values)
    return float(np.max(rho[(rho <= np.roll(rho, 1)) & (rho <= np.roll(rho, -1))]))


def labels(space: str) -> list[str]:
    """What the observables are called."""
    degree = LOW[space]
    basis: AbstractBasis = CircleBasis(degree) if space == "circle" else SphereBasis(degree)
    places = [np.unravel_index(i, basis.mask.shape) for i in carried.entries(basis, degree)]
    if space == "circle":
        names = [f"√2 {'cos' if i <= degree else 'sin'} {i - degree * (i > degree)}θ" for (i,) in places]
    else:
        names = [f"Y of degree {k}, order {-m if part else m}" for part, m, k in places]
    return [*names, "energy"]


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Of each case the observable that uses most of its tolerance; then finite volumes, and the hand-over."""
    made = []
    for part in (part for part in data.values() if "deviation" in part):
        made += _token_claims(part, labels(part.attrs["space"]))
    counts, extrema = data["cells"]["count"].values, 2 * len(BUMPS["circle"][0])
    for model in parameters.circle:
        error = data["cells"]["error"].sel(model=model).values
        made.append(carried.order_claim(f"{model} on the circle", counts, error, extrema))
    return made + _cluster_claims(parameters, data["clusters"])


def _token_claims(part: xr.Dataset, names: list[str]) -> list[Claim]:
    space = part.attrs["space"]
    where = f"{part.attrs['model']} on {'the circle' if space == 'circle' else 'S²'}, {part.attrs['n']:,} tokens"
    density, noise = part["density"].values, part["deviation"].values / np.sqrt(part.attrs["n"])
    steps = float(part["step"])
    made = []

    def say(
        text: str, expected: np.ndarray, found: np.ndarray, tolerance: np.ndarray, source: str, some: slice
    ) -> None:
        used = (np.abs(found - expected) / tolerance)[1:, some]
        row, at = np.unravel_index(np.argmax(np.where(np.isnan(used), np.inf, used)), used.shape)
        t = row + 1  # beyond the start
        name, k = names[some][at], range(len(names))[some][at]
        label = f"worst of {used.size}: {name}, t = {float(part['time'][t]):.2g}" if used.size > len(used) else name
        made.append(Claim.equal(f"{where}: {text} ({label})", expected[t, k], found[t, k], tolerance[t, k], source))

    source = "4 standard errors: the variance of iid tokens, carried by the tangent flow"
    iid = part["measured"].sel(tokens="iid").values
    say("harmonics of iid tokens are those of the density", density, iid, 4 * noise, source, slice(-1))
    say("their energy is that of the density", density, iid, 4 * noise, source, slice(-1, None))
    for kind in part["tokens"].values:
        one = part.sel(tokens=kind)
        slack = steps + 4 * float(part["cut"]) / np.sqrt(part.attrs["n"])
        source = "the change on doubling the steps; 4 standard errors of the degrees that are cut"
        text = f"{kind} tokens have what the equation makes of their own harmonics at the start"
        say(text, one["predicted"].values, one["measured"].values, np.full(density.shape, slack), source, slice(None))
    if space == "circle" and "quiet" in part["tokens"]:
        found, source = part["measured"].sel(tokens="quiet").values, "the change on doubling the steps"
        text = "quiet tokens have the harmonics and the energy of the density"
        say(text, density, found, np.full(density.shape, steps), source, slice(None))
    return made


def _cluster_claims(parameters: Parameters, part: xr.Dataset) -> list[Claim]:
    lost, count = float(part["lost"]), part["count"].values
    message = str(part.attrs["message"])
    said = not part.attrs["ok"] and f"t = {lost:.6g}" in message and "hand_over" in message
    made = [
        Claim.true(
            f"degree {parameters.lost_degree} loses the density: the solver says when, and offers tokens",
            bool(said and 0 < lost < parameters.end), message, "the outcome of the flow",
        ),
        Claim.true(
            "handed over, tokens alone and cells: the same number of condensed clusters",
            bool(len(set(count)) == 1 and part["condensed"].values.all()), ", ".join(map(str, count)), "a whole number",
        ),
    ]  # fmt: skip
    masses, angles = part["masses"], part["angles"]
    each = {
        "tokens alone": 1 / float(part["tokens"]),
        "cells": float(part["border"]) / max(parameters.cells) + float(part["left"]),
    }
    first = float(part["border"]) / part.sizes["angle"]
    for way, own in each.items():
        off = np.abs(masses.sel(way=way).values - masses.sel(way="handed over").values)
        k = int(np.argmax(off))
        made.append(
            Claim.equal(
                f"mass of a cluster at t = {parameters.end:g}: handed over, and {way} (worst of {len(off)})",
                float(masses.sel(way=way)[k]), float(masses.sel(way="handed over")[k]), 2 * (first + own),
                "one token, or cell, of the start at each end of its basin; what is left between clusters",
            )
        )  # fmt: skip
    turn = np.abs(np.angle(np.exp(1j * (angles.sel(way="cells") - angles.sel(way="handed over")).values)))
    made.append(
        Claim.at_most(
            "place of a cluster: handed over against cells", 0.0, float(turn.max()),
            2 * np.pi / max(parameters.cells), "places in finite volumes are good to a cell",
        )
    )  # fmt: skip
    return made


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Tokens of attention and the density of the continuity equation.

    (a) SA on the circle: the density by finite volumes (beyond the white line harmonics no longer resolve it; marks:
    clusters of the tokens handed over there). (b) Density (lines) and histograms of iid tokens (steps) at several
    times, shifted upwards. (c) The density on S^2 and some of the iid tokens, in Mollweide's projection. (d) Energy of
    densities (lines) and iid tokens (marks). (e) What tokens miss of the harmonics: root mean square of iid (full) and
    quiet tokens (open); lines: the standard error. (f) Finite volumes against harmonics; dashed: second order.
    """
    from attnflow.experiments.gallery import _continuity_equation_figure as panels

    with styled() as figure:
        return panels.draw(figure.Figure(figsize=(PAGE, 6.6)), data)
