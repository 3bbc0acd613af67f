"""Merges of many systems at once: the laws of exit times."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import members, over_members
from attnflow.errors import InvalidInput
from attnflow.fields import Attention
from attnflow.flows.compiled import compiled, wait
from attnflow.flows.longtime import integrator
from attnflow.flows.longtime.frames import UNDETERMINED
from attnflow.flows.longtime.method import LongTime, log_clock, mass_unit
from attnflow.precision import full_precision
from attnflow.tokens import Tokens

if TYPE_CHECKING:
    import xarray as xr

MOST = 128
ROWS = 64


def merge_times(
    field: Attention,
    tokens: Tokens,
    *,
    until: float = math.inf,
    method: LongTime | None = None,
    on_progress: Callable[[float], None] | None = None,
) -> "xr.Dataset":
    """All merges of every member of a batch, by the method `LongTime`; at most 128 tokens each.

    Dimensions (batch..., merge), with the coordinate `left`, the number of clusters that a merge leaves:
    `flow["log_time"].sel(left=k)` is when k + 1 clusters became k, infinite where that has not happened until `until`.
    Besides log_time: rounding and undetermined as in `flow.merges`, and evaluations so far. `on_progress` gets the
    share of merges made.
    """
    import xarray as xr

    method = LongTime(sensitive=False) if method is None else method
    field.check(tokens)
    method.check(field, tokens)
    if not (isinstance(until, int | float | np.number) and until > 0):
        raise InvalidInput(f"`until` is {until!r}; give a positive time, math.inf for consensus.")
    if not 2 <= tokens.n <= MOST:
        raise InvalidInput(f"`tokens` are {tokens.n} in each member; merge_times follows 2 to {MOST}: use solve.")
    with full_precision():
        systems = members(field, tokens)
        count = int(np.prod(systems.shape)) if systems.dims else 1
        found = _followed(systems, tokens, method, float(until), count, on_progress)
    dims = (*systems.dims, "merge")
    shape = (*systems.shape, tokens.n - 1)
    coordinates = dict(systems.dims) | {"merge": np.arange(1, tokens.n)}
    made = xr.Dataset({name: (dims, values.reshape(shape)) for name, values in found.items()}, coordinates)
    return made.assign_coords(left=("merge", np.arange(tokens.n - 1, 0, -1))).set_xindex("left")


def _followed(
    systems: Any, tokens: Tokens, method: LongTime, until: float, count: int, on_progress: Any
) -> dict[str, np.ndarray]:
    n = tokens.n
    positions = np.asarray(systems.measure.positions).reshape(count, n, tokens.dim)
    masses = np.asarray(systems.measure.masses).reshape(count, n)
    unit = mass_unit(masses)
    size = next(s for s in (8, 32, MOST) if s >= n)
    places = np.resize(np.arange(n), size)
    mass = np.where(np.arange(size) < n, masses[:, places] / unit, 0.0)
    mass = np.rint(mass) if unit != 1.0 else mass
    axes = systems.field_axes
    physics, shift = _physics(systems.field, axes, method, jnp.asarray(math.log(until)), unit, count)
    keys = jax.random.split(jax.random.key(0), count)
    state = _begin(jnp.asarray(positions[:, places]), jnp.asarray(mass), keys, method.sensitive)
    log_time = np.full((count, n - 1), np.inf)
    rounding = np.full((count, n - 1), np.nan)
    evaluations = np.zeros((count, n - 1), int)
    made = np.zeros(count, int)
    together = True
    while True:
        size = state.mass.shape[1]
        few = max([s for s in (8, 32) if s < size and together], default=1)
        alive = int(jnp.max(jnp.sum(state.mass > 0, axis=1)))
        if alive <= few and few > 1:
            state = _compact(state, few)
            continue
        if bool(jnp.all(_over(physics, state))):
            break
        state, records = wait(_work(physics, state, few))
        first, rows = np.asarray(records.first), np.arange(ROWS)[None, :]
        is_merge = (first >= 0) & (rows < np.asarray(records.filled)[:, None])
        member, row = np.nonzero(is_merge)
        place = (made[:, None] + np.cumsum(is_merge, axis=1) - 1)[member, row]
        log_time[member, place] = np.asarray(records.log_t)[member, row] + np.asarray(shift)[member]
        with np.errstate(over="ignore"):
            rounding[member, place] = np.finfo(float).eps * np.exp(np.asarray(records.log_growth)[member, row])
        evaluations[member, place] = np.asarray(records.evaluations)[member, row]
        made += is_merge.sum(axis=1)
        together = together and bool(np.any(np.asarray(records.filled)))  # a member that stands still keeps its slots
        if on_progress is not None:
            on_progress(made.sum() / log_time.size)
    if not method.sensitive:
        rounding[:] = np.nan
    return {
        "log_time": log_time,
        "rounding": rounding,
        "undetermined": rounding > UNDETERMINED,
        "evaluations": evaluations,
    }


@compiled
def _physics(field: Any, axes: Any, method: LongTime, log_until: Any, unit: float, count: int) -> Any:
    def one(field: Any) -> Any:
        return method.physics(field, log_until, unit), log_clock(field, unit)

    if axes is None or not jax.tree.leaves(axes):
        return jax.tree.map(lambda leaf: jnp.repeat(leaf[None], count, axis=0), one(field))
    return eqx.filter_vmap(one, in_axes=(axes,))(field)


@compiled
def _begin(positions: Any, mass: Any, keys: Any, sensitive: bool) -> Any:
    return jax.vmap(lambda x, m, key: integrator.begin(x, m, sensitive, key))(positions, mass, keys)


@compiled
def _compact(state: Any, size: int) -> Any:
    return jax.vmap(lambda one: integrator.compact(one, size)[0])(state)


@compiled
def _over(physics: Any, state: Any) -> Any:
    return jax.vmap(integrator.is_over)(physics, state)


@compiled
def _work(physics: Any, state: Any, few: int) -> Any:
    def one(physics: Any, state: Any) -> Any:
        return integrator.slice_of_work(physics, state, ROWS, few, False)

    return over_members(one, (0, 0), (physics, state), state.mass.shape[1] ** 2)
