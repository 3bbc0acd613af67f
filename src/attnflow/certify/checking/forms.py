"""The checker of degrees of the uniform measure, of mode counts and of groups that stay apart, in mpmath.iv.

Its work is bounded: series of 40,020 terms, `DEGREES` degrees, `TERMS` terms of density estimates, `PIECES` pieces of
the lower sum of a time, `COORDINATES` coordinates of pairs of groups and `MEMBERS` pairs of a token and a group. A
certificate that asks for more is rejected.
"""

from fractions import Fraction
from itertools import pairwise
from math import comb, prod
from typing import Any

from mpmath import iv

from attnflow.certify.checking.integers import atan2, bounded, less, need

LEMMA = "I_{q+1}(x)/I_q(x) increases in x and decreases in q"
DEGREES = 10_000
"""Degrees of unstable modes: for beta below 10^4 no float noise leaves more."""
TERMS = 2_000_000
"""Evaluations of a density estimate times its angles; 100 angles at beta = 100 take about 10^5."""
PIECES = 400
"""Pieces of the lower sum of the time of groups that stay apart, short where they start: the sum is 1e-3 low."""
COORDINATES = 4_000_000
"""Pairs of groups times their dimension: 1,000 groups in R^8."""
MEMBERS = 10_000_000
"""Tokens times groups: 10,000 tokens in 1,000 groups."""


def _series(x: Any, q: Fraction) -> Any:
    """I_q(x) Gamma(q + 1)/(x/2)^q from the power series: positive terms, the remaining ones below a geometric one."""
    z = x * x / 4
    term = total = iv.mpf(1)
    m = 0
    while True:
        m += 1
        term = term * z / (m * (m + iv.mpf(q.numerator) / q.denominator))
        total += term
        if m > 4 * float(x.b) + 20 and float(term.b) < 1e-40 * float(total.a):
            return total + iv.mpf([0, (2 * term).b])  # beyond, a term is below half of the one before


def _ratio(x: Any, q: Fraction) -> Any:
    """I_{q+1}(x)/I_q(x)."""
    return x / 2 / (iv.mpf(q.numerator) / q.denominator + 1) * _series(x, q + 1) / _series(x, q)


def check_degree(claims: dict[str, Any], _: dict[str, Any]) -> list[str]:
    """Confirm the dominant degree for all beta of an interval."""
    (low, high), d, k = claims["beta"], claims["d"], claims["degree"]
    need(d >= 2 and k >= 1, "d or the degree does not fit")
    need(0 < low <= high < 1e4, "the interval of beta does not fit")

    def quotient(beta: float, j: int) -> Any:
        ratio = _ratio(iv.mpf(beta), Fraction(2 * j + d - 2, 2))
        return (j + 1) * (j + d - 1) * ratio / (j * (j + d - 2))

    need(less(quotient(high, k), 1), f"degree {k + 1} may grow faster at the upper end")
    need(k == 1 or less(1, quotient(low, k - 1)), f"degree {k - 1} may grow faster at the lower end")
    return [LEMMA, "the quotient of neighbouring rates is above 1 before the degree and below 1 after it"]


def check_unstable(claims: dict[str, Any], _: dict[str, Any]) -> list[str]:
    """Confirm the number of unstable modes with noise."""
    (beta, same), d, noise, top = claims["beta"], claims["d"], claims["noise"], claims["degree"]
    need(beta == same and 0 < beta < 1e4 and noise > 0, "beta or the noise does not fit")
    need(d >= 2 and top >= 0, "d or the degree does not fit")
    bounded(top, DEGREES, "degrees")
    level, x, q = iv.mpf(noise) * iv.mpf(beta), iv.mpf(beta), Fraction(d - 2, 2)
    first = _series(x, q)

    def quotient(k: int) -> Any:
        """I_{q+k}(x)/I_q(x), the rate of degree k without noise, in units in which noise takes `level`."""
        powers = prod((x / 2 / (iv.mpf(q.numerator) / q.denominator + m) for m in range(1, k + 1)), start=iv.mpf(1))
        return powers * _series(x, q + k) / first

    need(less(level, quotient(top)) or top == 0, f"degree {top} may decay")
    need(less(quotient(top + 1), level), f"degree {top + 1} may grow")
    count = comb(top + d - 1, d - 1) + comb(top + d - 2, d - 1) - 1
    need(claims["modes"] == count, f"degrees up to {top} have {count} harmonics")
    return [
        LEMMA + ", below its limit 1",
        "degrees up to the claimed one grow, the next one decays, so do all after it",
    ]


def check_modes(claims: dict[str, Any], data: dict[str, Any]) -> list[str]:
    """Confirm a number of modes: walk around the circle in pieces of its own."""
    (beta, same), theta, start = claims["beta"], [iv.mpf(float(t)) for t in data["angles"]], float(data["start"])
    need(beta == same and beta > 0 and -10 < start < 10, "beta or start does not fit")
    b, terms = iv.mpf(beta), 0

    def slopes(t: Any) -> tuple[Any, Any]:
        nonlocal terms
        terms += len(theta)
        bounded(terms, TERMS, "terms of the density estimate")
        first = second = iv.mpf(0)
        for one in theta:
            s = t - one
            w, sine = iv.exp(-2 * b * iv.sin(s / 2) ** 2), iv.sin(s)
            first -= sine * w
            second += (b * sine**2 - iv.cos(s)) * w
        return first, second

    def sign(x: Any) -> int:
        return 1 if less(0, x) else -1 if less(x, 0) else 0

    around, width, first = 2 * iv.pi, 2.0**-4, 0
    while not first:  # the sign on the first piece
        width /= 2
        need(width > 2.0**-40, "the derivative may vanish at the start")
        middle = iv.mpf(start + width / 2)
        piece = iv.mpf([start, start + width])
        first = sign(slopes(middle)[0] + slopes(piece)[1] * (piece - middle))
    at, before, modes, step = start + width, first, 0, width
    turn = around + iv.mpf(at) - start  # to the end of the first piece, as floats have rounded it
    while not less(around, iv.mpf(at) - start):
        step = min(4 * step, 0.25)
        while True:
            step /= 2
            need(step > 2.0**-40, f"the signs near the angle {at} are not decided")
            end, piece, middle = at + step, iv.mpf([at, at + step]), iv.mpf(at + step / 2)
            if not less(iv.mpf(end) - start, turn):
                continue
            bend = slopes(piece)[1]
            after = sign(slopes(iv.mpf(end))[0])
            if after and sign(bend):
                break
            if after and after == before == sign(slopes(middle)[0] + bend * (piece - middle)):
                break
        modes += before > 0 > after
        at, before = end, after
    need(before == first and modes == claims["modes"], f"there are {modes} modes")
    return ["on every piece the derivative has one sign, or it is monotone between known signs"]


def check_apart(claims: dict[str, Any], data: dict[str, Any]) -> list[str]:
    """Confirm that groups stay apart: caps, their conditions, and a lower sum of the time."""
    (beta, same), model, end, time = claims["beta"], claims["model"], float(claims["gap"]), float(claims["time"])
    need(beta == same and 0 < beta < 1e5 and end > 0 and time > 0, "beta, gap or time do not fit")
    k = len(data["centres"])
    bounded(k**2 // 2 * len(data["centres"][0]), COORDINATES, "coordinates of pairs of groups")
    bounded(len(data["tokens"]) * k, MEMBERS, "pairs of a token and a group")
    tokens, centres = ([[iv.mpf(float(a)) for a in x] for x in data[name]] for name in ("tokens", "centres"))
    masses, groups = [iv.mpf(float(m)) for m in data["masses"]], data["groups"]
    need(
        len(tokens) == len(masses) == len(groups) and sorted(set(groups)) == list(range(k)) and k > 1,
        "groups do not fit",
    )
    need(all(less(0, m) for m in masses), "a mass is not positive")
    total = sum(masses, iv.mpf(0))
    share = [sum((m for m, q in zip(masses, groups, strict=True) if q == p), iv.mpf(0)) / total for p in range(k)]
    radii = [max((_angle(x, centres[p]).b for x, q in zip(tokens, groups, strict=True) if q == p)) for p in range(k)]
    pairs = [(p, q) for p in range(k) for q in range(p)]
    start = min((_angle(centres[p], centres[q]) - radii[p] - radii[q]).a for p, q in pairs)
    pull = [(1 - m) / m if model == "SA" else 1 - m for m in share]
    speed = max((pull[p] + pull[q]).b for p, q in pairs)
    b, last = iv.mpf(beta), iv.mpf(end)
    need(less(last, start), "the gap at the end is not below that at the start")
    need(less(iv.cos(last), b * iv.sin(last) ** 2) and less(last, iv.pi), "the gap at the end is below the peak")
    grown = [r + one * (start - last) / speed for r, one in zip(radii, pull, strict=True)]
    need(all(less(r, iv.pi / 2) for r in grown), "a cap grows beyond a hemisphere")
    force = iv.exp(-b * (1 - iv.cos(last))) * iv.sin(last)
    if model == "SA":
        for one, r in zip(pull, grown, strict=True):
            small = less(one * force * (iv.exp(2 * b * iv.sin(r) ** 2) - 1), iv.sin(2 * r))
            need(small, "a cap is too wide for softmax")
    # with u = log tan(s/2) the time is the integral of e^k du/speed, k = beta (1 - cos s), dk/du = beta sin^2 s; on a
    # piece of the width w that ends in b it is at least e^k(b) (1 - e^(-L w))/L, L a bound of dk/du
    found = iv.mpf(0)
    edges = [start - (start - last) * (iv.mpf(PIECES - e) / PIECES) ** 3 for e in range(PIECES + 1)]
    for lower, upper in pairwise(edges):
        width = iv.log(iv.sin(upper / 2) * iv.cos(lower / 2) / (iv.cos(upper / 2) * iv.sin(lower / 2)))
        fall = iv.mpf((b * iv.sin(iv.mpf([lower.a, upper.b])) ** 2 * width).b)
        share = (1 - iv.exp(-fall)) / fall if less(2.0**-10, fall) else 1 - fall
        found += iv.exp(b * (1 - iv.cos(upper))) * width * share / speed
    need(less(time, found), f"the time is at least {float(found.a):.6g}, not more")
    return [
        "comparison of caps: own tokens pull inwards, foreign ones push at most like a point mass (Mueller and Kamke)",
        "the caps stay within hemispheres, and the gap beyond the peak of the force",
    ]


def _angle(x: list[Any], y: list[Any]) -> Any:
    """The angle between two directions, 2 atan2 of the half chords."""
    sizes = [iv.sqrt(sum((a * a for a in one), iv.mpf(0))) for one in (x, y)]
    x, y = ([a / s for a in one] for one, s in zip((x, y), sizes, strict=True))
    apart = sum(((a - b) ** 2 for a, b in zip(x, y, strict=True)), iv.mpf(0))
    along = sum(((a + b) ** 2 for a, b in zip(x, y, strict=True)), iv.mpf(0))
    return 2 * atan2(iv.sqrt(apart), iv.sqrt(along))
