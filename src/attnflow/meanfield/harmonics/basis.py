"""Functions on a sphere by their coefficients in real harmonics, and by their values on a grid.

Harmonics are orthonormal for the uniform PROBABILITY sigma, so that the first coefficient is the mean and the sum of
squares is the integral of the square. Code for every basis works on coefficients elementwise, by `degrees`.
"""

import abc
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from attnflow.checks import whole
from attnflow.errors import InvalidInput
from attnflow.feasible import LARGEST_DIM, length
from attnflow.meanfield.harmonics.orthogonal import expansion, gauss, orthonormal, slopes
from attnflow.meanfield.harmonics.points import by_name, unit_vectors
from attnflow.precision import full_precision, in_float64
from attnflow.special.numbers import Numbers

Coefficients = Float[Array | np.ndarray, "..."]
Values = Float[Array | np.ndarray, "..."]
CHUNK = 2**21
"""Entries of the largest table made at scattered points."""


class AbstractBasis(eqx.Module):
    """Harmonics up to `degree` on S^{dim-1}, and a grid on which a product of two functions has exact coefficients.

    Points are unit vectors of R^dim. Grids and formulas use the basis's own variable, which is an angle, a unit vector
    of R^3, or s = <x, e>; `named` is the argument that takes it ("angles", "heights"), None where it is the vector.
    """

    named: eqx.AbstractClassVar[str | None]
    dim: eqx.AbstractVar[int]
    degree: eqx.AbstractVar[int]
    grid: eqx.AbstractVar[int]
    weights: eqx.AbstractVar[Values]

    @property
    @abc.abstractmethod
    def degrees(self) -> np.ndarray:
        """The degree of every coefficient (integers, in the coefficients' shape)."""

    @property
    @abc.abstractmethod
    def mask(self) -> np.ndarray:
        """Which entries of the array of coefficients are coefficients; the others are 0."""

    @property
    @abc.abstractmethod
    def sensitivity(self) -> np.ndarray:
        """The square root of the sum of squares of all harmonics, on the grid.

        The largest value there of a function of norm 1: rounding in the coefficients is multiplied by it.
        """

    @abc.abstractmethod
    def points(self) -> Any:
        """The grid, in the basis's variable; `weights` are its quadrature weights, of sum 1."""

    @abc.abstractmethod
    def synthesis(self, coefficients: Coefficients) -> Values:
        """Values on the grid. Pure and differentiable."""

    @abc.abstractmethod
    def analysis(self, values: Values) -> Coefficients:
        """Coefficients of the function with these values on the grid, cut after `degree`. Pure and differentiable."""

    @abc.abstractmethod
    def gradient(self, coefficients: Coefficients) -> Values:
        """The gradient on the grid in an orthonormal frame, (component, *grid). Pure and differentiable."""

    @abc.abstractmethod
    def inflow(self, flux: Values) -> Coefficients:
        """The integrals of <flux, grad Y>, the adjoint of `gradient`: coefficients of -div(flux), cut after `degree`.

        Exact for the products f grad g of two functions of the basis, like `analysis` for f g.
        """

    @abc.abstractmethod
    def _evaluate(self, coefficients: np.ndarray, variable: np.ndarray) -> Numbers:
        """Values at points in the basis's variable, on the host."""

    @abc.abstractmethod
    def _atoms(self, variable: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """The coefficients of atoms in the basis's variable, on the host."""

    @abc.abstractmethod
    def _variable(self, x: np.ndarray) -> np.ndarray:
        """Unit vectors (..., dim) in the basis's variable."""

    def evaluate(
        self,
        coefficients: Coefficients,
        x: ArrayLike | None = None,
        *,
        angles: ArrayLike | None = None,
        heights: ArrayLike | None = None,
    ) -> Numbers:
        """Values at unit vectors `x` (..., dim), on the host; at `angles` on the circle, at `heights` s = <x, e>."""
        return self._evaluate(np.asarray(coefficients), self.variable(x, angles=angles, heights=heights))

    def atoms(self, x: ArrayLike, masses: ArrayLike) -> np.ndarray:
        """The coefficients sum_i masses_i Y(x_i) of unit vectors (n, dim), on the host: the adjoint of `evaluate`."""
        rows = np.atleast_2d(unit_vectors(self.dim, x))
        return self._atoms(self._variable(rows), np.atleast_1d(np.asarray(masses, dtype=np.float64)))

    def variable(
        self, x: ArrayLike | None = None, *, angles: ArrayLike | None = None, heights: ArrayLike | None = None
    ) -> np.ndarray:
        """Points in the basis's variable: from unit vectors `x` (..., dim), or given in it by name and checked."""
        found = by_name(self.dim, self.named, x, angles=angles, heights=heights)
        if found is None:
            return self._variable(unit_vectors(self.dim, x))
        if heights is not None and not (np.abs(found) <= 1 + 1e-9).all():
            raise InvalidInput("`heights` holds a number outside [-1, 1]; give s = <x, e>.")
        return np.clip(found, -1.0, 1.0) if heights is not None else found

    @abc.abstractmethod
    def moments(self, values: Values) -> tuple[Array, Array]:
        """The integrals of x f and of x x^T f for a function f given on the grid; shapes (dim,) and (dim, dim)."""

    @abc.abstractmethod
    def harmonic(self, degree: int, order: int = 0) -> np.ndarray:
        """Coefficients of one harmonic of sup norm 1."""

    @abc.abstractmethod
    def refined(self, degree: int) -> "AbstractBasis":
        """The same kind of basis with another degree, and a grid at least as fine for it."""

    @abc.abstractmethod
    def resized(self, coefficients: Coefficients, degree: int) -> Array:
        """The coefficients in `refined(degree)`: padded with zeros, or cut."""

    @property
    def laplacian(self) -> np.ndarray:
        """-k (k + dim - 2), the eigenvalue of the Laplacian at every coefficient."""
        k = self.degrees.astype(np.float64)
        return -k * (k + self.dim - 2)


class CircleBasis(AbstractBasis):
    """1, sqrt2 cos(k theta), sqrt2 sin(k theta) for k up to `degree`: 1 + degree + degree coefficients, in this order.

    The grid has `grid` equispaced angles from 0: at least 3 degree + 1 unless said otherwise (the 3/2 rule). For
    logarithms and exponentials of functions more is better.
    """

    named: ClassVar[str | None] = "angles"
    dim: int = eqx.field(static=True)
    degree: int = eqx.field(static=True)
    grid: int = eqx.field(static=True)
    weights: Float[np.ndarray, " grid"]

    def __init__(self, degree: int, grid: int | None = None):
        self.dim, self.degree = 2, length("degree", degree, 1, 12)
        self.grid = _fast(3 * degree + 1) if grid is None else length("grid", grid, 2 * degree + 1)
        self.weights = np.full(self.grid, 1.0 / self.grid)

    @property
    def degrees(self) -> np.ndarray:
        k = np.arange(1, self.degree + 1)
        return np.concatenate([[0], k, k])

    @property
    def mask(self) -> np.ndarray:
        return np.ones(2 * self.degree + 1, dtype=bool)

    @property
    def sensitivity(self) -> np.ndarray:
        return np.full(self.grid, np.sqrt(2 * self.degree + 1))

    def points(self) -> np.ndarray:
        return 2 * np.pi * np.arange(self.grid) / self.grid

    @in_float64
    @eqx.filter_jit
    def synthesis(self, coefficients: Coefficients) -> Values:
        c = jnp.asarray(coefficients)
        scale = self.grid * np.sqrt(0.5)
        cosines = jnp.concatenate([np.sqrt(2.0) * c[:1], c[1 : self.degree + 1]])
        sines = jnp.concatenate([jnp.zeros(1), c[self.degree + 1 :]])
        return jnp.fft.irfft(jax.lax.complex(scale * cosines, -scale * sines), self.grid)

    @in_float64
    @eqx.filter_jit
    def analysis(self, values: Values) -> Coefficients:
        spectrum = jnp.fft.rfft(jnp.asarray(values))[: self.degree + 1] / self.grid
        cosines = np.sqrt(2.0) * jnp.real(spectrum[1:])
        return jnp.concatenate([jnp.real(spectrum[:1]), cosines, -np.sqrt(2.0) * jnp.imag(spectrum[1:])])

    @in_float64
    def gradient(self, coefficients: Coefficients) -> Values:
        c, k = jnp.asarray(coefficients), np.arange(1.0, self.degree + 1)
        turned = jnp.concatenate([jnp.zeros(1), k * c[self.degree + 1 :], -k * c[1 : self.degree + 1]])
        return jnp.asarray(self.synthesis(turned))[None]

    @in_float64
    def inflow(self, flux: Values) -> Coefficients:
        f, k = jnp.asarray(self.analysis(jnp.asarray(flux)[0])), np.arange(1.0, self.degree + 1)
        return jnp.concatenate([jnp.zeros(1), -k * f[self.degree + 1 :], k * f[1 : self.degree + 1]])

    def _evaluate(self, coefficients: np.ndarray, theta: np.ndarray) -> Numbers:
        z, total = np.exp(1j * theta), np.zeros(np.shape(theta), dtype=np.complex128)
        for g in circle_spectrum(coefficients)[::-1]:
            total = (total + g) * z
        return coefficients[0] + total.real

    def _atoms(self, theta: np.ndarray, m: np.ndarray) -> np.ndarray:
        k = np.arange(1, self.degree + 1)
        total = np.zeros(2 * self.degree + 1)
        for part in chunks(len(theta), self.degree):
            waves = np.exp(1j * np.outer(k, theta[part])) @ m[part]
            total += np.concatenate([[np.sum(m[part])], np.sqrt(2.0) * waves.real, np.sqrt(2.0) * waves.imag])
        return total

    def _variable(self, x: np.ndarray) -> np.ndarray:
        return np.arctan2(x[..., 1], x[..., 0])

    @in_float64
    @eqx.filter_jit
    def moments(self, values: Values) -> tuple[Array, Array]:
        theta = self.points()
        return full_moments(self.weights * jnp.asarray(values), np.stack([np.cos(theta), np.sin(theta)], axis=-1))

    def harmonic(self, degree: int, order: int = 0) -> np.ndarray:
        """Coefficients of cos(degree theta), or of sin(degree theta) if `order` is negative."""
        checked_harmonic(self, degree, order)
        found = np.zeros(2 * self.degree + 1)
        found[degree + (self.degree if order < 0 else 0)] = np.sqrt(0.5) if degree else 1.0
        return found

    def refined(self, degree: int) -> "CircleBasis":
        return CircleBasis(degree, _fast(finer(self, degree, 3 * degree + 1)))

    @in_float64
    @eqx.filter_jit
    def resized(self, coefficients: Coefficients, degree: int) -> Array:
        c = jnp.asarray(coefficients)
        kept, more = min(degree, self.degree), max(degree - self.degree, 0)
        halves = (c[1 : 1 + kept], c[1 + self.degree : 1 + self.degree + kept])
        return jnp.concatenate([c[:1], *(jnp.pad(half, (0, more)) for half in halves)])


class ZonalBasis(AbstractBasis):
    """Functions of s = <x, e>, e the last basis vector of R^d: phi_k(s) = sqrt(N(k, d)) P_k(s), any d >= 2.

    The grid has `grid` Gauss nodes for the distribution of s, increasing: at least (3 degree + 2)/2 unless said
    otherwise. For large d the harmonics are huge near s = +-1 (see `sensitivity`): values there have the absolute error
    that goes with it, at points which carry next to no mass.
    """

    named: ClassVar[str | None] = "heights"
    dim: int = eqx.field(static=True)
    degree: int = eqx.field(static=True)
    grid: int = eqx.field(static=True)
    nodes: Float[np.ndarray, " grid"]
    weights: Float[np.ndarray, " grid"]
    table: Float[Array | np.ndarray, "degree grid"]
    steep: Float[Array | np.ndarray, "degree grid"]
    """The derivatives of the harmonics in the angle to -e: sqrt(1 - s^2) phi_k'(s)."""

    def __init__(self, dim: int, degree: int, grid: int | None = None):
        self.dim, self.degree = whole("dim", dim, 2, LARGEST_DIM), whole("degree", degree, 1)
        self.grid = (3 * degree + 2) // 2 if grid is None else whole("grid", grid, degree + 1)
        length("degree", degree, 1, 2 * self.grid)
        with np.errstate(over="ignore", invalid="ignore"):
            nodes, weights = gauss(self.dim, self.grid)
            table = orthonormal(self.dim, self.degree, nodes)
            rise = slopes(self.dim, self.degree)[:, None] * orthonormal(self.dim + 2, self.degree - 1, nodes)
        steep = np.concatenate([np.zeros((1, self.grid)), np.sqrt((1 - nodes) * (1 + nodes)) * rise])
        if not (np.isfinite(table).all() and np.isfinite(steep).all() and (weights > 0).all()):
            raise InvalidInput(f"`degree` is {degree}, at which harmonics on S^{dim - 1} leave float range; lower it.")
        self.nodes, self.weights, self.table, self.steep = nodes, weights, on_device(table), on_device(steep)

    @property
    def degrees(self) -> np.ndarray:
        return np.arange(self.degree + 1)

    @property
    def mask(self) -> np.ndarray:
        return np.ones(self.degree + 1, dtype=bool)

    @property
    def sensitivity(self) -> np.ndarray:
        return np.sqrt(np.sum(np.asarray(self.table) ** 2, axis=0))

    def points(self) -> np.ndarray:
        return self.nodes

    @in_float64
    @eqx.filter_jit
    def synthesis(self, coefficients: Coefficients) -> Values:
        return jnp.asarray(coefficients) @ self.table

    @in_float64
    @eqx.filter_jit
    def analysis(self, values: Values) -> Coefficients:
        return self.table @ (self.weights * jnp.asarray(values))

    @in_float64
    def gradient(self, coefficients: Coefficients) -> Values:
        return (jnp.asarray(coefficients) @ self.steep)[None]

    @in_float64
    def inflow(self, flux: Values) -> Coefficients:
        return self.steep @ (self.weights * jnp.asarray(flux)[0])

    def _evaluate(self, coefficients: np.ndarray, s: np.ndarray) -> Numbers:
        return expansion(self.dim, coefficients, s)

    def _atoms(self, s: np.ndarray, m: np.ndarray) -> np.ndarray:
        """The coefficients of the atomic measure after averaging over rotations about the axis."""
        parts = [orthonormal(self.dim, self.degree, s[p]) @ m[p] for p in chunks(len(s), self.degree)]
        return np.sum(parts, axis=0)

    def _variable(self, x: np.ndarray) -> np.ndarray:
        return x[..., -1]

    @in_float64
    @eqx.filter_jit
    def moments(self, values: Values) -> tuple[Array, Array]:
        masses = self.weights * jnp.asarray(values)
        axis = np.eye(self.dim)[-1]
        along = jnp.sum(masses * self.nodes**2)
        across = (jnp.sum(masses) - along) / (self.dim - 1)
        line = np.outer(axis, axis)
        return jnp.sum(masses * self.nodes) * axis, along * line + across * (np.eye(self.dim) - line)

    def harmonic(self, degree: int, order: int = 0) -> np.ndarray:
        """Coefficients of P_degree(s); the only order is 0."""
        checked_harmonic(self, degree, order)
        if order:
            raise InvalidInput(f"`order` is {order}, but functions of <x, e> have order 0; use `SphereBasis`.")
        found = np.zeros(self.degree + 1)
        found[degree] = 1.0 / orthonormal(self.dim, degree, np.ones(()))[degree]
        return found

    def refined(self, degree: int) -> "ZonalBasis":
        return ZonalBasis(self.dim, degree, finer(self, degree, (3 * degree + 2) // 2))

    @in_float64
    @eqx.filter_jit
    def resized(self, coefficients: Coefficients, degree: int) -> Array:
        c = jnp.asarray(coefficients)[: degree + 1]
        return jnp.pad(c, (0, degree + 1 - len(c)))


def circle_spectrum(coefficients: np.ndarray) -> np.ndarray:
    """The complex g_k, k >= 1, with f(theta) = mean + Re sum_k g_k e^{ik theta} on the circle."""
    cosines, sines = np.split(coefficients[1:], 2)
    return np.sqrt(2.0) * (cosines - 1j * sines)


def full_moments(masses: Any, x: Any) -> tuple[Array, Array]:
    """The integrals of x and x x^T, for grids of any shape."""
    masses, x = masses.reshape(-1), x.reshape(-1, x.shape[-1])
    return masses @ x, (x.T * jnp.broadcast_to(masses, x.T.shape)) @ x


def on_device(values: np.ndarray) -> Array:
    """A float64 array on the device, also where JAX is in 32-bit mode."""
    with full_precision():
        return jnp.asarray(values, jnp.float64)


def checked_harmonic(basis: AbstractBasis, degree: int, order: int) -> None:
    """Refuse a harmonic that `basis` does not hold."""
    if whole("degree", degree, 0) > basis.degree:
        raise InvalidInput(
            f"`degree` is {degree}, above the {basis.degree} of the basis; use `basis.refined({degree})`."
        )
    whole("order", order, -degree, degree)


def chunks(count: int, width: int) -> list[slice]:
    """Slices of 0, ..., count-1 for which a table of `width` columns stays small."""
    size = max(CHUNK // max(width, 1), 1)
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def finer(basis: AbstractBasis, degree: int, least: int) -> int:
    """The size of a grid for `degree`, oversampled as much as the one of `basis`."""
    return max(least, -(-basis.grid * (degree + 1) // (basis.degree + 1)))


def _fast(count: int) -> int:
    from scipy.fft import next_fast_len

    return int(next_fast_len(count, real=True))
