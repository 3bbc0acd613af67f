"""Does `certify` ever prove what is false? About an hour on one core; part of `make long`.

    python campaigns/certificates.py                                   everything, the record of today
    python campaigns/certificates.py --seed 7 --scale 0.05 --record trial.json
    python campaigns/certificates.py --seed 7 --share 3/16 --record part-3.json     one share of sixteen
    python campaigns/certificates.py --join part-*.json                             the record of today, of all shares

Certificates whose claims were made false by construction must be rejected by the checker; balls of every primitive must
hold their points; inputs near degenerate ones, whose truth is known otherwise, must not give a false certificate; flows
must be inside their tubes at 50 digits. The complete lists are proved, and every certificate in docs/certificates is
confirmed, lists over intervals of beta in groups of slices. Exit code 1 if anything is wrong.
"""

import argparse
import copy
import json
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import mpmath
import numpy as np

import _record
from attnflow import certify
from attnflow.certify import charts, gap_tables
from attnflow.certify.balls import hull, precision
from attnflow.certify.checking import lists as checker_lists
from attnflow.tokens import Tokens

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.certify import reference  # noqa: E402

SIGNS = (1, -1)
CUBE = np.array([(a, b, c) for a in SIGNS for b in SIGNS for c in SIGNS]) / np.sqrt(3)
LISTS = ((5, 1.0), (5, 5.0), (5, 9.0), (6, 2.0), (3, (-0.3, 20.0)), (4, (0.25, 10.0)))
SLICES = 4
"""Slices of beta that the checker confirms in one go."""
BLOCKS = 10
"""Blocks of random cases, each with random numbers of its own."""
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
        "apart": certify.stay_apart(Tokens(ring(2, 2, np.array([0.0, 1.5]))), 8.0, [0, 1]),
        "flow": certify.circle_flow([0.3, 2.0, 4.5], 2.0, 0.5, ball=1e-3),
        "consensus": certify.circle_consensus([0.2, 1.9, 3.3, 5.1], 2.0, ball=1e-4),
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

    def aside(token: int) -> Callable[[dict[str, Any]], None]:  # tokens are directions: along themselves is no change
        def change(one: dict[str, Any]) -> None:
            x = np.array(one["data"]["tokens"][token])
            turn = np.cross(x, rng.standard_normal(3))
            one["data"]["tokens"][token] = (x + 10 ** rng.uniform(-7, -1) * turn / np.linalg.norm(turn)).tolist()

        return change

    def faster(one: dict[str, Any]) -> None:  # two points close up sooner at a smaller beta
        one["claims"]["beta"] = [float(one["claims"]["beta"][0] * rng.uniform(0.3, 0.9))] * 2

    def softmax(one: dict[str, Any]) -> None:  # about twice as fast as USA0, for equal masses
        one["claims"]["model"] = "SA"

    def nearer(one: dict[str, Any]) -> None:
        angle = float(rng.uniform(0.8, 1.45))
        one["data"]["tokens"][1] = one["data"]["centres"][1] = [np.cos(angle), np.sin(angle)]

    def early(one: dict[str, Any]) -> None:  # no half circle holds the start
        one["data"]["times"] = one["data"]["times"][: 1 + int(rng.integers(2))]
        one["claims"]["time"] = one["data"]["times"][-1]

    def once() -> Iterator[tuple[str, Callable[[dict[str, Any]], None], dict]]:
        whole = int(rng.choice([-2, -1, 1, 2]))
        for name in ("cube", "triangle", "square", "branch"):
            yield name, add("claims", str(rng.choice(["unstable", "stable", "rotations"])), by=whole), plain[name]
        for name in ("cube", "square"):
            token = int(rng.integers(4))
            yield name, aside(token), plain[name]
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
        apart, flow = plain["apart"]["claims"], plain["flow"]["claims"]
        for change in (faster, softmax, nearer):
            yield "apart", change, plain["apart"]
        yield "apart", add("claims", "time", by=apart["time"] * float(rng.uniform(0.05, 9))), plain["apart"]
        wide = 1.5 - apart["gap"]  # at the gap + 0.9 of the way two points are before two thirds of the time
        yield "apart", add("claims", "gap", by=float(wide * rng.uniform(0.9, 1.5))), plain["apart"]
        yield "flow", add("claims", "radius", by=1e-3 - flow["radius"] - float(rng.uniform(1e-9, 9e-4))), plain["flow"]
        token = int(rng.integers(3))
        off = float(rng.choice([-1, 1]) * flow["radius"] * rng.uniform(1, 9))
        yield "flow", add("claims", "end", token, by=off), plain["flow"]
        yield "flow", add("claims", "ball", by=flow["radius"] * float(rng.uniform(1, 9))), plain["flow"]
        yield "consensus", early, plain["consensus"]
        yield "consensus", remove("data", "angles"), plain["consensus"]

    while True:
        every = list(once())
        for k in rng.permutation(len(every)):
            yield every[k]


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
    """Points outside the balls of primitives, ten for each: tables of search and checker, gradient and Hessian."""
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
    return {"count": count, "outside": outside}


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


def adversaries(rng: np.random.Generator, count: int, fixed: bool) -> dict[str, Any]:
    """Inputs near degenerate ones: certificates, undecided answers, and false certificates; `fixed` adds named ones."""
    tally: dict[str, dict[str, int]] = {}
    false: list[str] = []

    def note(name: str, found: Any, truth: Callable[[dict[str, Any]], bool]) -> None:
        row = tally.setdefault(name, {"proved": 0, "undecided": 0})
        proved = isinstance(found, certify.Certificate)
        row["proved" if proved else "undecided"] += 1
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
    if not fixed:
        return {"cases": tally, "false": false}
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
    return {"cases": tally, "false": false}


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


def one_list(n: int, beta: Any) -> dict[str, Any]:
    """One complete list: what it took; at one beta, what the checker says of it."""
    began = time.process_time()
    found = certify.circle_equilibria(n=n, beta=beta)
    row: dict[str, Any] = {"n": n, "beta": beta, "cpu": round(time.process_time() - began, 1)}
    if isinstance(found, certify.Undecided):
        return row | {"undecided": f"{found.reason}; {found.where}"}
    row |= {"classes": found.claims["classes"], "euler": found.claims["euler"], **found.enclosures}
    if not isinstance(beta, tuple):
        began = time.process_time()
        row |= {"confirmed": certify.check(found).confirmed, "checker": round(time.process_time() - began, 1)}
    return row


def saved(path: Path, first: int) -> dict[str, Any]:
    """What the checker says of a certificate of the documents: all of it, or some of its slices of beta."""
    one = json.loads(path.read_text(encoding="utf-8"))
    if one["kind"] == "circle list":
        one["data"]["slices"] = part = one["data"]["slices"][first : first + SLICES]
        one["claims"]["beta"] = [part[0]["beta"][0], part[-1]["beta"][1]]
    began = time.process_time()
    found = certify.check(one)
    row = {"file": path.name, "beta": one["claims"]["beta"], "confirmed": found.confirmed}
    return row | {"reason": found.reason, "checker": round(time.process_time() - began, 1)}


def units(seed: int, scale: float) -> Iterator[tuple[str, Callable[[], Any]]]:
    """All the work: (part, function), in an order that does not depend on the machine. Long ones come first."""
    if scale >= 1:
        for n, beta in reversed(LISTS):
            yield "lists", partial(one_list, n, beta)
        for path in sorted((ROOT / "docs" / "certificates").glob("*.json")):
            one = json.loads(path.read_text(encoding="utf-8"))
            for first in range(0, len(one["data"]["slices"]) if one["kind"] == "circle list" else 1, SLICES):
                yield "saved", partial(saved, path, first)
    sizes = {"mutations": 300, "balls": 10_000, "adversaries": 1000, "flows": 20}
    for block in range(BLOCKS):
        for number, (name, count) in enumerate(sizes.items()):
            rng, each = np.random.default_rng([seed, number, block]), max(int(scale * count) // BLOCKS, 1)
            arguments = (rng, each, block == 0) if name == "adversaries" else (rng, each)
            yield name, partial(globals()[name], *arguments)


def joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """One record of all shares: counts are added, findings are put one after the other."""
    first, done = parts[0], [unit for part in parts for unit in part["units"]]
    for part in parts[1:]:
        for key in ("seed", "scale", "source", "of"):
            if part[key] != first[key]:
                raise SystemExit(f"these are shares of two campaigns: {key} is {first[key]!r} and {part[key]!r}.")
    done = list({unit["number"]: unit for unit in done}.values())  # of a unit that was done twice, the later one
    numbers = sorted(unit["number"] for unit in done)
    if numbers != list(range(first["of"])):
        raise SystemExit(f"there are {len(numbers)} units of {first['of']}; a share is missing.")
    found: dict[str, Any] = {"seed": first["seed"], "scale": first["scale"], "source": first["source"]}
    for unit in sorted(done, key=lambda one: one["number"]):
        name, value = unit["part"], unit["found"]
        if name in ("lists", "saved"):
            found.setdefault(name, []).append(value)
        else:
            found[name] = _added(found[name], value) if name in found else value
    found["cpu"] = round(sum(unit["cpu"] for unit in done))
    found["adversaries"]["count"] = sum(sum(row.values()) for row in found["adversaries"]["cases"].values())
    return found


def _added(one: Any, two: Any) -> Any:
    """Numbers added, lists put one after the other, tables entry by entry."""
    if not isinstance(one, dict):
        return one + two
    both = {key: _added(one[key], two[key]) for key in one if key in two}
    return one | two | both


def wrong(record: dict[str, Any]) -> bool:
    """Whether anything was found that must not be."""
    found = [
        record["mutations"]["accepted"],
        record["adversaries"]["false"],
        record["flows"]["outside"],
        any(record["balls"]["outside"].values()),
        any("undecided" in row or row.get("confirmed") is False for row in record.get("lists", ())),
        not all(row["confirmed"] for row in record.get("saved", ())),
    ]
    return any(map(bool, found))


def main() -> int:
    """Run the campaign, a share of it, or join shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, help="default: drawn from the system; shares need the same")
    parser.add_argument("--scale", type=float, default=1.0, help="a fraction of all cases")
    parser.add_argument("--share", help="K/N: every N-th piece of work from the K-th on (0 to N - 1), into --record")
    parser.add_argument("--only", help="one part of the share: mutations, balls, adversaries, flows, lists or saved")
    parser.add_argument("--join", type=Path, nargs="+", help="records of all shares; the later counts")
    parser.add_argument("--record", type=Path, help="default: campaigns/records/certificates-DATE.json")
    options = parser.parse_args()
    if options.join:
        parts = [json.loads(path.read_text(encoding="utf-8")) for path in options.join]
    else:
        seed = secrets.randbits(63) if options.seed is None else options.seed
        which, many = map(int, (options.share or "0/1").split("/"))
        work = list(enumerate(units(seed, options.scale)))
        part: dict[str, Any] = {"seed": seed, "scale": options.scale, "source": _record.of_folder(ROOT)}
        part |= {"of": len(work), "units": []}
        for number, (name, function) in work[which::many]:
            if options.only not in (None, name):
                continue
            began = time.process_time()
            found = function()
            cpu = round(time.process_time() - began, 1)
            part["units"].append({"number": number, "part": name, "found": found, "cpu": cpu})
            print(number, name, f"{cpu} s", flush=True)
        if options.share:
            options.record.write_text(json.dumps(part) + "\n", encoding="utf-8")
            return 0
        parts = [part]
    record = joined(parts)
    path, head = _record.begin(ROOT, "certificates", options.record)
    if head["source"] != record["source"]:
        raise SystemExit("src is not what the shares ran with.")
    record = head | record
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return int(wrong(record))


if __name__ == "__main__":
    sys.exit(main())
