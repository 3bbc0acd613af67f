"""Closed forms with balls: thresholds of degrees, jumps, merge times, expected modes, unstable modes with noise.

A number is a float or an integer, read exactly, a decimal text such as "1.5", or a `fractions.Fraction`: 0.1 is the
binary number, "0.1" is one tenth.
"""

import math
from fractions import Fraction
from typing import Any

from attnflow.certify.balls import Ball, above, below, finite, flint, precision, span
from attnflow.certify.certificates import BALLS, FLOATS, Undecided, certified
from attnflow.errors import InvalidInput

TURAN = "I_{q+1}(x)/I_q(x) increases in x > 0 and decreases in q >= 0 [amos1974computation]"


def number(value: Any) -> Any:
    """A number as a ball: exact for floats and integers, as narrow as the precision allows for texts and fractions."""
    arb = flint().arb
    if isinstance(value, Fraction):
        return arb(value.numerator) / arb(value.denominator)
    try:
        found = arb(value if isinstance(value, str) else float(value))
    except ValueError:
        found = arb("nan")
    if not found.is_finite() or (isinstance(value, int) and float(value) != value):
        raise InvalidInput(f"{value!r} is no finite number; give a float, a text such as '0.1', or a Fraction.")
    return found


def switching_threshold(k: int, d: int, *, digits: int = 30) -> Ball:
    """The beta at which the dominant degree of the uniform measure on S^{d-1} steps from k to k + 1, to so many digits.

    The root of I_{q+1}/I_q = k (k+d-2)/((k+1)(k+d-1)), q = k + d/2 - 1, enclosed by signs on both sides.

    ```python
    attnflow.certify.switching_threshold(1, 2)  # 1.0444...
    ```
    """
    _sizes(k=(k, 1), d=(d, 2))
    share = Fraction(k * (k + d - 2), (k + 1) * (k + d - 1))
    return _ratio_root(Fraction(2 * k + d - 2, 2), share, k * (k + d - 1) / 2 + (d - 1) / 4, digits)


def jump_threshold(d: int, *, digits: int = 30) -> Ball:
    """The beta* at which the transition of unnormalised attention with noise is a jump: I_{d/2+1}/I_{d/2} = 1/d.

    ```python
    attnflow.certify.jump_threshold(2)  # 2.4469...
    ```
    """
    _sizes(d=(d, 2))
    return _ratio_root(Fraction(d, 2), Fraction(1, d), 1.5, digits)


def dominant_degree(beta: float | tuple[float, float], d: int) -> Any:
    """A `Certificate` of the degree that grows fastest around the uniform measure on S^{d-1}, or `Undecided`.

    `beta` > 0 is a number or an interval; the statement is about all of it. Degree k grows like
    k (k + d - 2) I_{k+nu}(beta), nu = d/2 - 1. The quotient of the rates of degrees k + 1 and k increases in beta and
    decreases in k, so the signs at the two ends decide.

    ```python
    attnflow.certify.dominant_degree((5.0, 6.0), 2).claims["degree"]  # 3
    ```
    """
    _sizes(d=(d, 2))
    low, high = span("beta", beta)
    if not low > 0:
        raise InvalidInput(f"`beta` is {beta!r}; give positive numbers, the smaller first.")
    with precision(128):
        arb, k = flint().arb, 1
        while _quotient(arb(low), k, d) > 1:
            k += 1
        if (k > 1 and not _quotient(arb(low), k - 1, d) > 1) or not _quotient(arb(low), k, d) < 1:
            return Undecided("two degrees are too close", f"beta = {low!r}, degree {k}")
        if not _quotient(arb(high), k, d) < 1:
            return Undecided("the dominant degree changes, or nearly", f"beta up to {high!r}, degree {k}")
    return certified("dominant degree", (FLOATS, BALLS, TURAN), {"beta": [low, high], "d": d, "degree": k}, {})


def unstable_modes(beta: float, d: int, noise: float) -> Any:
    """A `Certificate` of the number of harmonics that grow around the uniform measure with noise, or `Undecided`.

    Degree k >= 1 with its N(k, d) harmonics on S^{d-1} grows where I_{k+nu}(beta)/I_nu(beta) > kappa beta, kappa > 0
    the noise, nu = d/2 - 1 (SA), and the quotient decreases in k. Without noise all degrees grow, infinitely many.

    ```python
    attnflow.certify.unstable_modes(9.0, 3, 0.01).claims["modes"]  # 48, of degrees 1 to 6
    ```
    """
    _sizes(d=(d, 2))
    b, kappa = finite("beta", beta), finite("noise", noise)
    if not (b > 0 and kappa > 0):
        raise InvalidInput(f"`beta` is {beta!r} and `noise` {noise!r}; give positive numbers.")
    count, k = 0, 0
    with precision(128):
        arb = flint().arb
        level, ratio = arb(kappa) * arb(b), arb(1)
        while True:
            ratio *= _ratio(arb(b), Fraction(d - 2, 2) + k)
            k += 1
            if ratio < level:
                break
            if not ratio > level:
                return Undecided("a degree is nearly neutral", f"degree {k}")
            count += math.comb(k + d - 1, d - 1) - (math.comb(k + d - 3, d - 1) if k > 1 else 0)
    claims = {"beta": [b, b], "d": d, "noise": kappa, "degree": k - 1, "modes": count}
    return certified("unstable modes", (FLOATS, BALLS, TURAN), claims, {})


def merge_time(angle: Any, beta: Any, *, until: Any, masses: tuple[Any, Any] = (0.5, 0.5), model: str = "SA") -> Ball:
    """The time in which two point clusters come from `angle` to `until`, as in `theory.merging.merge_time`.

    With u = 1 - cos(angle) the angle falls at the rate sin(angle) (m_1 + m_2) e^{-beta u} under USA0, and at
    sin(angle) (m_2/(m_1 e^{beta u} + m_2) + m_1/(m_2 e^{beta u} + m_1)) under SA. The working precision grows with
    beta, because exponential integrals of size e^{2 beta} cancel.

    ```python
    attnflow.certify.merge_time("1.5", 20, until="0.01")
    ```
    """
    if model not in ("SA", "USA0", "USA"):
        raise InvalidInput(f"`model` is {model!r}; it is 'SA', 'USA0' or 'USA'.")
    with precision(64):
        bits = 192 + int(4 * max(float(number(beta)), 0.0))
    with precision(bits) as module:
        b, a, e, m1, m2 = (number(one) for one in (beta, angle, until, *masses))
        if not (b >= 0 and e > 0 and a > e and a < module.arb.pi() and m1 > 0 and m2 > 0):
            raise InvalidInput(
                f"`angle` is {angle!r}, `until` {until!r}, `beta` {beta!r}; they must obey 0 < until < angle < pi."
            )
        u0, u1 = 1 - a.cos(), 1 - e.cos()
        way = (u0 / (2 - u0)).log() - (u1 / (2 - u1)).log()
        if model != "SA":
            found = _exponential_integral(u0, u1, b, way) / (2 * (m1 + m2)) * ((-b).exp() if model == "USA" else 1)
        elif masses[0] == masses[1]:
            found = (_exponential_integral(u0, u1, b, way) + way) / 4
        else:
            z0, z1 = ((u / (2 - u)).log() for u in (u0, u1))
            module.ctx.prec = 128

            def slowness(z: Any, _: Any) -> Any:
                big = (b * 2 / (1 + (-z).exp())).exp()
                return (m1 * big + m2) * (m2 * big + m1) / ((m1 * m1 + m2 * m2) * big + 2 * m1 * m2)

            found = module.acb.integral(slowness, module.acb(z1), module.acb(z0)).real / 2
    return Ball(found)


def expected_modes(beta: Any) -> Ball:
    """The expected number of modes of `theory.landscape.expected_modes`: sqrt(sum k^4 I_k^2/sum k^2 I_k^2), beta > 0.

    Terms up to K = beta + 40 are summed. Beyond, I_{k+1}/I_k < beta/(2k + 2) < 1/2, so that a term is at most 0.3 of
    the one before.

    ```python
    attnflow.certify.expected_modes(9.0)
    ```
    """
    with precision(192):
        b = number(beta)
        if not (b > 0 and b < 10_000):
            raise InvalidInput(f"`beta` is {beta!r}; give a number in (0, 10000).")
        arb, top = flint().arb, int(above(b)) + 40
        fourth, second = arb(0), arb(0)
        for k in range(1, top + 1):
            square = b.bessel_i(k, scaled=True)
            square *= square
            fourth, second = fourth + k**4 * square, second + k**2 * square
        tail = (top**4 * square).abs_upper()  # sum of 0.3^j is below 1
        rest = arb(0).union(tail)
        return Ball(((fourth + rest) / (second + rest)).sqrt())


def _exponential_integral(u0: Any, u1: Any, b: Any, way: Any) -> Any:
    """J, the integral of e^{beta u} dz, z = log(u/(2-u)); E_1(x) = -Ei(-x)."""
    if b == 0:
        return way
    near = (b * u0).ei() - (b * u1).ei()
    return near + (2 * b).exp() * (-(-b * (2 - u0)).ei() + (-b * (2 - u1)).ei())


def _ratio(b: Any, q: Fraction) -> Any:
    """I_{q+1}(b)/I_q(b)."""
    order = flint().arb(q.numerator) / q.denominator
    return b.bessel_i(order + 1, scaled=True) / b.bessel_i(order, scaled=True)


def _quotient(b: Any, k: int, d: int) -> Any:
    """The rate of degree k + 1 over that of degree k."""
    return (k + 1) * (k + d - 1) * _ratio(b, Fraction(2 * k + d - 2, 2)) / (k * (k + d - 2))


def _ratio_root(q: Fraction, share: Fraction, guess: float, digits: int) -> Ball:
    """The root of r = I_{q+1}/I_q = share. Newton's method proposes, with r' = 1 - (2q + 1) r/x - r^2; signs prove."""
    with precision(64 + 4 * digits) as module:
        arb = module.arb
        goal, x = arb(share.numerator) / share.denominator, arb(guess)
        for _ in range(60):
            r = _ratio(x, q)
            step = ((r - goal) / (1 - (2 * number(q) + 1) * r / x - r * r)).mid()
            x = (x - step).mid()
            if not x > 0:
                x = arb(guess) / 2
            if abs(step) < arb(10) ** (-digits - 2) * x:
                break
        width = x * arb(10) ** -digits
        low, high = (x - width).lower(), (x + width).upper()
        if not (_ratio(low, q) < goal and _ratio(high, q) > goal):
            raise ArithmeticError(f"the root near {below(x)} was not enclosed; ask for fewer digits.")
        return Ball(low.union(high))


def _sizes(**given: tuple[Any, int]) -> None:
    for name, (value, least) in given.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise InvalidInput(f"`{name}` is {value!r}; give an integer, at least {least}.")
