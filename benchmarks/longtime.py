"""Work to follow tokens through a plateau and its end, against how long it lasts: methods of attnflow and of SciPy.

    python benchmarks/longtime.py [--decades 9] [--steps 100000] [--seconds 60] [--large 200] [--json FILE]
                                    [--figure FILE]

Eight tokens on S^2 in two groups of four, softmax attention at beta = 12: the groups contract at rate 1 and meet at
a time T, which their angle sets, from 10 to 10^9. Every method goes from 0 to 1.5 T with rtol 1e-6 and atol 1e-9
(`LongTime`: tol 1e-6), and all tokens must then be one. Explicit steps stay below about 3 to 6 for stability, so their
number grows like T; a method that needs more than --steps of them (by that rule), or more than --seconds, is left out
from there on, and the table says so. Implicit ones grow like log T and factorise a matrix of (n d)^2 entries;
`LongTime` pays per merge, here 7. Steps are those accepted for SciPy, and attempted for attnflow; evaluations of the
field include those of Jacobians by differences (Kvaerno's method solves its stages inside Diffrax: not counted). Times
are CPU seconds without compilation. Peers are what a user would write. At the end iid tokens on S^2 at beta = 200 are
followed to consensus, twice, which tells the time to compile.
Target: `LongTime` takes the same work at every T, and a hundredth of the steps of any explicit method at T = 10^5.
"""

import argparse
import json
import math
import time
from collections.abc import Callable
from typing import Any

import diffrax
import numpy as np
from scipy import integrate
from scipy.optimize import brentq

import attnflow as af
from attnflow import theory

BETA, RTOL, ATOL, RADIUS = 12.0, 1e-6, 1e-9, 0.05
EXPLICIT = ("RK45", "DOP853", "Adaptive")
Work = dict[str, Any]


def start(log_time: float) -> np.ndarray:
    """Two groups of four at the angle from which point clusters meet in this time."""
    angle = brentq(lambda a: float(theory.merging.log_merge_time(a, BETA)) - log_time, 0.05, 3.1)
    middle = np.repeat([[1.0, 0.0, 0.0], [math.cos(angle), math.sin(angle), 0.0]], 4, axis=0)
    x = middle + RADIUS * np.random.default_rng(0).standard_normal((8, 3)) / math.sqrt(3)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def with_scipy(name: str, x: np.ndarray, until: float, seconds: float) -> Work | None:
    calls, ends = 0, time.process_time() + seconds

    def f(_: float, y: np.ndarray) -> np.ndarray:
        nonlocal calls
        calls += 1
        y = y.reshape(8, 3)
        w = np.exp(BETA * (y @ y.T - 1))
        a = (w @ y) / w.sum(axis=1, keepdims=True)
        return (a - np.sum(a * y, axis=1, keepdims=True) * y).ravel()

    solver = getattr(integrate, name)(f, 0.0, x.ravel(), until, rtol=RTOL, atol=ATOL)
    steps = 0
    while solver.status == "running" and time.process_time() < ends:
        solver.step()
        steps += 1
    if solver.status != "finished":
        return None
    return {"steps": steps, "evaluations": calls, "end": solver.y.reshape(8, 3)}


def with_adaptive(implicit: bool, x: np.ndarray, until: float, seconds: float) -> Work | None:
    method = af.Adaptive(RTOL, ATOL, solver=diffrax.Kvaerno5() if implicit else None)
    flow = af.solve(af.Attention(BETA), af.from_array(x), until, method=method, save=af.saving.At([until]))
    steps = sum(flow.steps.values())
    work: Work = {"steps": steps, "end": flow.positions.values[-1]}
    return work if implicit else work | {"evaluations": 13 * steps}


def with_long_time(x: np.ndarray, until: float, seconds: float) -> Work | None:
    flow = af.solve_long(af.Attention(BETA), af.from_array(x), until, method=af.LongTime(1e-6))
    merges = flow.merges
    return {
        "steps": sum(flow.steps.values()),
        "evaluations": int(merges["evaluations"][-1]),
        "merges": merges.sizes["merge"],
        "end": flow.positions.values[-1],
    }


SOLVERS: dict[str, Callable[[np.ndarray, float, float], Work | None]] = {
    "RK45": lambda *a: with_scipy("RK45", *a),
    "DOP853": lambda *a: with_scipy("DOP853", *a),
    "Adaptive": lambda *a: with_adaptive(False, *a),
    "LSODA": lambda *a: with_scipy("LSODA", *a),
    "Radau": lambda *a: with_scipy("Radau", *a),
    "Adaptive(Kvaerno5)": lambda *a: with_adaptive(True, *a),
    "LongTime": with_long_time,
}


def measure(decades: int, budget: int, seconds: float) -> list[Work]:
    rows: list[Work] = []
    last: dict[str, int] = {}
    for name, solver in SOLVERS.items():  # compile
        if name.startswith(("Adaptive", "LongTime")):
            solver(start(math.log(10.0)), 15.0, seconds)
    for decade in range(1, decades + 1):
        x, until = start(decade * math.log(10.0)), 1.5 * 10.0**decade
        row: Work = {"T": 10.0**decade}
        for name, solver in SOLVERS.items():
            row[name] = None
            if (name in EXPLICIT and 10 * last.get(name, 0) > budget) or (rows and rows[-1][name] is None):
                continue
            began = time.process_time()
            work = solver(x, until, seconds)
            taken = time.process_time() - began
            if work is None:
                continue
            end = work.pop("end")
            met = bool(np.linalg.norm(end - end[:1], axis=1).max() < 1e-2)
            last[name] = work["steps"]
            row[name] = work | {"seconds": taken, "met": met}
        rows.append(row)
        print(f"T = 1e{decade}  " + " | ".join(f"{name} {_short(row[name])}" for name in SOLVERS), flush=True)
    return rows


def _short(work: Work | None) -> str:
    if work is None:
        return "left out"
    return f"{work['steps']} ({work['seconds']:.2g} s{'' if work['met'] else ', NOT MET'})"


def slopes(rows: list[Work]) -> dict[str, float]:
    """Powers of T: the slope of log(steps) in log T over the last three times that a method reached."""
    found = {}
    for name in SOLVERS:
        pairs = [(math.log(row["T"]), math.log(row[name]["steps"])) for row in rows if row[name] is not None][-3:]
        if len(pairs) > 1:
            found[name] = float(np.polyfit(*zip(*pairs, strict=True), 1)[0])
    return found


def large(n: int) -> Work:
    """Iid tokens on S^2 at beta = 200 to consensus: first and second call."""
    tokens, seconds, cpu = af.uniform(af.Sphere(3), n=n, seed=1), [], []
    for _ in range(2):
        began, busy = time.perf_counter(), time.process_time()
        flow = af.solve_long(af.Attention(200.0), tokens)
        seconds.append(time.perf_counter() - began)
        cpu.append(time.process_time() - busy)
    merges = flow.merges
    return {
        "n": n,
        "seconds": seconds[1],
        "CPU seconds": cpu[1],
        "compile (CPU)": cpu[0] - cpu[1],
        "consensus at log t": float(merges["log_time"][-1]),
        "evaluations": int(merges["evaluations"][-1]),
        "undetermined": int(merges["undetermined"].sum()),
    }


def draw(rows: list[Work], path: str) -> None:
    from attnflow.plots.style import COLOURS, PAGE, styled

    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 2.7))
        axes = fig.subplots(1, 2)
        for name, colour, marker in zip(SOLVERS, COLOURS[:6] + COLOURS[7:], "ovs^DPo", strict=False):
            ran = [row for row in rows if row[name] is not None]
            line = "--" if name in EXPLICIT else "-"
            style = {"color": colour, "marker": marker, "ms": 3.5, "ls": line, "lw": 2 if name == "LongTime" else 1}
            axes[0].plot([row["T"] for row in ran], [row[name]["steps"] for row in ran], **style, label=name)
            axes[1].plot([row["T"] for row in ran], [row[name]["seconds"] for row in ran], **style)
        for one, words in zip(axes, ("steps", "CPU seconds"), strict=True):
            one.set(xscale="log", yscale="log", xlabel="time $T$ at which the groups meet", ylabel=words)
        fig.legend(loc="outside right upper")
        fig.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decades", type=int, default=9)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--large", type=int, default=200)
    parser.add_argument("--json")
    parser.add_argument("--figure")
    options = parser.parse_args()
    rows = measure(options.decades, options.steps, options.seconds)
    grows = slopes(rows)
    print("steps grow like T to the power " + ", ".join(f"{name} {power:.2f}" for name, power in grows.items()))
    for row in rows:
        ours = row["LongTime"]
        ratios = ", ".join(
            f"{name} {row[name]['steps'] / ours['steps']:.3g} ({row[name]['seconds'] / ours['seconds']:.3g})"
            for name in SOLVERS
            if row[name] is not None and name != "LongTime"
        )
        print(f"T = {row['T']:g}: steps (seconds) over those of LongTime: {ratios}")
    many = large(options.large) if options.large else None
    if many:
        print(f"{many['n']} tokens at beta = 200: {many}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"rows": rows, "slopes": grows, "large": many}, file, indent=1)
    if options.figure:
        draw(rows, options.figure)


if __name__ == "__main__":
    main()
