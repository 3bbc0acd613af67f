"""What a sweep costs beside the work itself.

    python benchmarks/sweeps.py [--tasks 2000] [--trivial 100000] [--skip-peers] [--json FILE]

Small flows (n = 16 tokens on S^2, 20 steps of Runge and Kutta, one observable), one for each of `--tasks` seeds and
values of beta, in this process: a plain loop over batches of 64 (`Along` and `stack`, the fastest way by hand), the
same as a sweep (planning, shards, journal and dataset included), and flows one by one in a pool of two processes, with
`multiprocessing` and, where it is installed, with joblib. The programs are compiled before the clock starts. Then
`--trivial` tasks that return a number, from the plan to the dataset, with the memory that they took. Targets: at most
5 ms a task over the plain loop; 100,000 tasks in minutes, with bounded memory.
"""

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import attnflow as af

WIDTH = 64
BETAS = np.geomspace(1.0, 81.0, 20).tolist()
SPEC = """
[tokens]
name = "uniform"
n = 16
space = { name = "sphere", dim = 3 }
[field]
name = "attention"
beta = 1.0
[solve]
until = 2.0
save = { name = "evenly", count = 4 }
keep = []
method = { name = "fixed", step = 0.1 }
observe = { order = { name = "order-parameter" } }
"""
OPTIONS: dict[str, Any] = {
    "save": 4,
    "keep": [],
    "method": af.Fixed(0.1),
    "observe": {"order": af.observe.order_parameter},
}


def by_hand(points: list[tuple[float, int]]) -> np.ndarray:
    found = []
    for first in range(0, len(points), WIDTH):
        some = points[first : first + WIDTH]
        some = [*some, *[some[-1]] * (WIDTH - len(some))]
        field = af.Attention(af.Along("task", np.array([beta for beta, _ in some]), labels=range(WIDTH)))
        tokens = af.stack("task", range(WIDTH), [af.uniform(af.Sphere(3), n=16, seed=seed) for _, seed in some])
        found.append(af.solve(field, tokens, 2.0, **OPTIONS).dataset["order"].values)
    return np.concatenate(found)[: len(points)]


def one(point: tuple[float, int]) -> np.ndarray:
    beta, seed = point
    tokens = af.uniform(af.Sphere(3), n=16, seed=seed)
    return af.solve(af.Attention(beta), tokens, 2.0, **OPTIONS).dataset["order"].values


def trivial(k: int) -> int:
    return k * k


def timed(function: Any) -> tuple[float, Any]:
    began = time.perf_counter()
    found = function()
    return time.perf_counter() - began, found


def flows(tasks: int, peers: bool, place: Path) -> dict[str, Any]:
    seeds = tasks // len(BETAS)
    points = [(beta, seed) for beta in BETAS for seed in range(seeds)]
    over = {"field.beta": BETAS, "tokens.seed": range(seeds)}
    (place / "flow.toml").write_text(SPEC)

    def swept(name: str, over: dict[str, Any]) -> Any:
        return af.sweep(place / "flow.toml", over, place / name, width=WIDTH).dataset["order"].values

    by_hand(points[:1])
    swept("warm", {"field.beta": [1.0, 2.0], "tokens.seed": range(WIDTH)})
    clocks = [time.process_time()]
    plain, expected = timed(lambda: by_hand(points))
    clocks.append(time.process_time())
    sweep, found = timed(lambda: swept("sweep", over))
    clocks.append(time.process_time())
    np.testing.assert_allclose(found.reshape(expected.shape), expected, atol=1e-10)
    again, _ = timed(lambda: swept("sweep", over))
    rows: dict[str, Any] = {
        "tasks": len(points),
        "plain loop, s": plain,
        "sweep, s": sweep,
        "the same sweep again, s": again,
        "overhead, ms a task": 1e3 * (sweep - plain) / len(points),
        "overhead, ms of CPU time a task": 1e3 * (clocks[2] - 2 * clocks[1] + clocks[0]) / len(points),
    }
    if peers:
        context = multiprocessing.get_context("forkserver")
        with context.Pool(2) as pool:
            pool.map(one, points[:8])
            rows["multiprocessing, 2 processes, s"], _ = timed(lambda: pool.map(one, points))
        try:
            import joblib
        except ImportError:  # not among the packages of this project
            return rows
        with joblib.Parallel(n_jobs=2) as parallel:
            parallel(joblib.delayed(one)(point) for point in points[:8])
            rows["joblib, 2 processes, s"], _ = timed(lambda: parallel(joblib.delayed(one)(p) for p in points))
    return rows


def many(tasks: int, place: Path) -> dict[str, Any]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, sweep = timed(lambda: af.sweep(trivial, {"k": range(tasks)}, place / "many"))
    assert float(sweep.dataset["value"][-1]) == float((tasks - 1) ** 2)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    opened, _ = timed(lambda: af.open_sweep(place / "many").status)
    return {
        "trivial tasks": tasks,
        "seconds": seconds,
        "files": len(list((place / "many" / "shards").iterdir())),
        "more memory, MB": (after - before) / 1024,
        "opened again, s": opened,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=2000)
    parser.add_argument("--trivial", type=int, default=100_000)
    parser.add_argument("--skip-peers", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        rows = flows(given.tasks, not given.skip_peers, Path(place)) | many(given.trivial, Path(place))
    for name, value in rows.items():
        print(f"{name:34} {value:,.4g}" if isinstance(value, float) else f"{name:34} {value:,}")
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
