"""`solve_long`: through plateaus of any length to consensus."""

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from attnflow.axes import Along
from attnflow.checks import end_time, instance
from attnflow.errors import InvalidInput
from attnflow.fields import AbstractField
from attnflow.flows.continuing import go_on, recipe_of
from attnflow.flows.driver import Control, Driven, drive
from attnflow.flows.longtime.method import LongTime
from attnflow.flows.longtime.stepper import ClusterStepper
from attnflow.flows.longtime.tree import Tree
from attnflow.flows.observables import Observe
from attnflow.flows.outcome import Progress
from attnflow.flows.sink import AbstractSink
from attnflow.flows.trajectory import AbstractTrajectory
from attnflow.precision import full_precision
from attnflow.tokens import Tokens

if TYPE_CHECKING:
    import xarray as xr


@dataclasses.dataclass(frozen=True, repr=False)
class LongFlow(AbstractTrajectory):
    """What `solve_long` returns: frames on the coordinate log t, and the tree of merges."""

    @property
    def log_time(self) -> "xr.DataArray":
        """Natural logarithm of the saved times, which is known where the times themselves overflow."""
        return self.dataset["log_time"]

    @property
    def tree(self) -> Tree:
        """Merges, staircase, plateaus and linkage."""
        return Tree(self.dataset, self.field)

    @property
    def merges(self) -> "xr.Dataset":
        """The table of merges: `tree.merges`."""
        return self.tree.merges

    def _cut(self, at: slice) -> Any:
        """The first frames, with the merges and stairs up to the last of them."""
        first, last, step = at.indices(len(self))
        if first != 0 or step != 1:
            raise InvalidInput(
                "the frames of a long flow belong to its merges; cut it from its start, as in flow[:20]."
            )
        end = float(self.log_time[last - 1]) if last > 0 else -math.inf
        found = self.dataset.isel(time=at)
        for name, dim in (("merge_log_time", "merge"), ("stair_log_time", "step")):
            found = found.isel({dim: np.flatnonzero(found[name].values <= end)})
        return found


def solve_long(
    field: AbstractField | None = None,
    tokens: Tokens | None = None,
    until: float = math.inf,
    *,
    method: LongTime | None = None,
    observe: Observe | None = None,
    sink: AbstractSink | None = None,
    from_: LongFlow | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: Callable[[], bool] | None = None,
    check: bool = True,
) -> LongFlow:
    """Follow softmax or unnormalised attention with Q = K = V = I on a sphere to consensus, or to a time of any size.

    Frames are kept where the method chooses (see `LongTime`): at marks of log t, at the
    beginning of every plateau, and after each of the last merges. The arguments `observe`, `sink`, `on_progress`,
    `cancel` and `check` are those of `solve`; `from_` continues a flow that ended at a finite `until`, bit by bit as
    one call would have gone on.
    """
    control = Control(sink, on_progress, cancel, check)
    if from_ is not None:
        given = {"field": field, "tokens": tokens, "method": method, "observe": observe}
        field, tokens, method, observe, last = recipe_of(from_, LongFlow, "solve_long")
        control = go_on(from_, until, last, given, control)
    long: LongTime = instance("method", LongTime() if method is None else method, LongTime, "LongTime()")
    along: Any = instance("field", field, AbstractField, "a field such as Attention(2.0)")
    start: Any = instance("tokens", tokens, Tokens, "tokens, such as from_array(positions)")
    until = end_time(until, endless=True)
    along.check(start)
    long.check(along, start)
    if start.dims or isinstance(along.beta, Along):
        raise InvalidInput("solve_long follows one system; for a batch, `merge_times` gives all merges at once.")
    recipe = (along, start, long, observe, until)

    def result(driven: Driven) -> LongFlow:
        return LongFlow(driven.dataset, along, start.space, driven.outcome, driven.steps, driven.checkpoint, recipe)

    with full_precision():
        return drive(ClusterStepper(long, along, start, until), control, result, observe=observe)
