"""Extremes, the number of planes, the approach to leaders, and exactly soluble starts."""

import bisect
from collections.abc import Iterator

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import EPS, Rows, rates
from attnflow.observe import distinct
from attnflow_gallery.hyperplanes.simulate import Parameters, exact

PLANES = published("geshkovski2023emergence")
CLOSING = consequence("The outer planes approach each other")
LEADERS = consequence("Two planes for random starts")
PAIRS = consequence("Two clusters lag behind the linear flow")
MIDDLE = consequence("The middle plane repels tokens")
SURE = 1e-9
"""A row of attention is decided if all its weights except one add up to less."""
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


def _names(parameters: Parameters, dim: int) -> list[str]:
    return [f"R^{dim}, start {k}" for k in range(parameters.starts)]


def _closing(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows = Rows()
    for dim, part in _parts(parameters, data):
        random = part.isel(start=slice(parameters.starts))
        y, wide = random["coordinate"].values, np.abs(random["positions"].values).max(axis=(2, 3))
        error = random["change"].values.max(axis=2) + 1e-14 * wide
        growth = np.maximum(np.diff(y.max(axis=2), axis=0), -np.diff(y.min(axis=2), axis=0))
        rows.add(0.0, growth, error[1:] + error[:-1], _names(parameters, dim) * len(growth))
    says = "Random starts: outward motion of the largest and smallest leading coordinate between frames"
    return rows.at_most(says, "change by halving the steps; rounding", origin=CLOSING)


def resolution(part: xr.Dataset, start: int) -> float:
    """e^(-t/3) times the range of the leading coordinate at t = 0."""
    return float(np.ptp(part["coordinate"].values[0, start]) * np.exp(-part["time"].values[-1] / 3))


def look(part: xr.Dataset, start: int, mass: float) -> tuple[int, float, float]:
    """The last frame at which u = |x|^2 of the clusters is below LARGEST; u and the delay there."""
    from scipy.linalg import expm

    value, x, times = part["value"].values[start], part["positions"].values[0, start, 0], part["time"].values

    def at(frame: int) -> tuple[float, float]:
        lag = theory.landscape.pair_delay(value, x, t=float(times[frame]), middle=mass)
        return float(np.sum((expm((times[frame] - lag) * value) @ x) ** 2)), lag

    frame = bisect.bisect_left(range(len(times)), LARGEST, key=lambda k: at(k)[0]) - 1
    return frame, *at(frame)


def _symmetric(parameters: Parameters) -> Iterator[tuple[int, float, float, float]]:
    """Number, norm, angle and mass in the middle of the pairs with tokens of positive mass at 0."""
    pairs = enumerate(exact(parameters), parameters.starts)
    return ((k, radius, angle, mass) for k, (radius, angle, mass) in pairs if mass > 0)


def _number(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows = Rows()
    for dim, part in _parts(parameters, data):
        y = part["coordinate"].values
        for k, name in enumerate(_names(parameters, dim)):
            rows.add(3, len(distinct(y[-1, k], resolution(part, k))), 0, name)
        for k, radius, angle, mass in _symmetric(parameters):
            count = len(distinct(y[look(part, k, mass)[0], k], resolution(part, k)))
            rows.add(3, count, 0, f"R^{dim}, clusters at norm {radius:g}, angle {angle:g}, and tokens at 0")
    reason = "counted; coordinates closer than e^(-t/3) of the initial range are one"
    return rows.at_most(
        "Random and symmetric starts: number of limits of the leading coordinate", reason, origin=PLANES
    )


def _ends(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows = Rows()
    for dim, part in _parts(parameters, data):
        for k, name in enumerate(_names(parameters, dim)):
            y = part["coordinate"].values[-1, k]
            away = np.minimum(y.max() - y, y - y.min()) / resolution(part, k)
            rows.add(1.0, away, 0.0, [f"{name}, token {token}" for token in range(len(y))])
    says = "Random starts: distance of a token from the nearer of the two outer planes, over e^(-t/3) of the range"
    return rows.at_most(says, "tokens that chose a leader before 2t/3 are nearer than that", origin=LEADERS)


def _approach(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    """How far coordinates come towards the coordinate of their leader between the frame `early` and the end."""
    rows, count, every = Rows(), 0, np.arange(parameters.starts)[:, None]
    for dim, part in _parts(parameters, data):
        random, early = part.isel(start=slice(parameters.starts)), int(part.attrs["early"])
        leader, doubt, y = (random[name].values for name in ("leader", "doubt", "coordinate"))
        apart = np.abs(y - y[:, every, leader])
        coarse = apart + random["change"].values + random["change"].values[:, every, leader]
        before, after = ([apart[frame], coarse[frame]] for frame in (early, -1))
        sure = (doubt < SURE) & (doubt[every, leader] < SURE) & (leader[every, leader] == leader) & (before[0] > 0)
        # where <u, Vu> > 0 for all u, a token that has decided between two others is driven away from the tie
        value = random["value"].values
        sure &= np.linalg.eigvalsh(value + np.swapaxes(value, 1, 2)).min(axis=1)[:, None] > 0
        size, wide = np.ptp(y[early], axis=1)[:, None], np.abs(random["positions"].values[-1]).max(axis=(1, 2))[:, None]
        span = float(part["time"][-1] - part["time"][early])
        # d|y_i - y_l|/dt + |y_i - y_l| is at most the weights on others, of both tokens, times the range
        rate, tolerance = rates(before, after, span, 2 * SURE * size + 1e-14 * wide, sure)
        names = [f"{name}, token {token}" for name in _names(parameters, dim) for token in range(parameters.tokens)]
        rows.add(1.0, rate, tolerance, names)
        count += int(sure.sum())
    says = "Random starts, V + Vᵀ > 0: rate at which the leading coordinate approaches that of the leader"
    reason = f"change by halving the steps; weights on others, below {SURE:g}; rounding"
    return rows.equal(says, reason, origin=LEADERS, detail=f"{count} tokens follow another")


def _three(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    """Coordinates of a token of one cluster, of one at 0 and of one of the other cluster."""
    rows, tokens = Rows(), (0, parameters.tokens // 2, -1)
    for dim, part in _parts(parameters, data):
        for k, radius, angle, mass in _symmetric(parameters):
            frame, u, lag = look(part, k, mass)
            y, change = (part[name].values[:, k, tokens] for name in ("coordinate", "change"))
            # rounding grows at the rate 2 m |V| u, du/dt = 2 u, with 2 m the share of the clusters in the mass
            stretch = np.exp(np.linalg.norm(part["value"].values[k], 2) * u / (2 + 2 * mass))
            name = f"R^{dim}, norm {radius:g}, angle {angle:g}, t = {part['time'].values[frame]:g}"
            labels = [f"{name}, {which} plane" for which in ("first", "middle", "last")]
            rows.add(np.exp(-lag) * y[0], y[frame], change[frame] + 64 * EPS * stretch, labels)
    says = "Clusters at ±x and tokens at 0: leading coordinates on three planes, by the integral"
    return rows.equal(says, "change by halving the steps; growth of rounding errors at 0", origin=PAIRS)


def _pairs(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    from scipy.linalg import expm

    rows = Rows()
    for dim, part in _parts(parameters, data):
        for k, (radius, angle, mass) in enumerate(exact(parameters), parameters.starts):
            frame, _, lag = look(part, k, mass)
            z, value = part["positions"].values[:, k, 0], part["value"].values[k]
            tolerance = part["error"].values[frame, k] + 1e-11 * (1 + np.linalg.norm(value @ z[frame]))
            name = f"R^{dim}, norm {radius:g}, angle {angle:g}, mass at 0 {mass:g}"
            rows.add(0.0, np.linalg.norm(z[frame] - expm(-lag * value) @ z[0]), tolerance, name)
    reason = "change by halving the steps; error of the integral"
    return rows.at_most("Clusters at ±x: distance of z from e^(-delay V) z(0)", reason, origin=PAIRS)


def _departure(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    """At the last frame at which the disturbance is small."""
    rows, token = Rows(), parameters.tokens // 2 - 1
    for dim, part in _parts(parameters, data):
        time = part["time"].values
        for k, radius in enumerate(parameters.departures, part.sizes["start"] - len(parameters.departures)):
            growth, size = map(np.asarray, theory.landscape.pair_departure(radius, time))
            product = parameters.offset * np.exp(np.minimum(growth + time + size, 700.0))
            frame = int(np.flatnonzero(product < SMALL)[-1])
            away, change = (abs(part[name].values[frame, k, token]) for name in ("coordinate", "change"))
            tolerance = np.log1p(change / away) + product[frame] ** 2 / 3 + 1e-14 / parameters.offset
            name = f"R^{dim}, X(0) = {radius:g}, t = {time[frame]:g}"
            rows.add(growth[frame], np.log(away / parameters.offset), tolerance, name)
    says = "Clusters at ±X: log of the growth of the distance of a token from the middle plane"
    reason = "change by halving the steps; <x, X>²/3; rounding over the initial distance"
    return rows.equal(says, reason, origin=MIDDLE)
