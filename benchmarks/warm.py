"""A flow of few tokens after its first call, where the work around compiled programs decides: two versions and SciPy.

    python benchmarks/warm.py PATH_TO_AN_OLDER_CHECKOUT [--tokens 32] [--turns 100]

Each version works in a process of its own, and the processes take turns: old, new, new, old, ... Printed are the median
of the ratios old/new of neighbouring runs with its quartiles, the least and the median of the wall times, and the same
of SciPy's DOP853 at the loosest tolerance whose error at the end is not above that of attnflow; both save 201 frames.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

BETA, UNTIL = 9.0, 20.0


class Worker:
    """A process that integrates once whenever it is asked, and says how long that took."""

    def __init__(self, name: str, checkout: Path, tokens: int):
        command = [sys.executable, __file__, "--work", name, "--tokens", str(tokens), str(checkout)]
        environment = os.environ | {"PYTHONPATH": str(checkout / "src")}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.about = self._answer()

    def seconds(self) -> float:
        """Of one run."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self._answer())

    def _answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def work(name: str, count: int) -> None:
    """Compile, then one run for every line of input."""
    import attnflow as af

    tokens, field = af.uniform(af.Sphere(3), n=count, seed=0), af.Attention(BETA)
    if name == "scipy":
        once, about = peer(af, field, tokens)
    else:
        about = af.__file__

        def once() -> Any:
            return af.solve(field, tokens, UNTIL)

    for _ in range(3):
        once()
    print(about, flush=True)
    for _ in sys.stdin:
        began = time.perf_counter()
        once()
        print(time.perf_counter() - began, flush=True)


def peer(af: Any, field: Any, tokens: Any) -> tuple[Any, str]:
    """DOP853 of SciPy with NumPy, at the loosest tolerance that is at least as accurate."""
    from scipy.integrate import solve_ivp

    x, frames = np.asarray(tokens.positions), np.linspace(0, UNTIL, 201)

    def rate(t: float, state: np.ndarray) -> np.ndarray:
        y = state.reshape(x.shape)
        y = y / np.linalg.norm(y, axis=1, keepdims=True)
        weights = np.exp(BETA * (y @ y.T - 1))
        drive = (weights @ y) / weights.sum(axis=1, keepdims=True)
        return (drive - np.sum(drive * y, axis=1, keepdims=True) * y).ravel()

    def run(rtol: float) -> np.ndarray:
        found = solve_ivp(rate, (0, UNTIL), x.ravel(), "DOP853", frames, rtol=rtol, atol=rtol / 100).y[:, -1]
        found = found.reshape(x.shape)
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    exact = run(1e-13)
    ours = np.abs(af.solve(field, tokens, UNTIL).positions.values[-1] - exact).max()
    errors = {rtol: np.abs(run(rtol) - exact).max() for rtol in 10.0 ** -np.arange(4.0, 12.5, 0.5)}
    rtol = max((rtol for rtol, error in errors.items() if error <= ours), default=1e-12)
    about = f"DOP853, rtol = {rtol:.0e}: error {errors.get(rtol, np.nan):.1e}, attnflow {ours:.1e}"
    return lambda: run(rtol), about


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("older", type=Path)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work, options.tokens)
        return
    here = Path(__file__).resolve().parents[1]
    places = {"old": options.older.resolve(), "new": here, "scipy": here}
    workers = {name: Worker(name, place, options.tokens) for name, place in places.items()}
    for name, worker in workers.items():
        print(f"{name:6} {worker.about}", flush=True)
    took: dict[str, list[float]] = {name: [] for name in workers}
    for turn in range(options.turns):
        for name in list(workers)[:: 1 if turn % 2 == 0 else -1]:
            took[name].append(workers[name].seconds())
    for name, worker in workers.items():
        worker.close()
        print(f"{name:6} least {1e3 * min(took[name]):7.2f} ms, median {1e3 * statistics.median(took[name]):7.2f} ms")
    for name, other in (("old", "new"), ("scipy", "new")):
        ratios = [a / b for a, b in zip(took[name], took[other], strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        least = min(took[name]) / min(took[other])
        print(f"{name}/{other} {middle:.2f} (quartiles {low:.2f} to {high:.2f}; of the least times {least:.2f})")


if __name__ == "__main__":
    main()
