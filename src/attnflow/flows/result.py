"""The result of work: arrays, outcome, and how to go on."""

import abc
import dataclasses
from collections.abc import Callable
from typing import Any, Self

from attnflow.describe import brief, html_table
from attnflow.errors import InvalidInput
from attnflow.flows.driver import Control, Drive
from attnflow.flows.outcome import Ending, Outcome, Progress
from attnflow.flows.saving import Save
from attnflow.flows.sink import InMemory


class AbstractResult(abc.ABC):
    """What work leaves: labelled arrays, how the work ended, counts of steps, and the work itself."""

    dataset: Any
    """An xarray Dataset."""
    outcome: Outcome
    steps: Any
    """Counts of steps, by kind."""
    checkpoint: Any
    """From where `continued` goes on; None where that is not known."""
    work: Any
    """The work that was done, checked; None for a part of a result."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}: {value}' for key, value in self._facts().items())})"

    def _repr_html_(self) -> str:
        return html_table(type(self).__name__, self._facts(), *self._sketches())

    def _sketches(self) -> list[str]:
        """Small pictures of the result, for notebooks."""
        return []

    def _facts(self) -> dict[str, str]:
        """What the result is, in a few words."""
        field = getattr(self, "field", None)
        return {
            "sizes": ", ".join(f"{name} {size}" for name, size in self.dataset.sizes.items()),
            **({} if field is None else {"field": brief(field)}),
            "outcome": self.outcome.message,
            "saved": " ".join(str(name) for name in self.dataset.data_vars),
        }

    def plot(self, *, figsize: tuple[float, float] | None = None, style: Any = None) -> Any:
        """The result in one Matplotlib Figure: `attnflow.plot(result)`."""
        import attnflow

        return attnflow.plot(self, figsize=figsize, style=style)

    def continued(
        self,
        until: float | None = None,
        *,
        save: Save | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        cancel: Callable[[], bool] | None = None,
        check: bool = True,
    ) -> Self:
        """The same work to a later `until`, bit by bit as one call with all save times would have made it.

        An interrupted result goes on to its own end by `continued()`. `save` is about the new part: a number of equal
        intervals, or later times; left out, the spacing of the last two frames stays. A run folder is continued with
        `attnflow extend RUN`.
        """
        if self.work is None or self.checkpoint is None:
            raise InvalidInput("this result does not know how it was made; extend a run folder with `attnflow extend`.")
        if self.outcome.ending in (Ending.STOPPED, Ending.FAILED, Ending.FROZEN):
            raise InvalidInput(
                f"this flow has ended: {self.outcome.message.removesuffix('.')}; it does not go on from there."
            )
        longer = self.work
        if until is not None or self.outcome.ending is not Ending.INTERRUPTED:
            longer = self.work.longer(until, save, same=self.outcome.ending is Ending.INTERRUPTED).checked()
        if self.checkpoint.state is None:  # interrupted before it began
            sink = InMemory()
        else:
            saved = dataclasses.replace(self.checkpoint, committed=self.checkpoint.rows, outcome=None)
            sink = InMemory(self.dataset, saved)
        found: Self = Drive(longer).run(Control(sink, on_progress, cancel, check))
        return found

    def account(self) -> Any:
        """An `attnflow.plots.Account`, figures with captions, and numbers: what a report shows of this result."""
        import attnflow

        return attnflow.plots.account(self) if self.work is None else self.work.account(self)
