"""Updates by attention in trained networks and in their nulls, against the velocity of theory, text by text."""

import dataclasses
from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments import Study
from attnflow.experiments.kit import numbers_of, texts_for
from attnflow.probe import Stream, network

NETWORK = "network"


FIRST = 100
"""The seeds of nulls begin here; nothing else is drawn."""


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is looked at."""

    networks: tuple[str, ...] = ("rxnmapper", "minilm")
    nulls: tuple[str, ...] = ("permuted", "init")
    texts: int = 50
    tokens: int = 64
    """Of a text, at most."""


QUICK = Parameters(networks=("rxnmapper",), texts=20, tokens=32)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Numbers (text, layer) of every network and every null."""
    return study.parts(
        {
            name(which, case): (look, parameters, which, case)
            for which in parameters.networks
            for case in (NETWORK, *parameters.nulls)
        }
    )


def name(which: str, case: str) -> str:
    """Of a part."""
    return f"{which}-{case}"


def trained(which: str) -> Any:
    """The network as it was trained."""
    return network(which)


def untrained(which: str, kind: str, seed: int) -> Any:
    """A null of it."""
    return network(which).null(kind, seed).held()


def activations(net: Any, ids: np.ndarray) -> Stream:
    """The stream of one text."""
    found: Stream = net.run(ids)
    return found


def look(parameters: Parameters, which: str, case: str) -> xr.Dataset:
    """Alignment of attention and R^2 of the effective time (text, layer); R^2 and step of one ODE (text,)."""
    number = parameters.networks.index(which)
    seed = FIRST + 10 * number + (NETWORK, *parameters.nulls).index(case)
    net = trained(which) if case == NETWORK else untrained(which, case, seed)
    texts = texts_for(net, parameters.texts, parameters.tokens)
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
