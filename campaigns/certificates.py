"""Does `certify` ever prove what is false? Some ten minutes on one core; part of `make long`.

    python campaigns/certificates.py                 everything, a seed from the system, the record of today
    python campaigns/certificates.py --seed 7 --scale 0.05 --record trial.json

Certificates whose claims were made false by construction must be rejected by the checker; balls of every primitive must
hold their points; inputs near degenerate ones, whose truth is known otherwise, must not give a false certificate. The
complete lists are proved, and confirmed by the checker where that takes minutes. Exit code 1 if anything is wrong.
"""

import argparse
import copy
import datetime
import json
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mpmath
import numpy as np

import _record
from attnflow import certify
from attnflow.certify import charts, gap_tables
from attnflow.certify.balls import hull, precision
from attnflow.certify.checking import lists as checker_lists

ROOT = Path(__file__).resolve().parent.parent
SIGNS = (1, -1)
CUBE = np.array([(a, b, c) for a in SIGNS for b in SIGNS for c in SIGNS]) / np.sqrt(3)
UNCHECKED = ((6, 2.0), (4, (0.25, 10.0)))
"""Lists that take the checker many minutes; four tokens are in docs/certificates, for `make long`."""
ROUNDING = 1e-12
"""Values in floats are sums of at most 12 terms of size 10 at most: wrong by less than 1e-13."""


def ring(n: int, d: int, angles: np.ndarray | None = None) -> np.ndarray:
    """n points on a great circle of S^{d-1}."""
    a = 2 * np.pi * np.arange(n) / n if angles is None else angles
    return np.column_stack([np.cos(a), np.sin(a), np.zeros((n, d - 2))])


def false_certificates(rng: np.random.Generator) -> Iterator[tuple[str, Callable[[dict[str, Any]], None], dict]]:
    """Without end: (name, change, certificate), where the change makes the claim false or the proof incomplete."""
    bases = {
        "cube": certify.equilibrium(CUBE, 9.0),
        "triangle": certify.equilibrium(ring(3, 2), -0.66),
        "square": certify.equilibrium(ring(4, 3), 2.0),
        "branch": certify.branch(ring(3, 2), (1.0, 1.5)),
        "list": certify.circle_equilibria(n=3, beta=(1.0, 1.5)),
        "list at 2": certify.circle_equilibria(n=3, beta=2.0),
        "degree": certify.dominant_degree((5.0, 6.0), 2),
        "unstable": certify.unstable_modes(9.0, 3, 0.01),
        "modes": certify.circle_modes([0.3, 1.0, 4.0], 9.0),
    }
    plain = {name: one.to_json() for name, one in bases.items()}
    if not all(certify.check(one).confirmed for one in plain.values()):
        raise SystemExit("a true certificate was rejected")

    def add(*path: Any, by: float) -> Callable[[dict[str, Any]], None]:
        def change(one: dict[str, Any]) -> None:
            for key in path[:-1]:
                one = one[key]
            one[path[-1]] += by

        return change

    def remove(*path: Any) -> Callable[[dict[str, Any]], None]:
        def change(one: dict[str, Any]) -> None:
            for key in path:
                one = one[key]
            del one[int(rng.integers(len(one)))]

        return change

    def widen(one: dict[str, Any]) -> None:
        one["claims"]["beta"][int(rng.integers(2))] += float(rng.choice([-1, 1]) * rng.uniform(0.01, 1))

    def hole(one: dict[str, Any]) -> None:
        parts = one["data"]["boxes" if "boxes" in one["data"] else "slices"]
        end = parts[int(rng.integers(len(parts)))]["beta"]
        end[1] = float(np.nextafter(end[1], -np.inf))

    while True:
        whole = int(rng.choice([-2, -1, 1, 2]))
        for name in ("cube", "triangle", "square", "branch"):
            yield name, add("claims", str(rng.choice(["unstable", "stable", "rotations"])), by=whole), plain[name]
        for name in ("cube", "square"):
            token, axis = int(rng.integers(4)), int(rng.integers(3))
            yield (
                name,
                add("data", "tokens", token, axis, by=float(rng.choice([-1, 1]) * 10 ** rng.uniform(-7, -1))),
                plain[name],
            )
            yield name, add("data", "masses", token, by=float(10 ** rng.uniform(-4, 1))), plain[name]
            yield name, add("claims", "distance", by=float(10 ** rng.uniform(-6, 0))), plain[name]
        for name in ("branch", "list"):
            yield name, widen, plain[name]
            yield name, hole, plain[name]
        for name in ("list", "list at 2"):
            kind = int(rng.integers(3))
            yield name, add("claims", "classes", kind, "unstable", by=whole), plain[name]
            yield name, add("claims", "classes", kind, "labelled", by=whole), plain[name]
            yield name, remove("claims", "classes"), plain[name]
            yield name, remove("data", "slices", 0, "roots"), plain[name]
            root = int(rng.integers(len(plain[name]["data"]["slices"][0]["roots"])))
            yield name, add("data", "slices", 0, "radii", root, by=float(rng.uniform(1, 3))), plain[name]
            yield name, add("data", "slices", 0, "roots", root, 0, by=float(rng.uniform(0.5, 1))), plain[name]
            yield name, add("claims", "n", by=1), plain[name]
        yield "degree", add("claims", "degree", by=whole), plain["degree"]
        yield (
            "degree",
            add("claims", "beta", 1, by=float(rng.uniform(0.22, 3))),
            plain["degree"],
        )  # 6.2113 is the threshold
        yield "unstable", add("claims", str(rng.choice(["modes", "degree"])), by=whole), plain["unstable"]
        yield "modes", add("claims", "modes", by=whole), plain["modes"]


def mutations(rng: np.random.Generator, count: int) -> dict[str, Any]:
    """How many false certificates the checker confirms."""
    accepted, names = [], {}
    for (name, change, one), _ in zip(false_certificates(rng), range(count), strict=False):
        other = copy.deepcopy(one)
        change(other)
        names[name] = names.get(name, 0) + 1
        if other != one and certify.check(other).confirmed:
            accepted.append({"name": name, "claims": other["claims"]})
    return {"count": count, "by certificate": names, "accepted": accepted}


def balls(rng: np.random.Generator, count: int) -> dict[str, Any]:
    """Points outside the balls of primitives: tables of the search and of the checker, gradient and Hessian."""
    outside: dict[str, int] = {}
    per = max(count // 20, 1)
    for name in ("force", "slope", "checker force", "checker slope"):
        outside[name] = 0
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
        for k, key in enumerate(("v", "slope")):
            a, b = (side[at][:, None] for side in cells[key])
            outside[("force", "slope")[k]] += int(np.sum((value[k] < a - ROUNDING) | (value[k] > b + ROUNDING)))
        scale = 2.0**-checker_lists.SCALE
        found = np.array([[float(e) * scale for e in own.cell(level, int(c))] for c in at])
        for k, name in enumerate(("checker force", "checker slope")):
            a, b = found[:, 2 * k, None], found[:, 2 * k + 1, None]
            outside[name] += int(np.sum((value[k] < a - ROUNDING) | (value[k] > b + ROUNDING)))
    outside |= {"gradient": 0, "hessian": 0}
    with precision(96) as module:
        for _ in range(count):
            points = rng.standard_normal((3, 3))
            problem = charts.make_problem(points / np.linalg.norm(points, axis=1)[:, None], rng.uniform(0.5, 2, 3))
            centre, radius = rng.uniform(-0.3, 0.3, 6), 10 ** rng.uniform(-6, -1)
            low, width = rng.uniform(-2, 9), float(rng.choice([0.0, 0.1]))
            place = charts.Place.at(problem, [module.arb(c) + hull(-radius, radius) for c in centre])
            beta = hull(low, low + width)
            weights = place.weights(beta)
            gradient, hessian = place.gradient(weights), place.hessian(weights, beta)
            u = centre + rng.uniform(-radius, radius, (10, 6)) * (1 - 1e-9)
            b = low + width * rng.uniform(0, 1, 10)
            values, steps = _gradients(problem, u, b), _derivatives(problem, u, b)
            for k in range(6):
                outside["gradient"] += _outside(gradient[k], values[:, k], ROUNDING)
                for e in range(6):
                    # complex steps have no cancellation, so that derivatives are as exact as values
                    outside["hessian"] += _outside(hessian[k][e], steps[:, k, e], ROUNDING * 10)
    return {"count": count, "points each": 10, "outside": outside}


def _outside(ball: Any, values: np.ndarray, slack: float) -> int:
    low, high = float(ball.lower()), float(ball.upper())
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


def adversaries(rng: np.random.Generator, count: int) -> dict[str, Any]:
    """Inputs near degenerate ones: certificates, undecided answers, and false certificates."""
    tally: dict[str, list[int]] = {}
    false: list[str] = []

    def note(name: str, found: Any, truth: Callable[[dict[str, Any]], bool]) -> None:
        row = tally.setdefault(name, [0, 0])
        proved = isinstance(found, certify.Certificate)
        row[0 if proved else 1] += 1
        if proved and not truth(found.claims):
            false.append(f"{name}: {found.statement}")

    for _ in range(int(0.3 * count)):  # the index of the triangle changes at -2/3, which is no float
        beta = float(-2 / 3 + rng.choice([-1, 1]) * 10 ** rng.uniform(-17, -1))
        index = 2 if 3 * mpmath.mpf(beta) > -2 else 0
        note("triangle", certify.equilibrium(ring(3, 2), beta), lambda c, index=index: c["unstable"] == index)
    for _ in range(
        int(0.2 * count)
    ):  # a ring with noise: equilibria have equal gaps, the tokens may be off by `distance`
        n = int(rng.integers(3, 7))
        noise = 10 ** rng.uniform(-16, -3) * rng.standard_normal(n)
        angles = 2 * np.pi * np.arange(n) / n + noise
        off = float(np.abs(np.diff(noise, append=noise[0])).max())
        found = certify.equilibrium(ring(n, 2, angles), 2.0)
        note(
            "ring with noise",
            found,
            lambda c, off=off, n=n: c["unstable"] == n - 1 and off < 2.1 * c["distance"] + 1e-14,
        )
    for _ in range(int(0.3 * count)):  # two angles have two modes if beta sin^2 h > cos h, exactly
        low, high = 1.0, float(1.0 + rng.uniform(0.2, 2.5))
        with mpmath.workdps(60):
            h = (mpmath.mpf(high) - mpmath.mpf(low)) / 2
            edge = mpmath.cos(h) / mpmath.sin(h) ** 2
            beta = float(edge * (1 + int(rng.choice([-1, 1])) * mpmath.mpf(10) ** float(rng.uniform(-16, -1))))
            modes = 2 if beta * mpmath.sin(h) ** 2 > mpmath.cos(h) else 1
        if beta > 0:
            note("two angles", certify.circle_modes([low, high], beta), lambda c, m=modes: c["modes"] == m)
    edges = {(k, d): certify.switching_threshold(k, d) for k in (1, 2, 3) for d in (2, 3, 5)}
    for _ in range(int(0.2 * count)):
        k, d = list(edges)[int(rng.integers(len(edges)))]
        edge = edges[k, d]
        beta = float(edge.mid * (1 + rng.choice([-1, 1]) * 10 ** rng.uniform(-17, -1.5)))
        degree = k if edge.arb > beta else k + 1
        low = float(beta - abs(rng.choice([0.0, 1e-3])))
        same = degree == k or bool(edge.arb < low)
        note("degree", certify.dominant_degree((low, beta), d), lambda c, g=degree, s=same: s and c["degree"] == g)
    for beta in (-1e-9, 0.0, 1e-9):
        note(
            "square near 0",
            certify.equilibrium(ring(4, 2), beta),
            lambda c, b=beta: c["unstable"] == (3 if b > 0 else 2) and b != 0,
        )
    note("four tokens at 0", certify.circle_equilibria(n=4, beta=0.0), lambda c: False)
    for beta in (0.15, 0.19, 0.2, 0.21, 0.3):  # 3+1+1 exists for beta > log(3/2)/2 = 0.20273
        found = certify.circle_equilibria(n=5, beta=beta)
        note("five tokens", found, lambda c, b=beta: len(c["classes"]) == (7 if b > 0.20274 else 6) and c["euler"] == 0)
    return {"count": sum(map(sum, tally.values())), "proved and undecided": tally, "false": false}


def complete_lists(scale: float) -> list[dict[str, Any]]:
    """The lists, what they took, and what the checker says of them."""
    rows = []
    asked = [(5, 1.0), (5, 5.0), (5, 9.0), (6, 2.0), (3, (-0.3, 20.0)), (4, (0.25, 10.0))]
    for n, beta in asked if scale >= 1 else asked[:1]:
        began = time.process_time()
        found = certify.circle_equilibria(n=n, beta=beta)
        row: dict[str, Any] = {"n": n, "beta": beta, "cpu": round(time.process_time() - began, 1)}
        if isinstance(found, certify.Certificate):
            row |= {"classes": found.claims["classes"], "euler": found.claims["euler"], **found.enclosures}
            if (n, beta) not in UNCHECKED:
                began = time.process_time()
                row |= {"confirmed": certify.check(found).confirmed, "checker": round(time.process_time() - began, 1)}
        else:
            row |= {"undecided": f"{found.reason}; {found.where}"}
        rows.append(row)
        print(row["n"], row["beta"], row["cpu"], row.get("confirmed"), flush=True)
    return rows


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, help="default: drawn from the system")
    parser.add_argument("--scale", type=float, default=1.0, help="a fraction of all cases")
    parser.add_argument("--only", help="one part, written into the record: mutations, balls, adversaries, lists")
    parser.add_argument("--record", type=Path, help="default: campaigns/records/certificates-DATE.json")
    options = parser.parse_args()
    path = options.record or ROOT / "campaigns" / "records" / f"certificates-{datetime.date.today()}.json"
    seed = secrets.randbits(63) if options.seed is None else options.seed
    record: dict[str, Any] = {"commit": _record.git(ROOT, "rev-parse", "HEAD").strip()}
    record |= {"seed": seed, "scale": options.scale}
    if options.only:
        record = json.loads(path.read_text(encoding="utf-8"))
    parts = {
        "mutations": lambda rng: mutations(rng, int(200 * options.scale)),
        "balls": lambda rng: balls(rng, int(10_000 * options.scale)),
        "adversaries": lambda rng: adversaries(rng, int(1000 * options.scale)),
        "lists": lambda rng: complete_lists(options.scale),
    }
    for number, (name, part) in enumerate(parts.items()):
        if options.only not in (None, name):
            continue
        began = time.process_time()
        record[name] = part(np.random.default_rng([record["seed"], number]))
        print(name, f"{time.process_time() - began:.0f} s", flush=True)
        path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    if not set(parts) <= set(record):
        return 1
    wrong = (
        record["mutations"]["accepted"] or record["adversaries"]["false"] or any(record["balls"]["outside"].values())
    )
    wrong = wrong or any("undecided" in row or row.get("confirmed") is False for row in record["lists"])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
