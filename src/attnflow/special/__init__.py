"""Special functions that stay in float range for every inverse temperature and dimension."""

from attnflow.lazy import listing
from attnflow.special.bessel import bessel_gap, bessel_ratios, log_scaled_bessel
from attnflow.special.degrees import basis_size, degree_weights, truncation_degrees
from attnflow.special.divided import divided_exprel
from attnflow.special.exponential import scaled_exp1, scaled_expi

__all__ = [
    "basis_size",
    "bessel_gap",
    "bessel_ratios",
    "degree_weights",
    "divided_exprel",
    "log_scaled_bessel",
    "scaled_exp1",
    "scaled_expi",
    "truncation_degrees",
]
__dir__ = listing(__all__)
