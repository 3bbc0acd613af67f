"""W_2 of weighted measures on the circle against POT, in one process, by turns.

    python benchmarks/transport.py [--tokens 1000 10000 100000 1000000] [--turns 5]

Both get angles and masses that are drawn afresh in every turn; POT's W_2^2 has the circumference as unit. Printed are
CPU seconds (median) and the largest relative difference of the two answers.
"""

import argparse
import statistics
import time

import numpy as np
import ot

from attnflow.transport.circle import couple_on_circle


def ours(x: np.ndarray, a: np.ndarray, y: np.ndarray, b: np.ndarray) -> float:
    """W_2."""
    return float(np.sqrt(couple_on_circle(x, a, y, b, 2).cost(2)))


def pot(x: np.ndarray, a: np.ndarray, y: np.ndarray, b: np.ndarray) -> float:
    """W_2 in radians."""
    turns = [np.mod(angles, 2 * np.pi) / (2 * np.pi) for angles in (x, y)]
    square = ot.wasserstein_circle(turns[0], turns[1], a, b, p=2)
    return float(2 * np.pi * np.sqrt(np.asarray(square).ravel()[0]))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, nargs="+", default=[1000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    for n in options.tokens:
        seconds: dict[str, list[float]] = {"ours": [], "pot": []}
        off = 0.0
        for _ in range(options.turns):
            (x, y), (a, b) = rng.uniform(0, 2 * np.pi, (2, n)), rng.random((2, n))
            a, b = a / a.sum(), b / b.sum()
            found = {}
            for name, function in (("ours", ours), ("pot", pot)):
                start = time.process_time()
                found[name] = function(x, a, y, b)
                seconds[name].append(time.process_time() - start)
            off = max(off, abs(found["ours"] / found["pot"] - 1))
        own, other = (statistics.median(seconds[name]) for name in ("ours", "pot"))
        print(f"n = {n:8,}: attnflow {own:8.3f} s, POT {other:8.3f} s, ratio {other / own:5.2f}, differ by {off:.1e}")


if __name__ == "__main__":
    main()
