"""The checker of degrees of the uniform measure, of mode counts and of groups that stay apart, in mpmath.iv."""

from fractions import Fraction
from math import comb
from typing import Any

from mpmath import iv

from attnflow.certify.checking.integers import atan2, less, need

LEMMA = "I_{q+1}(x)/I_q(x) increases in x and decreases in q"


def _ratio(x: Any, q: Fraction) -> Any:
    """I_{q+1}(x)/I_q(x) from the power series; all terms are positive, and the rest is below a geometric series."""
    z = x * x / 4
    sums = []
    for order in (q, q + 1):
        term = total = iv.mpf(1)
        m = 0
        while True:
            m += 1
            term = term * z / (m * (m + iv.mpf(order.numerator) / order.denominator))
            total += term
            if m > 4 * float(x.b) + 20 and float(term.b) < 1e-40 * float(total.a):
                break
        sums.append(total + iv.mpf([0, (2 * term).b]))  # beyond, a term is below half of the one before
    return x / 2 / (iv.mpf(q.numerator) / q.denominator + 1) * sums[1] / sums[0]


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
    level, product = iv.mpf(noise) * iv.mpf(beta), iv.mpf(1)
    for k in range(1, top + 2):
        product *= _ratio(iv.mpf(beta), Fraction(d - 2, 2) + k - 1)
        need(less(level, product) if k <= top else less(product, level), f"degree {k} is on the other side")
    count = sum(comb(k + d - 1, d - 1) - (comb(k + d - 3, d - 1) if k > 1 else 0) for k in range(1, top + 1))
    need(claims["modes"] == count, f"degrees up to {top} have {count} harmonics")
    return [LEMMA, "degrees up to the claimed one grow, the next one decays, and so do all after it"]


def check_modes(claims: dict[str, Any], data: dict[str, Any]) -> list[str]:
    """Confirm a number of modes: walk around the circle in pieces of its own."""
    (beta, same), theta, start = claims["beta"], [iv.mpf(float(t)) for t in data["angles"]], float(data["start"])
    need(beta == same and beta > 0 and -10 < start < 10, "beta or start does not fit")
    b = iv.mpf(beta)

    def slopes(t: Any) -> tuple[Any, Any]:
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
    at, before, modes, step, steps = start + width, first, 0, width, 0
    turn = around + iv.mpf(at) - start  # to the end of the first piece, as floats have rounded it
    while not less(around, iv.mpf(at) - start):
        step = min(4 * step, 0.25)
        while True:
            step, steps = step / 2, steps + 1
            need(step > 2.0**-40 and steps < 10**6, f"the signs near the angle {at} are not decided")
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
    tokens, centres = ([[iv.mpf(float(a)) for a in x] for x in data[name]] for name in ("tokens", "centres"))
    masses, groups, k = [iv.mpf(float(m)) for m in data["masses"]], data["groups"], len(centres)
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
    pieces = 200 + int(100 * float(beta) * (float(start.a) - end))
    found = iv.mpf(0)
    for e in range(pieces):  # g decreases from `last` on, so that 1/g is least at the lower edge of a piece
        edge = last + (start - last) * e / pieces
        found += (start - last) / pieces / (speed * iv.exp(-b * (1 - iv.cos(edge))) * iv.sin(edge))
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
