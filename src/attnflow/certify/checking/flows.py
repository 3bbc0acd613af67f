"""The checker of flows on the circle: its own Taylor polynomials in integers, its own bounds of defect and growth.

All pairs of tokens are one array of fixed-point balls: integers `mid` and `rad` at the scale 2^-SCALE, entry by entry.
Sines, exponentials and the growth of errors are enclosed by mpmath.iv.

The work is bounded: steps times pairs of tokens times the square of the order are at most `PRODUCTS`. A certificate
that asks for more is rejected.
"""

import itertools
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
from mpmath import iv

from attnflow.certify.checking.integers import SCALE, Rejected, bounded, ends, less, need

PRODUCTS = 10**9
"""Products of coefficients up to a factor; 20 tokens at the order 12 may take 17,000 steps."""
LEMMAS = [
    "defect: the coefficients of p' - F(p) below the order at the start of a step, the next one over all of the step",
    "growth: e' <= mu e + delta in the maximum norm, mu = 2 max_i sum_j max(-DF_ij, 0) on the tube (rows add up to 0)",
    "continuation: the error stays below the radius of the tube on which mu was bounded",
]


class _Balls:
    """An array of real numbers, each within rad of mid."""

    def __init__(self, mid: Any, rad: Any):
        self.mid, self.rad = np.asarray(mid, dtype=object), np.asarray(rad, dtype=object)

    @classmethod
    def of(cls, values: list[Any]) -> "_Balls":
        pairs = [ends(x) for x in values]
        return cls([(low + high) >> 1 for low, high in pairs], [((high - low) >> 1) + 1 for low, high in pairs])

    def __add__(self, other: "_Balls") -> "_Balls":
        return _Balls(self.mid + other.mid, self.rad + other.rad)

    def __sub__(self, other: "_Balls") -> "_Balls":
        return _Balls(self.mid - other.mid, self.rad + other.rad)

    def __mul__(self, other: "_Balls") -> "_Balls":
        spread = abs(self.mid) * other.rad + self.rad * (abs(other.mid) + other.rad)
        return _Balls((self.mid * other.mid) >> SCALE, (spread >> SCALE) + 2)

    def scaled(self, factor: int, divisor: int = 1) -> "_Balls":
        """Times factor/divisor, both whole and the divisor positive."""
        return _Balls(self.mid * factor // divisor, self.rad * abs(factor) // divisor + 2)

    def __getitem__(self, at: Any) -> "_Balls":
        return _Balls(self.mid[at], self.rad[at])

    def rows(self) -> "_Balls":
        """The sums along the last axis."""
        return _Balls(self.mid.sum(axis=-1), self.rad.sum(axis=-1))

    def intervals(self) -> list[Any]:
        return [iv.mpf([m - r, m + r]) * iv.mpf(2) ** -SCALE for m, r in zip(self.mid, self.rad, strict=True)]


def _total(terms: list[_Balls]) -> _Balls:
    found = terms[0]
    for one in terms[1:]:
        found = found + one
    return found


class _Equation:
    """theta_i' = sum_j m_j w(theta_j - theta_i) sin(theta_j - theta_i)/Z_i, with Z_i = 1 under USA0."""

    def __init__(self, claims: dict[str, Any], data: dict[str, Any]):
        (beta, same), model = claims["beta"], claims["model"]
        need(beta == same and 0 <= beta < 1e4, "beta does not fit")
        masses = [float(m) for m in data["masses"]]
        need(len(masses) >= 2 and all(0 < m < 1e300 for m in masses), "the masses do not fit")
        exact = [iv.mpf(m) for m in masses]
        self.n, self.beta, self.softmax = len(masses), iv.mpf(beta), model == "SA"
        self.shares = [m / sum(exact, iv.mpf(0)) for m in exact]
        self.balls, self.cold = _Balls.of(self.shares), _Balls.of([self.beta])

    def speeds(self) -> Any:
        """A coroutine: coefficients of the angles go in, those of the velocities come out, order by order."""
        angle, sine, cosine, weight, total, speed = [], [], [], [], [], []  # type: ignore[var-annotated]
        place = yield None
        for k in itertools.count():
            angle.append(place[None, :] - place[:, None])
            if k == 0:
                flat = _Balls(angle[0].mid.ravel(), angle[0].rad.ravel()).intervals()
                fall = [iv.exp(-2 * self.beta * iv.sin(s / 2) ** 2) for s in flat]
                parts = ([iv.sin(s) for s in flat], [iv.cos(s) for s in flat], fall)
                for kept, values in zip((sine, cosine, weight), parts, strict=True):
                    one = _Balls.of(values)
                    kept.append(_Balls(one.mid.reshape(self.n, self.n), one.rad.reshape(self.n, self.n)))
            else:
                turned = [angle[m].scaled(m) for m in range(1, k + 1)]
                sine.append(_total([a * cosine[k - m] for m, a in enumerate(turned, 1)]).scaled(1, k))
                cosine.append(_total([a * sine[k - m] for m, a in enumerate(turned, 1)]).scaled(-1, k))
                down = _total([cosine[m].scaled(m) * weight[k - m] for m in range(1, k + 1)])
                weight.append((down * self.cold).scaled(1, k))
            push = (_total([weight[m] * sine[k - m] for m in range(k + 1)]) * self.balls).rows()
            if self.softmax:
                total.append((weight[k] * self.balls).rows())
                if k == 0:
                    over = _Balls.of([1 / z for z in total[0].intervals()])
                else:
                    push = push - _total([total[m] * speed[k - m] for m in range(1, k + 1)])
                push = push * over
            speed.append(push)
            place = yield push

    def growth(self, places: _Balls, error: Any) -> Any:
        """A bound of the logarithmic norm for all angles within `error` of the places."""
        x, around, worst = places.intervals(), iv.mpf([-1, 1]) * error, iv.mpf(0)
        for i in range(self.n):
            apart = [x[j] - x[i] + 2 * around if j != i else iv.mpf(0) for j in range(self.n)]
            weights = [m * iv.exp(-2 * self.beta * iv.sin(s / 2) ** 2) for m, s in zip(self.shares, apart, strict=True)]
            pulls = [iv.sin(s) for s in apart]
            scale = sum(weights, iv.mpf(0)) if self.softmax else iv.mpf(1)
            drift = sum((w * p for w, p in zip(weights, pulls, strict=True)), iv.mpf(0)) / scale if self.softmax else 0
            row = iv.mpf(0)
            for j in range(self.n):
                if j != i:
                    slope = weights[j] / scale * (iv.cos(apart[j]) - self.beta * pulls[j] * (pulls[j] - drift))
                    row += iv.mpf([0, (-slope).b]) if not less(0, slope) else 0
            need(less(2 * row, 2**20), "the growth of errors has no bound")
            worst = iv.mpf(max(worst.b, (2 * row).b))
        return worst


def _rational(x: Fraction) -> _Balls:
    low = (x.numerator << SCALE) // x.denominator
    return _Balls(low, 1)


def _step(equation: _Equation, centre: np.ndarray, error: Any, h: Fraction, order: int) -> tuple[np.ndarray, Any]:
    """The centre and the error after a step of length h."""
    speeds = equation.speeds()
    next(speeds)
    p, defect = [_Balls(centre, np.zeros_like(centre))], []
    for k in range(order):
        speed = speeds.send(p[k])
        p.append(_Balls(speed.mid // (k + 1), np.zeros_like(centre)))
        defect.append(p[-1].scaled(k + 1) - speed)
    half = _rational(h / 2)
    t = _Balls(half.mid, half.mid + half.rad + 1)
    powers = [_Balls(1 << SCALE, 0)]
    for _ in range(order):
        powers.append(powers[-1] * t)
    again, places, last = equation.speeds(), p[0], p[0]
    next(again)
    for k in range(order + 1):
        moved = _total([p[m].scaled(comb(m, k)) * powers[m - k] for m in range(k, order + 1)])
        places = moved if k == 0 else places
        last = again.send(moved)
    step, delta = iv.mpf(h.numerator) / h.denominator, iv.mpf(0)
    sizes = [abs(one.mid) + one.rad for one in [*defect, last]]
    for i in range(equation.n):
        size = sum((iv.mpf(int(one[i])) * step**k for k, one in enumerate(sizes)), iv.mpf(0)) * iv.mpf(2) ** -SCALE
        delta = iv.mpf(max(delta.b, size.b))
    wide = iv.mpf((error * 1.25 + 3 * delta * step + iv.mpf(2) ** -SCALE).b)
    for _ in range(4):
        mu = equation.growth(places, wide)
        found = (error + delta * step) * iv.exp(mu * step)
        if less(found, wide):
            break
        wide = iv.mpf((found * 1.5).b)
        need(less(wide, 1), "the tube is too wide")
    else:  # the growth was bounded on tubes that are narrower than the errors
        raise Rejected("the error may leave the tube")
    at, value = _rational(h), p[order]
    for one in reversed(p[:-1]):
        value = value * at + one
    return value.mid, iv.mpf((found + iv.mpf(int(value.rad.max())) * iv.mpf(2) ** -SCALE).b)


def _tube(claims: dict[str, Any], data: dict[str, Any], until: float) -> tuple[np.ndarray, Any]:
    """The last centre and its error."""
    iv.prec = SCALE + 40
    equation, angles = _Equation(claims, data), [float(t) for t in data["angles"]]
    times, order, ball = [float(t) for t in data["times"]], data["order"], float(claims["ball"])
    need(len(angles) == equation.n and all(abs(t) < 1e3 for t in angles), "the angles do not fit")
    need(1 <= order <= 80 and 0 <= ball < 1, "the order or the ball does not fit")
    bounded(len(times) * (len(angles) * order) ** 2, PRODUCTS, "products of coefficients")
    need(times[0] == 0 and times[-1] == until, "the steps do not lead from 0 to the end")
    need(all(a < b < 1e9 for a, b in itertools.pairwise(times)), "the times do not increase")
    exact = [Fraction(t) * 2**SCALE for t in angles]
    centre = np.array([int(x) for x in exact], dtype=object)
    error = iv.mpf(ball) + iv.mpf(2) ** -SCALE
    for a, b in itertools.pairwise(times):
        centre, error = _step(equation, centre, error, Fraction(b) - Fraction(a), order)
    return centre, error


def check_flow(claims: dict[str, Any], data: dict[str, Any]) -> list[str]:
    """Confirm where tokens are at the end."""
    centre, error = _tube(claims, data, float(claims["until"]))
    end, radius = [float(x) for x in claims["end"]], float(claims["radius"])
    need(len(end) == len(centre), "the angles at the end do not fit")
    for x, c in zip(end, centre, strict=True):
        off = abs(iv.mpf(x) - iv.mpf(int(c)) * iv.mpf(2) ** -SCALE) + error
        need(less(off, radius), f"a token may be {float(off.b):.3g} away")
    return LEMMAS


def check_consensus(claims: dict[str, Any], data: dict[str, Any]) -> list[str]:
    """Confirm that tokens reach an open half circle."""
    centre, error = _tube(claims, data, float(claims["time"]))
    around = 2 * iv.pi
    angles = [iv.mpf(int(c)) * iv.mpf(2) ** -SCALE for c in centre]
    angles = [a - around * int(np.floor(float(a.mid) / (2 * np.pi))) for a in angles]
    angles.sort(key=lambda a: float(a.mid))
    gaps = [b - a for a, b in itertools.pairwise([*angles, angles[0] + around])]
    # the order by floats is right up to 1e-9
    need(any(less(iv.pi, gap - 2 * error - 1e-9) for gap in gaps), "the tokens may be in no open half circle")
    return [*LEMMAS, "half circle: every token is pulled inwards, and the outermost two come closer until they meet"]
