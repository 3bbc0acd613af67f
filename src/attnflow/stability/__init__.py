"""Stability: what the simulator's own derivatives say at a configuration."""

from attnflow.lazy import listing, refusing
from attnflow.stability.equilibria import Equilibrium, continue_equilibrium, find_equilibria, find_equilibrium
from attnflow.stability.hessian import Spectrum, energy_hessian, jacobian, leading_eigenpairs, spectrum
from attnflow.stability.operators import jacobian_operator, tangent_bases

__all__ = [
    "Equilibrium",
    "Spectrum",
    "continue_equilibrium",
    "energy_hessian",
    "find_equilibria",
    "find_equilibrium",
    "jacobian",
    "jacobian_operator",
    "leading_eigenpairs",
    "spectrum",
    "tangent_bases",
]
__dir__ = listing(__all__)
__getattr__ = refusing(__name__)
