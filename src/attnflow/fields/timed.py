"""Things that change with time, and the instants at which they jump.

Piece k of a piecewise constant thing with layers of length `step` lasts from fl(k step) up to, not including,
fl((k+1) step), where fl is the rounded product: layer k of a network, which runs at time fl(k step), always reads
piece k. (floor(t/step) is wrong for 47 of the first 1,000 layers at step 0.1.)
"""

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import Along, Batched, positive
from attnflow.errors import InvalidInput
from attnflow.feasible import require_steps
from attnflow.precision import is_concrete


class AbstractTimed(eqx.Module):
    """A part of a field that depends on time."""

    @abc.abstractmethod
    def breaks(self, until: Any) -> np.ndarray:
        """The times in (0, until) at which it jumps; methods with several evaluations per step stop there.

        `until` may be traced where nothing jumps.
        """


class Switch(AbstractTimed):
    """Off before `time`, on from then."""

    time: Batched = eqx.field(converter=positive("switch"))

    def is_on(self, t: Any) -> Any:
        """Whether `t` is at or after the switch."""
        return t >= jnp.asarray(self.time, jnp.result_type(t))

    def breaks(self, until: Any) -> np.ndarray:
        return times_before(self.time, until, "switch")


def breaks(field: Any, until: Any) -> np.ndarray:
    """All times in (0, until) at which some part of `field` jumps."""
    timed = [node for node in jax.tree.leaves(field, is_leaf=_is_timed) if _is_timed(node)]
    return np.unique(np.concatenate([np.zeros(0), *(node.breaks(until) for node in timed)]))


def times_before(times: Any, until: Any, name: str) -> np.ndarray:
    """The times that are below `until`."""
    found = np.atleast_1d(_concrete(times, name))
    return found[found < _end(until)] if found.size else found


def layer_breaks(step: Any, until: Any, pieces: int | None = None) -> np.ndarray:
    """The times fl(k step), 0 < k, below `until`, at most pieces - 1 of them."""
    if isinstance(step, Along):
        raise InvalidInput(
            f"`step` of a weight is a batch along {step.dim!r}; all members share their layers, give one."
        )
    length, until = float(_concrete(step, "step")), _end(until)
    with np.errstate(over="ignore"):
        count = np.ceil(np.float64(until) / length) + 1
    count = count if pieces is None else min(count, pieces)
    require_steps(count, f"`step` of a weight is {length:g}: a time of {until:g}", "use a larger `step`")
    times = np.arange(1, int(count)) * length
    return times[times < until]


def piece(t: Any, step: Any) -> Any:
    """The number k of the piece at time t: fl(k step) <= t < fl((k+1) step)."""
    t = jnp.asarray(t, float)
    step = jnp.asarray(step, t.dtype)
    k = jnp.floor(t / step)
    k = k + ((k + 1) * step <= t).astype(t.dtype)
    k = k - (k * step > t).astype(t.dtype)
    return k.astype(int)


def layer_time(layer: Any, step: Any) -> Any:
    """The time of a layer, 4 units in the last place later, so that a weight with another step reads the new piece."""
    step = jnp.asarray(step, float)
    return jnp.asarray(layer, float) * step * (1 + 4 * jnp.finfo(step.dtype).eps)


def _concrete(value: Any, name: str) -> np.ndarray:
    value = value.values if isinstance(value, Along) else value
    if not is_concrete(value):
        raise InvalidInput(f"`{name}` sets the times at which a field jumps; give it as a plain number.")
    return np.asarray(value)


def _end(until: Any) -> float:
    if not is_concrete(until):
        raise InvalidInput("the field jumps at certain times; give t0 and t1 as plain numbers.")
    return float(until)


def _is_timed(node: Any) -> bool:
    return isinstance(node, AbstractTimed)
