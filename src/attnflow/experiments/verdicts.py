"""The claims of an experiment about its data: where a number is missing, all of them fail."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.claim import Claim, Relation

COUNTS = "counts"
"""The attribute of an array with rows of unequal lengths: the name of the integer array beside it that has the lengths
along the last dimension. What comes after is no data."""
COMPLETE = "every number of the data is a number"


def judged(module: Any, parameters: Any, data: Any) -> list[Claim]:
    """What `module.claims(parameters, data)` gives.

    If an array of the data has a NaN, no claim holds, whichever arrays it reads: a comparison with NaN is False and a
    mean may leave NaN out, so that a claim could hold by chance. The first claim then says where the NaN is.
    """
    if not (lost := list(missing(data))):
        return list(module.claims(parameters, data))
    detail = f"NaN in {', '.join(lost[:3])}" + (f" and {len(lost) - 3} more arrays" if len(lost) > 3 else "")
    first = Claim.true(COMPLETE, False, detail, "looked for before the claims")
    try:
        with np.errstate(all="ignore"):
            claims = list(module.claims(parameters, data))
    except Exception:
        return [first]
    return [first, *map(_failed, claims)]


def missing(data: Any, path: str = "") -> Iterator[str]:
    """The arrays of an experiment that have a NaN: datasets, perhaps in dictionaries inside dictionaries."""
    if isinstance(data, Mapping) and not isinstance(data, xr.Dataset):
        for key, inner in data.items():
            yield from missing(inner, f"{path}{key}/")
        return
    for name, array in data.variables.items():
        if array.dtype.kind in "fc" and np.isnan(array.values[_present(data, array)]).any():
            yield f"{path}{name}"


def _present(data: xr.Dataset, array: xr.Variable) -> Any:
    """Where an array has data: everywhere, or up to the lengths of its rows."""
    if COUNTS not in array.attrs:
        return ...
    lengths = data[array.attrs[COUNTS]].values
    return np.arange(array.shape[-1]) < np.broadcast_to(lengths, array.shape[:-1])[..., None]


def _failed(claim: Claim) -> Claim:
    """The same claim, with nothing measured."""
    return dataclasses.replace(claim, measured="false" if claim.relation is Relation.TRUE else float("nan"))
