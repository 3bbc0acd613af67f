"""Do enclosures hold what they enclose? Random balls of every primitive of search and checker; flows at 50 digits."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from mpmath import iv

from attnflow import certify
from attnflow.certify import cap_bounds, charts, gap_tables, tubes
from attnflow.certify.balls import hull, precision
from attnflow.certify.checking import flows as checker_flows
from attnflow.certify.checking import forms as checker_forms
from attnflow.certify.checking import lists as checker_lists
from attnflow.certify.checking import orbits as checker_orbits

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.certify import reference

ROUNDING = 1e-12
"""Values in floats are sums of at most 12 terms of size 10 at most: wrong by less than 1e-13."""


def balls(rng: np.random.Generator, count: int) -> dict[str, Any]:
    """Points outside the balls of primitives, ten points for each ball, by primitive of search and checker."""
    outside: dict[str, int] = {}
    for part in (_pair_forces, _charts, _velocities, _angles):
        outside |= part(rng, count)
    return {"count": count, "outside": outside}


def _pair_forces(rng: np.random.Generator, count: int) -> dict[str, int]:
    """Force of a pair and its slope, over cells of angles and slices of beta: the tables of lists on the circle."""
    outside = dict.fromkeys(("force", "slope", "checker force", "checker slope"), 0)
    per = max(count // 20, 1)
    for _ in range(20):
        low = float(rng.uniform(-1, 12))
        high = low + float(rng.choice([0.0, 0.01, 0.3]))
        level = int(rng.integers(3, 9))
        cells = gap_tables.Tables(low, high).cells(level)
        own = checker_lists._Slice(3, low, high)
        h = gap_tables.SIDE / 2**level
        at = rng.integers(0, 2 * 2**level, per)
        s = (at[:, None] + rng.uniform(0, 1, (per, 10))) * h
        beta = rng.uniform(low, high, (per, 10))
        q = 2 * np.sin(s / 2) ** 2
        value = np.exp(-beta * q) * np.sin(s), np.exp(-beta * q) * (np.cos(s) - beta * np.sin(s) ** 2)
        found = np.array([[float(e) * 2.0**-checker_lists.SCALE for e in own.cell(level, int(c))] for c in at])
        for k, (name, key) in enumerate((("force", "v"), ("slope", "slope"))):
            a, b = (side[at][:, None] for side in cells[key])
            outside[name] += int(np.sum(~((value[k] >= a - ROUNDING) & (value[k] <= b + ROUNDING))))
            a, b = found[:, 2 * k, None], found[:, 2 * k + 1, None]
            outside[f"checker {name}"] += int(np.sum(~((value[k] >= a - ROUNDING) & (value[k] <= b + ROUNDING))))
    return outside


def _charts(rng: np.random.Generator, count: int) -> dict[str, int]:
    """Gradient and Hessian of the energy of 3 tokens on S^2 in their charts."""
    outside = dict.fromkeys(("gradient", "hessian", "checker gradient", "checker hessian"), 0)
    with precision(96) as module:
        for _ in range(count):
            points = rng.standard_normal((3, 3))
            problem = charts.make_problem(points / np.linalg.norm(points, axis=1)[:, None], rng.uniform(0.5, 2, 3))
            centre, radius = rng.uniform(-0.3, 0.3, 6), 10 ** rng.uniform(-6, -1)
            low, width = rng.uniform(-2, 9), float(rng.choice([0.0, 0.1]))
            place = charts.Place.at(problem, [module.arb(c) + hull(-radius, radius) for c in centre])
            beta = hull(low, low + width)
            weights = place.weights(beta)
            setting = (problem.tokens, problem.masses, problem.frames, problem.slices, problem.planes)
            other = checker_orbits._Place(setting, [iv.mpf(c) + iv.mpf([-radius, radius]) for c in centre])
            pairs, ball = other.pairs(iv.mpf([low, low + width])), iv.mpf([low, low + width])
            u = centre + rng.uniform(-radius, radius, (10, 6)) * (1 - 1e-9)
            b = low + width * rng.uniform(0, 1, 10)
            values, steps = _gradients(problem, u, b), _derivatives(problem, u, b)
            for name, gradient, hessian in (
                ("", place.gradient(weights), place.hessian(weights, beta)),
                ("checker ", other.gradient(pairs), other.hessian(pairs, ball)),
            ):
                for k in range(6):
                    outside[f"{name}gradient"] += _outside(gradient[k], values[:, k], ROUNDING)
                    for e in range(6):
                        # complex steps have no cancellation, so that derivatives are as exact as values
                        outside[f"{name}hessian"] += _outside(hessian[k][e], steps[:, k, e], ROUNDING * 10)
    return outside


def _velocities(rng: np.random.Generator, count: int) -> dict[str, int]:
    """Velocities of 4 tokens on the circle, and the bound of the growth of errors."""
    outside = dict.fromkeys(("velocity", "growth", "checker velocity", "checker growth"), 0)
    with precision(96) as module:
        for _ in range(count):
            theta, masses, beta = rng.uniform(0, 6, 4), rng.uniform(0.5, 2, 4), float(rng.uniform(0, 9))
            model, radius = str(rng.choice(["SA", "USA0"])), float(10 ** rng.uniform(-6, -1))
            setting = tubes.Setting.of(beta, masses, model)
            centre = [module.arb(float(t)) for t in theta]
            found = tubes.Drive(setting).extend([one + hull(-radius, radius) for one in centre])
            norm = float(tubes.log_norm(setting, centre, module.arb(radius)).upper())
            own = checker_flows._Equation({"beta": [beta, beta], "model": model}, {"masses": masses.tolist()})
            balls = checker_flows._Balls.of([iv.mpf(float(t)) + iv.mpf([-radius, radius]) for t in theta])
            speeds = own.speeds()
            next(speeds)
            also = speeds.send(balls).intervals()
            bound = float(own.growth(checker_flows._Balls.of([iv.mpf(float(t)) for t in theta]), iv.mpf(radius)).b)
            x = theta + rng.uniform(-radius, radius, (10, 4)) * (1 - 1e-9)
            values = _speeds(x, masses, beta, model)
            slopes = np.stack(
                [_speeds(x + 1e-100j * np.eye(4)[e], masses, beta, model).imag / 1e-100 for e in range(4)], axis=2
            )
            inside = np.diagonal(slopes, axis1=1, axis2=2)
            norms = (inside + np.abs(slopes).sum(axis=2) - np.abs(inside)).max(axis=1)
            for k in range(4):
                outside["velocity"] += _outside(found[k], values[:, k], ROUNDING)
                outside["checker velocity"] += _outside(also[k], values[:, k], ROUNDING)
            outside["growth"] += int(np.sum(~(norms <= norm + 10 * ROUNDING)))
            outside["checker growth"] += int(np.sum(~(norms <= bound + 10 * ROUNDING)))
    return outside


def _speeds(x: np.ndarray, masses: np.ndarray, beta: float, model: str) -> np.ndarray:
    """Velocities by their formula in NumPy, for rows of angles (complex ones too)."""
    s = x[:, None, :] - x[:, :, None]
    w = masses / masses.sum() * np.exp(beta * (np.cos(s) - 1))
    return (w * np.sin(s)).sum(axis=2) / (w.sum(axis=2) if model == "SA" else 1)


def _angles(rng: np.random.Generator, count: int) -> dict[str, int]:
    """Angles between directions, many of them nearly equal or opposite."""
    outside = {"angle": 0, "checker angle": 0}
    with precision(128) as module:
        for _ in range(count):
            x, y = rng.standard_normal((2, 3))
            near = float(10 ** rng.uniform(-9, 0))
            y = float(rng.choice([-1, 1])) * x + near * y if rng.uniform() < 0.5 else y
            a, b = x / np.linalg.norm(x), y / np.linalg.norm(y)
            value = np.array([2 * np.arctan2(np.linalg.norm(a - b), np.linalg.norm(a + b))])
            outside["angle"] += _outside(cap_bounds._angle(module, x, y), value, ROUNDING)
            found = checker_forms._angle(*([iv.mpf(float(e)) for e in one] for one in (x, y)))
            outside["checker angle"] += _outside(found, value, ROUNDING)
    return outside


def _outside(ball: Any, values: np.ndarray, slack: float) -> int:
    """How many values are not in the ball of FLINT, or in the interval of mpmath."""
    ends = (ball.a, ball.b) if hasattr(ball, "_mpi_") else (ball.lower(), ball.upper())
    low, high = (float(end) for end in ends)
    return int(np.sum(~((values >= low - slack) & (values <= high + slack))))


def _gradients(problem: charts.Problem, u: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """G by its formula in NumPy, for rows of coordinates (complex ones too)."""
    y = problem.tokens + np.einsum("pna,nad->pnd", u.reshape(len(u), 3, 2), problem.frames)
    s = np.sqrt(np.sum(y * y, axis=2, keepdims=True))
    x = y / s
    w = np.exp(beta[:, None, None] * (np.einsum("pid,pjd->pij", x, x) - 1))
    force = np.einsum("i,j,pij,pjd->pid", problem.masses, problem.masses, w, x)
    force = force - x * np.sum(x * force, axis=2, keepdims=True)
    return np.einsum("pnd,nad->pna", force / s, problem.frames).reshape(len(u), 6)


def _derivatives(problem: charts.Problem, u: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """The derivatives of G by complex steps."""
    steps = [_gradients(problem, u + 1e-100j * np.eye(6)[e], beta).imag / 1e-100 for e in range(6)]
    return np.stack(steps, axis=2)


def flows(rng: np.random.Generator, count: int) -> dict[str, Any]:
    """Random starts, half of them near an equilibrium, against extrapolation at 50 digits."""
    outside, radii = [], []
    for k in range(count):
        n, beta = int(rng.integers(2, 5)), float(rng.uniform(0, 6))
        theta = rng.uniform(0, 6, n) if k % 2 else 2 * np.pi * np.arange(n) / n + 1e-3 * rng.standard_normal(n)
        masses, model = rng.uniform(0.5, 2, n), str(rng.choice(["SA", "USA0"]))
        found = certify.circle_flow(theta, beta, 1.5, masses=masses, model=model, digits=18)
        if isinstance(found, certify.Undecided):
            raise SystemExit(f"undecided: {found}")
        exact, error = reference.flow(
            theta.tolist(), beta, 1.5, masses=masses.tolist(), softmax=model == "SA", steps=12
        )
        radius = found.claims["radius"]
        off = max(abs(a - b) for a, b in zip(exact, found.claims["end"], strict=True)) + error
        radii.append(radius)
        if not off <= radius:
            outside.append({"angles": theta.tolist(), "beta": beta, "model": model, "off": float(off)})
    return {"count": count, "outside": outside, "radii": radii}
