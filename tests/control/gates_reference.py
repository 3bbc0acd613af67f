"""Gates on the sphere at 40 digits and more, for the tests: python tests/control/gates_reference.py.

A point at the angle theta from e = w/|w| stays on its great circle through e, and
theta' = -|w| sin theta f(theta), f = b + <a, e> cos theta + q sin theta = <a, x> + b. So
log det = log(f/f_0) + (d - 1) log(sin theta/sin theta_0). With z = tan(theta/2), theta' is z' = -|w| z Q/(1 + z^2),
Q = A + 2 q z + C z^2, A, C = b +- <a, e>. The time is a sum of three logarithms (partial fractions with complex
zeros) at 200 digits. Zeros that coincide are split: b is moved by 1e-60, which costs up to 100 digits. No formula is
shared with `attnflow.fields.exact.gates`. Every seventh row is checked: the integral of dtheta/(sin theta f) by quadrature at 40
digits is |w| h to 1e-25.

A row of the table holds the end, log(f/f_0), log(sin theta/sin theta_0), and a condition of each: what unit relative rounding of <a, e>, q, b
(as parts of |a| + |b|), of theta_0, of |w| h and of the direction of x from the axis does to them, from difference
quotients at 200 digits. So an error of `condition` * eps is that of rounding the input once.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from mpmath import mp, mpf

FILE = Path(__file__).with_suffix(".json")
DIMS = (2, 3, 4, 5, 6, 7)
DISTANCES = (0.0, *(10.0**-k for k in range(16, 0, -1)))
FAMILIES = ("up+", "up-", "down+", "down-", "cap", "tilt", "back")
TIMES = (1.0, -1.0, 0.3, 5.0, -4.0, 60.0, -60.0, 0.01)


def rows(d: int, many: int = 1) -> list[tuple[Any, ...]]:
    """(name, x, w, a, b, h) in d dimensions: gates at given distances from a parallel to w, |b| = |a|, and others."""
    rng = np.random.default_rng(d)
    found, count = [], 0

    def unit(v: Any) -> Any:
        return v / np.sqrt(np.sum(v**2))

    def point(kind: int, e: Any, a: Any, b: Any) -> Any:
        free = unit(rng.standard_normal(d))
        if kind in (1, 2):  # near e, near -e
            return unit((e if kind == 1 else -e) + 10.0 ** -rng.integers(1, 9) * free)
        if kind == 3 and 0 < abs(b) < np.sqrt(a @ a):  # near the border, inside
            across = free - (free @ a) / (a @ a) * a
            level = -b / (a @ a) * a
            inside = unit(level + np.sqrt(1 - level @ level) * unit(across) if d > 2 or across.any() else level)
            return unit(inside + 10.0 ** -rng.integers(1, 7) * a)
        return free

    for number in range(many):
        for family in FAMILIES:
            for eps in DISTANCES:
                count += 1
                w = rng.standard_normal(d)
                side = rng.standard_normal(d)
                side = unit(side - (side @ w) / (w @ w) * w)
                size = 50.0 if count % 11 == 0 else rng.uniform(0.5, 1.5)
                w = w * (size / np.sqrt(w @ w))
                a = w * (rng.uniform(0.5, 1.5) / size)
                if family in ("down+", "down-", "back"):
                    a = -a
                length = np.sqrt(a @ a)
                b = {"up+": 1 + eps, "down+": 1 + eps, "cap": -(1 - eps)}.get(family, 1 - eps) * length
                if family in ("tilt", "back"):
                    a, b = a + eps * side, length
                h = TIMES[(count + number) % len(TIMES)] / (size if size == 50 and count % 3 else 1)
                h = np.sign(h) * min(abs(h), 60 / size)
                x = unit(np.sign(a @ w) * w + eps * side * rng.uniform(0.1, 1)) if family == "cap" and eps else None
                x = point(count % 4 if number else (0, 0, 1, 0, 2)[count % 5], unit(w), a, b) if x is None else x
                found.append((f"{family} {eps:g}", x, w, a, b, h))
    e, zero = unit(rng.standard_normal(d)), np.zeros(d)
    for k in range(24 * many):
        w, a, b = rng.standard_normal(d), rng.standard_normal(d), rng.standard_normal()
        h = TIMES[k % 8]
        if k % 24 >= 16:
            w, a, b, h = [
                (e, zero, 0.7, 3.0), (zero, a, b, 1.0), (e, zero, -0.3, 1.0), (50 * e, a, b, 1.0),
                (e, a, 3.0, 60.0), (e, e, 0.3, 8.0), (-e, e, 0.3, -8.0), (e, a, -0.5, 5.0),
            ][k % 8]  # fmt: skip
        found.append(("other", point(k % 4, unit(w) if w.any() else e, a, b), w, a, b, h))
    axis = np.eye(d)[0]
    for sign in (1.0, -1.0):  # at e and at -e, where nothing moves and the log-determinant is (d - 1) times a rate
        for along in (1.0, -1.0, 0.4):
            found.extend(("pole", sign * axis, 2 * axis, along * axis, 1.0, h) for h in (1.0, -9.0))
    return found


def end_of(theta: Any, along: Any, q: Any, b: Any, time: Any, guess: Any = None) -> Any:
    """log tan(theta/2) after `time` (of either sign), log f/f_0, and v, a guess for problems close by."""
    b = b + mpf(10) ** -60
    low, high = b + along, b - along
    z0 = mp.tan(theta / 2)
    root = mp.sqrt(mp.mpc(q * q - low * high))
    big = -(q + (root if q >= 0 else -root))
    zeros = (big / high, low / big)
    parts = [(1 / low, mpf(0))] + [((1 + z * z) / (z * high * (z - o)), z) for z, o in (zeros, zeros[::-1])]
    ahead = [mp.re(z) for z in zeros if mp.im(z) == 0 and (0 < mp.re(z) < z0 if time > 0 else mp.re(z) > z0)]
    stop = (max(ahead) if time > 0 else min(ahead)) if ahead else None

    def z_of(v: Any) -> Any:  # v from 0 to infinity goes all the way to the stop
        if stop is None:
            return z0 * mp.exp(-v if time > 0 else v)
        return stop + (z0 - stop) * mp.exp(-v)

    def gone(v: Any) -> Any:
        z = z_of(v)
        return mp.re(sum(weight * (mp.log(z0 - zero) - mp.log(z - zero)) for weight, zero in parts))

    def rate(v: Any) -> Any:
        z = z_of(v)
        return -(1 + z * z) / (z * (low + 2 * q * z + high * z * z)) * (-(z - stop) if stop is not None else
                                                                        (-z if time > 0 else z))  # fmt: skip

    lo, hi, v = mpf(0), mpf(1), guess
    if guess is None:
        with mp.workdps(120):
            while abs(gone(hi)) < abs(time):
                hi *= 2
            for _ in range(60):
                v = (lo + hi) / 2
                lo, hi = (v, hi) if abs(gone(v)) < abs(time) else (lo, v)
    for _ in range(60):
        move = (abs(time) - abs(gone(v))) / abs(rate(v))
        v += move
        if abs(move) < mpf(10) ** -55 * v:
            break
    else:
        raise ArithmeticError("Newton does not converge")
    z = z_of(v)
    level = [(low + 2 * q * y + high * y * y) / (1 + y * y) for y in (z, z0)]
    return mp.log(z), mp.log(level[0] / level[1]), v


def checked(theta: Any, end: Any, along: Any, q: Any, b: Any, time: Any) -> None:
    """The integral of dtheta/(sin theta f) is the time, by quadrature in log tan(theta/2)."""
    with mp.workdps(60):
        start = mp.log(mp.tan(theta / 2))

        def slowness(y: Any) -> Any:
            z = mp.exp(y)
            return (1 + z * z) / (b + along + 2 * q * z + (b - along) * z * z)

        cuts = [start + (end - start) * (1 - mpf(k) / 12) for k in range(12, -1, -1)]
        near = [end + (start - end) * mpf(10) ** -k for k in range(60, 1, -3)]
        near += [start + (end - start) * mpf(10) ** -k for k in range(30, 1, -3)]
        low = mp.re(mp.polyroots([b - along, 2 * q, b + along], maxsteps=500, extraprec=500)[0]) if b != along else 0
        if low > 0 and min(start, end) < mp.log(low) < max(start, end):  # a narrow pass
            near += [mp.log(low) + sign * mpf(10) ** -k for k in range(0, 20) for sign in (1, -1)] + [mp.log(low)]
        cuts = sorted({c for c in (*cuts, *near) if min(start, end) <= c <= max(start, end)}, reverse=time > 0)
        found = -mp.quad(slowness, cuts)
        assert abs(found / time - 1) < mpf(10) ** -25, (found, time)


def solve(x: Any, w: Any, a: Any, b: Any, h: Any, check: bool = False, conditions: bool = True) -> tuple[Any, ...]:
    """(end, log(f/f_0), log(sin theta/sin theta_0), condition of each)."""
    x, w, a = ([mpf(c) for c in v] for v in (x, w, a))
    b, h = mpf(b), mpf(h)

    def dot(u: Any, v: Any) -> Any:
        return mp.fsum(p * q for p, q in zip(u, v, strict=True))

    norm, size = mp.sqrt(dot(x, x)), mp.sqrt(dot(w, w))
    x = [c / norm for c in x]
    still = (x, mpf(0), mpf(0), 1.0, 1.0, 1.0)
    if size == 0 or dot(a, x) + b <= 0:
        return still
    e = [c / size for c in w]
    across = [p - dot(x, e) * q for p, q in zip(x, e, strict=True)]
    wide, along, time = mp.sqrt(dot(across, across)), dot(a, e), size * h
    most = mp.sqrt(dot(a, a)) + abs(b)
    if wide < mpf(10) ** -100:  # x = e or -e
        rate = -(b + along) if dot(x, e) > 0 else b - along
        return x, mpf(0), rate * time, 1.0, 1.0, float(1 + most * abs(time))
    u = [c / wide for c in across]
    q, theta = dot(a, u), mp.atan2(wide, dot(x, e))

    def result(theta: Any, along: Any, q: Any, b: Any, time: Any, guess: Any = None) -> tuple[Any, ...]:
        y, grown, v = end_of(theta, along, q, b, time, guess)
        angle = 2 * mp.atan(mp.exp(y))
        return angle, grown, mp.log(mp.sin(angle) / mp.sin(theta)), y, v

    at = (theta, along, q, b, time)
    angle, grown, lost, y, v = result(*at)
    if check:
        checked(theta, y, along, q, b, time)
    end = [mp.cos(angle) * p + mp.sin(angle) * s for p, s in zip(e, u, strict=True)]
    found = [1 + mp.sin(angle) / wide, 1 + abs(grown), 1 + abs(lost)]
    tip = mp.sqrt(max(dot(a, a) - along**2, 0))
    for k, scale in enumerate((1, most, most + tip / wide, most, abs(time)) if conditions else ()):
        step = mpf(10) ** -30
        moved = result(*(value + (step if j == k else 0) for j, value in enumerate(at)), v)
        for j, value in enumerate((angle, grown, lost)):
            found[j] += scale * abs(moved[j] - value) / step
    return end, grown, lost, *(float(c) for c in found)


def main() -> None:
    """Write the table."""
    mp.dps = 200
    table = {}
    for d in DIMS:
        table[str(d)] = []
        for k, row in enumerate(rows(d)):
            end, grown, lost, *conditions = solve(*row[1:], check=k % 7 == 0)
            numbers = [*(float(c) for c in (*end, grown, lost)), *(float(f"{c:.2g}") for c in conditions)]
            table[str(d)].append(numbers)
        print(d, len(table[str(d)]), flush=True)
    FILE.write_text(json.dumps(table, separators=(",", ":")).replace("],[", "],\n[") + "\n")


if __name__ == "__main__":
    sys.exit(main())
