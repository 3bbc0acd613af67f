"""Levels of distribution functions, inverted on the host to rounding error: for exact and quiet samples."""

from collections.abc import Callable

import numpy as np
from scipy import special as sp

from attnflow.meanfield.harmonics.basis import chunks
from attnflow.meanfield.harmonics.orthogonal import expansion, slopes


def circle_quantiles(mean: np.ndarray, spectrum: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """The angles in [0, 2 pi) below which the density mean + Re sum_k spectrum_k e^{ik theta} has the share `levels`.

    `mean` (1,) and `spectrum` (K, 1) serve all levels; with (n,) and (K, n) every level has its own density.
    """
    degree, own = len(spectrum), spectrum.shape[1] > 1
    primitive = spectrum / (1j * np.arange(1, degree + 1))[:, None]
    count = 4 * degree + 4
    ends = 2 * np.pi * np.arange(count + 1) / count
    found = np.empty(len(levels))
    for part in chunks(len(levels), 8 * degree):
        pick = part if own else slice(None)
        c, g, h = mean[pick], spectrum[:, pick], primitive[:, pick]
        start = np.sum(h, axis=0).real
        waves = np.fft.irfft(np.concatenate([np.zeros((1, h.shape[1])), h * (count / 2)]), count, axis=0)
        rows = c * ends[:, None] + np.concatenate([waves, waves[:1]]) - start
        target = 2 * np.pi * c * levels[part]

        def risen(theta: np.ndarray, c: np.ndarray = c, h: np.ndarray = h, start: np.ndarray = start) -> np.ndarray:
            return c * theta + _horner(h, theta) - start

        def slope(theta: np.ndarray, c: np.ndarray = c, g: np.ndarray = g) -> np.ndarray:
            return c + _horner(g, theta)

        found[part] = _invert(risen, slope, ends, rows, target)
    return np.mod(found, 2 * np.pi)


def polar_quantiles(d: int, coefficients: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """The angles t in [0, pi] to the axis below which sum_k coefficients_k phi_k(cos t) has the share `levels`.

    The share above s = cos t is I(sin^2(t/2)) + C_d (1-s^2)^{(d-1)/2} sum_k c_k phi_k'(s) / (k (k+d-2)), I the
    incomplete Beta function of the uniform measure: phi_k is an eigenfunction, so that phi_k' gives its integral.
    """
    degree = len(coefficients) - 1
    k = np.arange(1.0, degree + 1)
    primitive = coefficients[1:] / coefficients[0] * slopes(d, degree) / (k * (k + d - 2))
    constant = np.exp(sp.gammaln(d / 2) - sp.gammaln((d - 1) / 2)) / np.sqrt(np.pi)

    def risen(t: np.ndarray) -> np.ndarray:
        even = sp.betainc((d - 1) / 2, (d - 1) / 2, np.sin(t / 2) ** 2)
        return even + constant * np.sin(t) ** (d - 1) * expansion(d + 2, primitive, np.cos(t))

    def slope(t: np.ndarray) -> np.ndarray:
        return constant * np.sin(t) ** (d - 2) * expansion(d, coefficients / coefficients[0], np.cos(t))

    ends = np.linspace(0, np.pi, 4 * degree + 65)
    return _invert(risen, slope, ends, risen(ends)[:, None], np.asarray(levels, dtype=np.float64))


def _invert(
    risen: Callable[[np.ndarray], np.ndarray],
    slope: Callable[[np.ndarray], np.ndarray],
    ends: np.ndarray,
    rows: np.ndarray,
    target: np.ndarray,
) -> np.ndarray:
    """Solve risen(x) = target by Newton steps, halving a bracket where they leave it; rows = risen(ends)."""
    rows = np.maximum.accumulate(rows, axis=0)
    one = rows.shape[1] == 1
    place = np.searchsorted(rows[:, 0], target, side="right") if one else np.sum(rows <= target, axis=0)
    place = np.clip(place, 1, len(ends) - 1)
    low, high = ends[place - 1], ends[place]
    x, rounding = (low + high) / 2, 4e-15 * np.maximum(np.abs(rows[-1]), np.finfo(np.float64).tiny)
    for _ in range(100):
        gap = risen(x) - target
        low, high = np.where(gap <= 0, x, low), np.where(gap >= 0, x, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = x - gap / slope(x)
        inside = (step >= low) & (step <= high)
        before, x = x, np.where(inside, step, (low + high) / 2)
        settled = (np.abs(gap) <= rounding) | (np.abs(x - before) <= 4e-16 * ends[-1])
        if settled.all():
            break
    return x


def _horner(spectrum: np.ndarray, theta: np.ndarray) -> np.ndarray:
    z = np.exp(1j * theta)
    total = np.zeros_like(z)
    for g in spectrum[::-1]:
        total = (total + g) * z
    return total.real
