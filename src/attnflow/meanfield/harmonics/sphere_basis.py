"""Real spherical harmonics on S^2: FFT in longitude, products with tables of Legendre functions in latitude."""

from collections.abc import Iterator
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.checks import whole
from attnflow.errors import TooLarge
from attnflow.meanfield.harmonics.basis import (
    AbstractBasis,
    Coefficients,
    Values,
    checked_harmonic,
    chunks,
    finer,
    full_moments,
    on_device,
)
from attnflow.meanfield.harmonics.orthogonal import gauss
from attnflow.precision import in_float64
from attnflow.special.numbers import Numbers

LARGEST_TABLE = 2**31


class SphereBasis(AbstractBasis):
    """sqrt(2 - [m=0]) P_km(z) cos(m phi), sin(m phi): coefficients (2, 1 + degree, 1 + degree) by part, m, k.

    Entries with m > k, and sines of order 0, are no coefficients and stay 0 (`mask`). The grid has `grid` Gauss
    latitudes z (increasing) and at least 2 `grid` longitudes from 0: (3 degree + 2)/2 latitudes unless said otherwise
    (the 3/2 rule). Two tables of (degree + 1) (degree + 2) `grid` numbers: 50 MB together for degree 128, eight times
    as much for twice the degree.
    """

    named: ClassVar[str | None] = None
    dim: int = eqx.field(static=True)
    degree: int = eqx.field(static=True)
    grid: int = eqx.field(static=True)
    longitudes: int = eqx.field(static=True)
    weights: Float[np.ndarray, "latitude longitude"]
    latitudes: Float[np.ndarray, " latitude"]
    by_degree: Float[Array | np.ndarray, "order latitude degree"]
    by_latitude: Float[Array | np.ndarray, "order degree latitude"]

    def __init__(self, degree: int, grid: int | None = None):
        from scipy.fft import next_fast_len

        self.dim, self.degree = 3, whole("degree", degree, 1)
        self.grid = (3 * degree + 2) // 2 if grid is None else whole("grid", grid, degree + 1)
        self.longitudes = int(next_fast_len(2 * self.grid, real=True))
        if 8 * (degree + 1) ** 2 * self.grid > LARGEST_TABLE:
            raise TooLarge(
                f"`degree` is {degree}, whose tables take {16e-9 * (degree + 1) ** 2 * self.grid:.0f} GB; give at most "
                "about 500, or use `ZonalBasis` if the density has an axis."
            )
        z, weights = gauss(3, self.grid)
        table = np.zeros((degree + 1, degree + 2, self.grid))  # one degree more, which gradients have
        for k, row in enumerate(_legendre(degree + 1, z)):
            table[: k + 1, k] = row[: degree + 1]
        self.latitudes = z
        self.by_latitude = on_device(table * weights)  # analysis integrates over latitudes
        self.by_degree = on_device(np.ascontiguousarray(np.swapaxes(table, 1, 2)))
        self.weights = np.repeat(weights[:, None] / self.longitudes, self.longitudes, axis=1)

    @property
    def degrees(self) -> np.ndarray:
        return np.broadcast_to(np.arange(self.degree + 1), (2, self.degree + 1, self.degree + 1))

    @property
    def mask(self) -> np.ndarray:
        k = np.arange(self.degree + 1)
        some = k[:, None] <= k[None, :]
        return np.stack([some, some & (k[:, None] > 0)])

    @property
    def sensitivity(self) -> np.ndarray:
        return np.full((self.grid, self.longitudes), self.degree + 1.0)  # sum_k (2k + 1) = (degree + 1)^2

    @in_float64
    def points(self) -> Any:
        """Unit vectors, shape (latitudes, longitudes, 3)."""
        shape = (self.grid, self.longitudes)
        z = jnp.broadcast_to(jnp.asarray(self.latitudes)[:, None], shape)
        phi = np.broadcast_to(2 * np.pi * np.arange(self.longitudes) / self.longitudes, shape)
        r = jnp.sqrt((1 - z) * (1 + z))
        return jnp.stack([r * np.cos(phi), r * np.sin(phi), z], axis=-1)

    @in_float64
    @eqx.filter_jit
    def synthesis(self, coefficients: Coefficients) -> Values:
        return self._values(_padded(jnp.asarray(coefficients)))

    @in_float64
    @eqx.filter_jit
    def analysis(self, values: Values) -> Coefficients:
        return self._expansion(jnp.asarray(values))[..., :-1]

    @in_float64
    @eqx.filter_jit
    def gradient(self, coefficients: Coefficients) -> Values:
        """Southwards and eastwards: -(1 - z^2) d/dz and d/dphi in coefficients of one degree more, over the radius.

        (1 - z^2) P_km' = (k+1) e_k P_{k-1,m} - k e_{k+1} P_{k+1,m}, e_k^2 = (k^2 - m^2)/(4 k^2 - 1) (DLMF 14.10).
        """
        c, (k, m, e) = jnp.asarray(coefficients), self._steps()
        before = jnp.pad(c, ((0, 0), (0, 0), (1, 0)))
        after = jnp.pad(c[..., 1:], ((0, 0), (0, 0), (0, 2)))
        south = before * np.stack([(k - 1) * e[:, :-1]] * 2) - after * np.stack([(k + 2) * e[:, 1:]] * 2)
        east = _padded(jnp.stack([m * c[1], -m * c[0]]))
        return jax.vmap(self._values)(jnp.stack([south, east])) / self._radii()

    @in_float64
    @eqx.filter_jit
    def inflow(self, flux: Values) -> Coefficients:
        south, east = jax.vmap(self._expansion)(jnp.asarray(flux) / self._radii())
        k, m, e = self._steps()
        before = jnp.pad(south[..., :-2], ((0, 0), (0, 0), (1, 0)))
        k = k[:, :-1]
        found = south[..., 1:] * np.stack([k * e[:, 1:-1]] * 2) - before * np.stack([(k + 1) * e[:, :-2]] * 2)
        return jnp.where(self.mask, found + jnp.stack([-m * east[1], m * east[0]])[..., :-1], 0.0)

    def _values(self, c: Array) -> Array:
        """On the grid, from coefficients of one degree more."""
        waves = jnp.einsum("pmk,mjk->pjm", c, self.by_degree)
        half = np.full(self.degree + 1, self.longitudes / 2.0)
        half[0] = self.longitudes
        waves = waves * jnp.broadcast_to(half, waves.shape)
        spectrum = jax.lax.complex(waves[0], -waves[1])
        return jnp.fft.irfft(spectrum, self.longitudes, axis=-1)

    def _expansion(self, values: Array) -> Array:
        """Coefficients of one degree more."""
        spectrum = jnp.fft.rfft(values, axis=-1)[:, : self.degree + 1] / self.longitudes
        waves = jnp.stack([jnp.real(spectrum), -jnp.imag(spectrum)])
        return jnp.einsum("pjm,mkj->pmk", waves, self.by_latitude)

    def _steps(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """k up to degree + 1, m as a column, and e_k for k up to degree + 2, 0 where m > k."""
        m, k = np.arange(self.degree + 1.0)[:, None], np.arange(self.degree + 3.0)[None]
        e = np.sqrt(np.maximum(k**2 - m**2, 0.0) / np.abs(4 * k**2 - 1))
        return np.broadcast_to(k[:, :-1], (self.degree + 1, self.degree + 2)), m, e

    def _radii(self) -> Array:
        z = jnp.asarray(self.latitudes)[:, None]
        return jnp.broadcast_to(jnp.sqrt((1 - z) * (1 + z)), (2, self.grid, self.longitudes))

    def _evaluate(self, coefficients: np.ndarray, x: np.ndarray) -> np.ndarray:
        c, shape, rows = coefficients, x.shape[:-1], x.reshape(-1, 3)
        found = np.empty(len(rows))
        for part in chunks(len(rows), 4 * self.degree):
            waves = self.along(c, rows[part, 2])
            phi = np.arctan2(rows[part, 1], rows[part, 0])
            turns = np.exp(1j * np.outer(np.arange(self.degree + 1), phi))
            found[part] = np.sum(waves[0] * turns.real + waves[1] * turns.imag, axis=0)
        return found.reshape(shape)

    def along(self, coefficients: np.ndarray, z: np.ndarray) -> np.ndarray:
        """The w (2, m, n) with f(z, phi) = sum_m w[0, m] cos(m phi) + w[1, m] sin(m phi) at each of n latitudes z."""
        waves = np.zeros((2, self.degree + 1, len(z)))
        for k, row in enumerate(_legendre(self.degree, z)):
            waves[:, : k + 1] += coefficients[:, : k + 1, k, None] * row
        return waves

    def _atoms(self, rows: np.ndarray, m: np.ndarray) -> np.ndarray:
        total = np.zeros((2, self.degree + 1, self.degree + 1))
        for part in chunks(len(rows), 4 * self.degree):
            phi = np.arctan2(rows[part, 1], rows[part, 0])
            turns = m[part] * np.exp(1j * np.outer(np.arange(self.degree + 1), phi))
            for k, row in enumerate(_legendre(self.degree, rows[part, 2])):
                total[0, : k + 1, k] += np.einsum("mn,mn->m", row, turns.real[: k + 1])
                total[1, : k + 1, k] += np.einsum("mn,mn->m", row, turns.imag[: k + 1])
        return total

    def _variable(self, x: np.ndarray) -> np.ndarray:
        return x

    @in_float64
    @eqx.filter_jit
    def moments(self, values: Values) -> tuple[Array, Array]:
        return full_moments(self.weights * jnp.asarray(values), self.points())

    def harmonic(self, degree: int, order: int = 0) -> np.ndarray:
        """Coefficients of P_{degree,|order|}(z) cos(order phi), sin(|order| phi) if `order` < 0, over its maximum."""
        checked_harmonic(self, degree, order)
        found = np.zeros((2, self.degree + 1, self.degree + 1))
        found[int(order < 0), abs(order), degree] = 1.0 / _largest(degree, abs(order))
        return found

    def refined(self, degree: int) -> "SphereBasis":
        return SphereBasis(degree, finer(self, degree, (3 * degree + 2) // 2))

    @in_float64
    @eqx.filter_jit
    def resized(self, coefficients: Coefficients, degree: int) -> Array:
        c = jnp.asarray(coefficients)[:, : degree + 1, : degree + 1]
        more = degree + 1 - c.shape[-1]
        return jnp.pad(c, ((0, 0), (0, more), (0, more)))


def _padded(c: Any) -> Array:
    """Coefficients with one degree more."""
    return jnp.pad(c, ((0, 0), (0, 0), (0, 1)))


def _legendre(degree: int, z: np.ndarray) -> Iterator[np.ndarray]:
    """For k = 0, 1, ..., degree the sqrt(2 - [m=0]) P_km(z), m = 0, ..., k, of P_km orthonormal for dz/2; (k + 1, n).

    The recurrence in k at fixed m, all m at once. Its start (1 - z^2)^{m/2} underflows only where the functions are
    below rounding, for degrees up to 1,500 (DLMF 14.10, 14.30).
    """
    m = np.arange(degree + 1.0)
    with np.errstate(divide="ignore"):
        log_r = 0.5 * (np.log1p(-z) + np.log1p(z))
    grow = 0.5 * np.concatenate([[0.0], np.cumsum(np.log1p(0.5 / m[1:]))]) + 0.5 * np.log(np.where(m > 0, 2.0, 1.0))
    before = here = np.zeros((0, len(z)))
    for k in range(degree + 1):
        row = np.empty((k + 1, len(z)))
        if k:
            low = m[:k, None]
            up = np.sqrt((4.0 * k * k - 1) / (k * k - low**2))
            down = np.sqrt(np.maximum((k - 1) ** 2 - low**2, 0.0) / (4.0 * (k - 1) ** 2 - 1) if k > 1 else 0 * low)
            row[:k] = z * here
            row[: k - 1] -= down[: k - 1] * before
            row[:k] *= up
        row[k] = np.exp(grow[k] + (k * log_r if k else np.zeros_like(z)))
        before, here = here, row
        yield row


def _largest(degree: int, order: int) -> float:
    """The maximum of a harmonic: at the pole for order 0, else the best of a fine grid, refined."""
    if order == 0:
        return float(np.sqrt(2 * degree + 1))
    from scipy.optimize import minimize_scalar

    def height(theta: Numbers) -> np.ndarray:
        *_, row = _legendre(degree, np.cos(np.atleast_1d(theta)))
        return np.abs(row[order])

    theta = np.linspace(0, np.pi / 2, 16 * degree + 1)
    best = int(np.argmax(height(theta)))
    sides = (theta[max(best - 1, 0)], theta[min(best + 1, len(theta) - 1)])
    inside = minimize_scalar(lambda t: -height(t)[0], bounds=sides, method="bounded", options={"xatol": 1e-9})
    return float(max(-inside.fun, height(theta[best])[0]))
