"""Time per step of attention with Brownian noise: attnflow's layers, and two solvers of Diffrax on the same field.

    python benchmarks/noise.py [--tokens 256] [--steps 1000] [--beta 9] [--repeat 3]

All in one process on the same n tokens on S^2 in float64, with the same field code, so that the ratios compare what
goes around it: the step and the drawing of noise. `layers` is `solve(..., noise=Brownian(kappa))`, `still` the same
without noise, `heun` is `solve(..., method=Heun(step))` (Diffrax with a Brownian tree). `euler` is what a user of
Diffrax would write: Euler's method for the equation in the sense of Ito, with the correction -(d-1) kappa x, and the
cheapest Brownian path; it normalises once a step where layers do so after the drift and after the noise. Times are the
best of several runs without compilation. Prints ratios, then JSON.
Target: layers take less than heun, and at most 1.2 times as long as euler.
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import lineax
import numpy as np

import attnflow as af
from attnflow.fields.base import tangent_drive
from attnflow.fields.queries import AtTokens
from attnflow.flows.methods.heun import Heun

STEP, KAPPA = 0.01, 0.1


def with_solve(field: af.AbstractField, tokens: af.Tokens, until: float, method: Any, noise: Any) -> np.ndarray:
    return af.solve(field, tokens, until, save=af.saving.Evenly(1), method=method, noise=noise).positions.values[-1]


def euler(field: af.AbstractField, tokens: af.Tokens, until: float) -> Callable[[], np.ndarray]:
    """Diffrax by itself; compiled once, for double precision."""
    n, d = tokens.n, tokens.dim
    shape = jax.ShapeDtypeStruct((n, d), np.float64)

    def drift(t: Any, y: Any, _: Any) -> Any:
        x = y / jnp.linalg.norm(y, axis=1, keepdims=True)
        return tangent_drive(field, t, AtTokens(), tokens.measure.moved(x)) - KAPPA * (d - 1) * x

    def spread(t: Any, y: Any, _: Any) -> Any:
        x = y / jnp.linalg.norm(y, axis=1, keepdims=True)
        return lineax.FunctionLinearOperator(
            lambda w: np.sqrt(2 * KAPPA) * (w - jnp.sum(x * w, axis=1, keepdims=True) * x), shape
        )

    @jax.jit
    def run(x: Any, key: Any) -> Any:
        terms = diffrax.MultiTerm(
            diffrax.ODETerm(drift), diffrax.ControlTerm(spread, diffrax.UnsafeBrownianPath(shape, key))
        )
        forward = diffrax.ForwardMode()
        y = diffrax.diffeqsolve(terms, diffrax.Euler(), 0.0, until, STEP, x, max_steps=None, adjoint=forward).ys[-1]
        return y / jnp.linalg.norm(y, axis=1, keepdims=True)

    return lambda: np.asarray(run(jnp.asarray(tokens.positions), jax.random.key(0)))


def best(run: Callable[[], np.ndarray], repeat: int) -> tuple[float, float]:
    """Seconds of the first call less those of the best, and of the best."""
    taken = []
    for _ in range(repeat + 1):
        began = time.perf_counter()
        end = run()
        taken.append(time.perf_counter() - began)
        assert np.abs(np.linalg.norm(end, axis=1) - 1).max() < 1e-12
    return taken[0] - min(taken[1:]), min(taken[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--beta", type=float, default=9.0)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    field, tokens = af.Attention(options.beta), af.uniform(af.Sphere(3), n=options.tokens, seed=0)
    until, noise, layers = (
        options.steps * STEP,
        af.Brownian(KAPPA),
        af.Layers(STEP, af.layer_updates.ProjectRenormalise()),
    )
    result: dict[str, Any] = {"n": options.tokens, "steps": options.steps, "beta": options.beta}
    with jax.enable_x64(True):
        runs: dict[str, Callable[[], np.ndarray]] = {
            "layers": lambda: with_solve(field, tokens, until, layers, noise),
            "still": lambda: with_solve(field, tokens, until, layers, None),
            "heun": lambda: with_solve(field, tokens, until, Heun(STEP), noise),
            "euler": euler(field, tokens, until),
        }
        for name, run in runs.items():
            compiling, seconds = best(run, options.repeat)
            result[name] = {"microseconds per step": 1e6 * seconds / options.steps, "compile": compiling}
            ratio = result[name]["ratio"] = seconds / (options.steps * 1e-6) / result["layers"]["microseconds per step"]
            print(f"{name:7s} {1e6 * seconds / options.steps:8.1f} us per step = {ratio:.2f} x layers", flush=True)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
