"""The mean-field limit: densities on spheres, by their harmonics, and tokens that represent them.

A density is relative to the uniform probability (the uniform measure is 1); harmonics are orthonormal for it, and the
kernel e^{beta (<x,y> - 1)} multiplies those of degree k by `multipliers(beta, d, degree)[k]`.

Three ways to follow a density: by `harmonics`, by the masses of `cells`, and by harmonics at every one of its `places`;
`analysis` is what can be said about them. All names stand here.
"""

from attnflow.lazy import listing, refusing
from attnflow.meanfield.analysis.chaos import (
    Expected,
    Fluctuations,
    carried_noise,
    expected_distance,
    expected_observable,
    fluctuations,
    linearised_distance,
)
from attnflow.meanfield.analysis.distances import observable_distance, quadrature_error
from attnflow.meanfield.analysis.energies import free_energy
from attnflow.meanfield.analysis.linearised import Linearised, Stability, linearised, rotations, stability
from attnflow.meanfield.analysis.onset import Bifurcation, bifurcation
from attnflow.meanfield.analysis.stationary import Stationary, branch, stationary
from attnflow.meanfield.cells.evolve import EvolveCells, evolve_cells
from attnflow.meanfield.cells.flow import CellFlow
from attnflow.meanfield.cells.grid import Cells, cells_from_density, circle_cells, hand_over, zonal_cells
from attnflow.meanfield.harmonics.basis import AbstractBasis, CircleBasis, ZonalBasis
from attnflow.meanfield.harmonics.densities import (
    empirical,
    from_function,
    from_tokens,
    mixture,
    perturbed,
    uniform,
    von_mises_fisher,
    watson,
)
from attnflow.meanfield.harmonics.density import Density, Moments
from attnflow.meanfield.harmonics.evolve import DensityFlow, Evolve, evolve
from attnflow.meanfield.harmonics.model import Model, as_model
from attnflow.meanfield.harmonics.multipliers import check_degree, multipliers, needed_degree
from attnflow.meanfield.harmonics.sphere_basis import SphereBasis
from attnflow.meanfield.places.evolve import EvolvePlaced, PlacedFlow, evolve_placed
from attnflow.meanfield.places.nodes import Places
from attnflow.meanfield.places.placed import PlacedDensity, placed, placed_pieces
from attnflow.meanfield.samples import quadrature, quiet, sample

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
    "watson",
    "zonal_cells",
]
__getattr__ = refusing(__name__)
__dir__ = listing(__all__)
