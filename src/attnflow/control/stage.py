"""Where all tokens stand in a plan, and the interface of planners."""

import abc
import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np

from attnflow.fields import AbstractExact, AtTokens, Drift, MeanAttention, ReluUnit
from attnflow.fields.exact.base import constant
from attnflow.interrupts import raise_if_interrupted
from attnflow.precision import full_precision
from attnflow.spaces import Euclidean, Sphere
from attnflow.tokens import Measure

Element = tuple[AbstractExact, float]


class NoPlan(Exception):
    """The plan failed for a reason that another try may avoid; `advice` is for those whose tries all failed."""

    def __init__(self, reason: str, advice: str = "give tokens and targets that are farther apart, or another `seed`"):
        super().__init__(reason)
        self.advice = advice


@dataclasses.dataclass(frozen=True)
class Stage:
    """All tokens of all measures, and the elements that have moved them so far.

    A stage never changes: `then` makes the next one, and who keeps the old one can go back to it. `layer` is None for
    exact flows, or the size of a layer, |X| Lipschitz times step: then every element is a number of layers
    x <- (x + h X)/|.|, and the plan is made for that network.
    """

    clouds: tuple[np.ndarray, ...]
    """The tokens of every measure."""
    masses: tuple[np.ndarray, ...]
    layer: float | None = None
    elements: tuple[Element, ...] = ()

    def __post_init__(self) -> None:
        for name in ("clouds", "masses"):
            object.__setattr__(self, name, tuple(_frozen(array) for array in getattr(self, name)))

    @property
    def dim(self) -> int:
        """The dimension of the space around the sphere."""
        return int(self.clouds[0].shape[1])

    @property
    def ends(self) -> np.ndarray:
        """Measure i is tokens ends[i] to ends[i + 1]."""
        return np.concatenate([[0], np.cumsum([len(c) for c in self.clouds])])

    @property
    def points(self) -> np.ndarray:
        """All tokens, one measure after the other."""
        return np.concatenate(self.clouds)

    def then(self, field: AbstractExact, duration: float) -> "Stage":
        """The stage after an element; Ctrl-C and `cancel` are looked at here."""
        raise_if_interrupted()
        if self.layer is None:
            clouds, element = self._carried(field, duration), (field, duration)
        else:
            # a layer stretches as the field does in R^d; where that is not at all, as on the sphere
            rate = field.lipschitz(Euclidean(self.dim)) or field.lipschitz(Sphere(self.dim))
            count = max(1, int(np.ceil(duration * rate / self.layer)))
            step = duration / count
            clouds, element = self._layered(field, step, count), (field.times(step), float(count))
        return dataclasses.replace(self, clouds=clouds, elements=(*self.elements, element))

    def _carried(self, field: AbstractExact, duration: float) -> tuple[np.ndarray, ...]:
        """All tokens at once where none feels another, else measure by measure."""
        h = np.float64(duration)
        with full_precision():
            if field.is_free:
                moved = np.asarray(_carry(field, h, self.points, np.concatenate(self.masses)))
                return tuple(moved[i:j] for i, j in zip(self.ends[:-1], self.ends[1:], strict=True))
            pairs = zip(self.clouds, self.masses, strict=True)
            return tuple(np.asarray(_carry(field, h, c, m)) for c, m in pairs)

    def _layered(self, field: AbstractExact, step: float, count: int) -> tuple[np.ndarray, ...]:
        moved = self.clouds
        for _ in range(count):
            moved = tuple(unit(c + step * _drive(field, c, m)) for c, m in zip(moved, self.masses, strict=True))
        return moved


class Plan(NamedTuple):
    """A stage on which all measures are at their targets."""

    stage: Stage
    attention: float
    """The time for which attention acts."""
    separation: float
    """Least angle between clouds after attention, over the largest radius of a cloud."""
    amplification: float = 1.0
    """What errors of where atoms are delivered are multiplied by at the end."""


class AbstractPlanner(abc.ABC):
    """Looks for elements that carry every measure to its target."""

    varied: ClassVar[str]
    """What differs between tries."""

    @property
    @abc.abstractmethod
    def values(self) -> Sequence[float]:
        """Its value in every try, in their order."""

    @abc.abstractmethod
    def plan(self, number: int, rng: np.random.Generator) -> Plan:
        """The plan of try 0, 1, ...; one that leads nowhere raises `NoPlan`."""


@jax.jit
def _carry(field: Any, duration: Any, x: Any, masses: Any) -> Any:
    return field.carry(0.0 * duration, duration, AtTokens(), Measure(x, masses))


@jax.jit
def _formula(field: Any, x: Any, masses: Any) -> Any:
    return field.formula(np.zeros((), x.dtype), AtTokens(), Measure(x, masses))


def _drive(field: AbstractExact, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """X at the tokens; what planners use in NumPy, whose products have other last digits than compiled ones."""
    if isinstance(field, ReluUnit):
        w, a, b = (constant(weight) for weight in (field.outer, field.inner, field.bias))
        return np.asarray(np.maximum(x @ a + b, 0.0)[:, None] * w)
    if isinstance(field, Drift):
        return np.broadcast_to(constant(field.vector), x.shape)
    if isinstance(field, MeanAttention) and field.value is not None:
        return np.broadcast_to(constant(field.value) @ (masses @ x), x.shape)
    with full_precision():
        return np.asarray(_formula(field, x, masses))


def unit(x: np.ndarray) -> np.ndarray:
    """x/|x|."""
    return np.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True))


def direction(v: np.ndarray) -> np.ndarray:
    """v/|v|; there is no plan if v vanishes."""
    size = float(np.linalg.norm(v))
    if size < 1e-14:
        raise NoPlan("a mean vanishes")
    return np.asarray(v / size)


def _frozen(array: Any) -> np.ndarray:
    """The array, which nobody can write to; a copy if somebody could."""
    found = np.asarray(array)
    if found.flags.writeable:
        found = found.copy()
        found.flags.writeable = False
    return found
