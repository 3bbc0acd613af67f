"""Layers of different kinds in turn: attention, then perceptron, then attention again."""

import functools
from fractions import Fraction
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import Number, positive
from attnflow.checks import flag, instance, whole
from attnflow.errors import InvalidInput
from attnflow.fields.base import AbstractField, Total
from attnflow.fields.timed import layer_time
from attnflow.flows.methods.base import AbstractMethod, AbstractSystem, State, Stretch, Time
from attnflow.flows.methods.layer_updates import AbstractUpdate
from attnflow.flows.methods.layers import Layers, check_layers
from attnflow.flows.methods.step_rules import Rk4
from attnflow.flows.noises import AbstractIto, AbstractNoise
from attnflow.precision import is_concrete
from attnflow.spaces import AbstractSpace


class Alternate(AbstractMethod):
    """In every step each part of a sum of fields moves the tokens in turn, in the order of the sum.

    With `update=None` a part moves by one step of RK4, so that only the splitting is wrong: by O(step) over times of
    order 1 (Lie-Trotter), or by O(step^2) with `symmetric=True` (Strang: half steps of all parts but the last, the
    last, half steps back). With `update=Renormalise()` a part moves by one discrete layer: the network as built, in
    which an attention layer is followed by a perceptron layer; order 1. Weights that jump in time should do so at
    multiples of `step`. `advance` is differentiable in both modes.

    Frames between the parts: with `sublayers` = the number of parts p, part j of layer k ends at the time
    (k + (j + 1)/p) step, and frames may be saved there. `save=EveryLayer()` then has a frame after every part: after
    attention, after the perceptron, and so on (`EveryLayer(p)` has the whole layers). Weights are read and noise comes
    as without it; `steps` counts parts.
    """

    step: Number = eqx.field(converter=positive("step", batch=False), default=0.1)
    symmetric: bool = eqx.field(static=True, default=False)
    update: AbstractUpdate | None = None
    sublayers: int = eqx.field(static=True, default=1, converter=lambda parts: whole("sublayers", parts, 1))

    def __check_init__(self) -> None:
        flag("symmetric", self.symmetric)
        if self.symmetric and self.sublayers > 1:
            raise InvalidInput(
                f"`sublayers` is {self.sublayers} with `symmetric`, in which parts move by half a step there and back, "
                "so that none is done in between; leave out one of them."
            )
        instance("update", self.update, AbstractUpdate | None, "an update such as Renormalise(), or None")
        if self.symmetric and self.update is not None:
            raise InvalidInput(
                f"`symmetric` is True with the update {type(self.update).__name__}: a discrete layer is itself of "
                "order 1, so half layers there and back gain nothing. Leave out `symmetric`, or `update`."
            )

    @property
    def layer_step(self) -> float | None:
        return float(_share(self.step, self.sublayers))

    def grid(self, t0: Any, t1: Any, breaks: np.ndarray) -> np.ndarray | None:
        return self._layers.grid(t0, t1, breaks)

    def advance(self, system: AbstractSystem, state: State, t0: Time, t1: Time, grid: Any) -> State:
        return self._layers.advance(self._in_turn(system), state, t0, t1, grid)

    def begin(self, system: AbstractSystem, state: State, t0: Time) -> Any:
        return self._layers.begin(system, state, t0)

    def stretch(
        self, system: AbstractSystem, at: Stretch, times: Any, after: Time, end: Time, landing: Any, limit: Any
    ) -> Stretch:
        """`memory` counts the steps already made since the last saved time."""
        return self._layers.stretch(self._in_turn(system), at, times, after, end, landing, limit)

    def evaluates_on(self, space: AbstractSpace) -> AbstractSpace:
        return space if self.update is None else self.update.image(space)

    @property
    def calculus(self) -> type[AbstractNoise] | None:
        return AbstractIto

    def check(self, until: float, field: AbstractField) -> None:
        parts = len(field.parts) if isinstance(field, Total) else 1
        _several(parts, type(field).__name__)
        _one_each(self.sublayers, parts)
        check_layers(until, self.step)

    @property
    def _layers(self) -> Layers:
        return Layers(_share(self.step, self.sublayers))

    def _in_turn(self, system: AbstractSystem) -> AbstractSystem:
        if self.sublayers > 1:
            return _OneByOne(system, self.sublayers, self.step, self.update)
        return _InTurn(system, self.symmetric, self.update)


class AbstractInTurn(AbstractSystem):
    """A system whose parts move in turn: `layer` says how, and all else is that of the whole."""

    whole: eqx.AbstractVar[AbstractSystem]

    @property
    def breaks(self) -> Any:
        return self.whole.breaks

    def rate(self, t: Any, state: State) -> State:
        return self.whole.rate(t, state)

    def retract(self, state: State) -> State:
        return self.whole.retract(state)

    def exact(self, t0: Any, t1: Any, state: State) -> State:
        return self.whole.exact(t0, t1, state)

    def parts(self) -> tuple[AbstractSystem, ...]:
        return self.whole.parts()


class _InTurn(AbstractInTurn):
    """One layer is a layer of each of the parts; the noise comes once, at the end."""

    whole: AbstractSystem
    symmetric: bool = eqx.field(static=True)
    update: AbstractUpdate | None

    @property
    def diffusion(self) -> Any:
        return self.whole.diffusion

    def layer(self, layer: Any, step: Any, state: State, update: Any) -> State:
        parts = self.parts()
        _several(len(parts), "the field")
        if self.update is not None:
            for part in parts:
                state = part.layer(layer, step, state, self.update)
            return state
        step = jnp.asarray(step, float)
        k = jnp.asarray(layer, step.dtype)
        if not self.symmetric:
            for part in parts:
                state = _move(part, k, k + 1, step, state)
            return state
        for part in parts[:-1]:
            state = _move(part, k, k + 0.5, step, state)
        state = _move(parts[-1], k, k + 1, step, state)
        for part in reversed(parts[:-1]):
            state = _move(part, k + 0.5, k + 1, step, state)
        return state


class _OneByOne(AbstractInTurn):
    """One layer is that of one of the parts: number k p + j is part j of layer k; after the last comes the noise."""

    whole: AbstractSystem
    sublayers: int = eqx.field(static=True)
    step: Any
    update: AbstractUpdate | None

    @property
    def diffusion(self) -> Any:
        return None  # comes in `layer`

    def layer(self, layer: Any, step: Any, state: State, update: Any) -> State:
        parts = self.parts()
        _one_each(self.sublayers, len(parts))
        number = jnp.asarray(layer) // self.sublayers
        branches = [functools.partial(self._moved, part, part is parts[-1], number) for part in parts]
        return jax.lax.switch(jnp.asarray(layer) % self.sublayers, branches, state)

    def _moved(self, part: AbstractSystem, is_last: bool, layer: Any, state: State) -> State:
        if self.update is not None:
            state = part.layer(layer, self.step, state, self.update)
        else:
            step = jnp.asarray(self.step, float)
            k = jnp.asarray(layer, step.dtype)
            state = _move(part, k, k + 1, step, state)
        if not is_last:
            return state
        return self.whole.kick(jnp.atleast_1d(layer), layer_time(layer, self.step), self.step, state)


def _share(step: Any, parts: int) -> Any:
    """The time that one of the parts of a layer takes.

    It is rounded up, so that no saved time at the end of a layer comes before that layer, where weights are others.
    """
    if parts == 1 or not is_concrete(step):
        return step if parts == 1 else step / parts
    length = float(step)
    found = length / parts
    return found if Fraction(found) * parts >= Fraction(length) else float(np.nextafter(found, np.inf))


def _one_each(sublayers: int, parts: int) -> None:
    if sublayers not in (1, parts):
        raise InvalidInput(
            f"`sublayers` is {sublayers}, but the field has {parts} parts; give {parts} for frames after each of "
            "them, or leave it out."
        )


def _move(part: AbstractSystem, first: Any, last: Any, step: Any, state: State) -> State:
    """One part alone from time first * step to last * step."""
    # a rounding error inwards, so that weights with layers of another step are read on the side of this one
    inwards = 4 * jnp.finfo(step.dtype).eps
    start, end = first * step * (1 + inwards), last * step * (1 - inwards)
    return Rk4().step(part, start, (last - first) * step, state, (), end)[0]


def _several(count: int, what: str) -> None:
    if count < 2:
        raise InvalidInput(
            f"`Alternate` moves the parts of a sum in turn, but {what} has {count}; give a sum such as "
            "Attention(...) + Perceptron(...), or use Layers, Fixed or Adaptive."
        )
