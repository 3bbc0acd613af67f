"""Updates by attention in trained networks and in their nulls, against the velocity of theory, text by text."""

import dataclasses

import xarray as xr

from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import NETWORK, BesideNulls, activations, network_of, numbers_of, opened


@dataclasses.dataclass(frozen=True)
class Parameters(BesideNulls, Salted):
    """What is looked at; the salt draws nulls and texts."""


QUICK = Parameters(networks=("rxnmapper",), draws=(7,), texts=10, tokens=32)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Numbers (text, layer) of every network and every draw of its nulls."""
    return study.parts(parameters.parts(look))


def look(parameters: Parameters, which: str, case: str, draw: int) -> xr.Dataset:
    """Alignment of attention and R^2 of the effective time (text, layer); of the network R^2 of one ODE too (text,)."""
    net, texts = opened(parameters, which, case, draw, network_of)
    families = ("updates", "step") if case == NETWORK else ("updates",)
    data = numbers_of((activations(net, ids) for ids in texts), net.special, families)
    found = data.sel(part="attention").isel(layer=slice(0, -1))
    numbers = {"alignment": found["alignment"], "r2": found["effective_time_r2"]}
    if case == NETWORK:
        numbers |= {"ode_r2": found["ode_r2"]}
    return xr.Dataset({name: (one.dims, one.values) for name, one in numbers.items()})
