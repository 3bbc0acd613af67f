"""Causal attention against masked attention in PyTorch, and random layers on Gram matrices against layers on vectors.

    python benchmarks/decoders.py [--n 100000] [--beta 10] [--tol 1e-10] [--d 4096] [--rounds 5] [--seconds 60]
                                  [--json FILE] [--quick]

1. One field of causal softmax attention with Q = K = V = I at n uniform tokens on S^1 and S^2, float64: what attnflow
   chooses, the same without a mask, and `torch.nn.functional.scaled_dot_product_attention(is_causal=True)` if torch is
   installed. All in one process, on the same arrays, taking turns; times are the best of the rounds, without
   compilation. Errors are the largest distance of the softmax mean from NumPy's, at 200 random tokens.
   Target: the causal field takes at most 1.5 times as long as the one without a mask.
2. One layer of a network with random weights (`random_layers.random_attention`) for 16 tokens in R^d, d_k = d, and the
   same layer on the Gram matrix of the tokens (`random_layers.gram_layers`), where overlaps have the same distribution.
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import attnflow as af
from _peers import CORES, Run, missing, numbers, race
from attnflow import random_layers
from attnflow.masks import Everyone

SAMPLE = 200
TOKENS = 16


def compiled(tokens: af.Tokens, beta: float, mask: Any, tol: float) -> tuple[str, Run]:
    """The sum that is chosen, and one field at the tokens by it."""
    field = af.Attention(beta, mask=mask).prepare(tokens, tol)
    here = jax.device_put(tokens)

    def drive(x: Any, tokens: Any) -> Any:
        return field.drive(tokens.moved(x))

    run = jax.jit(drive).lower(here.positions, here).compile()
    return type(field.sum).__name__, lambda: run(here.positions, here).block_until_ready()


def with_torch(x: np.ndarray, beta: float) -> Run:
    """PyTorch's attention with a causal mask, in as many threads as there are cores."""
    import torch

    torch.set_num_threads(CORES)
    y = torch.from_numpy(np.array(x))[None, None]

    def run() -> Any:
        with torch.no_grad():
            return torch.nn.functional.scaled_dot_product_attention(y, y, y, scale=beta, is_causal=True)[0, 0]

    return run


def off_by(x: np.ndarray, beta: float) -> Callable[[Any], float]:
    """The largest distance of a causal result from NumPy's mean, at a sample of the tokens."""
    rows = np.random.default_rng(1).choice(len(x), min(SAMPLE, len(x)), replace=False)
    exact = []
    for row in rows:
        weights = np.exp(beta * (x[: row + 1] @ x[row] - 1))
        exact.append(weights @ x[: row + 1] / np.sum(weights))
    return lambda out: float(np.max(np.linalg.norm(numbers(out)[rows] - exact, axis=1)))


def causal(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Part 1."""
    found = []
    for d in (2, 3):
        tokens = af.uniform(af.Sphere(d), n=options.n, seed=0)
        x = np.asarray(tokens.positions)
        masked, runs = {}, {}
        for name, mask in (("causal", af.Causal()), ("unmasked", Everyone())):
            masked[name], runs[name] = compiled(tokens, options.beta, mask, options.tol)
        if "torch" not in missing():
            runs["torch"] = with_torch(x, options.beta)
        look = off_by(x, options.beta)
        rows = race(runs, options.rounds, options.seconds, look)
        rows["unmasked"].pop("error")  # another field
        found.append({"d": d, "n": options.n, "beta": options.beta, "sums": masked, "methods": rows})
        times = {name: row["seconds"] for name, row in rows.items()}
        words = f"S^{d - 1}, n = {options.n}: {masked['causal']} {times['causal']:.3g} s, off by "
        words += f"{rows['causal']['error']:.1e}; {times['causal'] / times['unmasked']:.2f} times the field without a "
        words += f"mask ({masked['unmasked']}, {times['unmasked']:.3g} s)"
        if "torch" in times:
            words += f"; torch {times['torch']:.3g} s, {times['torch'] / times['causal']:.3g} times as long"
        print(words, flush=True)
    return found


def layers(options: argparse.Namespace) -> dict[str, Any]:
    """Part 2: seconds of one layer, from the difference of two depths, so that compilation and start cancel."""
    d, step = options.d, 0.25
    start = af.Tokens(np.eye(TOKENS, d), space=af.Sphere(d))
    field = random_layers.random_attention(d, 1.0, step=step)

    def vectors(count: int) -> Any:
        return np.asarray(af.advance(field, start, 0.0, step * count, af.Layers(step)).positions)

    def grams(count: int) -> Any:
        return random_layers.gram_layers(0.0, 1.0, step, count, d, n=TOKENS).overlap

    seconds = {}
    for name, run, count in (("vectors", vectors, 2), ("gram", grams, 400)):
        best = []
        for many in (count, 2 * count):
            run(many)  # compiles
            times = []
            for _ in range(options.rounds):
                began = time.perf_counter()
                run(many)
                times.append(time.perf_counter() - began)
            best.append(min(times))
        seconds[name] = (best[1] - best[0]) / count
    ratio = seconds["vectors"] / seconds["gram"]
    print(f"one layer of {TOKENS} tokens in R^{d}, d_k = {d}: vectors {seconds['vectors']:.3g} s, "
          f"Gram matrix {seconds['gram']:.3g} s, {ratio:.3g} times faster")  # fmt: skip
    return {"d": d, "tokens": TOKENS, "seconds": seconds}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--beta", type=float, default=10.0)
    parser.add_argument("--tol", type=float, default=1e-10)
    parser.add_argument("--d", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=60.0, help="later rounds of one method, at most")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    options = parser.parse_args()
    if options.quick:
        options.n, options.d, options.rounds = 3000, 256, 2
    jax.config.update("jax_enable_x64", True)
    if "torch" in missing():
        print("torch is not installed; it is left out.")
    found = {"causal": causal(options), "layers": layers(options)}
    if options.json:
        with open(options.json, "w") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
