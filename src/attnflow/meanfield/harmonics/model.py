"""Attention as an equation for densities: d rho/dt + div(rho grad Phi[rho]) = kappa Laplacian rho.

The velocity field of attention with Q = K = V = I is a gradient. With Z = K * mu, K = e^(beta (<x, y> - 1)):
Phi = Z/beta for unnormalised attention on the clock USA0 (times e^beta on USA, beta e^beta on grad), and
Phi = log Z/beta for softmax (arXiv:2312.10794); a perceptron in gradient form adds its potential U.
Noise dX = sqrt(2 kappa) dB on the tokens is the diffusion kappa.
"""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.axes import batches, scalar
from attnflow.checks import instance
from attnflow.errors import InvalidInput
from attnflow.fields import AbstractField, Attention, Softmax, Total, Unnormalised
from attnflow.fields.normalisers import Clock
from attnflow.fields.perceptron import Potential
from attnflow.kernels import Exponential
from attnflow.meanfield.harmonics.basis import AbstractBasis, Coefficients
from attnflow.meanfield.harmonics.multipliers import check_degree, multipliers
from attnflow.precision import is_concrete
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens

FLOOR = 1e-14
"""K * mu, which is at most 1, is lost in the rounding of a synthesis below this."""


class Model(eqx.Module):
    """The numbers of the equation, read off a field by `as_model`. `beta`, `kappa`, `clock_factor` may be traced."""

    beta: Float[Array | np.ndarray, ""]
    kappa: Float[Array | np.ndarray, ""]
    clock_factor: Float[Array | np.ndarray | np.number, ""]
    """How much faster than USA0 the clock of unnormalised attention runs; 1 for softmax."""
    softmax: bool = eqx.field(static=True)
    potentials: tuple[Potential, ...] = ()

    def interaction_multipliers(self, basis: AbstractBasis) -> Any:
        """a_k/beta at every coefficient, 0 at degree 0; (Z - a_0)/beta has the coefficients a_k/beta rho^_k.

        The limit at beta = 0 is 1/d at degree 1 and 0 beyond.
        """
        # a_{k-1} - a_{k+1} = 2 (k + d/2 - 1) a_k/beta, without a division by beta
        a = multipliers(self.beta, basis.dim, basis.degree + 1)
        k = np.arange(1.0, basis.degree + 1)
        by_degree = jnp.concatenate([jnp.zeros(1), (a[:-2] - a[2:]) / (2 * k + basis.dim - 2)])
        return jnp.where(basis.mask, by_degree[basis.degrees], 0.0)

    def velocity_potential(self, basis: AbstractBasis, coefficients: Coefficients) -> Any:
        """Phi on the grid, up to a constant: tokens move along its gradient."""
        mean = basis.synthesis(self.interaction_multipliers(basis) * jnp.asarray(coefficients))  # (Z - a_0)/beta
        if self.softmax:
            level = multipliers(self.beta, basis.dim, 0)[0]
            ratio = self.beta * mean / level
            small = jnp.abs(self.beta) < 1e-12
            phi: Any = jnp.where(small, mean / level, jnp.log1p(ratio) / jnp.where(small, 1.0, self.beta))
        else:
            phi = self.clock_factor * mean
        return phi + self.external_potential(basis)

    def external_potential(self, basis: AbstractBasis) -> Any:
        """The sum of the potentials U on the grid."""
        raise_unless_pointwise(basis, self.potentials)
        return sum((part.potential(grid_positions(basis)) for part in self.potentials), jnp.zeros(()))

    def rate(self, basis: AbstractBasis, coefficients: Coefficients, seen: Coefficients | None = None) -> Any:
        """The time derivative of the coefficients without diffusion: minus those of div(rho grad Phi), cut at `degree`.

        In weak form, the integrals of rho <grad Phi, grad Y>. For softmax, grad log Z = grad Z/Z is computed on the
        grid alone: far from the mass, where rho and Z are lost in rounding, the flux is lost as well. Phi is that of
        the density `seen`, by default of the one that is moved.
        """
        c = jnp.asarray(coefficients)
        rho, velocity = basis.synthesis(c), self.attention_velocity(basis, c if seen is None else jnp.asarray(seen))
        if self.potentials:
            velocity = velocity + basis.gradient(basis.analysis(self.external_potential(basis)))
        return basis.inflow(jnp.broadcast_to(rho, velocity.shape) * velocity)

    def attention_velocity(self, basis: AbstractBasis, c: Any) -> Any:
        """The velocity of attention, without that of the potentials, on the grid: (component, *grid)."""
        slope = basis.gradient(self.interaction_multipliers(basis) * c)  # grad Z/beta
        return (
            slope / jnp.broadcast_to(self.convolved(basis, c), slope.shape)
            if self.softmax
            else self.clock_factor * slope
        )

    def convolved(self, basis: AbstractBasis, c: Any) -> Any:
        """Z = K * mu on the grid, at least `FLOOR`."""
        level = multipliers(self.beta, basis.dim, 0)[0]
        return jnp.maximum(level + self.beta * basis.synthesis(self.interaction_multipliers(basis) * c), FLOOR)

    def diffusion(self, basis: AbstractBasis) -> Any:
        """The eigenvalue of kappa Laplacian at every coefficient."""
        return self.kappa * basis.laplacian


def as_model(field: AbstractField, kappa: Any = 0.0) -> Model:
    """The equation of attention with Q = K = V = I, softmax or unnormalised, perhaps with `Potential`s and noise."""
    instance("field", field, AbstractField, "a field such as Attention(beta)")
    if batches((field, kappa)):
        raise InvalidInput(
            "`field` or `kappa` holds an Along; a density is alone, so go through the values one by one."
        )
    parts = field.parts if isinstance(field, Total) else (field,)
    heads = [part for part in parts if isinstance(part, Attention)]
    potentials = tuple(part for part in parts if isinstance(part, Potential))
    if len(heads) != 1 or len(potentials) != len(parts) - 1 or not heads[0].is_plain:
        raise InvalidInput(
            f"`field` has {_foreign(parts)}; densities follow Attention(beta) with Q = K = V = I (leave them out) and "
            "no mask, softmax or unnormalised, perhaps plus Potential(...); for others use tokens, solve(field, "
            "sample(density, n), until)."
        )
    attention = heads[0]
    softmax = isinstance(attention.normaliser, Softmax)
    beta = scalar("beta", low=0.0)(attention.beta)
    clock_factor: Any = np.ones(())
    if isinstance(rule := attention.normaliser, Unnormalised) and rule.clock is not Clock.USA0:
        grown = (np if is_concrete(beta) else jnp).exp(beta)
        clock_factor = grown if rule.clock is Clock.USA else beta * grown
    return Model(beta, scalar("kappa", low=0.0)(kappa), clock_factor, softmax, potentials)


def model_on(field: AbstractField, basis: AbstractBasis, kappa: Any = 0.0, tol: float = 1e-6) -> Model:
    """`as_model`, for densities in `basis`: refused if the kernel or a potential does not fit there."""
    model = as_model(field, kappa)
    raise_unless_pointwise(basis, model.potentials)
    field.check(Tokens(np.eye(basis.dim)[:1], space=Sphere(basis.dim)))
    check_degree(basis, float(model.beta), tol)
    return model


def _foreign(parts: Any) -> str:
    """What of a field no density can follow."""
    for part in parts:
        if not isinstance(part, Attention | Potential):
            return f"the part {type(part).__name__}"
        if isinstance(part, Attention) and not part.is_plain:
            if not part.mask.sees_everyone:
                return f"the mask {type(part.mask).__name__}"
            if not isinstance(part.kernel, Exponential):
                return f"the kernel {type(part.kernel).__name__}"
            named = isinstance(part.normaliser, Softmax | Unnormalised)
            return "matrices or an encoding" if named else f"the normaliser {type(part.normaliser).__name__}"
    return f"{sum(isinstance(part, Attention) for part in parts)} attentions"


def grid_positions(basis: AbstractBasis) -> Any:
    """The grid as unit vectors, shape (*grid, dim); for the circle and S^2. Traced where the basis is."""
    points = jnp.asarray(basis.points())
    return jnp.stack([jnp.cos(points), jnp.sin(points)], axis=-1) if basis.dim == 2 else points


def raise_unless_pointwise(basis: AbstractBasis, potentials: tuple[Potential, ...]) -> None:
    """Refuse potentials on a basis of zonal functions, which they leave."""
    from attnflow.meanfield.harmonics.basis import ZonalBasis

    if potentials and isinstance(basis, ZonalBasis):
        raise InvalidInput("`field` has a Potential, which is not zonal; use CircleBasis or SphereBasis.")
