"""Schedules as networks, as lists of weights, and as files."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from attnflow.archives import DAMAGED, open_npz
from attnflow.control.schedule import Schedule
from attnflow.errors import InvalidInput
from attnflow.fields import AbstractField, Affine, Drift, MeanAttention, Perceptron, PerLayer, ReluUnit
from attnflow.fields.exact.in_turn import InTurn
from attnflow.flows import Layers
from attnflow.folders import Folder, saving
from attnflow.reading import open_file
from attnflow.spaces import AbstractSpace, Euclidean, Sphere
from attnflow.special.quotients import host_expm1_ratio

FORMAT = 1
ELEMENTS: dict[str, tuple[type[AbstractField], tuple[str, ...]]] = {
    "relu": (ReluUnit, ("outer", "inner", "bias")),
    "drift": (Drift, ("vector",)),
    "affine": (Affine, ("matrix", "bias")),
    "mean-attention": (MeanAttention, ("value",)),
}
"""What can be stored: name -> class and weights."""
SPACES: dict[str, type[AbstractSpace]] = {"euclidean": Euclidean, "sphere": Sphere}


class Network(NamedTuple):
    """A network of residual ReLU layers: `solve(field, tokens, until, method=method)` runs it."""

    field: Perceptron
    method: Layers
    until: float


def to_layers(schedule: Schedule) -> Network:
    """The schedule as a network of residual layers x + u (<a, x> + b)_+, one for each element, exactly.

    u = t phi(k t) w with k = <a, w>, phi(z) = (e^z - 1)/z. For ReLU units and drifts in R^d; on the sphere a layer with
    normalisation is another map, so run `schedule.field` by `Layers(step)` there, with a small step.
    """
    u, a, b = residual_layers(schedule)
    field = Perceptron(PerLayer(a[:, None], 1.0), PerLayer(b[:, None], 1.0), PerLayer(u[:, :, None], 1.0), "relu")
    return Network(field, Layers(1.0), float(len(schedule)))


def to_weights(schedule: Schedule) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """The layers as (W_in (1, d), b_in (1,), W_out (d, 1)), shaped like the weights of torch.nn.Linear.

    A layer is x + W_out relu(W_in x + b_in).
    """
    u, a, b = residual_layers(schedule)
    return [(a[k][None], b[k : k + 1], u[k][:, None]) for k in range(len(u))]


def residual_layers(schedule: Schedule) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(u, a, b), a row for every element."""
    if not isinstance(schedule.space, Euclidean):
        raise InvalidInput(
            "a schedule on the sphere is no network of residual layers; run schedule.field by Layers(step)."
        )
    d, count = schedule.space.dim, len(schedule)
    u, a, b = np.zeros((count, d)), np.zeros((count, d)), np.ones(count)
    which, row, t = np.asarray(schedule.field.which), np.asarray(schedule.field.row), schedule.durations
    for number, kind in enumerate(schedule.field.kinds):
        here = which == number
        rows = row[here]
        if isinstance(kind, Drift):
            u[here] = t[here, None] * _value(kind.vector)[rows]
        elif isinstance(kind, ReluUnit):
            w, inner = _value(kind.outer)[rows], _value(kind.inner)[rows]
            k = np.sum(w * inner, axis=1) * t[here]
            u[here] = (t[here] * host_expm1_ratio(k))[:, None] * w
            a[here], b[here] = inner, _value(kind.bias)[rows]
        else:
            raise InvalidInput(
                f"{type(kind).__name__} is no residual layer of one ReLU unit; write a linear map I + u a^T as the "
                "pair of layers (u, a, 0), (-u, -a, 0)."
            )
    return u, a, b


def save(schedule: Schedule, path: str | os.PathLike[str]) -> Path:
    """Write the schedule to a file .npz, which `load` reads."""
    space = [name for name, kind in SPACES.items() if type(schedule.space) is kind]
    if not space:
        raise InvalidInput(f"schedules on {schedule.space} cannot be written; only those on Euclidean and Sphere can.")
    names, arrays = [], dict[str, Any]()
    for number, kind in enumerate(schedule.field.kinds):
        name, weights = stack_arrays(kind)
        names.append(name)
        arrays |= {f"{number}.{role}": weight for role, weight in weights.items()}
    target = Path(path)
    target = target if target.suffix == ".npz" else target.with_name(target.name + ".npz")
    data: dict[str, Any] = arrays | {
        "format": FORMAT,
        "space": space[0],
        "dim": schedule.space.dim,
        "kinds": np.array(names),
        "which": np.asarray(schedule.field.which),
        "row": np.asarray(schedule.field.row),
        "durations": schedule.durations,
    }
    with saving(target), Folder(target.parent).writing(target.name) as file:
        np.savez_compressed(file, allow_pickle=False, **data)
    return target


def load(path: str | os.PathLike[str]) -> Schedule:
    """Read a schedule that `save` has written."""
    try:
        with open_file(path) as stream, open_npz(stream) as file:
            data = {name: file[name] for name in file.files}
        if int(data["format"]) != FORMAT:
            raise InvalidInput(f"{path} has format {int(data['format'])}; this version reads {FORMAT}.")
        kinds = []
        for number, name in enumerate(data["kinds"]):
            roles = ELEMENTS[str(name)][1]
            weights = {role: data[f"{number}.{role}"] for role in roles if f"{number}.{role}" in data}
            kinds.append(stack_of(str(name), weights))
        field = InTurn.of(kinds, data["which"], data["row"], data["durations"])
        return Schedule.of(SPACES[str(data["space"])](int(data["dim"])), field, data["durations"])
    except FileNotFoundError:
        raise InvalidInput(f"there is no file {path}; give one that control.save has written.") from None
    except (*DAMAGED, TypeError, IndexError) as error:
        raise InvalidInput(
            f"{path} is no file of a schedule ({error}); give one that control.save has written."
        ) from None


def stack_arrays(kind: AbstractField) -> tuple[str, dict[str, np.ndarray]]:
    """(name, weights by role) of a stack of elements of one kind."""
    for name, (made, roles) in ELEMENTS.items():
        if type(kind) is made:
            weights = {role: getattr(kind, role) for role in roles}
            return name, {role: _value(weight) for role, weight in weights.items() if weight is not None}
    raise InvalidInput(f"{type(kind).__name__} cannot be written to a file of schedules; use a run folder.")


def stack_of(name: str, weights: dict[str, np.ndarray]) -> AbstractField:
    """The stack of which `stack_arrays` gave these."""
    return ELEMENTS[name][0](**weights)


def _value(weight: Any) -> np.ndarray:
    return np.asarray(weight.value, float)
