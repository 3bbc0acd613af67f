"""Jacobians, Hessians, their spectra and what they say about stability."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.checks import generator
from attnflow.errors import InvalidInput, TooLarge
from attnflow.feasible import LARGEST_MATRIX
from attnflow.fields import AbstractField
from attnflow.fields.argument_checks import checked_arguments
from attnflow.observe.energy import renormalised_energy
from attnflow.precision import in_float64
from attnflow.spaces import Sphere
from attnflow.stability.operators import check, jacobian_operator, tangent_bases, tangent_map
from attnflow.tokens import Measure, Tokens, all_present


@dataclasses.dataclass(frozen=True)
class Spectrum:
    """Eigenvalues of the linearised flow, largest real part first, with eigenvectors as tangent fields."""

    eigenvalues: np.ndarray
    vectors: np.ndarray
    """(count, n, d): vectors[k] belongs to eigenvalues[k]."""
    tolerance: float
    """Real parts smaller than this are rounding or neutral directions (rotations)."""

    @property
    def index(self) -> int:
        """Morse index: the number of unstable directions (of an ascent flow: directions in which the energy grows)."""
        return int(np.sum(self.eigenvalues.real > self.tolerance))

    @property
    def nullity(self) -> int:
        """The number of neutral directions."""
        return int(np.sum(np.abs(self.eigenvalues.real) <= self.tolerance))

    @property
    def unstable(self) -> bool:
        """Whether some direction grows: at an equilibrium that is not a maximum, a strict saddle."""
        return self.index > 0


@checked_arguments
def jacobian(field: AbstractField, tokens: Tokens, t: float = 0.0) -> np.ndarray:
    """The linearised flow as a matrix of n times `space.dimension` rows, in the orthonormal bases of `tangent_bases`.

    Refused above 6,000 rows; `leading_eigenpairs` needs no matrix.
    """
    check(field, tokens)
    _small_enough(tokens)
    return _matrix(lambda frames: _jacobian(field, tokens.measure, jnp.asarray(t, float), frames), tokens)


@checked_arguments
def energy_hessian(tokens: Tokens, beta: float) -> np.ndarray:
    """The Riemannian Hessian of the energy E0 in the metric sum_i m_i <a_i, b_i>, as a symmetric matrix.

    In frames scaled by m_i^(-1/2), which are orthonormal for that metric:
    H = m^(-1/2) (P D^2 E P - <grad_i E, x_i> P) m^(-1/2), the last term from the curvature of the sphere. USA0 is the
    ascent flow of E0 in this metric, so at every point H is similar to its Jacobian (arXiv:2312.10794).
    """
    if not isinstance(tokens.space, Sphere):
        raise InvalidInput(
            f"`tokens` live on {tokens.space}, where E0 is not defined; give tokens on Sphere({tokens.dim}), or use "
            "`jacobian`, which takes every space."
        )
    tokens.single()
    all_present(tokens, "the Hessian")
    if np.any(np.asarray(tokens.masses) <= 0):
        raise InvalidInput(
            "`tokens` holds test particles of mass zero, for which the metric has no meaning; remove them."
        )
    _small_enough(tokens)
    root = np.repeat(np.sqrt(np.asarray(tokens.masses)), tokens.space.dimension)
    plain = _matrix(lambda frames: _hessian(tokens.measure, jnp.asarray(beta, float), frames), tokens)
    scaled = plain / root[:, None] / root[None, :]
    return (scaled + scaled.T) / 2


@checked_arguments
def spectrum(field: AbstractField, tokens: Tokens, t: float = 0.0) -> Spectrum:
    """All eigenvalues and eigenvectors of the linearised flow."""
    matrix = jacobian(field, tokens, t)
    values, vectors = np.linalg.eig(matrix)
    frames = tangent_bases(tokens)
    fields = np.einsum("nak,nad->knd", vectors.reshape(*frames.shape[:2], -1), frames)
    order = np.argsort(-values.real, kind="stable")
    # eigenvalues move by eps times the norm of the matrix, more where eigenvectors are nearly parallel
    size = max(float(np.linalg.norm(matrix, 2)), 1.0)
    tolerance = float(100 * np.finfo(float).eps * len(matrix) * size)
    return Spectrum(values[order], fields[order], tolerance)


@checked_arguments
def leading_eigenpairs(
    field: AbstractField, tokens: Tokens, t: float = 0.0, *, count: int = 6, tol: float = 1e-10, seed: int = 0
) -> Spectrum:
    """The `count` eigenvalues of largest real part, without a matrix (Arnoldi iteration; ARPACK through SciPy)."""
    from scipy.sparse.linalg import LinearOperator, eigs

    check(field, tokens)
    frames = tangent_bases(tokens)
    size = frames.shape[0] * frames.shape[1]
    if not 1 <= count < size - 1:
        raise InvalidInput(f"`count` is {count}; give a number from 1 to {size - 2} for this configuration.")
    operator = jacobian_operator(field, tokens, t)

    def apply(v: np.ndarray) -> np.ndarray:
        ambient = np.einsum("na,nad->nd", v.reshape(frames.shape[:2]), frames)
        return np.einsum("nad,nd->na", frames, operator(ambient)).ravel()

    start = generator(seed).standard_normal(size)
    values, vectors = eigs(
        LinearOperator((size, size), matvec=apply, dtype=np.float64), k=count, which="LR", v0=start, tol=tol
    )
    fields = np.einsum("nak,nad->knd", vectors.reshape(*frames.shape[:2], -1), frames)
    order = np.argsort(-values.real, kind="stable")
    return Spectrum(values[order], fields[order], max(tol, 1e-12))


def _matrix(columns: Any, tokens: Tokens) -> np.ndarray:
    """The matrix of a linear map in the tangent bases: basis vectors in, columns out."""
    frames = tangent_bases(tokens)
    return in_float64(columns)(frames)


def _in_frames(apply: Any, frames: Any) -> Any:
    n, k, d = frames.shape

    def column(index: Any) -> Any:
        i, a = index // k, index % k
        v = jnp.zeros((n, d), frames.dtype).at[i].set(frames[i, a])
        return jnp.einsum("nad,nd->na", frames, apply(v)).reshape(-1)

    return jax.lax.map(column, jnp.arange(n * k)).T


@eqx.filter_jit
def _jacobian(field: AbstractField, tokens: Measure, t: Any, frames: Any) -> Any:
    return _in_frames(tangent_map(field, tokens, t), jnp.asarray(frames))


@eqx.filter_jit
def _hessian(tokens: Measure, beta: Any, frames: Any) -> Any:
    x, m, space = jnp.asarray(tokens.positions), jnp.asarray(tokens.masses), tokens.space
    gradient = jax.grad(lambda y: renormalised_energy(y, m, beta))
    normal = jnp.sum(gradient(x) * x, axis=1, keepdims=True)

    def apply(v: Any) -> Any:
        return space.tangent(x, jax.jvp(gradient, (x,), (v,))[1]) - normal * v

    return _in_frames(apply, jnp.asarray(frames))


def _small_enough(tokens: Tokens) -> None:
    rows = tokens.n * tokens.space.dimension
    if rows > LARGEST_MATRIX:
        raise TooLarge(
            f"the matrix would have {rows} rows, {rows * rows * 8 / 2**30:.1f} GiB; the limit is {LARGEST_MATRIX}. "
            "Use `leading_eigenpairs`, which needs no matrix."
        )
