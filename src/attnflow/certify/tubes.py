"""Tubes around flows on the circle: a Taylor polynomial for each step, its defect, and how fast errors can grow.

Angles theta_i with theta_i' = F_i = sum_j m_j w_ij sin(theta_j - theta_i)/Z_i, w_ij = e^{-beta (1 - cos(theta_j -
theta_i))}; Z_i = sum_j m_j w_ij under SA, 1 under USA0; the masses add up to 1. The error of a path p in the maximum
norm obeys e' <= mu e + delta, with delta >= |p' - F(p)| and mu a bound of the logarithmic norm of DF on the tube.
The rows of DF add up to 0, because F does not change under rotations; so mu = 2 max_i sum_{j != i} max(-DF_ij, 0).
"""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from attnflow.certify.balls import above, flint

LEAST = 2.0**-30
"""No step is shorter."""
WIDEST = 0.5
"""A tube that is wider says nothing."""


@dataclass(frozen=True)
class Setting:
    """The equation: beta, shares of the masses as balls, and whether the velocity is divided by Z."""

    beta: Any
    shares: list[Any]
    softmax: bool

    @classmethod
    def of(cls, beta: float, masses: np.ndarray, model: str) -> "Setting":
        """From exact floats; only the ratios of the masses matter."""
        arb = flint().arb
        exact = [arb(float(m)) for m in masses]
        total = sum(exact, arb(0))
        return cls(arb(beta), [m / total for m in exact], model == "SA")


class Drive:
    """Taylor coefficients of the velocity along a path, order by order."""

    def __init__(self, setting: Setting):
        self.setting, n = setting, len(setting.shares)
        self.pairs = list(itertools.combinations(range(n), 2))
        names = ("angle", "sine", "cosine", "weight")
        self.series: list[dict[str, list[Any]]] = [{name: [] for name in names} for _ in self.pairs]
        self.sums: list[list[Any]] = [[] for _ in range(n)]
        """Coefficients of Z_i."""
        self.speeds: list[list[Any]] = [[] for _ in range(n)]

    def extend(self, places: list[Any]) -> list[Any]:
        """The next coefficient of every angle goes in, those of the velocities of the same order come out."""
        arb, setting = flint().arb, self.setting
        k, zero = len(self.speeds[0]), flint().arb(0)
        force = [arb(0)] * len(places)
        total = [m if k == 0 else arb(0) for m in setting.shares]
        for (i, j), own in zip(self.pairs, self.series, strict=True):
            s, sine, cosine, weight = own["angle"], own["sine"], own["cosine"], own["weight"]
            s.append(places[j] - places[i])
            if k == 0:
                half = (s[0] / 2).sin()
                first, second = s[0].sin_cos()
                sine.append(first)
                cosine.append(second)
                weight.append((-2 * setting.beta * half * half).exp())
            else:
                turned = [m * s[m] for m in range(1, k + 1)]
                sine.append(sum((a * cosine[k - m] for m, a in enumerate(turned, 1)), zero) / k)
                cosine.append(-sum((a * sine[k - m] for m, a in enumerate(turned, 1)), zero) / k)
                grown = sum((m * cosine[m] * weight[k - m] for m in range(1, k + 1)), zero)
                weight.append(setting.beta * grown / k)
            push = sum((weight[m] * sine[k - m] for m in range(k + 1)), zero)
            force[i] += setting.shares[j] * push
            force[j] -= setting.shares[i] * push
            total[i] += setting.shares[j] * weight[k]
            total[j] += setting.shares[i] * weight[k]
        for i, f in enumerate(force):
            if setting.softmax:
                self.sums[i].append(total[i])
                rest = sum((self.sums[i][m] * self.speeds[i][k - m] for m in range(1, k + 1)), zero)
                f = (f - rest) / self.sums[i][0]
            self.speeds[i].append(f)
        return [one[k] for one in self.speeds]


def polynomial(setting: Setting, start: list[Any], order: int) -> tuple[list[list[Any]], list[list[Any]]]:
    """(p, d): exact coefficients of a Taylor polynomial from `start`, and those of its defect p' - F(p) below `order`.

    p[i][k] is the coefficient of t^k, k <= order.
    """
    drive = Drive(setting)
    p = [[x] for x in start]
    defect: list[list[Any]] = [[] for _ in start]
    for k in range(order):
        for i, speed in enumerate(drive.extend([one[k] for one in p])):
            p[i].append((speed / (k + 1)).mid())
            defect[i].append((k + 1) * p[i][-1] - speed)
    return p, defect


def remainder(setting: Setting, p: list[list[Any]], h: Any) -> tuple[list[Any], list[Any]]:
    """(places, last): where p is on [0, h], and the coefficient of F(p) of the order of p, expanded anywhere there."""
    arb, order = flint().arb, len(p[0]) - 1
    t = arb(0).union(h)
    powers = [arb(1)]
    for _ in range(order):
        powers.append(powers[-1] * t)
    binomials = [[arb(1)] for _ in range(order + 1)]
    for m in range(order + 1):
        for k in range(1, m + 1):
            binomials[m].append(binomials[m][k - 1] * (m - k + 1) / k)
    drive, last = Drive(setting), []
    places: list[Any] = []
    for k in range(order + 1):
        moved = [
            sum((binomials[m][k] * one[m] * powers[m - k] for m in range(k + 1, order + 1)), one[k] + arb(0))
            for one in p
        ]
        places = places or moved
        last = drive.extend(moved)
    return places, last


def log_norm(setting: Setting, places: list[Any], error: Any) -> Any:
    """A bound of the logarithmic norm of DF, maximum norm, for all angles within `error` of `places`."""
    arb, n = flint().arb, len(places)
    around = arb(0).union(2 * error)
    around = around.union(-around)
    pairs = [[arb(0)] * n for _ in range(n)]
    total, force = list(setting.shares), [arb(0)] * n
    for i, j in itertools.permutations(range(n), 2):
        s = places[j] - places[i] + around
        half = (s / 2).sin()
        w = setting.shares[j] * (-2 * setting.beta * half * half).exp()
        pairs[i][j] = (w, *s.sin_cos())
        total[i] += w
        force[i] += w * pairs[i][j][1]
    worst = arb(0)
    for i in range(n):
        speed, scale = (force[i] / total[i], total[i]) if setting.softmax else (arb(0), arb(1))
        row = arb(0)
        for j in range(n):
            if j != i:
                w, sine, cosine = pairs[i][j]
                top = -(w / scale * (cosine - setting.beta * sine * (sine - speed))).lower()
                if not top <= 0:
                    row += top
        worst = worst.max(2 * row)
    return worst


def defect_size(defect: list[list[Any]], last: list[Any], h: Any) -> Any:
    """At least |p' - F(p)| on [0, h], maximum norm: the coefficients below the order, and the rest over [0, h]."""
    arb, worst = flint().arb, flint().arb(0)
    for own, rest in zip(defect, last, strict=True):
        size, power = arb(0), arb(1)
        for one in own:
            size += one.abs_upper() * power
            power *= h
        worst = worst.max(size + rest.abs_upper() * power)
    return worst


@dataclass
class Tube:
    """A tube so far: times of its steps (floats), the last centre (exact), the radius there, and the radius before."""

    times: list[float]
    centre: list[Any]
    error: Any
    errors: list[float]


def advance(setting: Setting, tube: Tube, end: float, order: int, tol: float) -> Any:
    """The tube up to `end`, or a text that says why it could not be taken there. Stops at every step: a generator.

    Yields the tube after every step. A step is accepted if its defect is at most `tol`/step and the error that it
    leads to stays within the tube on which the logarithmic norm was bounded.
    """
    arb, h = flint().arb, 2.0**-4
    while tube.times[-1] < end:
        at = tube.times[-1]
        p, defect = polynomial(setting, tube.centre, order)
        while True:
            stop = min(at + h, end)
            step = arb(stop) - arb(at)
            places, last = remainder(setting, p, step)
            delta = defect_size(defect, last, step)
            found = grown(setting, places, tube.error, delta, step) if delta * step < tol else None
            if found is not None:
                break
            h /= 2
            if not h >= LEAST:
                return f"the tube could not be continued at t = {at!r}, where its radius is {above(tube.error):.3g}"
        values = [sum((c * step**k for k, c in enumerate(one)), arb(0)) for one in p]
        tube.centre = [one.mid() for one in values]
        tube.error = (found + max(one.rad() for one in values)).upper()
        tube.times.append(stop)
        tube.errors.append(above(tube.error))
        if not tube.error < WIDEST:
            return f"the tube is wider than {WIDEST} at t = {stop!r}"
        yield tube
        if delta * step * 2 ** (order + 2) < tol and h < 0.25:
            h *= 2
    return None


def grown(setting: Setting, places: list[Any], error: Any, delta: Any, step: Any) -> Any:
    """The error after a step, at most (error + delta step) e^{mu step}; None where it leaves the tube."""
    wide = 1.2 * error + 2 * delta * step + flint().arb(2) ** -400
    for _ in range(4):
        wide = wide.upper()
        mu = log_norm(setting, places, wide)
        found = (error + delta * step) * (mu * step).exp()
        if found < wide:
            return found.upper()
        wide = 1.5 * found
        if not wide < WIDEST:
            return None
    return None


def half_circle(centre: list[Any], error: Any) -> bool:
    """Whether all angles within `error` of the centre lie in an open half circle, whatever their turns.

    Angles are sorted by their floats, which may be wrong by less than 1e-9 in all.
    """
    module = flint()
    arb, around = module.arb, 2 * module.arb.pi()
    angles = [one - around * float(np.floor(float(one) / (2 * np.pi))) for one in centre]
    angles.sort(key=float)
    gaps = [b - a for a, b in itertools.pairwise(angles)] + [angles[0] + around - angles[-1]]
    return any(gap - 2 * error - 1e-9 > arb.pi() for gap in gaps)
