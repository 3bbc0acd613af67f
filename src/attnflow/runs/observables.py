"""Numbers that a specification asks for beside the frames: `observe = [{ name = "order-parameter" }]`.

An observable is a function of the tokens of one system that gives one number. They are evaluated on every frame when
the flow is complete and lie in observables.zarr, labelled like the arrays.
"""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnflow.errors import InvalidInput
from attnflow.flows import Trajectory
from attnflow.runs.folder import writing
from attnflow.runs.spec import Spec
from attnflow.tokens import Tokens

if TYPE_CHECKING:
    import xarray as xr

Observable = Callable[[Tokens], Any]


def check_observables(spec: Spec) -> None:
    """Refuse, before any work, an observable that does not give a number for the tokens at the start."""
    asked = spec.observables()
    if asked:
        tokens = spec.build()["tokens"]
        first = tokens.member(**dict.fromkeys(tokens.dims, 0)) if tokens.dims else tokens
        for name, observable in asked.items():
            _number(name, observable, first, "the tokens at the start")


def write_observables(spec: Spec, flow: Trajectory, folder: Path) -> None:
    """Evaluate what `spec` asks for on every frame and write it to observables.zarr, whole."""
    asked = spec.observables()
    if asked:
        with spec.plugins.active():
            found = measured(asked, flow)
        with writing(folder):
            found.to_zarr(folder / "observables.zarr", mode="w", consolidated=False, zarr_format=3)


def measured(asked: dict[str, Observable], flow: Trajectory) -> "xr.Dataset":
    """The observables along the batch dimensions and time."""
    import xarray as xr

    sizes = {name: flow.dataset.sizes[name] for name in (*flow.dims, "time")}
    values = {name: np.empty(tuple(sizes.values())) for name in asked}
    for index in product(*map(range, sizes.values())):
        *member, frame = index
        tokens = flow.tokens(frame, **dict(zip(flow.dims, member, strict=True)))
        for name, observable in asked.items():
            values[name][index] = _number(name, observable, tokens, f"frame {frame}")
    kept = [name for name in flow.dataset.coords if set(flow.dataset[name].dims) <= set(sizes)]
    labels = {name: (flow.dataset[name].dims, flow.dataset[name].values) for name in kept}
    return xr.Dataset({name: (tuple(sizes), array) for name, array in values.items()}, labels)


def _number(name: str, observable: Observable, tokens: Tokens, where: str) -> float:
    try:
        value = np.asarray(observable(tokens), float)
    except Exception as error:
        raise InvalidInput(
            f"the observable {name!r} fails at {where} ({type(error).__name__}: {error}); leave it out of `observe`, "
            "or mend its file."
        ) from error
    if value.ndim:
        raise InvalidInput(
            f"the observable {name!r} gives an array of shape {value.shape} at {where}; let it give one number."
        )
    return float(value)
