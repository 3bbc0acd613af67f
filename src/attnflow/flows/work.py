"""Work: one long job as a value, from its description to its result."""

import abc
import dataclasses
from collections.abc import Collection, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from attnflow.checks import end_time, whole
from attnflow.errors import InvalidInput
from attnflow.flows.outcome import Outcome
from attnflow.flows.saving import At, Save, continued, saved_times
from attnflow.flows.sink import Checkpoint
from attnflow.flows.stepper import AbstractStepper


@dataclasses.dataclass(frozen=True)
class Driven:
    """What the driver leaves, in memory or in a run folder."""

    dataset: Any
    outcome: Outcome
    steps: dict[str, int]
    """Counts of steps, by kind."""
    checkpoint: Checkpoint | None = None
    """From where longer work goes on; None where it was read from a folder, which keeps its own."""


class AbstractWork(abc.ABC):
    """One long job as a frozen dataclass: what it needs, how it is checked, carried out, read back and continued.

    The fields of the class are the keys of its table in a specification and the parameters of a sweep. A part without a
    default (a field, tokens, a density) has a table of its own; fields called `observe`, `keep` and `stop` are for the
    driver. `Drive(work.checked()).run()` carries work out; `attnflow.runs` does it in a folder.

    A file outside the package adds a kind of work with `@af.register("kind", "name")` above the class; see
    docs/add/kind.md.
    """

    rows: ClassVar[str] = "time"
    """The dimension of the rows that are saved."""
    end: ClassVar[str | None] = "until"
    """The field that says how far the work goes; None: it cannot be continued."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Work is pickled as its class and fields; of plugins that they use, the texts go with it."""
        import attnflow

        found: tuple[Any, ...] = attnflow.runs.packed(self)
        return found

    @abc.abstractmethod
    def checked(self) -> Self:
        """The same work with every default filled in, sums chosen and all that cannot work refused; made once."""

    @abc.abstractmethod
    def stepper(self) -> AbstractStepper:
        """What the driver moves; called on checked work."""

    @abc.abstractmethod
    def result(self, driven: Driven) -> Any:
        """The result: the same call for arrays in memory and for those of a run folder.

        In a folder that is opened without its plugins, fields that only they can make are None.
        """

    def longer(self, until: Any, save: Save | None = None, *, same: bool = False) -> Self:
        """The same work to a later end. With `same` the end may be the one that it has."""
        if self.end is None:
            raise InvalidInput(f"{type(self).__name__} has no end that could be later; start new work.")
        last = getattr(self, self.end)
        if isinstance(last, int):
            until = whole(self.end, int(until) if isinstance(until, float) and until.is_integer() else until, 1)
        else:
            until = end_time(until, endless=True)
        if until < last or (until == last and not same):
            raise InvalidInput(f"`{self.end}` is {until:g}, but the work goes to {last:g} already; give a later one.")
        changes: dict[str, Any] = {self.end: until}
        if hasattr(self, "save"):
            changes["save"] = At(continued(self.times, save, float(until), self.layer_step)[1:])
        return dataclasses.replace(self, **changes)  # type: ignore[type-var]

    def shape(self) -> str | None:
        """What checked works must have in common to be done side by side: a hash of all but their numbers.

        None: works of this kind are carried out one after the other.
        """
        return None

    @classmethod
    def joined(cls, works: "Sequence[Self]") -> "AbstractWork":
        """Checked work that does all `works`, which have one shape, side by side; its result is a list of theirs.

        Every member goes on to its own end, so that its result does not depend on the others.
        """
        raise InvalidInput(f"works of the kind {cls.__name__} are carried out one after the other; drive each of them.")

    @classmethod
    def defaults(cls, given: Collection[str]) -> dict[str, Any]:
        """The values of fields that are left out where `given` are not; a specification writes them out."""
        found = {}
        for field in dataclasses.fields(cls):  # type: ignore[arg-type]
            if field.default is not dataclasses.MISSING:
                found[field.name] = field.default
            elif field.default_factory is not dataclasses.MISSING:
                found[field.name] = field.default_factory()
        return found

    def account(self, result: Any) -> Any:
        """An `attnflow.plots.Account`: figures with captions, and numbers.

        By default those of the type of `result`, or what was observed.
        """
        import attnflow

        return attnflow.plots.account(result)

    @property
    def layer_step(self) -> float | None:
        """The step of layers, to whose multiples saved times are rounded; None without layers."""
        method = getattr(self, "method", None)
        return None if method is None else getattr(method, "layer_step", None)

    @property
    def times(self) -> np.ndarray:
        """The times of all frames, where the work has a field `save`."""
        return saved_times(self.save, float(getattr(self, str(self.end))), self.layer_step)  # type: ignore[attr-defined]
