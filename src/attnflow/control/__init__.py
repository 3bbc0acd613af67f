"""Control: schedules of piecewise-constant fields that steer points, densities and measures, and builders of them.

A `Schedule` is a composition of exact flows. Builders: `match_density_1d`, `shear`, `triangular`, `match_samples`,
`match_velocities`, `split`, `permute_cells`, `polar` in R^d, `match_measures` on the sphere. docs/control.md says which
theorem each one makes constructive.
"""

from attnflow.control.cells import PolarMatch, permute_cells, polar, three_cycle
from attnflow.control.convert import Network, load, save, to_layers, to_weights
from attnflow.control.distances import shared_mass_bound
from attnflow.control.line import LineMatch, Mixture, match_density_1d, monotone
from attnflow.control.matching import Matching, MatchMeasures, match_measures
from attnflow.control.samples import match_samples
from attnflow.control.schedule import Schedule, chain, layers, units
from attnflow.control.splitting import split
from attnflow.control.triangular import shear, triangular
from attnflow.control.velocities import VelocityMatch, match_velocities
from attnflow.lazy import listing, refusing

__all__ = [
    "LineMatch",
    "MatchMeasures",
    "Matching",
    "Mixture",
    "Network",
    "PolarMatch",
    "Schedule",
    "VelocityMatch",
    "chain",
    "layers",
    "load",
    "match_density_1d",
    "match_measures",
    "match_samples",
    "match_velocities",
    "monotone",
    "permute_cells",
    "polar",
    "save",
    "shared_mass_bound",
    "shear",
    "split",
    "three_cycle",
    "to_layers",
    "to_weights",
    "triangular",
    "units",
]
__getattr__ = refusing(__name__)
__dir__ = listing(__all__)
