"""Densities from formulas, from tokens, and by name."""

from collections.abc import Callable, Sequence

import equinox as eqx
import numpy as np
from numpy.typing import ArrayLike

from attnflow.axes import finite_array
from attnflow.checks import ABOVE_ZERO, instance, number, shown, whole
from attnflow.errors import InvalidInput
from attnflow.meanfield.harmonics.basis import AbstractBasis, ZonalBasis
from attnflow.meanfield.harmonics.density import TOLERANCE, Density
from attnflow.meanfield.harmonics.multipliers import multipliers
from attnflow.meanfield.harmonics.orthogonal import orthonormal
from attnflow.special.degrees import BETA
from attnflow.special.formula import Other, formula
from attnflow.tokens import Tokens


def _checked(basis: AbstractBasis) -> AbstractBasis:
    return instance("basis", basis, AbstractBasis, "a CircleBasis, SphereBasis or ZonalBasis")


def from_function(
    basis: AbstractBasis,
    function: Callable[[np.ndarray], ArrayLike],
    *,
    normalise: bool = False,
    tol: float = TOLERANCE,
) -> Density:
    """The density with this formula, of an angle (circle), of unit vectors (..., 3) (S^2), or of s = <x, e> (zonal).

    The formula is read on the grid of the basis; look at `tail` to see whether the degree is enough. `normalise=True`
    divides by the mass; otherwise a mass that differs from 1 by more than `tol` is refused.
    """
    points = _checked(basis).points()
    if not callable(function):
        raise InvalidInput(f"`function` is {shown(function)}; give a formula, a function of the points of the grid.")
    number("tol", tol, low=0.0)
    raw = np.asarray(function(points))
    if raw.dtype.kind not in "iuf":
        raise InvalidInput(f"`function` gives numbers of type {raw.dtype}; a density is real.")
    shape = basis.sensitivity.shape
    if raw.shape != shape:
        raise InvalidInput(f"`function` gives shape {raw.shape} on a grid of shape {shape}; give one value per point.")
    values = raw.astype(np.float64)
    if not np.isfinite(values).all():
        raise InvalidInput("`function` is not finite at a point of the grid; give a bounded formula.")
    if np.min(values) < -tol:
        raise InvalidInput(f"`function` is {np.min(values):.3g} at a point of the grid; a density is not negative.")
    mass = float(np.sum(basis.weights * values))
    if not normalise and abs(mass - 1) > tol:
        raise InvalidInput(
            f"`function` has mass {mass:.10g} against the uniform measure; divide it by that, or pass `normalise=True`."
        )
    if mass <= 0:
        raise InvalidInput("`function` is 0 on the whole grid; give a formula with positive mass.")
    coefficients = basis.analysis(values)
    return Density(basis, coefficients / mass if normalise else coefficients, tol=tol)


def uniform(basis: AbstractBasis) -> Density:
    """The uniform measure, rho = 1."""
    coefficients = np.zeros(_checked(basis).mask.shape)
    coefficients.reshape(-1)[0] = 1.0
    return Density(basis, coefficients)


def von_mises_fisher(
    basis: AbstractBasis, concentration: float, mean: ArrayLike | None = None, *, tol: float = TOLERANCE
) -> Density:
    """The density proportional to exp(concentration <mean, x>), `mean` the last basis vector unless given.

    Exact coefficients: a_k(concentration)/a_0(concentration) times the harmonics at `mean`.
    """
    number("concentration", concentration, low=0.0, high=BETA.high)
    a = multipliers(concentration, _checked(basis).dim, basis.degree)
    if a[0] == 0:
        raise InvalidInput(f"`concentration` is {concentration}, at which the density leaves float range; lower it.")
    return Density(basis, (a / a[0])[basis.degrees] * _at(basis, "mean", mean), tol=tol)


def watson(
    basis: AbstractBasis, concentration: float, axis: ArrayLike | None = None, *, tol: float = TOLERANCE
) -> Density:
    """The density proportional to exp(concentration <axis, x>^2): two poles, or a girdle if negative.

    `axis` is the last basis vector unless given. Coefficients by Gauss quadrature in <axis, x>, on a grid that resolves
    the concentration.
    """
    number("concentration", concentration)
    _checked(basis)
    count = 2 * basis.degree + 64 + int(16 * np.sqrt(abs(concentration)))
    zonal = ZonalBasis(basis.dim, basis.degree, count)
    profile = zonal.analysis(np.exp(concentration * zonal.points() ** 2 - max(concentration, 0.0)))
    tops = orthonormal(basis.dim, basis.degree, np.ones(()))
    scale = (np.asarray(profile) / profile[0] / tops)[basis.degrees]  # addition theorem: sum_j Y_kj(a) Y_kj = top phi_k
    return Density(basis, scale * _at(basis, "axis", axis), tol=tol)


def mixture(weights: ArrayLike, densities: Sequence[Density]) -> Density:
    """sum_i weights_i rho_i, the weights rescaled to sum to 1; all densities in one basis."""
    densities = list(densities) if isinstance(densities, Sequence) else [densities]
    for i, density in enumerate(densities):
        instance(f"densities[{i}]", density, Density, "a Density")
    shares = finite_array("weights", weights)
    if not densities or shares.shape != (len(densities),):
        raise InvalidInput(f"`weights` has shape {shares.shape} for {len(densities)} densities; give one for each.")
    if not np.isfinite(shares).all() or (shares < 0).any() or np.sum(shares) == 0:
        raise InvalidInput(f"`weights` is {shares.tolist()}; give finite numbers of at least 0, not all 0.")
    basis = densities[0].basis
    for i, density in enumerate(densities):
        if not eqx.tree_equal(density.basis, basis):
            raise InvalidInput(f"densities[{i}] has another basis than densities[0]; build all of them on one basis.")
    shares = shares / np.sum(shares)
    return Density(basis, sum(w * np.asarray(rho.coefficients) for w, rho in zip(shares, densities, strict=True)))


def perturbed(basis: AbstractBasis, degree: int, amplitude: float, order: int = 0) -> Density:
    """1 + amplitude h with h one harmonic of sup norm 1, degree >= 1 and |amplitude| <= 1.

    cos(degree theta) on the circle (the sine if `order` < 0); on S^2 the harmonic of that order (the sine of |order|
    phi if negative); P_degree(<x, e>) for order 0.
    """
    whole("degree", degree, 1)
    number("amplitude", amplitude, low=-1.0, high=1.0)
    return Density(basis, uniform(basis).coefficients + amplitude * basis.harmonic(degree, order))


def from_tokens(
    basis: AbstractBasis, tokens: Tokens, bandwidth: float | None = None, *, tol: float = TOLERANCE
) -> Density:
    """The heat flow of the atomic measure: an estimate of the density that tokens were drawn from.

    The empirical coefficients times exp(-k (k+d-2) bandwidth^2/2): each token becomes a bump of standard deviation
    `bandwidth` in every direction, exactly (up to the degree of the basis). By default the normal reference rule in
    d - 1 dimensions, bandwidth = s (4 / ((d + 1) n))^{1/(d+3)} with n = 1/sum masses^2 and
    s^2 = (1 - |mean|^2)/(d - 1), which is good for one bump and too large for several. On a `ZonalBasis` the tokens are
    averaged over rotations about the axis.
    """
    x, m = _system(basis, tokens)
    if bandwidth is None:
        d, size = basis.dim, 1 / np.sum(m**2)
        spread = np.sqrt(max(1 - np.sum((m @ x) ** 2), 0.0) / (d - 1))
        bandwidth = float(spread * (4 / ((d + 1) * size)) ** (1 / (d + 3)))
        if not bandwidth > 0:
            raise InvalidInput("`tokens` stand at one point, which suggests no `bandwidth`; give one.")
    number("bandwidth", bandwidth, low=ABOVE_ZERO)
    coefficients = np.exp(basis.laplacian * bandwidth**2 / 2) * empirical(basis, tokens)
    try:
        return Density(basis, coefficients, tol=tol)
    except InvalidInput as refusal:
        raise InvalidInput(
            f"`bandwidth` is {bandwidth:.3g}, too small for degree {basis.degree}: the estimate is negative somewhere; "
            "raise the bandwidth or the degree of the basis."
        ) from refusal


@formula(
    basis=Other(
        "a CircleBasis, SphereBasis or ZonalBasis, of harmonics up to 1000 in size; the error grows with "
        "`basis.sensitivity`"
    ),
    tokens=Other("one system of unit vectors"),
    absolute=1e-11,
)
def empirical(basis: AbstractBasis, tokens: Tokens) -> np.ndarray:
    """The coefficients sum_i masses_i Y(x_i) of the atomic measure itself, which has no density.

    Arguments:
        basis: the harmonics Y; on a `ZonalBasis` those of <x, e> alone.
        tokens: unit vectors x_i with masses, on the sphere of the basis.
    """
    x, m = _system(basis, tokens)
    return basis.atoms(x, m)


def _system(basis: AbstractBasis, tokens: Tokens) -> tuple[np.ndarray, np.ndarray]:
    tokens.single()
    if tokens.dim != basis.dim:
        raise InvalidInput(
            f"`tokens` live in R^{tokens.dim}, but the basis is on S^{basis.dim - 1}; use one dimension."
        )
    x = np.asarray(tokens.positions, dtype=np.float64)
    if np.max(np.abs(np.linalg.norm(x, axis=-1) - 1)) > 1e-6:
        raise InvalidInput("`tokens` are not unit vectors; give tokens on `Sphere(d)`.")
    return x, np.asarray(tokens.masses, dtype=np.float64)


def _at(basis: AbstractBasis, name: str, direction: ArrayLike | None) -> np.ndarray:
    """The harmonics at a direction of R^dim."""
    vector = np.eye(basis.dim)[-1] if direction is None else np.asarray(direction, dtype=np.float64)
    size = np.linalg.norm(vector)
    if vector.shape != (basis.dim,) or not (np.isfinite(size) and size > 0):
        raise InvalidInput(f"`{name}` is {shown(direction)}; give a direction of R^{basis.dim}.")
    vector = vector / size
    if isinstance(basis, ZonalBasis) and abs(vector[-1]) < 1 - 1e-12:
        raise InvalidInput(f"`{name}` is off the axis of the zonal basis; give plus or minus the last basis vector.")
    return basis.atoms(vector, [1.0])
