"""How much a query hears a key: a function K(q, k) of their features.

Sums know a kernel through two things: its values on blocks of pairs, and its expansion in degrees on the unit sphere,

    K(x, y) = e^scale sum_k p_k P_k(<x, y>),   P_k(1) = 1,

with the Gegenbauer polynomials P_k of S^(d-1) (Chebyshev's on the circle, Legendre's on S^2). A kernel with an
expansion is summed by every series (`Circle`, `Harmonics`, `FastSphere`); any other kernel is summed in tiles.
"""

from attnflow.kernels.base import AbstractKernel, AbstractPair, Expansion
from attnflow.kernels.choose import as_kernel
from attnflow.kernels.exponential import Exponential, Gaussian
from attnflow.kernels.members import cast, expanded, first_member, members_of
from attnflow.kernels.quadrature import by_quadrature, degree_by_quadrature
from attnflow.kernels.signed import Cosine, Polynomial
from attnflow.kernels.zonal import AbstractZonal
from attnflow.lazy import listing

__all__ = [
    "AbstractKernel",
    "AbstractPair",
    "AbstractZonal",
    "Cosine",
    "Expansion",
    "Exponential",
    "Gaussian",
    "Polynomial",
    "as_kernel",
    "by_quadrature",
    "cast",
    "degree_by_quadrature",
    "expanded",
    "first_member",
    "members_of",
]
__dir__ = listing(__all__)
