"""A density f(sigma, x) with a place sigma in [0, 1] as a coordinate: the mean field of a prompt."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from attnflow.checks import instance, shown, whole
from attnflow.describe import html_table
from attnflow.errors import InvalidInput, NoSuchItem
from attnflow.meanfield.harmonics.basis import AbstractBasis, CircleBasis
from attnflow.meanfield.harmonics.densities import from_function, uniform
from attnflow.meanfield.harmonics.density import TOLERANCE, Density
from attnflow.meanfield.places.nodes import Places
from attnflow.precision import is_traced
from attnflow.special.numbers import Numbers


class PlacedDensity(eqx.Module):
    """One density f(sigma, .) of mass 1 at every place sigma; tokens are spread evenly over the places.

    `coefficients` (places.size, *those of one density) are those of f at the nodes of `places`; between nodes f is the
    polynomial of the piece. Every node is checked as a `Density` is; inside compiled code nothing is checked.
    """

    places: Places
    basis: AbstractBasis
    coefficients: Float[Array | np.ndarray, "..."]

    def __init__(self, places: Places, basis: AbstractBasis, coefficients: Any, *, tol: float = TOLERANCE):
        self.places = instance("places", places, Places, "Places(), or Places((0, s, 1)) for a jump at s")
        self.basis = instance("basis", basis, AbstractBasis, "a CircleBasis, SphereBasis or ZonalBasis")
        if is_traced((basis, coefficients)):
            self.coefficients = coefficients
            return
        rows = np.asarray(coefficients)
        if rows.shape != (places.size, *basis.mask.shape):
            raise InvalidInput(
                f"`coefficients` has shape {rows.shape}; give {(places.size, *basis.mask.shape)}, those of the basis "
                f"at each of the {places.size} nodes."
            )
        for place, row in zip(places.points, rows, strict=True):
            try:
                Density(basis, row, tol=tol)
            except InvalidInput as refusal:
                raise InvalidInput(f"at the place {place:.4g}, {refusal}") from refusal
        self.coefficients = rows.astype(np.float64)

    def moved(self, coefficients: Any) -> "PlacedDensity":
        """Other coefficients at the same places in the same basis, unchecked: for use inside compiled code."""
        return eqx.tree_at(lambda density: density.coefficients, self, coefficients)

    def __repr__(self) -> str:
        kind, places = type(self.basis).__name__, self.places
        return f"PlacedDensity({places.size} nodes, breaks {places.breaks}, {kind} of degree {self.basis.degree})"

    def _repr_html_(self) -> str:
        facts = {"nodes": self.places.size, "breaks": self.places.breaks, "degree": self.basis.degree}
        return html_table("PlacedDensity", {"basis": type(self.basis).__name__} | facts)

    def __call__(
        self,
        place: ArrayLike,
        x: ArrayLike | None = None,
        *,
        angles: ArrayLike | None = None,
        heights: ArrayLike | None = None,
    ) -> Numbers:
        """f at every place and every point, shape (*place, *points); points are given as to a `Density`."""
        rows = self.places.at(self.coefficients, place)
        axes = self.basis.mask.ndim
        flat = rows.reshape(-1, *rows.shape[rows.ndim - axes :])
        values = np.stack([self.basis.evaluate(row, x, angles=angles, heights=heights) for row in flat])
        return values.reshape((*rows.shape[: rows.ndim - axes], *values.shape[1:]))[()]

    def at(self, place: float) -> Density:
        """The density at one place."""
        return self._density(self.places.at(self.coefficients, place))

    def node(self, number: int) -> Density:
        """The density at the place `places.points[number]`."""
        size = self.places.size
        if not -size <= whole("number", number, -(2**53)) < size:
            raise NoSuchItem(f"node {number} was asked for; there are {size}, counted from 0.")
        return self._density(np.asarray(self.coefficients)[number])

    @property
    def mean(self) -> Density:
        """The mean over all places: what one sees who does not know places."""
        return self.average()

    def average(self, first: float = 0.0, last: float = 1.0) -> Density:
        """The mean over the places from `first` to `last`; `first` = 0.96 gives that of the last 4 percent."""
        weights = self.places.average(first, last)
        return self._density(np.tensordot(weights, np.asarray(self.coefficients), 1))

    def profile(self, degree: int, order: int = 0) -> np.ndarray:
        """The integrals of f(sigma, .) h at every node, h = basis.harmonic(degree, order): cos, sin or P_k.

        On the circle f = 1 + e(sigma) cos(k theta) has the profile e/2.
        """
        rows = np.asarray(self.coefficients)
        return np.sum(rows * self.basis.harmonic(degree, order), axis=tuple(range(1, rows.ndim)))

    def integral(self, degree: int, order: int = 0, first: float = 0.0, last: float = 1.0) -> float:
        """The mean of `profile` over the places from `first` to `last`."""
        return float(self.places.average(first, last) @ self.profile(degree, order))

    def fourier(self, degree: int, first: float = 0.0, last: float = 1.0) -> complex:
        """The mean of e^{-i degree theta} over f and over the places from `first` to `last`; on the circle."""
        if not isinstance(self.basis, CircleBasis):
            raise InvalidInput(
                f"the basis is {type(self.basis).__name__}, and `fourier` is for the circle; use `integral(degree)`."
            )
        sine = self.integral(degree, -1, first, last) if degree else 0.0
        return complex(self.integral(degree, 0, first, last), -sine)

    def _density(self, row: np.ndarray) -> Density:
        return uniform(self.basis).moved(row)


def placed(
    places: Places,
    start: Callable[[float, np.ndarray], ArrayLike] | Density | Sequence[Density],
    basis: AbstractBasis | None = None,
    *,
    normalise: bool = False,
    tol: float = TOLERANCE,
) -> PlacedDensity:
    """The placed density with a formula f(place, points), or with one density per piece of `places`.

    A formula is called with one place at a time and the grid of `basis` (an angle, unit vectors of R^3, or s = <x, e>);
    `normalise` and `tol` are those of `from_function`. One `Density` is the same at all places: an iid prompt.
    Several are constant on the pieces, in order: a topic switch is placed(Places((0, s, 1)), [early, late]).
    """
    instance("places", places, Places, "Places(), or Places((0, s, 1)) for a jump at s")
    if isinstance(start, Density | Sequence):
        return _pieces(places, [start] * places.pieces if isinstance(start, Density) else list(start), basis, tol)
    if not callable(start):
        raise InvalidInput(f"`start` is {shown(start)}; give a formula f(place, points), or a Density for each piece.")
    if basis is None:
        raise InvalidInput("`basis` is missing; a formula needs one, as in placed(places, formula, CircleBasis(32)).")
    instance("basis", basis, AbstractBasis, "a CircleBasis, SphereBasis or ZonalBasis")
    rows = [
        from_function(basis, functools.partial(start, s), normalise=normalise, tol=tol).coefficients
        for s in places.points.tolist()
    ]
    return PlacedDensity(places, basis, np.stack(rows), tol=tol)


def placed_pieces(densities: Sequence[Density], breaks: Sequence[float] = (0.0, 1.0), nodes: int = 16) -> PlacedDensity:
    """One density for each piece between `breaks`, in order: `placed(Places(breaks, nodes), densities)`."""
    return placed(Places(breaks, nodes), densities if isinstance(densities, Density) else list(densities))


def _pieces(places: Places, densities: list[Any], basis: AbstractBasis | None, tol: float) -> PlacedDensity:
    for i, density in enumerate(densities):
        instance(f"start[{i}]", density, Density, "a Density")
    if len(densities) != places.pieces:
        raise InvalidInput(
            f"`start` has {len(densities)} densities for {places.pieces} pieces between the breaks {places.breaks}; "
            "give one for each."
        )
    basis = densities[0].basis if basis is None else basis
    for i, density in enumerate(densities):
        if not eqx.tree_equal(density.basis, basis):
            raise InvalidInput(f"start[{i}] has another basis than the first or than `basis`; build all on one basis.")
    rows = np.repeat(np.stack([np.asarray(density.coefficients) for density in densities]), places.nodes, axis=0)
    return PlacedDensity(places, basis, rows, tol=tol)
