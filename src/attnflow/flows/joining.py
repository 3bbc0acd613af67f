"""Several flows side by side: works that differ in their numbers alone become one batch, and come apart again.

At a fixed number of members the result of one does not depend on the others, bit for bit: compiled code treats the
members of a batch alike, each takes its own steps, and none waits for another but at saved frames
(tests/sweeps/test_bits.py).
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attnflow.axes import Along, dimensions
from attnflow.fields import breaks
from attnflow.flows.observables import content_of
from attnflow.flows.outcome import Ending, Outcome
from attnflow.flows.particles import FROZEN_SPREAD, FlowingTokens
from attnflow.flows.work import AbstractWork, Driven
from attnflow.tokens import stack

if TYPE_CHECKING:
    from attnflow.flows.solve import Solve

MEMBER = "member_of_a_group"
"""The batch dimension of flows side by side."""


def shape_of(work: "Solve") -> str | None:
    """A hash of all of a checked flow but its numbers.

    None where it is a batch already, or where a schedule of weights jumps at times that the members would share.
    """
    moving = (work.field, work.noise)
    if dimensions(moving, work.tokens) or breaks(moving, float(work.until)).size:
        return None
    fields = {one.name: getattr(work, one.name) for one in dataclasses.fields(work) if one.name != "chunk"}
    leaves, structure = jax.tree.flatten(fields)
    outline = tuple(f"{leaf.dtype} {leaf.shape}" if _is_array(leaf) else leaf for leaf in leaves)
    try:
        return _digest(structure, outline)
    except TypeError:  # something in it that cannot be compared at once
        return content_of(jax.tree.unflatten(structure, outline))


@functools.lru_cache(maxsize=256)
def _digest(structure: Any, outline: tuple[Any, ...]) -> str:
    """A hash of a tree with the shapes of its arrays in their places; the same in every process."""
    return content_of(jax.tree.unflatten(structure, outline))


def batch_of(works: "Sequence[Solve]") -> "Solve":
    """One flow of all members. Every array of the field and of the noise gets an axis of members.

    (Shared arrays are stacked too, so that the program does not depend on what the members have in common.)
    """
    fields, noises = [work.field for work in works], [work.noise for work in works]
    return dataclasses.replace(
        works[0],
        field=_stacked(fields),
        noise=_stacked(noises),
        tokens=stack(MEMBER, range(len(works)), [work.tokens for work in works]),
    )


@dataclasses.dataclass(frozen=True)
class SideBySide(AbstractWork):
    """Flows that are carried out as one batch; the result is a list of trajectories.

    A flow that stands still goes on to its end here, for others may move. Where a member has stopped, its later frames
    repeat the one where it did.
    """

    batch: "Solve"

    def checked(self) -> Self:
        return self

    @property
    def observe(self) -> Any:
        """What the driver evaluates on frames."""
        return self.batch.observe

    @property
    def keep(self) -> Any:
        """What the driver saves of frames."""
        return self.batch.keep

    @property
    def stop(self) -> Any:
        """When members stop."""
        return self.batch.stop

    def stepper(self) -> FlowingTokens:
        stepper = FlowingTokens(self.batch)
        stepper.can_freeze = False
        return stepper

    def result(self, driven: Driven) -> Any:
        dataset, wanted = driven.dataset, self.batch.times
        there = dataset.sizes["time"]
        if driven.outcome.complete and there < len(wanted):  # all members have stopped: the last frame is theirs
            dataset = dataset.isel(time=np.minimum(np.arange(len(wanted)), there - 1)).assign_coords(time=wanted)
        return [self._member(driven, dataset, k) for k in range(dataset.sizes[MEMBER])]

    def _member(self, driven: Driven, dataset: Any, k: int) -> Any:
        from attnflow.flows.trajectory import Trajectory

        own = dataset.isel({MEMBER: k}, drop=True)
        outcome = _outcome(own) if driven.outcome.complete else driven.outcome
        own = own.assign_attrs(outcome=outcome.ending.value, message=outcome.message)
        return Trajectory(own, None, self.batch.tokens.space, outcome, {})  # type: ignore[arg-type]


def _outcome(own: Any) -> Outcome:
    """How one member ended."""
    if "stopped_at" in own and np.isfinite(own["stopped_at"]):
        return Outcome(Ending.STOPPED, f"stopped at t = {float(own['stopped_at']):g}.")
    end = float(own["time"][-1])
    if "resolved" in own and "spread" in own and own.sizes["time"] > 1:
        still = not own["resolved"].values[-2:].any()
        if still and float(own["spread"][-1]) > FROZEN_SPREAD:
            return Outcome(Ending.FROZEN, f"frozen at t = {end:g}: every speed is below the round-off floor.")
    return Outcome(Ending.FINISHED, f"reached t = {end:g}.")


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray | np.generic | jax.Array)


def _stacked(trees: Sequence[Any]) -> Any:
    def one(*leaves: Any) -> Any:
        if not _is_array(leaves[0]):
            return leaves[0]
        on_device = isinstance(leaves[0], jax.Array)
        values = jnp.stack(leaves) if on_device else np.stack([np.asarray(leaf) for leaf in leaves])
        blank = Along(MEMBER, np.zeros(len(leaves)), labels=())
        return eqx.tree_at(lambda along: along.values, blank, values)  # keeps whole numbers and random keys

    return jax.tree.map(one, *trees)
