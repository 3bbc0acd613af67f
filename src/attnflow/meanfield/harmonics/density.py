"""A probability density on a sphere, relative to the uniform measure."""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import xlogy
from numpy.typing import ArrayLike

from attnflow import sketches
from attnflow.checks import instance
from attnflow.describe import html_table
from attnflow.errors import InvalidInput
from attnflow.meanfield.harmonics.basis import AbstractBasis, Coefficients, Values
from attnflow.precision import in_float64, is_traced
from attnflow.special.degrees import multiplicity_ratios
from attnflow.special.numbers import Numbers

TOLERANCE = 1e-8


class Moments(NamedTuple):
    """The integrals of x (dim,) and of x x^T (dim, dim) against a density."""

    mean: Any
    second: Any


class Density(eqx.Module):
    """mu = rho sigma with sigma the uniform probability: rho has mean 1, and the uniform measure is rho = 1.

    `coefficients` are those of rho in `basis`. A density whose mass differs from 1, or which is negative on the grid,
    by more than `tol` is refused (negative values within rounding of the basis are not); inside compiled code
    nothing is checked.
    """

    basis: AbstractBasis
    coefficients: Coefficients

    def __init__(self, basis: AbstractBasis, coefficients: Any, *, tol: float = TOLERANCE):
        self.basis = instance("basis", basis, AbstractBasis, "a CircleBasis, SphereBasis or ZonalBasis")
        if is_traced((basis, coefficients)):
            self.coefficients = coefficients
            return
        if not np.isrealobj(coefficients) or np.asarray(coefficients).dtype.kind not in "iuf":
            raise InvalidInput("`coefficients` are not real numbers; give those of a real function.")
        self.coefficients = np.array(coefficients, dtype=np.float64)
        self._check(tol)

    def moved(self, coefficients: Any) -> "Density":
        """Other coefficients in the same basis, unchecked: for use inside compiled code."""
        return eqx.tree_at(lambda density: density.coefficients, self, coefficients)

    def __repr__(self) -> str:
        if is_traced(self.coefficients) or not isinstance(self.coefficients, np.ndarray):
            return eqx.tree_pformat(self)
        return f"Density({', '.join(f'{key}: {value}' for key, value in self._facts().items())})"

    def _repr_html_(self) -> str:
        if is_traced(self.coefficients):
            return html_table("Density", {"basis": type(self.basis).__name__})
        return html_table("Density", self._facts(), sketches.on_grid(self.values))

    def _facts(self) -> dict[str, str]:
        """What the density is, in a few words."""
        values = np.asarray(self.values)
        return {
            "basis": f"{type(self.basis).__name__} of degree {self.basis.degree} in R^{self.basis.dim}",
            "values": f"{values.min():.4g} to {values.max():.4g} on the grid",
        }

    def plot(self, *, figsize: tuple[float, float] | None = None, style: Any = None) -> Any:
        """The density in one Matplotlib Figure: `attnflow.plot(density)`."""
        import attnflow

        return attnflow.plot(self, figsize=figsize, style=style)

    @property
    def values(self) -> Values:
        """rho on the grid of the basis."""
        return self.basis.synthesis(self.coefficients)

    def __call__(
        self, x: ArrayLike | None = None, *, angles: ArrayLike | None = None, heights: ArrayLike | None = None
    ) -> Numbers:
        """rho at unit vectors `x` (..., dim); on a `CircleBasis` also at `angles`, on a `ZonalBasis` at s = <x, e>.

        rho([[1.0, 0.0]]) and rho(angles=[0.0]) are the same; heights s are given by name like angles.
        """
        return self.basis.evaluate(self.coefficients, x, angles=angles, heights=heights)

    def distance_from(self, tokens: Any, order: int = 1, *, grid: int = 2**14) -> float:
        """W_1 or W_2 between tokens on the circle and the density; `transport.distance(tokens, rho)` calls it.

        The distribution function is tabulated at `grid` angles: `quadrature_error` bounds what that changes in W_1.
        """
        from attnflow.meanfield.analysis.distances import circle_distance

        return circle_distance(tokens, self, order, grid=grid)

    @property
    def mass(self) -> Any:
        """The integral of rho, which is its first coefficient."""
        return self.coefficients.reshape(-1)[0]

    @property
    @in_float64
    @eqx.filter_jit
    def lowest(self) -> Any:
        """The minimum of rho on the grid."""
        return jnp.min(self.values)

    @property
    @in_float64
    @eqx.filter_jit
    def entropy(self) -> Any:
        """The integral of rho log rho against sigma, by quadrature on the grid; 0 for the uniform measure alone."""
        values = jnp.maximum(jnp.asarray(self.values), 0.0)
        return jnp.sum(self.basis.weights * xlogy(values, values))

    @property
    @in_float64
    @eqx.filter_jit
    def tail(self) -> Any:
        """The largest coefficient of the last degrees, as a share of the largest of all.

        What is cut off is about as large: watch it to see when a density outgrows its basis.
        """
        return tail_of(self.basis, self.coefficients)

    @property
    def moments(self) -> Moments:
        """The mean and second moments of the measure in R^dim, by quadrature on the grid."""
        return Moments(*self.basis.moments(self.values))

    def _check(self, tol: float) -> None:
        basis, c = self.basis, np.asarray(self.coefficients)
        if c.shape != basis.mask.shape:
            raise InvalidInput(
                f"`coefficients` has shape {c.shape}, but the basis has {basis.mask.shape}; resize them."
            )
        if not np.isfinite(c).all():
            raise InvalidInput("`coefficients` holds a number that is not finite; check how they were made.")
        if (c[~basis.mask] != 0).any():
            raise InvalidInput("`coefficients` is not 0 where `basis.mask` is False; multiply it by the mask.")
        if abs(self.mass - 1) > tol:
            raise InvalidInput(
                f"`coefficients` have mass {self.mass:.10g}; a density relative to the uniform measure has mass 1: "
                "divide by the first coefficient."
            )
        values = np.asarray(self.values)
        rounding = 64 * np.finfo(np.float64).eps * np.linalg.norm(c) * basis.sensitivity
        below = values + rounding
        if np.min(below) < -tol:
            worst = values.reshape(-1)[np.argmin(below)]
            raise InvalidInput(
                f"`coefficients` make a density that is {worst:.3g} at a point of the grid; a density is not negative: "
                f"raise the degree {basis.degree} of the basis, smooth the density, or allow more with `tol`."
            )


def tail_of(basis: AbstractBasis, coefficients: Coefficients) -> Any:
    """The largest coefficient of the last tenth of the degrees, as a share of the largest; of more for a pattern.

    The harmonics of a pattern of k bumps have the degrees k, 2k, ..., none of which need lie in the last tenth. The k
    is that of the largest coefficient per harmonic (a single bump has k = 1, for its coefficients are sqrt(N(k, d))
    times a falling sequence).
    """
    sizes = jnp.abs(jnp.asarray(coefficients))
    each = np.exp(-0.5 * np.cumsum(np.log(multiplicity_ratios(basis.dim, basis.degree))))
    shares = sizes * np.concatenate([[0.0], each])[basis.degrees]
    stride = jnp.asarray(basis.degrees).reshape(-1)[jnp.argmax(shares)]
    last = basis.degrees > basis.degree - jnp.maximum(stride, -(-basis.degree // 10))
    return jnp.max(jnp.where(last, sizes, 0.0)) / jnp.max(sizes)
