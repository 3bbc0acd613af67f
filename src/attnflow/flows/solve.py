"""Follow tokens along a field: frames, observables, stop conditions, progress, interruption, continuation."""

import dataclasses
import functools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Self

import numpy as np

from attnflow.axes import dimensions
from attnflow.checks import end_time, instance, shown, whole
from attnflow.errors import InvalidInput
from attnflow.feasible import require_memory
from attnflow.fields import AbstractField
from attnflow.flows.advance import default_method
from attnflow.flows.driver import Control, Drive
from attnflow.flows.joining import SideBySide, batch_of, shape_of
from attnflow.flows.longtime.method import LongTime
from attnflow.flows.methods import AbstractMethod, Adaptive
from attnflow.flows.noises import AbstractNoise, check_noise
from attnflow.flows.observables import Observe
from attnflow.flows.outcome import Progress
from attnflow.flows.particles import BUILT_IN, FlowingTokens
from attnflow.flows.saving import Evenly, Save, as_times
from attnflow.flows.sink import AbstractSink
from attnflow.flows.stopping import AbstractStop, conditions
from attnflow.flows.trajectory import Trajectory
from attnflow.flows.work import AbstractWork, Driven
from attnflow.tokens import Tokens

LARGEST_CHUNK = 1 << 22
"""Numbers that a chunk of frames may hold."""
FEWEST, MOST = 4, 64
"""Frames of a chunk, at least and at most."""
MOST_OF_A_BATCH = 16
"""The same of a batch, whose loops copy the chunk."""
SMALL_CHUNK, MOST_OF_FEW = 1 << 18, 256
"""Numbers and frames of a chunk of few tokens, where the work around a chunk takes as long as the chunk."""
COPIES = 6
"""Arrays of all positions that a step needs at a time, at least: the frames of a chunk, the state and a stage."""


@dataclasses.dataclass(frozen=True)
class Solve(AbstractWork):
    """Tokens that follow a field: the work of `solve`, whose arguments its fields are."""

    field: AbstractField
    tokens: Tokens
    until: float
    save: Save | None = Evenly(200)
    method: AbstractMethod | None = None
    noise: AbstractNoise | None = None
    stop: AbstractStop | Sequence[AbstractStop] = ()
    observe: Observe | None = dataclasses.field(default_factory=dict)
    keep: Collection[str] = BUILT_IN
    chunk: int | None = None
    tol: float | None = None

    def checked(self) -> Self:
        field, tokens, noise, keep = self.field, self.tokens, self.noise, self.keep
        instance("field", field, AbstractField, "a field such as Attention(2.0)")
        instance("tokens", tokens, Tokens, "tokens, such as from_array(positions)")
        if isinstance(self.method, LongTime):
            raise InvalidInput("`method` is LongTime, which is not a method of `solve`; use solve_long(field, tokens).")
        instance("method", self.method, AbstractMethod | None, "a method such as Adaptive()")
        instance("noise", noise, AbstractNoise | None, "noise such as Brownian(0.1)")
        stops = conditions(self.stop)
        observe: Any = {} if self.observe is None else self.observe
        instance("observe", observe, Mapping, "a dictionary of names and functions")
        method = default_method(noise is not None) if self.method is None else self.method
        until = end_time(self.until)
        if self.chunk is not None:
            whole("chunk", self.chunk, 1)
        if (
            isinstance(keep, str | np.ndarray)
            or not isinstance(keep, Collection)
            or not all(k in BUILT_IN for k in keep)
            or len(set(keep)) < len(keep)
        ):
            raise InvalidInput(f"`keep` is {shown(keep)}; give names out of {', '.join(BUILT_IN)}, each once.")
        if isinstance(method, Adaptive) and np.asarray(tokens.positions).dtype == np.float32:
            raise InvalidInput("`tokens` are float32, and Adaptive works in float64; use Fixed(step) or Layers(step).")
        on = method.evaluates_on(tokens.space)
        field.check(tokens, on)
        method.check(until, field)
        if noise is not None:
            check_noise(noise, method, tokens)
        checked = dataclasses.replace(
            self,
            until=until,
            save=as_times(self.save),
            method=method,
            stop=stops,
            observe=dict(observe),
            keep=tuple(name for name in BUILT_IN if name in keep),
        )
        times = checked.times  # refuses what is no rule for times
        sizes = [len(labels) for labels in dimensions((field, noise), tokens).values()]
        numbers = math.prod(sizes) * tokens.n * tokens.dim
        itemsize = np.asarray(tokens.positions).dtype.itemsize
        require_memory(itemsize * COPIES * numbers, f"a flow of {numbers} coordinates", "use fewer tokens or members")
        # a condition is looked at after every chunk, so that a long chunk would delay the stop
        long = not sizes and not stops and times.size > MOST and MOST_OF_FEW * numbers <= SMALL_CHUNK
        most = MOST_OF_A_BATCH if sizes else MOST_OF_FEW if long else MOST
        chunk = self.chunk or frames_of_a_chunk(numbers, most)
        return dataclasses.replace(checked, field=field.prepare(tokens, self.tol, flowing=True, on=on), chunk=chunk)

    def stepper(self) -> FlowingTokens:
        return FlowingTokens(self)

    def result(self, driven: Driven) -> Trajectory:
        space = None if self.tokens is None else self.tokens.space
        return Trajectory(driven.dataset, self.field, space, driven.outcome, driven.steps, driven.checkpoint, self)

    @classmethod
    def defaults(cls, given: Collection[str]) -> dict[str, Any]:
        return super().defaults(given) | {"method": default_method("noise" in given)}

    def shape(self) -> str | None:
        return self._shape

    @functools.cached_property
    def _shape(self) -> str | None:
        return shape_of(self)

    @classmethod
    def joined(cls, works: Sequence[Self]) -> AbstractWork:
        chunk = frames_of_a_chunk(len(works) * works[0].tokens.positions.size, MOST_OF_A_BATCH)
        return SideBySide(dataclasses.replace(batch_of(works), chunk=chunk))


def frames_of_a_chunk(numbers: int, most: int) -> int:
    """Frames that are measured and stored together, of `numbers` coordinates each."""
    return int(np.clip(LARGEST_CHUNK // numbers, FEWEST, most))


def solve(
    field: AbstractField,
    tokens: Tokens,
    until: float,
    *,
    save: Save | None = None,
    method: AbstractMethod | None = None,
    noise: AbstractNoise | None = None,
    stop: AbstractStop | Sequence[AbstractStop] = (),
    observe: Observe | None = None,
    keep: Collection[str] = BUILT_IN,
    sink: AbstractSink | None = None,
    chunk: int | None = None,
    tol: float | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: Callable[[], bool] | None = None,
    check: bool = True,
) -> Trajectory:
    """Follow `tokens` along `field` from time 0 to `until`.

    Tokens are on their space to rounding at every saved time (with `Layers(update=Project())` they are where that
    rule puts them). Results are float64 whatever the JAX configuration. The energy of a gradient-flow field drops by
    no more than the integration error allows. For times beyond any clock, see `solve_long`.

    Arguments:
        save: when frames are kept: a rule (`Evenly`), a number of equal intervals (200 unless given), or times.
        method: `Adaptive()` (default), `Fixed(step)`, `Layers(step)`, ...
        noise: `Brownian(kappa)`, `RandomValues(field)` or any `AbstractNoise`; the default method is then
            `Layers(0.01, ProjectRenormalise())`.
        stop: conditions looked at on every saved frame. A member of a batch stops where one holds: its later frames
            repeat that frame, `stopped_at` has the time. The flow ends when all members have stopped.
        observe: functions of (t, measure) by name, evaluated on every saved frame while the flow runs, as in
            `observe={"order": lambda t, mu: jnp.linalg.norm(mu.masses @ mu.positions)}`. See `Observable`.
        keep: which built-in variables are saved, of positions, speed, floor, resolved, spread, energy. With `keep=()`
            and `observe` a flow of any size needs the memory of a few frames. What is neither kept nor needed by a stop
            condition is not computed; without `resolved` and `spread` a flow is never called frozen.
        sink: where frames go; default in memory. A run folder streams them to disk and can resume.
        chunk: frames that are measured and stored together; it does not change results.
        tol: accuracy of the sums over pairs (`field.prepare`), where the field was not given one.
        on_progress: called with a `Progress` several times a second. Without it a terminal or notebook shows one line
            after two seconds (not with `ATTNFLOW_PROGRESS=off` in the environment).
        cancel: called several times a second; when it returns True the flow ends as after Ctrl-C. Works in any thread.
        check: raise `FlowFailed` when integration cannot go on; False returns what there is.

    Returns a `Trajectory`. Its outcome is `frozen` when all speeds have been below round-off for 16 frames although the
    tokens have not met: either they are at an equilibrium or the drift that is left cannot be seen in this clock.
    Ctrl-C ends the flow at the last saved frame, with the outcome `interrupted`. `flow.continued(until)` goes on from
    its end to a later time, bit by bit as one call with all save times would have.
    """
    work = Solve(field, tokens, until, save, method, noise, stop, observe, keep, chunk, tol)
    found: Trajectory = Drive(work.checked()).run(Control(sink, on_progress, cancel, check))
    return found
