"""Time to integrate n tokens on S^2 to t = 10 at beta = 9 at equal accuracy: attnflow, SciPy DOP853, torchdiffeq.

    python benchmarks/solve.py [--sizes 32 256 1024 8192] [--dim 3] [--until 10] [--target 1e-6] [--json FILE]

All in one process on the same tokens in float64. For each size every solver gets the loosest relative tolerance, out of
powers of ten, with which its largest coordinate error at t = 10 is below the target; at 8192 tokens the tolerance found
at 1024 is used and the error that it gave is printed. The reference is attnflow at rtol 1e-11 (1e-7 at 8192),
checked against SciPy at rtol 1e-12 up to 256 tokens. Times are the best of three runs (one at 8192), without
compilation, which is reported apart. Peers are what a user would write: dense n x n arrays. Install them with
`pip install torch==2.13.0 torchdiffeq`. Targets: not slower than SciPy at n >= 256
and than torchdiffeq at any n; 2.5 times faster than both at n >= 8192 on S^1 (--dim 2) and S^2.
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

import attnflow as af

BETA = 9.0
Solver = Callable[[np.ndarray, float, float], np.ndarray]


def with_attnflow(x: np.ndarray, rtol: float, until: float) -> np.ndarray:
    flow = af.solve(
        af.Attention(BETA), af.from_array(x), until, save=af.saving.Evenly(1), method=af.Adaptive(rtol, rtol / 100)
    )
    return flow.positions.values[-1]


def with_scipy(x: np.ndarray, rtol: float, until: float) -> np.ndarray:
    def f(_: float, y: np.ndarray) -> np.ndarray:
        y = y.reshape(x.shape)
        w = np.exp(BETA * (y @ y.T - 1))
        a = (w @ y) / w.sum(axis=1, keepdims=True)
        return (a - np.sum(a * y, axis=1, keepdims=True) * y).ravel()

    return solve_ivp(f, (0, until), x.ravel(), "DOP853", rtol=rtol, atol=rtol / 100).y[:, -1].reshape(x.shape)


def with_torchdiffeq(x: np.ndarray, rtol: float, until: float) -> np.ndarray:
    import torch
    from torchdiffeq import odeint

    def f(_: Any, y: Any) -> Any:
        w = torch.softmax(BETA * (y @ y.T), dim=1)
        a = w @ y
        return a - torch.sum(a * y, dim=1, keepdim=True) * y

    with torch.no_grad():
        times = torch.tensor([0.0, until], dtype=torch.float64)
        return odeint(f, torch.from_numpy(x.copy()), times, rtol=rtol, atol=rtol / 100, method="dopri5")[-1].numpy()


def seconds(solver: Solver, x: np.ndarray, rtol: float, until: float, repeat: int) -> tuple[float, np.ndarray]:
    best = np.inf
    for _ in range(repeat):
        began = time.perf_counter()
        end = solver(x, rtol, until)
        best = min(best, time.perf_counter() - began)
    return best, end


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[32, 256, 1024, 8192])
    parser.add_argument("--dim", type=int, default=3)
    parser.add_argument("--target", type=float, default=1e-6)
    parser.add_argument("--until", type=float, default=10.0)
    parser.add_argument("--json")
    options = parser.parse_args()
    solvers: dict[str, Solver] = {"attnflow": with_attnflow, "scipy": with_scipy}
    try:
        import torchdiffeq  # noqa: F401

        solvers["torchdiffeq"] = with_torchdiffeq
    except ImportError:
        print("torchdiffeq is not installed; it is left out")
    tolerance: dict[str, float] = {}
    rows = []
    for n in options.sizes:
        x = np.asarray(af.uniform(af.Sphere(options.dim), n=n, seed=0).positions)
        large = n > 2048
        moment = [0.0, 0.0]  # the end time is traced, so a very short flow compiles what the long one runs
        for k in range(2):
            began = time.perf_counter()
            with_attnflow(x, 1e-3, 1e-3)
            moment[k] = time.perf_counter() - began
        exact = with_attnflow(x, 1e-7 if large else 1e-11, options.until)
        if n <= 256:
            gap = np.abs(with_scipy(x, 1e-12, options.until) - exact).max()
            assert gap < 0.1 * options.target, f"the reference is off by {gap}"
        row: dict[str, Any] = {"n": n, "compile": moment[0] - moment[1]}
        for name, solver in solvers.items():
            for rtol in [tolerance[name]] if large and name in tolerance else 10.0 ** -np.arange(4, 12):
                taken, end = seconds(solver, x, float(rtol), options.until, 1 if large else 3)
                error = float(np.abs(end - exact).max())
                if error < options.target or large:
                    break
            tolerance[name] = float(rtol)
            row[name] = {"seconds": taken, "error": error, "rtol": float(rtol)}
        rows.append(row)
        ours = row["attnflow"]["seconds"]
        print(f"n = {n:5d}  compile {row['compile']:.1f} s  ", end="")
        for name in solvers:
            r = row[name]
            print(f"| {name} {r['seconds']:.4g} s (rtol {r['rtol']:.0e}, error {r['error']:.0e})", end="")
            print(f" = {r['seconds'] / ours:.2f} x ours " if name != "attnflow" else " ", end="")
        print(flush=True)
    if options.json:
        with open(options.json, "w") as stream:
            json.dump(rows, stream, indent=2)


if __name__ == "__main__":
    main()
