"""Equilibria by Newton's method, and exit times of iid starts and of two almost antipodal groups."""

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import xarray as xr
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

from attnflow import theory
from attnflow.certify import Certificate, equilibrium
from attnflow.experiments import Salted, Study
from attnflow.fields import Attention
from attnflow.flows import Fixed, advance, solve
from attnflow.observe import energy, overlaps
from attnflow.spaces import Sphere
from attnflow.stability import Equilibrium, find_equilibria, spectrum
from attnflow.tokens import Tokens, uniform

NEUTRAL = 1e-8
"""Eigenvalues below this are neutral: equilibria are found to 1e-12, and the slowest rate here is e^(-8) = 3e-4."""
BOX = 1e-7
"""Half width of the box in which a certificate finds the equilibrium: forces vanish to 1e-12, rates are above 3e-4."""
STEP, SPAN = 0.25, 1.0
"""Time step, and time between frames, of flows."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is looked for and simulated."""

    cases: tuple[tuple[int, int], ...] = ((3, 2), (4, 2), (5, 2), (6, 2), (3, 3), (4, 3), (5, 3), (6, 3))
    """Numbers of tokens and dimensions."""
    betas: tuple[float, ...] = (1.0, 4.0)
    starts: int = 8
    """Of Newton's method in one batch, for three tokens; three times as many for each token more."""
    batches: int = 6
    """Even."""
    dims: tuple[int, ...] = (2, 3)
    n: int = 4
    """Tokens of iid starts."""
    beta: float = 1.0
    draws: int = 60_000
    bends: tuple[float, ...] = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
    """How far two antipodal groups are from being antipodal, in angle."""
    until: float = 180.0


QUICK = Parameters(
    cases=((3, 2), (4, 3)), betas=(1.0,), batches=4, dims=(3,), draws=4000, bends=(1e-1, 1e-2), until=60.0
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Equilibria with their spectra, and exit times of iid and of bent starts."""
    makers: dict[str, Any] = {}
    for (n, d), beta in itertools.product(parameters.cases, parameters.betas):
        makers[name(n, d, beta)] = _list, parameters, n, d, beta
    return study.parts(makers | {f"starts-S{d - 1}": (_starts, parameters, study, d) for d in parameters.dims})


def name(n: int, d: int, beta: float) -> str:
    """Of a list of equilibria."""
    return f"{n}-S{d - 1}-beta{beta:g}"


def _list(parameters: Parameters, n: int, d: int, beta: float) -> xr.Dataset:
    """The equilibria that all batches of starts find, lowest energy first, with the first batch that finds each."""
    rows: list[dict[str, Any]] = []
    starts = parameters.starts * 3 ** (n - 3)
    for batch in range(parameters.batches):
        for one in find_equilibria(n=n, d=d, beta=beta, starts=starts, seed=parameters.seed(batch)):
            if all(np.abs(_mark(one.tokens.positions) - _mark(row["positions"])).max() > 1e-6 for row in rows):
                rows.append(_describe(one, d, beta) | {"batch": batch})
    dims: dict[str, tuple[str, ...]] = {"rates": ("mode",), "rates_SA": ("mode",), "positions": ("token", "dim")}
    columns = {key: (("equilibrium", *dims.get(key, ())), np.array([row[key] for row in rows])) for key in rows[0]}
    attrs = {"n": n, "d": d, "beta": beta, "starts": starts * parameters.batches}
    return xr.Dataset(columns, attrs=attrs).sortby("energy")


def _mark(positions: Any) -> np.ndarray:
    """Numbers that see neither rotations nor the order of tokens."""
    gram = np.asarray(positions) @ np.asarray(positions).T
    return np.concatenate([np.linalg.eigvalsh(gram), np.sort(gram.sum(axis=1)), np.sort(gram.ravel())])


def _describe(found: Equilibrium, d: int, beta: float) -> dict[str, Any]:
    tokens, gram = found.tokens, overlaps(found.tokens)
    softmax = Attention(beta)
    rates = np.sort(found.spectrum.eigenvalues.real)[::-1]
    rank = int(np.sum(np.linalg.eigvalsh(gram) > 1e-6))
    proved = equilibrium(found, beta, radius=BOX)
    return {
        "positions": np.asarray(tokens.positions),
        "rates": rates,
        "rates_SA": np.sort(spectrum(softmax, tokens).eigenvalues.real)[::-1],
        "speed": float(np.abs(softmax.velocity(tokens)).max()),
        "index": int(np.sum(rates > NEUTRAL)),
        "proved_index": proved.claims["unstable"] if isinstance(proved, Certificate) else -1,
        "labelled": theory.landscape.labelled_configurations(gram, rank == d),
        "rank": rank,
        "clusters": found.clusters.count,
        "energy": float(energy(tokens, beta)),
    }


def _starts(parameters: Parameters, study: Study, d: int) -> xr.Dataset:
    """When all overlaps have become positive: of iid starts to one frame, infinite if they have not. USA0."""
    seeds = parameters.seeds(range(d * parameters.draws, (d + 1) * parameters.draws))
    tokens = uniform(Sphere(d), n=parameters.n, seed=seeds)
    field = Attention(parameters.beta, normaliser="USA0")
    left, frames = np.full(len(seeds), np.inf), math.ceil(parameters.until / SPAN)
    for frame in range(1, frames + 1):
        study.progress(f"iid starts on S^{d - 1}, t = {frame * SPAN:g}", frame / frames)
        tokens = advance(field, tokens, 0.0, SPAN, Fixed(STEP))
        left = np.minimum(left, np.where(overlaps(tokens).min(axis=(-1, -2)) > 0, frame * SPAN, np.inf))
        if np.isfinite(left).all():
            break
    bent = Tokens(np.array([_groups(parameters.n, d, bend) for bend in parameters.bends]), dims=("bend",))
    watch = {"overlap": lambda mu: (mu.positions[0] * mu.positions[-1]).sum()}
    flow = solve(field, bent, frames * SPAN, save=frames, method=Fixed(STEP), observe=watch, keep=()).dataset
    rows = flow["overlap"].transpose("bend", "time").values
    times = flow["time"].values
    fine, coarse = (np.array([crossing(times[::k], row[::k]) for row in rows]) for k in (1, 2))
    found = {"left": ("seed", left), "bent": ("bend", fine), "bent_error": ("bend", np.abs(fine - coarse))}
    return xr.Dataset(found, {"bend": list(parameters.bends)})


def crossing(times: np.ndarray, values: np.ndarray) -> float:
    """When a rising curve passes 0, by a cubic spline through its frames; NaN if it does not."""
    if not values[0] < 0 < values[-1]:
        return math.nan
    last = int(np.argmax(values > 0))
    return float(brentq(CubicSpline(times, values), times[last - 1], times[last], xtol=1e-12))


def _groups(n: int, d: int, bend: float) -> np.ndarray:
    """Two groups of n/2 tokens at the angle pi - bend."""
    positions = np.zeros((n, d))
    positions[: n // 2, 0] = 1.0
    positions[n // 2 :, 0], positions[n // 2 :, 1] = -math.cos(bend), math.sin(bend)
    return positions
