"""Updates by attention in trained networks and in their nulls, against the velocity of theory, text by text."""

import dataclasses

import xarray as xr

from attnflow.experiments import Study
from attnflow.experiments.kit import BesideNulls, activations, network_of, numbers_of, opened


@dataclasses.dataclass(frozen=True)
class Parameters(BesideNulls):
    """What is looked at; nulls and texts are one draw, which no salt changes."""


QUICK = Parameters(networks=("rxnmapper",), texts=20, tokens=32)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Numbers (text, layer) of every network and every null."""
    return study.parts(parameters.parts(look))


def look(parameters: Parameters, which: str, case: str) -> xr.Dataset:
    """Alignment of attention and R^2 of the effective time (text, layer); R^2 and step of one ODE (text,)."""
    net, texts = opened(parameters, which, case, network_of)
    data = numbers_of((activations(net, ids) for ids in texts), net.special, ("updates", "step"))
    found = data.sel(part="attention").isel(layer=slice(0, -1))
    return xr.Dataset(
        {
            "alignment": (("text", "layer"), found["alignment"].values),
            "r2": (("text", "layer"), found["effective_time_r2"].values),
            "ode_r2": ("text", found["ode_r2"].values),
            "ode_step": ("text", found["ode_step"].values),
        }
    )
