"""Theory: what closed forms predict. Imports `special` alone, so agreement with a simulation is evidence."""

from attnflow.theory.energy import energy_of_clusters, energy_of_uniform, largest_energy0
from attnflow.theory.equiangular import equiangular_overlap
from attnflow.theory.spectrum import growth_rates

__all__ = [
    "energy_of_clusters",
    "energy_of_uniform",
    "equiangular_overlap",
    "growth_rates",
    "largest_energy0",
]
