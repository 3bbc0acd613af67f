"""Works of one shape side by side: one compiled program for a group of a fixed width."""

from collections.abc import Callable, Sequence
from typing import Any

from attnflow.flows import AbstractWork, Control, Drive, Ending
from attnflow.sweeps.rows import Row, failed, row_of

Cancel = Callable[[], bool] | None


def rows_of_works(works: Sequence[AbstractWork], width: int, cancel: Cancel = None) -> list[Row]:
    """The rows of checked works, in their order. Those of one shape are done side by side, `width` at a time."""
    found: dict[int, Row] = {}
    groups: dict[str, list[int]] = {}
    for k, work in enumerate(works):
        shape = work.shape()
        if shape is None:
            found[k] = _one(work, cancel)
        else:
            groups.setdefault(shape, []).append(k)
    for members in groups.values():
        for first in range(0, len(members), width):
            some = members[first : first + width]
            found |= dict(zip(some, side_by_side([works[k] for k in some], width, cancel), strict=True))
    return [found[k] for k in range(len(works))]


def side_by_side(works: Sequence[AbstractWork], width: int, cancel: Cancel = None) -> list[Row]:
    """The rows of at most `width` works of one shape, as one batch of `width` members.

    Places that are left over hold copies of the last work, which are dropped. If the batch fails, each work is done
    with copies of itself in all places and read off its own place, so that its numbers stay the same.
    """
    absent = [works[-1]] * (width - len(works))
    try:
        drive = Drive(type(works[0]).joined([*works, *absent]))
    except Exception:  # parts that do not stand side by side; alone each says what is wrong with it
        return [_one(work, cancel) for work in works]
    try:
        return [row_of(one) for one in _driven(drive, cancel)[: len(works)]]
    except Exception as error:
        if len(works) == 1 and width == 1:
            return [failed(error)]
    return [_alone(work, place, width, cancel) for place, work in enumerate(works)]


def _alone(work: AbstractWork, place: int, width: int, cancel: Cancel) -> Row:
    try:
        return row_of(_driven(Drive(type(work).joined([work] * width)), cancel)[place])
    except Exception as error:
        return failed(error)


def _one(work: AbstractWork, cancel: Cancel) -> Row:
    try:
        return row_of(_driven(Drive(work), cancel))
    except Exception as error:
        return failed(error)


def _driven(drive: Drive, cancel: Cancel) -> Any:
    """The result of work, silently; an interruption is raised."""
    result = drive.run(Control(on_progress=lambda _: None, cancel=cancel))
    first = result[0] if isinstance(result, list) else result
    if first.outcome.ending is Ending.INTERRUPTED:
        raise KeyboardInterrupt
    return result
