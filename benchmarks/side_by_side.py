"""The same work by two versions of attnflow, in one process, by turns.

    python benchmarks/side_by_side.py PATH_TO_AN_OLDER_CHECKOUT [CASE ...]

Compilation comes before. Each case is run by turns, old, new, new, old, ..., so that a machine that slows down slows
both. Printed are the median of the ratios new/old of neighbouring runs, the quartiles, and the wall times.
"""

import contextlib
import inspect
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TURNS = 12
LONGEST = 40.0
"""Seconds for a case."""


class Version:
    """One checkout, whose modules are put in place while it works."""

    def __init__(self, checkout: Path):
        self.source = str(checkout / "src")
        self.modules: dict[str, Any] = {}

    @contextlib.contextmanager
    def active(self) -> Iterator[Any]:
        """The package of this checkout, importable inside."""
        others = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "attnflow"}
        sys.modules.update(self.modules)
        sys.path.insert(0, self.source)
        try:
            import attnflow

            yield attnflow
        finally:
            sys.path.remove(self.source)
            self.modules = {n: sys.modules.pop(n) for n in list(sys.modules) if n.split(".")[0] == "attnflow"}
            sys.modules.update(others)


def long(af: Any, field: Any, tokens: Any) -> Any:
    """To consensus, in the words of either version."""
    if hasattr(af, "solve_long"):
        return af.solve_long(field, tokens)
    return af.solve(field, tokens, math.inf, method=af.LongTime())


def tokens(af: Any, n: int, dim: int = 3, seed: Any = 0) -> Any:
    return af.uniform(af.Sphere(dim), n=n, seed=seed)


def prepared(af: Any, field: Any, tokens: Any) -> Any:
    """Ten velocities at the tokens, with the sum that is chosen once."""
    made = field.prepare(tokens, tol=1e-8)
    return [velocity(made, tokens) for _ in range(10)]


def velocity(field: Any, tokens: Any, at: Any = None) -> Any:
    """The velocity by either version: older ones take the time first, then points, then tokens."""
    new = "at" in inspect.signature(field.velocity).parameters
    return field.velocity(tokens, at=at) if new else field.velocity(0.0, at, tokens)


def density(af: Any) -> Any:
    mf = af.meanfield
    return mf.evolve(af.Attention(9.0), mf.perturbed(mf.CircleBasis(256), 1, 0.5), 2.0, kappa=0.02, save=20)


def cells(af: Any) -> Any:
    mf = af.meanfield
    made = mf.circle_cells(512)
    masses = mf.cells_from_density(made, mf.perturbed(mf.CircleBasis(64), 1, 0.5))
    return mf.evolve_cells(af.Attention(9.0), made, masses, 5.0, save=20)


def fit(af: Any) -> Any:
    import numpy as np

    start = af.learn.Classifier(af.learn.residual_network(2, 16, 20, seed=0), np.eye(2), method=af.Layers(1 / 20))
    return af.learn.fit(start, *af.learn.interleaved_classes(200, "spirals", seed=0), steps=100)


CASES: dict[str, Callable[[Any], Any]] = {
    "adaptive, 32 tokens": lambda af: af.solve(af.Attention(9.0), tokens(af, 32), 20.0),
    "adaptive, 400 tokens": lambda af: af.solve(af.Attention(9.0), tokens(af, 400), 20.0),
    "adaptive, 2,000 tokens on S^7": lambda af: af.solve(af.Attention(9.0), tokens(af, 2000, 8), 5.0, save=20),
    "adaptive, 10^5 tokens on S^1": lambda af: af.solve(af.Attention(30.0), tokens(af, 100_000, 2), 5.0, save=20),
    "adaptive, 64 seeds of 32 tokens": lambda af: af.solve(
        af.Attention(9.0), tokens(af, 32, seed=range(64)), 10.0, save=40
    ),
    "fixed, 400 tokens": lambda af: af.solve(af.Attention(9.0), tokens(af, 400), 20.0, method=af.Fixed(0.1)),
    "layers, 400 tokens": lambda af: af.solve(af.Attention(9.0), tokens(af, 400), 20.0, method=af.Layers(0.1)),
    "noise, 64 tokens": lambda af: af.solve(af.Attention(9.0), tokens(af, 64), 20.0, noise=af.Brownian(0.05)),
    "long time, 64 tokens": lambda af: long(af, af.Attention(30.0), tokens(af, 64)),
    "merge times, 64 seeds of 8": lambda af: af.merge_times(af.Attention(20.0), tokens(af, 8, seed=range(64))),
    "velocity, 2,000 tokens on S^7": lambda af: [
        velocity(af.Attention(9.0), tokens(af, 2000, 8), tokens(af, 2000, 8).positions) for _ in range(10)
    ],
    "velocity, 10^5 tokens on S^2": lambda af: prepared(af, af.Attention(30.0), tokens(af, 100_000)),
    "velocity, causal, 20,000 on S^1": lambda af: prepared(
        af, af.Attention(9.0, mask=af.Causal(0.01)), tokens(af, 20_000, 2)
    ),
    "density, circle, 256 modes": density,
    "cells, circle, 512": cells,
    "fit, 100 steps": fit,
}  # fmt: skip


def timed(version: Version, case: Callable[[Any], Any]) -> float:
    with version.active() as af:
        began = time.perf_counter()
        case(af)
        return time.perf_counter() - began


def main() -> None:
    older, newer = Version(Path(sys.argv[1]).resolve()), Version(Path(__file__).resolve().parents[1])
    chosen = sys.argv[2:] or list(CASES)
    print(f"{'case':34} {'new/old':>8} {'quartiles':>14} {'old':>9} {'new':>9}")
    for name in chosen:
        timed(older, CASES[name])
        timed(newer, CASES[name])
        ratios, olds, news, began = [], [], [], time.perf_counter()
        for turn in range(TURNS):
            pair = (older, newer) if turn % 2 == 0 else (newer, older)
            took = {version.source: timed(version, CASES[name]) for version in pair}
            olds.append(took[older.source])
            news.append(took[newer.source])
            ratios.append(news[-1] / olds[-1])
            if turn >= 3 and time.perf_counter() - began > LONGEST:
                break
        low, middle, high = statistics.quantiles(ratios, n=4)
        times = f"{statistics.median(olds):8.3f}s {statistics.median(news):8.3f}s"
        print(f"{name:34} {middle:8.3f} {low:6.3f}–{high:.3f} {times}", flush=True)


if __name__ == "__main__":
    main()
