"""What shuffling does to the last state of a trained decoder, beside its nulls; and what it does not to encoders."""

import dataclasses
from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, observed
from attnflow.experiments.kit import NETWORK, Rows, differences, lower_ends, part_name
from attnflow_gallery.shuffled_text_collapses.simulate import ORDERS, Parameters

SEEN = observed("What is compared")
ENCODERS = observed("Encoders")
LEAST = 0.05
"""Of a difference of overlaps, or of logarithms of ranks; fixed from a first look at two other texts a network."""
REASON = "lower end of the interval of 99.9 % of the mean over texts"
QUANTITIES = {
    "overlap_few": "decoder, last state: rise by shuffling of the overlap without the ten largest coordinates: "
    "trained less null",
    "fall": "decoder, last state: log of the centred rank on text over that on shuffled text: trained less null",
}


def change(part: xr.Dataset, quantity: str) -> np.ndarray:
    """(text,) shuffled less text, at the last state; "fall" is that of the log of the centred rank, downwards."""
    values: Any = -np.log(part["rank_centred"]) if quantity == "fall" else part[quantity]
    text, other = (values.sel(order=order).values[:, -1] for order in ORDERS)
    return np.asarray(other - text)


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """A decoder collapses, its nulls do not; the rank of encoders does not fall."""
    causal = {which: bool(data[part_name(which, NETWORK)]["causal"]) for which in parameters.networks}
    decoders, encoders = ([which for which in causal if causal[which] is wanted] for wanted in (True, False))
    found = [_collapse(parameters, data, decoders, quantity) for quantity in QUANTITIES] if decoders else []
    return found + ([_none(data, encoders)] if encoders else [])


def _collapse(parameters: Parameters, data: dict[str, xr.Dataset], decoders: list[str], quantity: str) -> Claim:
    some = dataclasses.replace(parameters, networks=tuple(decoders), draws=(1,) * len(decoders))
    rows, said = differences(some, data, lambda part: change(part, quantity), LEAST)
    return rows.at_least(
        QUANTITIES[quantity],
        f"{REASON}, paired; {LEAST:g} is fixed beforehand, and 0 is the null",
        origin=SEEN,
        detail=said,
    )


def _none(data: dict[str, xr.Dataset], encoders: list[str]) -> Claim:
    rows, said = Rows(), []
    for which in encoders:
        part = data[part_name(which, NETWORK)]
        rise = -change(part, "fall")
        rows.add(-LEAST, lower_ends(rise)[1], 0.0, which)
        raw, few = change(part, "overlap").mean(), change(part, "overlap_few").mean()
        said.append(f"{which} {rise.mean():+.3f}; overlap {raw:+.3f}, without ten coordinates {few:+.3f}")
    return rows.at_least(
        "encoders, last state: log of the centred rank on shuffled text over that on text, not below 0",
        f"{REASON}; the {LEAST:g} that a collapse would have to pass, downwards",
        origin=ENCODERS,
        detail="; ".join(said),
    )
