"""Extremes, the number of planes, the approach to leaders, and exactly soluble starts."""

import bisect
from collections.abc import Iterator

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import EPS, rates
from attnflow.observe import distinct
from attnflow_gallery.hyperplanes.simulate import Parameters, exact

PLANES = published("geshkovski2023emergence")
LEADERS = consequence("Two planes for random starts")
PAIRS = consequence("Two clusters lag behind the linear flow")
MIDDLE = consequence("The middle plane repels tokens")
SURE = 1e-9
"""A row of attention is decided if all but one of its weights add up to less."""
LARGEST = 40.0
"""Up to which u = |x|^2 of the clusters a token is looked at that stays at 0 by symmetry."""
SMALL = 1e-2
"""Up to which <x, X> the token near 0 counts as a small disturbance."""


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Extremes, number of planes, planes of random starts, approach, three planes, pairs, departure."""
    made = (_closing, _number, _ends, _approach, _three, _pairs, _departure)
    return [claim(parameters, data) for claim in made]


def _parts(parameters: Parameters, data: dict[str, xr.Dataset]) -> Iterator[tuple[int, xr.Dataset]]:
    return ((dim, data[f"R{dim}"]) for dim in parameters.dims)


def _names(parameters: Parameters) -> list[str]:
    return [f"R^{dim}, start {k}" for dim in parameters.dims for k in range(parameters.starts)]


def _closing(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    growth, tolerance = [], []
    for _, part in _parts(parameters, data):
        y, coarse = (part[name].values[:, : parameters.starts] for name in ("coordinate", "coarse"))
        wide = np.abs(part["fine"].values[:, : parameters.starts]).max(axis=(2, 3))
        error = np.abs(y - coarse).max(axis=2) + 1e-14 * wide
        growth.append(np.maximum(np.diff(y.max(axis=2), axis=0), -np.diff(y.min(axis=2), axis=0)))
        tolerance.append(error[1:] + error[:-1])
    names = _names(parameters)
    return Claim.at_most(
        "Random starts: outward motion of the largest and smallest leading coordinate between frames", 0.0,
        np.concatenate(growth, axis=1), np.concatenate(tolerance, axis=1), "change by halving the steps; rounding",
        origin=PLANES, labels=lambda at: names[at[1]],
    )  # fmt: skip


def resolution(part: xr.Dataset, start: int) -> float:
    """e^(-t/3) times the range of the leading coordinate at t = 0."""
    return float(np.ptp(part["coordinate"].values[0, start]) * np.exp(-part["time"].values[-1] / 3))


def look(part: xr.Dataset, start: int, mass: float) -> tuple[int, float, float]:
    """The last frame at which u = |x|^2 of the clusters is below LARGEST; u and the delay there."""
    from scipy.linalg import expm

    value, x, times = part["value"].values[start], part["fine"].values[0, start, 0], part["time"].values

    def at(frame: int) -> tuple[float, float]:
        lag = theory.landscape.pair_delay(value, x, float(times[frame]), middle=mass)
        return float(np.sum((expm((times[frame] - lag) * value) @ x) ** 2)), lag

    frame = bisect.bisect_left(range(len(times)), LARGEST, key=lambda k: at(k)[0]) - 1
    return frame, *at(frame)


def _symmetric(parameters: Parameters) -> Iterator[tuple[int, float, float, float]]:
    """Number, norm, angle and mass in the middle of the pairs with tokens of positive mass at 0."""
    pairs = enumerate(exact(parameters), parameters.starts)
    return ((k, radius, angle, mass) for k, (radius, angle, mass) in pairs if mass > 0)


def _number(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    found, names = [], _names(parameters)
    for _, part in _parts(parameters, data):
        y = part["coordinate"].values
        found += [len(distinct(y[-1, k], resolution(part, k))) for k in range(parameters.starts)]
    for dim, part in _parts(parameters, data):
        for k, radius, angle, mass in _symmetric(parameters):
            y, (frame, _, _) = part["coordinate"].values[:, k], look(part, k, mass)
            found.append(len(distinct(y[frame], resolution(part, k))))
            names.append(f"R^{dim}, clusters at norm {radius:g}, angle {angle:g}, and tokens at 0")
    return Claim.at_most(
        "Random and symmetric starts: number of limits of the leading coordinate", 3, np.array(found), 0,
        "counted; coordinates closer than e^(-t/3) of the initial range are one", origin=PLANES, labels=names,
    )  # fmt: skip


def _ends(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows = []
    for _, part in _parts(parameters, data):
        for k in range(parameters.starts):
            y = part["coordinate"].values[-1, k]
            rows.append(np.minimum(y.max() - y, y - y.min()) / resolution(part, k))
    names = _names(parameters)
    return Claim.at_most(
        "Random starts: distance of a token from the nearer of the two outer planes, over e^(-t/3) of the range", 1.0,
        np.array(rows), 0.0, "tokens that chose a leader before 2t/3 are nearer than that", origin=LEADERS,
        labels=lambda at: f"{names[at[0]]}, token {at[1]}",
    )  # fmt: skip


def _approach(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    """How far coordinates come towards that of their leader between the frame `early` and the end."""
    found, allowed, count, names = [], [], 0, _names(parameters)
    rows = np.arange(parameters.starts)[:, None]
    for _, part in _parts(parameters, data):
        early, leader, doubt = int(part.attrs["early"]), part["leader"].values, part["doubt"].values
        before, after = (
            [
                np.abs(y - y[rows, leader])
                for y in (part[name].values[frame, : parameters.starts] for name in ("coordinate", "coarse"))
            ]
            for frame in (early, -1)
        )
        sure = (doubt < SURE) & (doubt[rows, leader] < SURE) & (leader[rows, leader] == leader) & (before[0] > 0)
        # where <u, Vu> > 0 for all u, a token that has decided between two others is driven away from the tie
        value = part["value"].values[: parameters.starts]
        sure &= np.linalg.eigvalsh(value + np.swapaxes(value, 1, 2)).min(axis=1)[:, None] > 0
        size = np.ptp(part["coordinate"].values[early, : parameters.starts], axis=1)[:, None]
        wide = np.abs(part["fine"].values[-1, : parameters.starts]).max(axis=(1, 2))[:, None]
        span = float(part["time"].values[-1] - part["time"].values[early])
        # d|y_i - y_l|/dt + |y_i - y_l| is at most the weights on others, of both tokens, times the range
        rate, tolerance = rates(before, after, span, 2 * SURE * size + 1e-14 * wide, sure)
        found.append(rate)
        allowed.append(tolerance)
        count += int(sure.sum())
    return Claim.equal(
        "Random starts, V + Vᵀ > 0: rate at which the leading coordinate approaches that of the leader", 1.0,
        np.concatenate(found), np.concatenate(allowed),
        f"change by halving the steps; weights on others, below {SURE:g}; rounding", origin=LEADERS,
        labels=lambda at: f"{names[at[0]]}, token {at[1]}", detail=f"{count} tokens follow another",
    )  # fmt: skip


def _three(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    """Coordinates of a token of one cluster, of one at 0 and of one of the other cluster."""
    tokens = (0, parameters.tokens // 2, -1)
    predicted, measured, tolerance, names = [], [], [], []
    for dim, part in _parts(parameters, data):
        for k, radius, angle, mass in _symmetric(parameters):
            frame, u, lag = look(part, k, mass)
            y, coarse = (part[name].values[:, k, tokens] for name in ("coordinate", "coarse"))
            predicted.append(np.exp(-lag) * y[0])
            measured.append(y[frame])
            # rounding grows at the rate 2 m |V| u, du/dt = 2 u, with 2 m the share of the clusters in the mass
            stretch = np.exp(np.linalg.norm(part["value"].values[k], 2) * u / (2 + 2 * mass))
            tolerance.append(np.abs(y - coarse)[frame] + 64 * EPS * stretch)
            names.append(f"R^{dim}, norm {radius:g}, angle {angle:g}, t = {part['time'].values[frame]:g}")
    return Claim.equal(
        "Clusters at ±x and tokens at 0: leading coordinates on three planes, by the integral", np.array(predicted),
        np.array(measured), np.array(tolerance), "change by halving the steps; growth of rounding errors at 0",
        origin=PAIRS, labels=lambda at: f"{names[at[0]]}, {('first', 'middle', 'last')[at[1]]} plane",
    )  # fmt: skip


def _pairs(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    from scipy.linalg import expm

    off, tolerance, names = [], [], []
    for dim, part in _parts(parameters, data):
        for k, (radius, angle, mass) in enumerate(exact(parameters), parameters.starts):
            frame, _, lag = look(part, k, mass)
            z, value = part["fine"].values[:, k, 0], part["value"].values[k]
            off.append(np.linalg.norm(z[frame] - expm(-lag * value) @ z[0]))
            tolerance.append(part["error"].values[frame, k] + 1e-11 * (1 + np.linalg.norm(value @ z[frame])))
            names.append(f"R^{dim}, norm {radius:g}, angle {angle:g}, mass at 0 {mass:g}")
    return Claim.at_most(
        "Clusters at ±x: distance of z from e^(-delay V) z(0)", 0.0, np.array(off), np.array(tolerance),
        "change by halving the steps; error of the integral", origin=PAIRS, labels=names,
    )  # fmt: skip


def _departure(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    """At the last frame at which the disturbance is small."""
    rows, names, token = [], [], parameters.tokens // 2 - 1
    for dim, part in _parts(parameters, data):
        time = part["time"].values
        for k, radius in enumerate(parameters.departures, part.sizes["start"] - len(parameters.departures)):
            growth, size = map(np.asarray, theory.landscape.pair_departure(radius, time))
            product = parameters.offset * np.exp(np.minimum(growth + time + size, 700.0))
            frame = int(np.flatnonzero(product < SMALL)[-1])
            away = [abs(part[name].values[frame, k, token]) / parameters.offset for name in ("coordinate", "coarse")]
            tolerance = abs(np.log(away[0] / away[1])) + product[frame] ** 2 / 3 + 1e-14 / parameters.offset
            rows.append((growth[frame], np.log(away[0]), tolerance))
            names.append(f"R^{dim}, X(0) = {radius:g}, t = {time[frame]:g}")
    predicted, measured, allowed = np.array(rows).T
    return Claim.equal(
        "Clusters at ±X: log of the growth of the distance of a token from the middle plane", predicted, measured,
        allowed, "change by halving the steps; <x, X>²/3; rounding over the initial distance", origin=MIDDLE,
        labels=names,
    )  # fmt: skip
