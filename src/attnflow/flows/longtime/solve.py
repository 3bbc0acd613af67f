"""`solve_long`: through plateaus of any length to consensus."""

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from attnflow.axes import Along
from attnflow.checks import end_time, instance
from attnflow.errors import InvalidInput
from attnflow.fields import AbstractField
from attnflow.flows.driver import Control, Drive
from attnflow.flows.longtime.method import LongTime
from attnflow.flows.longtime.stepper import ClusterStepper
from attnflow.flows.longtime.tree import Tree
from attnflow.flows.observables import Observe
from attnflow.flows.outcome import Progress
from attnflow.flows.sink import AbstractSink
from attnflow.flows.trajectory import AbstractTrajectory
from attnflow.flows.work import AbstractWork, Driven
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


@dataclasses.dataclass(frozen=True)
class SolveLong(AbstractWork):
    """Clusters that merge: the work of `solve_long`, whose arguments its fields are."""

    field: AbstractField
    tokens: Tokens
    until: float = math.inf
    method: LongTime | None = LongTime()
    observe: Observe | None = dataclasses.field(default_factory=dict)

    def checked(self) -> Self:
        method = instance("method", LongTime() if self.method is None else self.method, LongTime, "LongTime()")
        field: Any = instance("field", self.field, AbstractField, "a field such as Attention(2.0)")
        tokens = instance("tokens", self.tokens, Tokens, "tokens, such as from_array(positions)")
        until = end_time(self.until, endless=True)
        field.check(tokens)
        method.check(field, tokens)
        if tokens.dims or isinstance(field.beta, Along):
            raise InvalidInput("solve_long follows one system; for a batch, `merge_times` gives all merges at once.")
        return dataclasses.replace(self, until=until, method=method, observe=dict(self.observe or {}))

    def stepper(self) -> ClusterStepper:
        return ClusterStepper(self.method, self.field, self.tokens, self.until)  # type: ignore[arg-type]

    def result(self, driven: Driven) -> LongFlow:
        space: Any = None if self.tokens is None else self.tokens.space
        return LongFlow(driven.dataset, self.field, space, driven.outcome, driven.steps, driven.checkpoint, self)


def solve_long(
    field: AbstractField,
    tokens: Tokens,
    until: float = math.inf,
    *,
    method: LongTime | None = None,
    observe: Observe | None = None,
    sink: AbstractSink | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: Callable[[], bool] | None = None,
    check: bool = True,
) -> LongFlow:
    """Follow softmax or unnormalised attention with Q = K = V = I on a sphere to consensus, or to a time of any size.

    Frames are kept where the method chooses (see `LongTime`): at marks of log t, at the
    beginning of every plateau, and after each of the last merges. The arguments `observe`, `sink`, `on_progress`,
    `cancel` and `check` are those of `solve`; `flow.continued(until)` continues a flow that ended at a finite `until`,
    bit by bit as one call would have gone on.
    """
    work = SolveLong(field, tokens, until, method, observe)
    found: LongFlow = Drive(work.checked()).run(Control(sink, on_progress, cancel, check))
    return found
