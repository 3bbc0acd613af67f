"""The mean-field limit: densities on spheres, by their harmonics, and tokens that represent them.

A density is relative to the uniform probability (the uniform measure is 1); harmonics are orthonormal for it, and the
kernel e^{beta (<x,y> - 1)} multiplies those of degree k by `multipliers(beta, d, degree)[k]`.
"""

from attnflow.meanfield.basis import AbstractBasis, CircleBasis, ZonalBasis
from attnflow.meanfield.cell_flow import CellFlow
from attnflow.meanfield.cells import Cells, cells_from_density, circle_cells, hand_over, zonal_cells
from attnflow.meanfield.chaos import (
    Expected,
    Fluctuations,
    carried_noise,
    expected_distance,
    expected_observable,
    fluctuations,
    linearised_distance,
)
from attnflow.meanfield.densities import (
    empirical,
    from_function,
    from_tokens,
    mixture,
    perturbed,
    uniform,
    von_mises_fisher,
    watson,
)
from attnflow.meanfield.density import Density, Moments
from attnflow.meanfield.distances import observable_distance, quadrature_error, wasserstein_circle
from attnflow.meanfield.evolve import DensityFlow, Evolve, evolve
from attnflow.meanfield.evolve_cells import EvolveCells, evolve_cells
from attnflow.meanfield.evolve_placed import EvolvePlaced, PlacedFlow, evolve_placed
from attnflow.meanfield.linearised import Linearised, Stability, linearised, rotations, stability
from attnflow.meanfield.model import Model, as_model
from attnflow.meanfield.multipliers import check_degree, multipliers, needed_degree
from attnflow.meanfield.onset import Bifurcation, bifurcation
from attnflow.meanfield.placed import PlacedDensity, placed, placed_pieces
from attnflow.meanfield.places import Places
from attnflow.meanfield.samples import quadrature, quiet, sample
from attnflow.meanfield.sphere_basis import SphereBasis
from attnflow.meanfield.stationary import Stationary, branch, free_energy, stationary

__all__ = [
    "AbstractBasis",
    "Bifurcation",
    "CellFlow",
    "Cells",
    "CircleBasis",
    "Density",
    "DensityFlow",
    "Evolve",
    "EvolveCells",
    "EvolvePlaced",
    "Expected",
    "Fluctuations",
    "Linearised",
    "Model",
    "Moments",
    "PlacedDensity",
    "PlacedFlow",
    "Places",
    "SphereBasis",
    "Stability",
    "Stationary",
    "ZonalBasis",
    "as_model",
    "bifurcation",
    "branch",
    "carried_noise",
    "cells_from_density",
    "check_degree",
    "circle_cells",
    "empirical",
    "evolve",
    "evolve_cells",
    "evolve_placed",
    "expected_distance",
    "expected_observable",
    "fluctuations",
    "free_energy",
    "from_function",
    "from_tokens",
    "hand_over",
    "linearised",
    "linearised_distance",
    "mixture",
    "multipliers",
    "needed_degree",
    "observable_distance",
    "perturbed",
    "placed",
    "placed_pieces",
    "quadrature",
    "quadrature_error",
    "quiet",
    "rotations",
    "sample",
    "stability",
    "stationary",
    "uniform",
    "von_mises_fisher",
    "wasserstein_circle",
    "watson",
    "zonal_cells",
]
