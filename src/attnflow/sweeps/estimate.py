"""What a sweep will take: time, memory and disk, from one group that is carried out twice and thrown away."""

import dataclasses
import time
from collections.abc import Sequence

from attnflow.sweeps.plan import Plan, arrange
from attnflow.sweeps.ranges import Axis
from attnflow.sweeps.shards import pack
from attnflow.sweeps.source import AbstractSource

LONG = 20.0
"""Seconds after which the group is not carried out a second time."""


@dataclasses.dataclass(frozen=True)
class Estimate:
    """What a sweep is made of, and what it will take."""

    tasks: int
    units: int
    width: int
    seconds: float
    """For all of it with one process; compiling counts once for each shape."""
    pilot: int
    """Tasks of the group that was measured."""
    memory: int
    """Bytes that one process had at most while it did the group, 0 where that is not known."""
    disk: int
    """Bytes of all shards."""


def estimate(source: AbstractSource, axes: Sequence[Axis], *, width: int | None = None, workers: int = 1) -> Estimate:
    """Plan the sweep and measure its largest group; nothing is written."""
    plan = arrange(source, axes, width=width, workers=workers)
    generation, unit = max(plan.units.values(), key=lambda found: len(found[1].names))
    points = [plan.generations[generation].point(number) for number in unit.points]
    began = time.perf_counter()
    rows = source.rows(points, unit.width)
    first = second = time.perf_counter() - began
    if first < LONG:
        began = time.perf_counter()
        source.rows(points, unit.width)
        second = min(first, time.perf_counter() - began)
    shapes = len({(found.width, len(found.names)) for _, found in plan.units.values()})
    seconds = len(plan.units) * second + shapes * (first - second)
    size = len(pack(unit.names, rows)) * plan.count // len(unit.names)
    return Estimate(plan.count, len(plan.units), widest(plan), seconds, len(points), _peak(), size)


def widest(plan: Plan) -> int:
    """Tasks of the largest group."""
    return max(len(unit.names) for _, unit in plan.units.values())


def _peak() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return 0
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
