"""The result of `evolve_cells`: masses of cells through time."""

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from attnflow.flows.outcome import Outcome
from attnflow.meanfield.cells.grid import Cells, hand_over
from attnflow.meanfield.harmonics.density_flow import AbstractDensityFlow
from attnflow.tokens import Tokens

if TYPE_CHECKING:
    import xarray as xr


@dataclasses.dataclass(frozen=True, repr=False)
class CellFlow(AbstractDensityFlow):
    """The result of `evolve_cells`.

    In `dataset`: masses (time, cell); energy, free_energy (unnormalised attention) and narrow (time); the centres and
    the uniform measure of the cells.
    """

    cells: Cells
    outcome: Outcome
    steps: dict[str, int]
    """Accepted and rejected steps."""
    concentrated: float | None
    """The time since which half of the mass has been in clusters narrower than a cell, if it has come."""
    checkpoint: Any = dataclasses.field(default=None, repr=False)
    """From where `continued` goes on."""
    work: Any = dataclasses.field(default=None, repr=False)
    """The work that made the flow."""

    def _grid(self) -> str:
        return f"{self.dataset.sizes['cell']} cells of the sphere in R^{self.cells.dim}"

    @property
    def masses(self) -> "xr.DataArray":
        """(time, cell)."""
        return self.dataset["masses"]

    @property
    def values(self) -> np.ndarray:
        """Mean density (time, cell) relative to the uniform measure; NaN where that is below float range."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return (self.masses / self.dataset["measure"]).values

    def hand_over(self, at: int = -1, *, copies: int = 1, seed: int = 0) -> Tokens:
        """The cells of frame number `at` as tokens, which continue where cells are too wide: `hand_over`."""
        return hand_over(self.cells, self.masses.values[at], copies=copies, seed=seed)
