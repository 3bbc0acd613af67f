"""Special functions that stay in float range for every inverse temperature and dimension."""

from attnflow.special.bessel import bessel_ratios, log_scaled_bessel
from attnflow.special.exponential import scaled_exp1, scaled_expi

__all__ = ["bessel_ratios", "log_scaled_bessel", "scaled_exp1", "scaled_expi"]
