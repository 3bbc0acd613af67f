"""Counts of consensus, Wendel's formula, the ring of three, and clusters that stay apart on the circle."""

import functools

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import EPS, LEVEL, Rows, counted, share_of, student
from attnflow_gallery.consensus.simulate import FINE, SPAN, TOGETHER, Parameters

THRESHOLD = -2 / 3
APART = TOGETHER**0.5
"""Tokens on the circle are in one cluster when neighbours are closer than this angle."""
RING = consequence("Growth rate at the ring of three")
CIRCLE = consequence("Three clusters on the circle")


def clusters_of(angles: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(sizes, gaps) of the clusters of one draw on the circle, in cyclic order; a gap follows its cluster."""
    ordered = np.sort(angles)
    gaps = np.diff(np.append(ordered, ordered[0] + 2 * np.pi))
    ends = np.flatnonzero(gaps > APART)
    if len(ends) <= 1:
        return np.array([len(angles)]), np.array([2 * np.pi])
    return np.diff(np.append(ends[-1] - len(angles), ends)), gaps[ends]


def error_of_end(angles: np.ndarray, beta: float) -> float:
    """0 at consensus; else how far the angles of three clusters are from a stable equilibrium; infinite without one."""
    sizes, gaps = clusters_of(angles)
    if len(sizes) == 1:
        return 0.0
    if len(sizes) != 3 or beta >= 0:
        return np.inf
    # the gap after a cluster is opposite the one before it; states are known up to reflection and equal clusters
    rows = sorted(zip(sizes.tolist(), np.roll(gaps, -1).tolist(), strict=True))
    found = np.array([angle for _, angle in rows])
    counts = tuple(size for size, _ in rows)
    states = np.array([_arranged(counts, state) for state in _states(counts, beta)])
    return float(np.abs(states - found).max(axis=1).min()) if len(states) else np.inf


@functools.cache
def _states(sizes: tuple[int, ...], beta: float) -> np.ndarray:
    return theory.merging.three_clusters(sizes, beta)


def _arranged(sizes: tuple[int, ...], state: np.ndarray) -> list[float]:
    return [angle for _, angle in sorted(zip(sizes, state.tolist(), strict=True))]


@functools.cache
def stays_apart(n: int, beta: float) -> bool:
    """Whether n equal tokens on the circle have a stable state of three clusters."""
    if beta >= 0:
        return False
    splits = [(a, b, n - a - b) for a in range(1, n // 3 + 1) for b in range(a, (n - a) // 2 + 1)]
    return any(len(_states(split, beta)) for split in splits)


def together(part: xr.Dataset) -> np.ndarray:
    """(beta, seed): which draws on the circle are in consensus."""
    angles = part["angle"].values
    centred = np.angle(np.exp(1j * (angles - angles[..., :1])))
    return np.asarray(np.ptp(centred, axis=-1) <= APART)


def simulated_rates(part: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Growth rate of the displacement of the ring over one frame, and what it may be off by.

    RK4 multiplies by the Taylor polynomial of e^(rate step) and so misses about rate^5 step^4/120; the flow is linear
    up to the displacement; angles are rounded.
    """
    first, then = float(part["before"]), part["after"].values
    rates = np.log(then / first) / SPAN
    rounding = 8 * EPS / np.minimum(first, then) / SPAN
    return rates, np.abs(rates) ** 5 * FINE**4 / 60 + np.maximum(first, then) + rounding


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Consensus, Wendel and the threshold -2/3; then hemispheres, the ring, and clusters that stay apart."""
    return [
        *(_all_together(parameters, data, d) for d in parameters.dims),
        _wendel(parameters, data["hemisphere"]),
        *_ring(parameters, data["ring"]),
        _in_hemispheres(parameters, data),
        *_apart(parameters, data),
    ]


def _all_together(parameters: Parameters, data: dict[str, xr.Dataset], d: int) -> Claim:
    """Whether every draw reaches consensus with every model and beta; a draw is counted once."""
    met = np.all([data[f"{model}-S{d - 1}"]["met"] < np.inf for model in parameters.models], axis=(0, 1))
    words = f"{' and '.join(parameters.models)}, β = {_list(parameters.betas)}: {counted(met)}"
    holds = bool(met.all())
    if d in parameters.large_dims:
        times = data[f"large-S{d - 1}"]["log_time"].values
        holds &= bool((times < np.inf).all())
        late = np.max(times, where=times < np.inf, initial=-np.inf)
        ended = f"{share_of(times < np.inf)}, the last at e^{late:.0f}"
        words += f"; SA in log time, β = {_list(parameters.large_betas)}: {ended}"
    statement = f"{parameters.n} iid tokens on S^{d - 1}: every draw reaches consensus for every β ≥ 0 tried"
    reason = f"overlaps within {TOGETHER:g} of 1 at t = {parameters.until:g}; exact binomial bound"
    origin = published("polyanskiy2025synchronization" if d == 2 else "criscitiello2024synchronization")
    return Claim.true(statement, holds, words, reason, origin=origin)


def _wendel(parameters: Parameters, seen: xr.Dataset) -> Claim:
    n, d, draws, rows = seen["n"].values, seen["d"].values, parameters.hemisphere_draws, Rows()
    wendel = theory.landscape.hemisphere_probability(n[:, None], d[None, :])
    tolerance = student(LEVEL, draws, wendel.size) * np.sqrt(wendel * (1 - wendel) / draws) + 1 / draws
    labels = [f"{count} tokens on S^{dim - 1}" for count in n for dim in d]
    rows.add(wendel, seen["hits"] / draws, tolerance, labels)
    reason = f"normal test of {draws} draws, level {LEVEL:g} for all {wendel.size}, and one draw"
    return rows.equal(
        "share of draws in an open hemisphere", reason, origin=published("wendel1962problem"), level=LEVEL
    )


def _ring(parameters: Parameters, part: xr.Dataset) -> list[Claim]:
    betas, linear, moving = part["beta"].values, Rows(), Rows()
    names = [f"β = {beta:g}" for beta in betas]
    for model in parameters.models:
        predicted, tolerance = (
            theory.landscape.ring_growth_rates(betas, 3, k=1, model=model),
            part[f"tolerance_{model}"].values,
        )
        for mode in part[f"rate_{model}"].transpose("mode", "beta").values:
            linear.add(predicted, mode, tolerance, [f"{model}, {name}" for name in names])
    moving.add(theory.landscape.ring_growth_rates(betas, 3, k=1), *simulated_rates(part), names)
    # the slope of the sum of the three eigenvalues is above 1 there
    room, source = 3 * float(part["tolerance_SA"].values.max()), published("polyanskiy2025synchronization")
    where = "SA: the β at which three equal clusters at 120 degrees become stable"
    slope = "rounding of three eigenvalues, over the slope of their sum in β"
    matrix = "rounding of a matrix and its eigenvalues"
    scheme = "order 4 of the scheme; size of the displacement; rounding"
    return [
        Claim.equal(where, THRESHOLD, part.attrs["zero"], room, slope, origin=source),
        linear.equal("ring of three: eigenvalues of the linearised flow", matrix, origin=RING),
        moving.equal("SA: growth rate of a displaced ring of three", scheme, origin=RING),
    ]


def _in_hemispheres(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    parts = [data[f"{model}-S{d - 1}"] for model in parameters.models for d in parameters.dims]
    met = [(part["met"].values[:, part["inside"].values] < np.inf).ravel() for part in parts]
    circles = [data[f"circle-{n}"] for n in parameters.circle_counts]
    met += [together(part)[:, part["inside"].values].ravel() for part in circles]
    every, origin = np.concatenate(met), consequence("In a hemisphere consensus is certain")
    statement = "every draw that starts in an open hemisphere reaches consensus, for β of either sign"
    holds = bool(every.size and every.all())
    return Claim.true(statement, holds, share_of(every), "counted; poles by least squares", origin=origin)


def _apart(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    right, seen, others, rows = True, [], 0, Rows()
    for n in parameters.circle_counts:
        part = data[f"circle-{n}"]
        for beta, angles, met in zip(parameters.betas_of(n), part["angle"].values, together(part), strict=True):
            lost = int(np.sum(~met))
            right &= (lost > 0) == stays_apart(n, beta)
            others += lost == 0
            seen += [f"{lost} at n = {n}, β = {beta:g}"] if lost else []
            rows.add(0.0, [error_of_end(x, beta) for x in angles], APART, f"n = {n}, β = {beta:g}")
    found = f"of {parameters.circle_draws} draws stay apart: {', '.join(seen)}; none in {others} other cases"
    statement = "circle: draws stay apart where three clusters have a stable equilibrium, and nowhere else"
    return [
        Claim.true(statement, right, found, "counted", origin=CIRCLE),
        rows.at_most(
            "circle: angles of clusters that stay apart minus those of the stable equilibrium",
            f"the angle below which tokens are one cluster, at t = {parameters.circle_until:g}",
            origin=CIRCLE,
        ),
    ]


def _list(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:g}" for value in values)
