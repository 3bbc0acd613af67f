"""What the flows of densities have in common: frames along `time`, and the energies that are climbed."""

import abc
import dataclasses
from typing import TYPE_CHECKING

from attnflow import sketches
from attnflow.errors import InvalidInput
from attnflow.fields import AbstractField
from attnflow.flows.result import AbstractResult
from attnflow.meanfield.harmonics.model import as_model

if TYPE_CHECKING:
    import xarray as xr


@dataclasses.dataclass(frozen=True, repr=False)
class AbstractDensityFlow(AbstractResult):
    """An xarray Dataset along `time`, and the field that moved it."""

    dataset: "xr.Dataset"
    field: AbstractField

    @property
    def time(self) -> "xr.DataArray":
        """Saved times; the last one is the last resolved time if the density ceased to be resolved."""
        return self.dataset["time"]

    def _facts(self) -> dict[str, str]:
        times, outcome = self.time.values, super()._facts()
        frames = f"{len(times)} to t = {times[-1]:.6g}" if len(times) else "0"
        return {"frames": frames, "on": self._grid(), **{k: v for k, v in outcome.items() if k != "sizes"}}

    def _sketches(self) -> list[str]:
        if "energy" not in self.dataset or self.dataset["energy"].dims != ("time",):
            return []
        return [sketches.curve(self.time.values, self.dataset["energy"].values, "energy against t")]

    @abc.abstractmethod
    def _grid(self) -> str:
        """What the density is represented by, in a few words."""

    @property
    def energy(self) -> "xr.DataArray":
        """The renormalised energy E <= 0 of attention, plus the integral of the potentials on the clock USA0."""
        model = as_model(self.field)
        if model.potentials and (model.softmax or float(model.clock_factor) != 1):
            raise InvalidInput("`field` has a Potential and climbs `energy` on USA0 alone; use `free_energy`.")
        return self.dataset["energy"]

    @property
    def free_energy(self) -> "xr.DataArray":
        """E times the clock's factor, plus potentials, less kappa times entropy; unnormalised attention climbs it."""
        if "free_energy" not in self.dataset:
            raise InvalidInput("`field` is softmax attention, which climbs no free energy known; use Unnormalised().")
        return self.dataset["free_energy"]
