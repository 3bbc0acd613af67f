"""Round-off of the series sums, in units of eps sqrt(degree + 1): what ROUND_OFF of sums/series.py must exceed.

    python benchmarks/rounding.py

Softmax sums over n tokens of random masses (uniform, in four clouds, in one cloud) at 60 random ones of them, with the
series carried to where truncation is below rounding, against sums of e^(-beta |x - y|^2/2) in float64 whose terms are
right to rounding and are added without any.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from attnflow.kernels import Exponential
from attnflow.masks import Everyone
from attnflow.special.degrees import truncation_degrees
from attnflow.sums import Circle, Harmonics, Weights

CASES = {
    (2, 2000): (0.1, 1.0, 10.0, 1e3, 1e4),
    (2, 100_000): (0.1, 10.0, 1e4),
    (3, 2000): (0.1, 1.0, 10.0, 200.0),
    (3, 50_000): (0.1, 10.0),
    (4, 2000): (0.1, 1.0, 10.0),
}
LAWS = ("uniform", "four clouds", "one cloud")


def positions(law: str, d: int, n: int, rng: np.random.Generator) -> np.ndarray:
    x = rng.standard_normal((n, d))
    if law == "four clouds":
        x = x[rng.integers(0, 4, n)] + 1e-3 * rng.standard_normal((n, d))
    if law == "one cloud":
        x = rng.standard_normal(d) + 1e-4 * x
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def units(x: np.ndarray, beta: float, dtype: str, rng: np.random.Generator) -> tuple[int, float]:
    """The degree, and the largest error of the sum of weights or of a weighted coordinate."""
    n, d = x.shape
    eps = float(np.finfo(dtype).eps)
    degree = int(truncation_degrees(np.asarray(eps / 100), beta, d))
    tol = 4 * n * eps / 100  # cut there for equal masses; those here are at least a third of the mean
    made = Circle(tol, degree) if d == 2 else Harmonics(tol, degree, d)
    masses = rng.random(n) + 0.5
    masses /= masses.sum()
    x, masses = x.astype(dtype), masses.astype(dtype)
    place, chosen = jnp.arange(n), rng.integers(0, n, 60)

    @jax.jit
    def look(x: jax.Array, masses: jax.Array, beta: jax.Array) -> jax.Array:
        side = (x, place)
        scale, sums = made(Weights(Exponential(beta), Everyone(), True), side, side, jnp.log(masses), None)
        return jnp.exp(scale)[:, None] * sums

    found = np.asarray(look(x, masses, jnp.asarray(beta, dtype)))[chosen].astype(np.float64)
    wide, weights = x.astype(np.float64), masses.astype(np.float64)
    for row, i in zip(found, chosen, strict=True):
        seen = weights * np.exp(-beta * np.sum((wide[i] - wide) ** 2, axis=1) / 2)
        row -= [math.fsum(seen), *(math.fsum(seen * one) for one in wide.T)]
    return made.degree, float(np.abs(found).max()) / eps / np.sqrt(made.degree + 1)


def main() -> None:
    rng, worst = np.random.default_rng(0), {}
    with jax.enable_x64(True):
        for dtype in ("float64", "float32"):
            for (d, n), betas in CASES.items():
                for law in LAWS:
                    x = positions(law, d, n, rng)
                    for beta in betas:
                        degree, off = units(x, beta, dtype, rng)
                        worst[dtype] = max(worst.get(dtype, 0.0), off)
                        print(
                            f"{dtype}, d = {d}, n = {n}, {law}, beta = {beta:g}, degree {degree}: {off:.2f}", flush=True
                        )
    print("largest:", ", ".join(f"{dtype} {off:.2f}" for dtype, off in worst.items()))


if __name__ == "__main__":
    main()
