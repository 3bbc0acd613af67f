"""A schedule of ReLU units against the same residual layers in PyTorch.

    python benchmarks/control.py [--elements 10000] [--points 100000] [--d 2] [--rounds 3] [--seconds 60] [--json FILE]

`Schedule.push` gives end points and log-determinants; PyTorch runs x + relu(x @ a + b) u layer by layer under
`torch.inference_mode`, without log-determinants, in float64, on the same arrays and cores, taking turns. Times are the
best of the rounds, without compilation. The error is the largest distance of the end points. Then the time to build a
schedule for 20 measures with one atom each on S^2.
"""

import argparse
import json
import time
from typing import Any

import numpy as np
from attnflow.experiments.clouds import atoms, cloud

import attnflow as af
from _peers import CORES
from attnflow import control


def schedule_of(elements: int, d: int) -> control.Schedule:
    """Random small units with a budget of 30."""
    rng = np.random.default_rng(0)
    w, a = rng.standard_normal((2, elements, d))
    scale = 30 / np.sum(np.linalg.norm(w, axis=1) * np.linalg.norm(a, axis=1))
    return control.units(w * scale, a, rng.standard_normal(elements))


def in_torch(schedule: control.Schedule, x: np.ndarray) -> Any:
    """The residual layers in PyTorch, or None if it is not installed."""
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(CORES)
    rows = [[torch.from_numpy(np.ascontiguousarray(v)) for v in layer] for layer in control.to_weights(schedule)]
    start = torch.from_numpy(x)

    def run() -> np.ndarray:
        with torch.inference_mode():
            y = start.clone()
            for inner, bias, outer in rows:
                y += torch.relu(torch.addmm(bias, y, inner.T)) @ outer.T
            return y.numpy()

    return run


def main() -> None:
    """Print, and write as JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elements", type=int, default=10_000)
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--d", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--json")
    options = parser.parse_args()
    schedule = schedule_of(options.elements, options.d)
    x = np.random.default_rng(1).standard_normal((options.points, options.d))
    runs = {"attnflow": lambda: schedule.push(x)[0]}
    if (torch := in_torch(schedule, x)) is not None:
        runs["torch"] = torch
    ends, times = {name: run() for name, run in runs.items()}, dict.fromkeys(runs, np.inf)
    for _ in range(options.rounds):
        for name, run in runs.items():
            began = time.perf_counter()
            run()
            times[name] = min(times[name], time.perf_counter() - began)
    found: dict[str, Any] = {"elements": options.elements, "points": options.points, "d": options.d, "seconds": times}
    if torch is not None:
        found["error"] = float(np.abs(ends["torch"] - ends["attnflow"]).max())
        found["ratio"] = times["torch"] / times["attnflow"]
    rng = np.random.default_rng(2)
    inputs, targets = [cloud(rng, 3, 160, 0.8) for _ in range(20)], [atoms(rng, 3, 1) for _ in range(20)]
    began = time.perf_counter()
    match = control.match_measures(inputs, targets)
    found["build 20 measures"] = {"seconds": time.perf_counter() - began, "elements": len(match.schedule),
                                  "w2": float(match.w2.max()), "version": af.__version__}  # fmt: skip
    print(json.dumps(found, indent=1))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(found, file)


if __name__ == "__main__":
    main()
