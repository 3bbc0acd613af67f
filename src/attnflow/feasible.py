"""Work that this machine cannot do is refused before it starts, with an estimate of the memory or the time it needs.

Estimates are low, and assume that the work goes to its end: a stop condition might end it long before.
`ATTNFLOW_LIMITS=off` in the environment lifts the limits of memory, dimension and steps.
"""

import contextlib
import functools
import math
import os
from pathlib import Path
from typing import Any

from attnflow.checks import shown, whole
from attnflow.errors import TooLarge

MOST_STEPS = 10**11
"""Steps of a flow; a small system makes about STEPS_PER_SECOND of them."""
STEPS_PER_SECOND = 1e5
LONGEST_CLOCK = 2.0**53
"""A time beyond which t + 1 is no other time; at STEPS_PER_SECOND it is 2,900 years away."""
LARGEST_DIM = 1 << 20
"""Coordinates of a token."""
LARGEST_TABLE = 8192
"""Tokens of which a matrix with an entry for every pair is taken, or given back."""
LARGEST_MATRIX = 6000
"""Rows of a Jacobian or Hessian that is made as a matrix."""
_CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def limited() -> bool:
    """Whether the limits hold."""
    return os.environ.get("ATTNFLOW_LIMITS") != "off"


@functools.cache
def machine_memory() -> float:
    """Bytes of memory that a process of this machine, or of its container, can have; inf where that is not known.

    Swap counts; a container may have less of it.
    """
    found = [math.inf]
    with contextlib.suppress(OSError, ValueError, AttributeError):
        found.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") + _swap())
    for name in _CGROUPS:
        with contextlib.suppress(OSError, ValueError):  # "max" is no number
            found.append(int(Path(name).read_text()) + _swap())
    return min(found)


def _swap() -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("SwapTotal"))
    return 0


def require_memory(needed: int, what: str, fix: str) -> None:
    """Refuse `what`, arrays of `needed` bytes, if the machine cannot hold them; `fix` says what to do instead."""
    have = machine_memory()
    if needed > have and limited():
        raise TooLarge(f"{what} would take {size(needed)} of memory, and this machine has {size(have)}; {fix}.")


def length(name: str, value: Any, least: int, each: int = 1) -> int:
    """`value` as an int, if it is an integer of at least `least` and arrays of so many entries fit the memory.

    `each` is the number of floats of one entry.
    """
    found = whole(name, value, least, largest=1 << 2048)
    require_memory(8 * found * each, f"`{name}` is {shown(found)}, which", f"give a smaller `{name}`")
    return found


def require_steps(count: float, what: str, fix: str) -> None:
    """Refuse `count` steps of `what` where they would take hours even at the pace of the smallest systems."""
    if count > MOST_STEPS and limited():
        raise TooLarge(
            f"{what} needs {count:.3g} steps, which take at least {span(count / STEPS_PER_SECOND)} at "
            f"{STEPS_PER_SECOND:,.0f} steps a second; {fix}."
        )


def require_clock(until: float) -> float:
    """`until`, if a clock in float64 gets there by steps of length 1, the time in which tokens cross their space."""
    if until > LONGEST_CLOCK and limited():
        raise TooLarge(
            f"`until` is {until:g}, and a clock in float64 counts steps of length 1 up to {LONGEST_CLOCK:.0e} only; "
            "give an earlier time, or use solve_long, which follows tokens in log t."
        )
    return until


def size(number: float) -> str:
    """Bytes, as people read them."""
    if number < 2**30:
        return f"{number / 2**20:.3g} MiB"
    gib = min(number, 10**300) / 2**30  # an integer may be too large for a float
    return f"{gib:.3g} GiB" if number <= 10**300 else f"more than {gib:.0e} GiB"


def span(seconds: float) -> str:
    """A time, as people read it."""
    for unit, of, enough in (("s", 1, 120), ("minutes", 60, 120), ("hours", 3600, 72), ("days", 86400, 730)):
        if seconds < enough * of:
            return f"{seconds / of:.0f} {unit}"
    return f"{seconds / 31557600:.3g} years"
