"""The linearised equation at any density: its matrix in harmonics, its spectrum, and what of it is unstable.

A perturbation h of mass 0 of the density rho follows dh/dt = -div(rho grad Phi'[h]) - div(h grad Phi) + kappa Lap h.
At the uniform measure harmonics of degree k are eigenfunctions with eigenvalue k (k+d-2) (a_k/beta - kappa), a_k
divided by a_0 for softmax (arXiv:2312.10794 at kappa = 0).
"""

import dataclasses
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.checks import instance, whole
from attnflow.errors import InvalidInput, TooLarge
from attnflow.fields import AbstractField
from attnflow.meanfield.harmonics.basis import AbstractBasis, CircleBasis, Coefficients, ZonalBasis
from attnflow.meanfield.harmonics.density import Density
from attnflow.meanfield.harmonics.model import Model, model_on
from attnflow.meanfield.harmonics.multipliers import multipliers
from attnflow.meanfield.harmonics.orthogonal import slopes
from attnflow.meanfield.harmonics.sphere_basis import SphereBasis
from attnflow.precision import in_float64
from attnflow.special.formula import Other, formula

MOST_ENTRIES = 4096
"""Free entries of a density whose linearisation is made as a matrix: every column is evaluated on the grid."""
EPS = float(np.finfo(np.float64).eps)
KERNEL = 0.01
"""What a basis may leave out of the kernel (of its maximum 1): degrees beyond hardly attract each other."""


@dataclasses.dataclass(frozen=True)
class Linearised:
    """The linearised operator on perturbations of mass 0, and its eigenvalues, the fastest growth first.

    In the sector m of a zonal density a perturbation is g(s) (1-s^2)^(m/2) Y, Y a harmonic of degree m of the other
    variables; `basis` and `eigenfunctions` are then those of g, and `degrees` those of the perturbation.
    """

    basis: AbstractBasis
    sector: int
    degrees: np.ndarray
    """(size,): the degree of every row of `matrix`; rows are the coefficients of degree at least 1, in their order."""
    matrix: np.ndarray
    spectrum: np.ndarray
    """(size,): real where all eigenvalues are, to rounding; otherwise complex."""
    eigenfunctions: np.ndarray
    """(size, *coefficients): eigenfunctions[j] of norm 1 belongs to spectrum[j]; its largest coefficient is above 0."""

    @property
    def growth(self) -> np.ndarray:
        """The real parts of the spectrum."""
        return np.asarray(self.spectrum.real)

    def values(self, count: int | None = None) -> np.ndarray:
        """The first `count` eigenfunctions on the grid of the basis, shape (count, *grid)."""
        chosen = self.eigenfunctions[:count]
        parts = [chosen.real, chosen.imag] if np.iscomplexobj(chosen) else [chosen]
        found = [np.stack([np.asarray(self.basis.synthesis(c)) for c in part]) for part in parts]
        return found[0] + 1j * found[1] if len(found) == 2 else found[0]


@dataclasses.dataclass(frozen=True)
class Stability:
    """What of the linearised operator grows, rotations of the density left out."""

    unstable: int
    """The number of eigenvalues with growth above `tolerance`, with multiplicity."""
    growth: float
    """The largest growth."""
    tolerance: float

    @property
    def stable(self) -> bool:
        """Whether nothing grows."""
        return self.unstable == 0


def linearised(
    field: AbstractField, density: Density, kappa: float = 0.0, degree: int | None = None, *, sector: int = 0
) -> Linearised:
    """The linearisation of the continuity equation of `field`, with noise `kappa`, at `density`.

    Derivatives of `Model.rate` by jvp, column by column, so that it is the matrix of the semi-discrete equation, and
    exact to rounding. `degree` uses another number of degrees than the density has. A `ZonalBasis` holds zonal
    perturbations alone; `sector=m` gives those of order m about the axis (each eigenvalue then counts N(m, d-1) times),
    for even and odd ones on the circle m = 0 and 1.
    """
    density = _resized(instance("density", density, Density, "a Density, as uniform(basis) is one"), degree)
    basis = density.basis
    model = model_on(field, basis, kappa, KERNEL)
    _check_sector(basis, sector)
    if sector:
        matrix, basis, degrees = _sector_matrix(model, density, sector)
        return Linearised(basis, sector, degrees, matrix, *_eigen(matrix, np.arange(len(matrix)), (len(matrix),)))
    index = free_entries(basis)
    matrix = _matrix(model, basis, np.asarray(density.coefficients, dtype=np.float64))
    return Linearised(
        basis, 0, basis.degrees.reshape(-1)[index], matrix, *_eigen(matrix, index, np.shape(density.coefficients))
    )


def stability(field: AbstractField, density: Density, kappa: float = 0.0) -> Stability:
    """How many directions are unstable at a stationary state, rotations of the state left out.

    All perturbations count; for a density in a `ZonalBasis` those of every sector m, with their multiplicity N(m, d-1),
    up to the first m >= 1 in which nothing grows. (Real eigenvalues pass through 0 with those of the symmetric form
    kappa Z/rho - K_m/beta, Z = K * mu for softmax and 1 otherwise; the kernels K_m > 0 of the sectors decrease in m, so
    by Perron and Frobenius the least eigenvalue of the form rises.) Refused where degrees beyond the basis may grow.
    """
    instance("density", density, Density, "a Density, as `stationary` finds one")
    basis, c = density.basis, np.asarray(density.coefficients, dtype=np.float64)
    model = model_on(field, basis, kappa, KERNEL)
    if isinstance(basis, ZonalBasis):
        unstable, growth, tolerance = 0, -np.inf, 0.0
        last = 1 if basis.dim == 2 else basis.degree - 1
        for m in range(last + 1):
            matrix = _sector_matrix(model, density, m)[0]
            turned = (slopes(basis.dim, basis.degree) * c[1:])[None] if m == 1 else np.zeros((0, len(matrix)))
            count, top, rounding = _grows(_without(matrix, turned))
            unstable, growth = unstable + count * _order_count(m, basis.dim - 1), max(growth, top)
            tolerance = max(tolerance, rounding)
            if m and not count:
                break
        ends = (m < last) if basis.dim > 2 else _ends(model, density)
    else:
        matrix = _matrix(model, basis, c)
        turned = np.zeros((0, len(matrix))) if model.potentials else rotations(basis, c)
        unstable, growth, tolerance = _grows(_without(matrix, turned))
        ends = _ends(model, density)
    if model.kappa > 0 and not ends:
        raise InvalidInput(
            f"`density` has degree {basis.degree}, and degrees above it may be unstable too; use "
            f"`basis.refined({2 * basis.degree})`."
        )
    return Stability(unstable, growth, tolerance)


def free_entries(basis: AbstractBasis) -> np.ndarray:
    """Where the coefficients of degree at least 1 stand in the flattened array of coefficients."""
    return np.flatnonzero((basis.mask & (basis.degrees > 0)).reshape(-1))


@formula(
    basis=Other("a CircleBasis, SphereBasis or ZonalBasis"),
    coefficients=Other("the coefficients of a function in this basis"),
    absolute="1e-15 * np.size(coefficients) * np.max(np.abs(coefficients))",
)
def rotations(basis: AbstractBasis, coefficients: Coefficients) -> np.ndarray:
    """Velocities of a function f under rotations, by their coefficients of degree at least 1: (1 or 3 or 0, size).

    On the circle f'(theta), which turns f clockwise. On S^2 -(e_i x x) . grad f for i = 1, 2, 3, which turns f about
    the axis e_i counterclockwise, by ladder operators (DLMF 14.30 with L_x, L_y, L_z of quantum mechanics). None for
    zonal functions, whose rotations are not zonal.

    Arguments:
        basis: the basis of the function.
        coefficients: its coefficients.
    """
    instance("basis", basis, AbstractBasis, "a CircleBasis, SphereBasis or ZonalBasis")
    c = np.asarray(coefficients, dtype=np.float64)
    if c.shape != basis.mask.shape:
        raise InvalidInput(f"`coefficients` has shape {c.shape}, but the basis has {basis.mask.shape}; resize them.")
    if isinstance(basis, CircleBasis):
        k = np.arange(1, basis.degree + 1)
        cosines, sines = np.split(c[1:], 2)
        return np.concatenate([k * sines, -k * cosines])[None]
    if not isinstance(basis, SphereBasis):
        return np.zeros((0, len(free_entries(basis))))
    m, k = np.arange(basis.degree + 1)[:, None], np.arange(basis.degree + 1)[None, :]
    sign, scale = (-1.0) ** m, np.where(m > 0, np.sqrt(0.5), 1.0)
    waves = sign * scale * (c[0] - 1j * c[1])  # f = sum of waves_km Y_km over all m, waves_{k,-m} = (-1)^m conj
    ladder = np.sqrt(np.maximum((k - m) * (k + m + 1), 0))
    up = np.concatenate([-ladder[:1] * np.conj(waves[1:2]), (ladder * waves)[:-1]])
    down = ladder * np.concatenate([waves[1:], np.zeros((1, basis.degree + 1))])
    found = []
    for turned in (-0.5j * (up + down), -0.5 * (up - down), -1j * m * waves):
        back = sign * turned / scale
        found.append(np.stack([back.real, np.where(m > 0, -back.imag, 0.0)]).reshape(-1)[free_entries(basis)])
    return np.stack(found)


def multipliers_of(model: Model, density: Density) -> np.ndarray:
    """The derivative of Phi at the uniform measure by degree: a_k/beta on the clock USA0, a_k/(beta a_0) for SA."""
    return np.asarray(_ingredients(model, density.basis, np.asarray(density.coefficients, dtype=np.float64))[0])


def _resized(density: Density, degree: int | None) -> Density:
    if degree is None or degree == density.basis.degree:
        return density
    whole("degree", degree, 1)
    return Density(density.basis.refined(degree), density.basis.resized(density.coefficients, degree))


def _check_sector(basis: AbstractBasis, sector: int) -> None:
    if whole("sector", sector, 0) and not isinstance(basis, ZonalBasis):
        raise InvalidInput(f"`sector` is {sector}, but only a ZonalBasis has sectors; leave it out.")
    if sector >= basis.degree or (basis.dim == 2 and sector > 1):
        most = 1 if basis.dim == 2 else basis.degree - 1
        raise InvalidInput(f"`sector` is {sector}; this basis has the sectors 0 to {most}.")


@in_float64
def _matrix(model: Model, basis: AbstractBasis, coefficients: np.ndarray) -> np.ndarray:
    size = len(free_entries(basis))
    if size > MOST_ENTRIES:
        raise TooLarge(f"the matrix would have {size} rows, above {MOST_ENTRIES}; pass a smaller `degree`.")
    return np.asarray(_columns(model, basis, coefficients))


@eqx.filter_jit
def _columns(model: Model, basis: AbstractBasis, coefficients: Any) -> Any:
    index, c = free_entries(basis), jnp.asarray(coefficients)
    _, push = jax.linearize(lambda x: model.rate(basis, x), c)

    def column(entry: Any) -> Any:
        return push(jnp.zeros(c.size).at[entry].set(1.0).reshape(c.shape)).reshape(-1)[index]

    size = max(1, 2**22 // (8 * math.prod(basis.weights.shape)))
    entries = jnp.asarray(index)
    columns = jax.vmap(column)(entries) if size >= len(index) else jax.lax.map(column, entries, batch_size=size)
    return columns.T + jnp.diag(model.diffusion(basis).reshape(-1)[index])


def _sector_matrix(model: Model, density: Density, m: int) -> tuple[np.ndarray, ZonalBasis, np.ndarray]:
    """Perturbations g(s) (1-s^2)^(m/2) Y of a zonal density: harmonics of S^(d-1+2m) in s, with degrees raised by m.

    Multiplication [f] by a zonal f keeps the sector, so 2 div(rho grad .) = Lap [rho] + [rho] Lap - [Lap rho] and
    2 div(. grad Phi) = Lap [Phi] + [Lap Phi] - [Phi] Lap are products of small matrices.
    """
    basis, c = density.basis, np.asarray(density.coefficients, dtype=np.float64)
    d, top = basis.dim, basis.degree
    inner = ZonalBasis(d + 2 * m, top - m, basis.grid if m == 0 else max(basis.grid, (3 * top - 2 * m) // 2 + 1))
    s, table = inner.nodes, np.asarray(inner.table)

    def times(values: np.ndarray) -> np.ndarray:
        return (table * (inner.weights * values)) @ table.T

    degrees = np.arange(m, top + 1)
    bend = -(degrees * (degrees + d - 2.0))
    interaction, phi, _ = _ingredients(model, basis, c)
    rho = density(heights=s)
    along = bend[:, None] * times(rho) + times(rho) * bend - times(basis.evaluate(basis.laplacian * c, heights=s))
    height = times(basis.evaluate(phi, heights=s))
    across = bend[:, None] * height + times(basis.evaluate(basis.laplacian * phi, heights=s)) - height * bend
    if model.softmax:
        answer = times(1 / (1 + float(model.beta) * basis.evaluate(interaction * c, heights=s)))
    else:
        answer = float(model.clock_factor) * np.eye(len(degrees))
    matrix = -0.5 * (along @ (answer * interaction[m:]) + across) + np.diag(float(model.kappa) * bend)
    return (matrix, inner, degrees) if m else (matrix[1:, 1:], inner, degrees[1:])


@in_float64
@eqx.filter_jit
def _ingredients(model: Model, basis: AbstractBasis, coefficients: Any) -> Any:
    """The multipliers of Phi (for softmax over a_0), Phi by coefficients, and on the grid Z = K * mu/a_0, else 1."""
    c = jnp.asarray(coefficients)
    phi = basis.analysis(model.velocity_potential(basis, c))
    if not model.softmax:
        return model.interaction_multipliers(basis), phi, jnp.ones(np.shape(basis.weights))
    interaction = model.interaction_multipliers(basis) / multipliers(model.beta, basis.dim, 0)[0]
    return interaction, phi, 1 + model.beta * basis.synthesis(interaction * c)


def _ends(model: Model, density: Density) -> bool:
    """Whether kappa Z/rho is above the multiplier of Phi at the last degree, so that nothing grows beyond it."""
    basis, rho = density.basis, np.asarray(density.values)
    interaction, _, z = _ingredients(model, basis, np.asarray(density.coefficients, dtype=np.float64))
    last = float(model.clock_factor) * np.max(interaction[(basis.degrees == basis.degree) & basis.mask])
    return bool(last * np.max(rho / z) <= model.kappa)


def _grows(matrix: np.ndarray) -> tuple[int, float, float]:
    """The number of eigenvalues that grow, the largest growth, and the tolerance for it."""
    rates = np.linalg.eigvals(matrix).real
    tolerance = float(1e-10 + 1e3 * EPS * np.linalg.norm(matrix))
    return int(np.sum(rates > tolerance)), float(np.max(rates)), tolerance


def _order_count(m: int, d: int) -> int:
    """N(m, d), the number of harmonics of degree m on S^(d-1), also on S^0."""
    if d == 1:
        return int(m < 2)
    return math.comb(m + d - 1, d - 1) - (math.comb(m + d - 3, d - 1) if m > 1 else 0)


def _without(matrix: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """The matrix on the quotient by the span of `vectors`, which it leaves invariant."""
    sizes, axes = np.linalg.svd(vectors)[1:] if len(vectors) else (np.zeros(0), np.eye(len(matrix)))
    rank = int(np.sum(sizes > max(1e-6 * np.max(sizes, initial=0.0), 1e-8)))
    rest = axes[rank:]
    return np.asarray(rest @ matrix @ rest.T)


def _eigen(matrix: np.ndarray, index: np.ndarray, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues by growth, and eigenvectors as arrays of coefficients."""
    size = float(np.linalg.norm(matrix))
    if np.linalg.norm(matrix - matrix.T) <= 1e3 * EPS * size:
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    else:
        values, vectors = np.linalg.eig(matrix)
    if np.max(np.abs(np.imag(values))) <= 1e4 * EPS * size:
        # a double eigenvalue that rounding made a conjugate pair: both parts of its vector are eigenvectors
        vectors = np.where(np.imag(values) < 0, vectors.imag, vectors.real)
        values, vectors = values.real, vectors / np.linalg.norm(vectors, axis=0)
    order = np.argsort(-values.real, kind="stable")
    values, vectors = values[order], vectors[:, order]
    largest = vectors[np.argmax(np.abs(vectors), axis=0), np.arange(len(values))]
    vectors = vectors * (np.abs(largest) / largest)
    found = np.zeros((len(values), math.prod(shape)), dtype=vectors.dtype)
    found[:, index] = vectors.T
    return values, found.reshape(len(values), *shape)
