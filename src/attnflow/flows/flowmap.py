"""The flow map of a measure, as an object: push points or measures through it, invert it, compose it.

The path of the measure is kept as nodes (time, positions). Points travel from node to node together with the tokens,
which start afresh from every node: all points see one and the same path, forwards and backwards, and a backward leg is
short enough for the contraction of the clusters not to be amplified.
"""

import dataclasses
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.checks import end_time, instance
from attnflow.errors import InvalidInput
from attnflow.fields import AbstractField, breaks
from attnflow.flows.methods import AbstractMethod, AbstractSystem, Adaptive
from attnflow.flows.methods.layers import layer_number
from attnflow.flows.saving import AbstractTimes, Evenly
from attnflow.flows.solve import solve
from attnflow.flows.system import Carried, Particles
from attnflow.flows.trajectory import Trajectory
from attnflow.precision import full_precision
from attnflow.tokens import Tokens, all_present


@dataclasses.dataclass(frozen=True)
class _Leg:
    """A stretch of path of one measure, forwards or backwards."""

    field: AbstractField
    tokens: Tokens
    method: AbstractMethod
    times: np.ndarray
    nodes: np.ndarray
    forward: bool

    def carry(self, points: np.ndarray, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        order = slice(None) if self.forward else slice(None, None, -1)
        times, nodes = self.times[order], self.nodes[order]
        jumps = breaks(self.field, self.times[-1])
        system = Carried(self.field, self.tokens.measure.moved(None), place, jumps)
        if self.forward or self.method.layer_step is None:
            end, logdet = _carry(system, self.method, times, nodes, points)
        else:
            numbers = layer_number(self.times, self.method.layer_step)
            layers = np.arange(numbers[0], numbers[-1])
            last = np.searchsorted(numbers, layers, side="right") - 1
            end, logdet = _carry_back(
                system, self.method, self.method.layer_step, layers, last, numbers[last] == layers, self.nodes, points
            )
            if (lost := int(np.isnan(end).any(axis=1).sum())) > 0:
                raise InvalidInput(
                    f"{lost} of the {len(points)} `points` have no way back through layers of step "
                    f"{self.method.layer_step:g}: no point goes there, or the layer folds; use a smaller step."
                )
        return np.asarray(end), np.asarray(logdet)


@dataclasses.dataclass(frozen=True)
class FlowMap:
    """Phi from one time to another, in the evolving measure that made it."""

    legs: tuple[_Leg, ...]

    @classmethod
    def of(cls, flow: Trajectory, start: int = 0, end: int = -1, *, method: AbstractMethod | None = None) -> "FlowMap":
        """The map between two saved frames of a trajectory of one system, with all frames between them as nodes."""
        if flow.dims:
            raise InvalidInput(f"the trajectory has batch dimensions {flow.dims}; pick one system with `member`.")
        all_present(flow.tokens(0), "a flow map")
        frames = flow.dataset.sizes["time"]
        first, last = start % frames, end % frames
        if first >= last:
            raise InvalidInput(f"frames {start} and {end} do not span any time; give an earlier and a later one.")
        if method is not None and method.evaluates_on(flow.space) != flow.space:
            raise InvalidInput(f"{type(method).__name__} with this update leaves {flow.space}; use Renormalise().")
        return cls((_leg(flow, Adaptive() if method is None else method, first, last),))

    def __call__(self, points: Any, *, place: Any = None) -> Any:
        """Where points (an array) or tokens (a measure) end up. They feel the measure of the map and exert nothing."""
        if isinstance(points, Tokens):
            all_present(points, "a flow map")
            return points.moved(self.push(points.positions, place=points.place)[0])
        return self.push(points, place=place)[0]

    def push(self, points: Any, *, place: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """(end points, log|det D Phi| at the points), relative to the reference measure of the space."""
        space = self.legs[0].tokens.space
        x = np.asarray(points, dtype=np.float64)
        if x.ndim != 2 or x.shape[1] != space.dim:
            raise InvalidInput(f"`points` has shape {x.shape}; give (points, {space.dim}).")
        x = np.asarray(Tokens(x, space=space).positions)
        places = np.zeros(len(x), np.int64) if place is None else np.asarray(place)
        logdet = np.zeros(len(x))
        with full_precision():
            for leg in self.legs:
                x, change = leg.carry(x, places)
                logdet = logdet + change
        return x, logdet

    def log_determinant(self, points: Any, *, place: Any = None) -> np.ndarray:
        """log|det D Phi| at the points: the integral of div X_t[mu_t] along their paths.

        A density p of points becomes p(x) e^(-log_determinant(x)) at Phi(x).
        """
        return self.push(points, place=place)[1]

    def inverse(self) -> "FlowMap":
        """The map back. Points that the flow has contracted by e^(-c) come back with errors e^c times larger.

        Layers are inverted one by one, by Newton's method to rounding. Points that no point goes to are refused when
        they are pushed.
        """
        return FlowMap(tuple(dataclasses.replace(leg, forward=not leg.forward) for leg in reversed(self.legs)))

    def then(self, other: "FlowMap") -> "FlowMap":
        """First this map, then the other."""
        if self.legs[0].tokens.space != other.legs[0].tokens.space:
            raise InvalidInput("the two maps act on different spaces and cannot be composed.")
        return FlowMap(self.legs + other.legs)

    def __matmul__(self, other: "FlowMap") -> "FlowMap":
        """(self @ other)(x) = self(other(x))."""
        return other.then(self)


def flow_map(
    field: AbstractField,
    tokens: Tokens,
    until: float,
    *,
    method: AbstractMethod | None = None,
    nodes: AbstractTimes | None = None,
) -> FlowMap:
    """Phi from 0 to `until` in the evolution of `tokens` along `field`; one system.

    `nodes` says where the path of the tokens is kept: by default at least once per unit of time.
    """
    instance("tokens", tokens, Tokens, "tokens, such as from_array(positions)").single()
    all_present(tokens, "a flow map")
    method = Adaptive() if method is None else method
    nodes = Evenly(max(1, math.ceil(end_time(until)))) if nodes is None else nodes
    flow = solve(field, tokens, until, method=method, save=nodes)
    return FlowMap.of(flow, method=method)


def _leg(flow: Trajectory, method: AbstractMethod, first: int, last: int) -> _Leg:
    span = slice(first, last + 1)
    return _Leg(
        flow.field,
        flow.tokens(first),
        method,
        flow.time.values[span],
        flow.positions.isel(time=span).values,
        True,
    )


@eqx.filter_jit
def _carry(system: Carried, method: AbstractMethod, times: Any, nodes: Any, points: Any) -> Any:
    def leg(carry: Any, node: Any) -> Any:
        x, t0, t1 = node
        points, logdet = carry
        _, points, logdet = method.advance(system, (x, points, logdet), t0, t1, None)
        return (points, logdet), None

    begin = (points, jnp.zeros(points.shape[0], points.dtype))
    end, _ = jax.lax.scan(leg, begin, (nodes[:-1], times[:-1], times[1:]))
    return end


@eqx.filter_jit
def _carry_back(
    system: Carried, method: AbstractMethod, step: Any, layers: Any, last: Any, fresh: Any, nodes: Any, points: Any
) -> Any:
    """Points before `layers`, from those after them; NaN where a layer cannot be inverted.

    The tokens go through the layers first, from the node `last` where one is `fresh`, so that the way back sees the
    measures of the way there.
    """
    space, step = system.tokens.space, jnp.asarray(step, points.dtype)
    tokens = Particles(system.field, system.tokens, system.break_times)

    def layer(system: AbstractSystem, k: Any, state: Any) -> Any:
        t = k.astype(step.dtype)
        return method.advance(system, state, t * step, (t + 1) * step, k[None])

    def along(x: Any, at: Any) -> Any:
        k, node, is_fresh = at
        x = jnp.where(is_fresh, nodes[node], x)
        return layer(tokens, k, x), x

    def back(carry: Any, at: Any) -> Any:
        k, x = at

        def one(y: Any, place: Any) -> Any:
            alone = Carried(system.field, system.tokens, place[None], system.break_times)

            def miss(p: Any) -> Any:
                on = space.retract(p[None])
                return layer(alone, k, (x, on, None))[1][0] - y + p - on[0]  # p - on makes the derivative invertible

            def newton(carry: Any) -> Any:
                """The best of several lengths of Newton's step, as long as one comes nearer."""
                p, _, _, count = carry
                slope, off = jax.jacfwd(lambda q: (miss(q),) * 2, has_aux=True)(p)
                shares = 0.5 ** jnp.arange(8, dtype=p.dtype)
                tried = space.retract(p[None] - shares[:, None] * jnp.linalg.solve(slope, off)[None])
                sizes = jnp.max(jnp.abs(jax.vmap(miss)(tried)), axis=1)
                best, nearer = jnp.argmin(sizes), jnp.min(sizes) < jnp.max(jnp.abs(off))
                return jnp.where(nearer, tried[best], p), jnp.linalg.det(slope) > 0, nearer, count + 1

            begin = (y, jnp.asarray(False), jnp.asarray(True), 0)
            p, unfolded, _, _ = jax.lax.while_loop(lambda carry: carry[2] & (carry[3] < 64), newton, begin)
            _, end, logdet = layer(alone, k, (x, p[None], jnp.zeros(1, p.dtype)))
            close = jnp.max(jnp.abs(end[0] - y)) <= 64 * jnp.finfo(y.dtype).eps * (1 + jnp.max(jnp.abs(y)))
            return jnp.where(close & unfolded, p, jnp.nan), -logdet[0]

        points, logdet = carry
        points, change = jax.vmap(one)(points, system.place)
        return (points, logdet + change), None

    _, path = jax.lax.scan(along, nodes[0], (layers, last, fresh))
    begin = (points, jnp.zeros(points.shape[0], points.dtype))
    end, _ = jax.lax.scan(back, begin, (layers, path), reverse=True)
    return end
