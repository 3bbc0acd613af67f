"""Null models: a trained network with its training, or one of its parts, taken away.

| kind | what it is |
|---|---|
| permuted | the entries of every matrix of the layers permuted: same entries, norms and biases, no structure |
| init | a fresh initialisation: matrices and tables N(0, scale^2), gains 1, biases 0 |
| attention only | no perceptron; norms stay |
| perceptron only | no attention; norms stay |
| norms only | neither: the norms of a post-norm network alone |
| norm biases zero | the biases of the norms are 0 |
| biases zero | all biases of the layers are 0 |

Weights are made when a layer is run, and forgotten after it. The numbers of weight `name` of layer k come from
`numpy.random.default_rng([seed, crc32(name), k])`, so that they do not depend on what else is asked for.
"""

import zlib

import numpy as np

from attnflow.errors import InvalidInput
from attnflow.probe.networks.families.base import AbstractSource, Architecture, Table, is_matrix
from attnflow.probe.networks.families.forward import HALVES

HALVES_OF: dict[str, tuple[str, ...]] = {
    "attention only": ("attention",),
    "perceptron only": ("perceptron",),
    "norms only": (),
}
KINDS = ("permuted", "init", *HALVES_OF, "norm biases zero", "biases zero")
POST_NORM = ("norms only", "norm biases zero", "biases zero")
"""Nulls that networks of the family Llama do not have."""


def kinds_of(shape: Architecture) -> tuple[str, ...]:
    """The nulls that differ from the network itself."""
    return tuple(kind for kind in KINDS if shape.family != "llama" or kind not in POST_NORM)


def check_kind(shape: Architecture, kind: str) -> None:
    """Refuse a null that there is not, or that this family does not have."""
    known = kinds_of(shape)
    if kind in known:
        return
    why = ""
    if kind == "norms only":
        why = " in a pre-norm network norms act inside the two halves of a layer, so that without those no token moves;"
    elif kind in POST_NORM:
        why = " this family has no biases;"
    names = ", ".join(map(repr, known))
    raise InvalidInput(f"`kind` is {kind!r};{why} use one of {names}.")


def halves_of(kind: str | None) -> tuple[str, ...]:
    """The halves of a layer that are left."""
    return HALVES if kind is None else HALVES_OF.get(kind, HALVES)


class Null(AbstractSource):
    """The weights of a null, made of those of the trained network one layer at a time."""

    def __init__(self, shape: Architecture, trained: AbstractSource, kind: str, seed: int):
        """The null of this `kind`; `seed` fixes the random ones."""
        self.shape, self.trained, self.kind, self.seed = shape, trained, kind, seed
        self.tables: Table = {}

    def layer(self, number: int) -> Table:
        return {name: self._changed(name, number, values) for name, values in self.trained.layer(number).items()}

    def block(self, first: int, last: int) -> Table:
        found: Table = {}
        for number in range(first, last):
            for name, values in self.layer(number).items():
                place = found.setdefault(name, np.empty((last - first, *values.shape), values.dtype))
                place[number - first] = values
        return found

    def outside(self, name: str) -> np.ndarray:
        if self.kind != "init":
            return self.trained.outside(name)
        if name not in self.tables:
            self.tables[name] = self._fresh(name, 0, self.trained.outside(name))
        return self.tables[name]

    def _changed(self, name: str, number: int, values: np.ndarray) -> np.ndarray:
        if self.kind == "init":
            return self._fresh(name, number, values)
        if self.kind == "permuted" and is_matrix(name):
            return self._random(name, number).permutation(values.ravel()).reshape(values.shape)
        zeros = {"biases zero": (".bias",), "norm biases zero": ("norm1.bias", "norm2.bias")}.get(self.kind, ())
        return np.zeros_like(values) if name.endswith(zeros) else values

    def _fresh(self, name: str, number: int, values: np.ndarray) -> np.ndarray:
        if not is_matrix(name):
            return np.full_like(values, 1.0 if name.endswith(".gain") else 0.0)
        drawn = self._random(name, number).standard_normal(values.shape, np.float32)
        drawn *= np.float32(self.shape.scale)
        return drawn

    def _random(self, name: str, number: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, zlib.crc32(name.encode()), number])
