"""Energies, their critical points, and what tokens can end in.

Predicts energies of known measures and how fast energies rise, spectra of rings and saddles, minimisers with a
perceptron block, how many modes a density starts with, the probability of a start in one hemisphere, and the ends of
tokens without layer norm.
"""

from attnflow.lazy import listing
from attnflow.theory.landscape.caps import (
    cap_diameter,
    cap_time,
    expansion_rate,
    softmax_lipschitz,
    softmax_spread,
    stability_rate,
    steepest_overlap,
)
from attnflow.theory.landscape.counting import count_circle_modes, count_line_modes
from attnflow.theory.landscape.energy import (
    energy_of_clusters,
    energy_of_uniform,
    energy_rate_of_heads,
    energy_rate_of_tokens,
    largest_energy0,
)
from attnflow.theory.landscape.gaussian import GaussianMoments, five_point_energies, five_point_flip, gaussian_moments
from attnflow.theory.landscape.heads import (
    axis_cross_rates,
    axis_cross_threshold,
    axis_pair_rates,
    axis_pair_threshold,
)
from attnflow.theory.landscape.held import Hold, held_angle, held_rates, hold_threshold
from attnflow.theory.landscape.hemisphere import hemisphere_probability, log_hemisphere_probability
from attnflow.theory.landscape.modes import (
    ModeEstimate,
    circle_modes,
    expected_modes,
    line_mode_density,
    line_modes,
    two_point_modes,
)
from attnflow.theory.landscape.perceptron import (
    DiracStability,
    Landscape,
    critical_residuals,
    dirac_bound,
    dirac_stability,
    first_variation,
    perceptron_energy,
)
from attnflow.theory.landscape.repulsion import (
    RepulsiveMinimiser,
    circle_points,
    largest_potential,
    non_atomic_density,
    non_atomic_threshold,
    repulsive_minimiser,
)
from attnflow.theory.landscape.rescaled import pair_delay, pair_departure, pair_limit, regular_radius
from attnflow.theory.landscape.rings import escape_rate, log_escape_rate, ring_growth_rates
from attnflow.theory.landscape.saddles import (
    antipodal_spectrum,
    euler_sums,
    labelled_configurations,
    morse_quotient,
    ring_spectrum,
)
from attnflow.theory.landscape.solids import SolidRates, tetrahedron_rates

__all__ = [
    "DiracStability",
    "GaussianMoments",
    "Hold",
    "Landscape",
    "ModeEstimate",
    "RepulsiveMinimiser",
    "SolidRates",
    "antipodal_spectrum",
    "axis_cross_rates",
    "axis_cross_threshold",
    "axis_pair_rates",
    "axis_pair_threshold",
    "cap_diameter",
    "cap_time",
    "circle_modes",
    "circle_points",
    "count_circle_modes",
    "count_line_modes",
    "critical_residuals",
    "dirac_bound",
    "dirac_stability",
    "energy_of_clusters",
    "energy_of_uniform",
    "energy_rate_of_heads",
    "energy_rate_of_tokens",
    "escape_rate",
    "euler_sums",
    "expansion_rate",
    "expected_modes",
    "first_variation",
    "five_point_energies",
    "five_point_flip",
    "gaussian_moments",
    "held_angle",
    "held_rates",
    "hemisphere_probability",
    "hold_threshold",
    "labelled_configurations",
    "largest_energy0",
    "largest_potential",
    "line_mode_density",
    "line_modes",
    "log_escape_rate",
    "log_hemisphere_probability",
    "morse_quotient",
    "non_atomic_density",
    "non_atomic_threshold",
    "pair_delay",
    "pair_departure",
    "pair_limit",
    "perceptron_energy",
    "regular_radius",
    "repulsive_minimiser",
    "ring_growth_rates",
    "ring_spectrum",
    "softmax_lipschitz",
    "softmax_spread",
    "stability_rate",
    "steepest_overlap",
    "tetrahedron_rates",
    "two_point_modes",
]
__dir__ = listing(__all__)
