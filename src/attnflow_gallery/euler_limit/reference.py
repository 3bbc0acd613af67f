"""The same networks once more, in NumPy and SciPy: their ODEs and the first terms of their errors."""

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

TOLERANCE = 1e-12
"""Of DOP853."""
Weights = dict[str, np.ndarray]


def limits(
    x: np.ndarray, w: Weights, beta: float, scale: float, times: np.ndarray, rules: Sequence[str], plain: str
) -> xr.Dataset:
    """x(t) of the ODEs, |E_1(t)| of every rule, and the variance of networks with independent layers over h at T."""
    shape = ("time", "token", "dim")
    found: dict[str, Any] = {}

    def attention(t: complex, x: np.ndarray) -> np.ndarray:
        pull = softmax_average(x, beta)
        return pull - np.sum(x * pull, axis=1, keepdims=True) * x

    def bend(rule: str, x: np.ndarray) -> np.ndarray:
        pull, speed = softmax_average(x, beta), attention(0.0, x)
        inward = np.sum(x * pull, axis=1, keepdims=True) * speed if rule == "N(x + hA)" else 0.0
        return -inward - np.sum(speed**2, axis=1, keepdims=True) * x / 2

    def network(t: complex, x: np.ndarray) -> np.ndarray:
        return np.tanh(x @ (w["A"] + w["B"] * np.sin(t)).T + w["b"]) @ w["W"].T

    for rule in rules:
        path, first = first_error(attention, functools.partial(bend, rule), x, times)
        found |= {"x_attention": (shape, path), rule: ("time", np.linalg.norm(first, axis=(1, 2)))}
    path, first = first_error(network, np.zeros_like, x, times)
    found |= {"x_network": (shape, path), plain: ("time", np.linalg.norm(first, axis=(1, 2)))}
    end, variance = linear_noise(scale, w, x, times[-1])
    return xr.Dataset(found | {"x_mean": (shape[1:], end), "variance": variance}, {"time": times})


def softmax_average(x: np.ndarray, beta: float) -> np.ndarray:
    """Sum_j A_ij x_j for equal masses; analytic in x, so that complex steps differentiate it."""
    kernel = np.exp(beta * (x @ x.T))
    return np.asarray(kernel @ x / np.sum(kernel, axis=1, keepdims=True))


def along(field: Any, t: float, x: np.ndarray, v: np.ndarray, dt: float = 0.0) -> np.ndarray:
    """Df v + dt df/dt, by a complex step: exact to rounding."""
    tiny = 1e-30
    return np.asarray(np.imag(field(t + 1j * tiny * dt, x + 1j * tiny * v)) / tiny)


def first_error(field: Any, bend: Any, x: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x(t) and E_1(t) of x <- x + h f + h^2 bend."""

    def slope(t: float, state: np.ndarray) -> np.ndarray:
        x, error = state
        speed = field(t, x)
        return np.stack([speed, along(field, t, x, error) + bend(x) - along(field, t, x, speed, 1.0) / 2])

    found = _integrate(slope, np.stack([x, np.zeros_like(x)]), times)
    return found[:, 0], found[:, 1]


def linear_noise(scale: float, w: Weights, x: np.ndarray, until: float) -> tuple[np.ndarray, float]:
    """x(T) of the averaged network W tanh(A x + b), and the limit of E|x_L - x(T)|^2/h.

    A layer adds h s |tanh| times a standard Gaussian vector: C' = Df C + C Df^T + s^2 |tanh|^2 I for every token.
    """
    n, d = x.shape

    def slope(t: float, state: np.ndarray) -> np.ndarray:
        x, covariance = state[:, 0], state[:, 1:]
        hidden = np.tanh(x @ w["A"].T + w["b"])
        tangent = np.einsum("ab,nb,bc->nac", w["W"], 1 - hidden**2, w["A"]) @ covariance
        source = scale**2 * np.sum(hidden**2, axis=1)[:, None, None] * np.eye(d)
        return np.concatenate([(hidden @ w["W"].T)[:, None], tangent + np.swapaxes(tangent, 1, 2) + source], axis=1)

    first = np.concatenate([x[:, None], np.zeros((n, d, d))], axis=1)
    end = _integrate(slope, first, np.array([0.0, until]))[-1]
    return end[:, 0], float(np.trace(end[:, 1:], axis1=1, axis2=2).sum())


def _integrate(slope: Any, first: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The states at all times; every leg ends at one of them, so that nothing is interpolated."""
    from scipy.integrate import solve_ivp

    def flat(t: float, state: np.ndarray) -> np.ndarray:
        return np.asarray(slope(t, state.reshape(first.shape))).ravel()

    states = [first.ravel()]
    for leg in itertools.pairwise(times):
        states.append(solve_ivp(flat, leg, states[-1], "DOP853", rtol=TOLERANCE, atol=TOLERANCE).y[:, -1])
    return np.reshape(states, (len(times), *first.shape))
