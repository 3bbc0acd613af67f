"""The flow map of a measure, as an object: push points or measures through it, invert it, compose it.

The path of the measure is kept as nodes (time, positions). Points travel from node to node together with the tokens,
which start afresh from every node: all points see one and the same path, forwards and backwards, and a backward leg is
short enough for the contraction of the clusters not to be amplified.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.errors import InvalidInput
from attnflow.fields import AbstractField, breaks
from attnflow.flows.methods import AbstractMethod, Adaptive
from attnflow.flows.schedules import AbstractSchedule, Evenly
from attnflow.flows.solve import solve
from attnflow.flows.system import Carried
from attnflow.flows.trajectory import Trajectory
from attnflow.precision import full_precision
from attnflow.tokens import Measure, Tokens, all_present


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
        times, nodes = jnp.asarray(self.times[order]), jnp.asarray(self.nodes[order])
        end, logdet = _carry(
            self.field, self.tokens.measure.moved(None), self.method,
            times, nodes, jnp.asarray(points), jnp.asarray(place), jnp.asarray(breaks(self.field, self.times[-1])),
        )  # fmt: skip
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
        """The map back. Points that the flow has contracted by e^(-c) come back with errors e^c times larger."""
        for leg in self.legs:
            if leg.method.layer_step is not None:
                raise InvalidInput("a map made layer by layer has no inverse here; make it with Fixed or Adaptive.")
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
    nodes: AbstractSchedule | None = None,
) -> FlowMap:
    """Phi from 0 to `until` in the evolution of `tokens` along `field`; one system.

    `nodes` says where the path of the tokens is kept: by default at least once per unit of time.
    """
    if tokens.dims:
        raise InvalidInput(f"`tokens` has batch dimensions {tokens.dims}; pick one system with `member`.")
    all_present(tokens, "a flow map")
    method = Adaptive() if method is None else method
    nodes = Evenly(max(1, int(np.ceil(until)))) if nodes is None else nodes
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
def _carry(
    field: Any, tokens: Measure, method: AbstractMethod, times: Any, nodes: Any, points: Any, place: Any, jumps: Any
) -> Any:
    system = Carried(field, tokens, place, jumps)

    def leg(carry: Any, node: Any) -> Any:
        x, t0, t1 = node
        points, logdet = carry
        _, points, logdet = method.advance(system, (x, points, logdet), t0, t1, None)
        return (points, logdet), None

    begin = (points, jnp.zeros(points.shape[0], points.dtype))
    end, _ = jax.lax.scan(leg, begin, (nodes[:-1], times[:-1], times[1:]))
    return end
