"""Distances against the linear theory, biases against each other."""

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence
from attnflow.experiments.kit import LEVEL, Effects, many_tokens, student
from attnflow_gallery.causal_rate.simulate import Parameters

RATE = consequence("The rate in W_2")
BIAS = consequence("The bias")
TERMS = 12
"""Degrees whose growth is counted; at beta = 1 the others grow by less than 1e-12."""


def growths(parameters: Parameters) -> np.ndarray:
    """a_k t of the first degrees."""
    degrees = np.arange(1, TERMS + 1)
    return np.asarray(theory.causal.rates(degrees, parameters.beta, 2, model="USA") * parameters.until)


def constants(parameters: Parameters) -> tuple[float, float]:
    """lim N E W_2^2 with the mask and without it."""
    c, square = growths(parameters), np.arange(1, TERMS + 1) ** 2.0
    causal, plain = theory.causal.prefix_noise(c), np.exp(2 * c)
    return tuple(float(np.pi**2 / 3 + 2 * np.sum((one - 1) / square)) for one in (causal, plain))  # type: ignore[return-value]


def linear(parameters: Parameters, n: int) -> float:
    """N E W_2^2 of the linear theory for N tokens."""
    noise = [theory.causal.discrete_prefix_noise(float(c), n) for c in growths(parameters)]
    return float(np.pi**2 / 3 + 2 * np.sum((np.array(noise) - 1) / np.arange(1, TERMS + 1) ** 2.0))


def found(data: dict[str, xr.Dataset], kind: str, sizes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard errors at all sizes."""
    rows = [data[f"{kind}-{n}"] for n in sizes]
    return np.array([float(one["mean"]) for one in rows]), np.array([float(one["error"]) for one in rows])


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """The constant, its excess over that without a mask, and the biases."""
    return [*_distances(parameters, data), _grows(parameters, data), _stays(parameters, data)]


def _distances(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    sizes = parameters.sizes
    mean, error = found(data, "distance", sizes)
    off = mean - np.array([linear(parameters, n) for n in sizes])
    left, spread, room = (float(one) for one in many_tokens(np.array(sizes), off, error))
    allowed, (causal, plain) = student(LEVEL, min(parameters.draws)), constants(parameters)
    where = f"circle, USA, β = {parameters.beta:g}, t = {parameters.until:g}"
    listed = ", ".join(f"{one:.3f} ± {e:.3f} (N = {n})" for n, one, e in zip(sizes, mean, error, strict=True))
    above_plain = Effects(parameters.draws[-1], parameters.expected_excess)
    above_plain.add(plain, mean[-1], error[-1], f"N = {sizes[-1]}")
    return [
        Claim.equal(
            f"{where}: N E W₂² of a causal prompt less that of the linear theory, for 1/N → 0",
            0.0,
            left,
            allowed * spread + room,
            f"Student's test over prompts, level {LEVEL:g}; a line in 1/N through the last two N; the bend before them",
            origin=RATE,
            level=LEVEL,
            detail=f"{listed}; limits {causal:.4f}, without a mask {plain:.4f}",
        ),
        above_plain.above(
            f"{where}: N E W₂² at the largest N, above its limit without a mask", "Student's test", origin=RATE
        ),
    ]


def _grows(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    mean, error = found(data, "bias", parameters.bias_sizes)
    changes = Effects(min(parameters.bias_draws), parameters.expected_growth)
    for k, n in enumerate(parameters.bias_sizes[1:], start=1):
        change, spread = mean[k] - mean[k - 1], np.hypot(error[k], error[k - 1])
        changes.add(0.0, change, spread, f"from N = {parameters.bias_sizes[k - 1]} to {n}")
    return changes.below(
        "start 1 + 0.6 cos θ, causal prompt: N × (mean of cos θ − that of the density), change as N grows: it falls",
        "Student's test",
        origin=BIAS,
        detail=", ".join(f"{one:.3f} ± {e:.3f}" for one, e in zip(mean, error, strict=True)),
    )


def _stays(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    mean, error = found(data, "plain", parameters.plain_sizes)
    allowed = student(LEVEL, min(parameters.plain_draws))
    few, many = parameters.plain_sizes
    room = abs(mean[0]) / few
    return Claim.equal(
        f"the same start without a mask: change of it from N = {few} to {many}",
        0.0,
        float(mean[1] - mean[0]),
        allowed * float(np.hypot(*error)) + room,
        f"Student's test, level {LEVEL:g}; a next order as large as the first, over the smaller N",
        origin=BIAS,
        level=LEVEL,
        detail=", ".join(f"{one:.3f} ± {e:.3f}" for one, e in zip(mean, error, strict=True)),
    )
