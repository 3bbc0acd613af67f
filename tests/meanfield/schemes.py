"""Finite volumes from inside: their fluxes and steps, and the kernel averaged between cells."""

from attnflow.meanfield.cells import volumes
from attnflow.meanfield.cells.grid import _averaged, make_scheme

__all__ = ["_averaged", "make_scheme", "volumes"]
