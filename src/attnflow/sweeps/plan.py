"""The plan of a sweep: what is repeated, along which axes, and which tasks are carried out together.

The folder of a sweep has a file `sweep.json`, made once by one process. A sweep that is extended gets `sweep-2.json`
and so on, each with the axes that it then has and with the tasks that are new. Which tasks form a unit (a shard, done
by one process in one piece) is fixed there, so that results do not depend on who carries out what, and when.
"""

import dataclasses
import fnmatch
import functools
import hashlib
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attnflow.axes import GROUP
from attnflow.errors import AttnflowError, RunCorrupted, RunError, RunExists
from attnflow.folders import Folder, is_temporary
from attnflow.runs.earlier import LAST_SWEEPS
from attnflow.runs.environment import versions
from attnflow.sweeps.ranges import Axis, Point, checked, told_apart
from attnflow.sweeps.ranges import points as points_of
from attnflow.sweeps.sealed import LARGEST, sealed, unsealed
from attnflow.sweeps.shards import patiently
from attnflow.sweeps.source import TOGETHER, AbstractSource
from attnflow.wording import shown

FORMAT = 2
"""Of the folder: from 2 on `n` of clustered tokens counts all of them."""
WIDEST = 64
"""Tasks that are done side by side, at most."""
NUMERICS = ("attnflow", "jax", "jaxlib", "diffrax", "equinox", "numpy", "scipy")
"""The packages whose versions decide the bits of a result."""
FOLDERS = ("shards", "claims", "journal")


def numerics() -> dict[str, str]:
    """The versions that results depend on."""
    found = versions()
    return {name: found[name] for name in NUMERICS}


@dataclasses.dataclass(frozen=True)
class Unit:
    """Tasks that are carried out together and share a shard."""

    points: tuple[int, ...]
    """Numbers of the points in the product of the axes of their generation, the last axis fastest."""
    names: tuple[str, ...]
    """Names of the tasks: hashes of what is done, of the numerics and of the width."""
    width: int

    @functools.cached_property
    def name(self) -> str:
        """What its shard and its claim are called."""
        return hashlib.sha256(json.dumps([self.points, self.names]).encode()).hexdigest()[:32]


@dataclasses.dataclass(frozen=True)
class Generation:
    """The axes of a sweep at one time, and the tasks that were new then."""

    axes: tuple[Axis, ...]
    units: tuple[Unit, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Values along each axis."""
        return tuple(map(len, self.axes))

    def point(self, number: int) -> Point:
        """The point of a number."""
        places = np.unravel_index(number, self.shape)
        return {
            key: value
            for axis, place in zip(self.axes, places, strict=True)
            for key, value in zip(axis.keys, axis.values[int(place)], strict=True)
        }


@dataclasses.dataclass(frozen=True)
class Plan:
    """Everything that is fixed about a sweep."""

    source: dict[str, Any]
    numerics: dict[str, str]
    width: int
    """Tasks that are done side by side, at most."""
    together: int
    """Other tasks that share a shard, at most."""
    pairs: int
    """Pairs of tokens that a group may have, at most; 0: any number."""
    generations: tuple[Generation, ...]
    format: int = FORMAT
    """The format of the folder in which it was made."""

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes as they are now."""
        return self.generations[-1].axes

    @functools.cached_property
    def units(self) -> dict[str, tuple[int, Unit]]:
        """All units by name, with the numbers of their generations."""
        return {unit.name: (k, unit) for k, g in enumerate(self.generations) for unit in g.units}

    @property
    def count(self) -> int:
        """Tasks of all generations."""
        return sum(len(unit.names) for g in self.generations for unit in g.units)

    @functools.cached_property
    def places(self) -> list[list[np.ndarray]]:
        """For each generation and axis, where the values of that time are now."""
        now = [{told_apart(value): k for k, value in enumerate(axis.values)} for axis in self.axes]
        return [
            [np.array([there[told_apart(v)] for v in axis.values]) for there, axis in zip(now, g.axes, strict=True)]
            for g in self.generations
        ]

    def points(self, name: str) -> list[Point]:
        """The points of a unit."""
        generation, unit = self.units[name]
        return [self.generations[generation].point(number) for number in unit.points]

    def numbers(self, name: str) -> np.ndarray:
        """Where the tasks of a unit are now, in the product of all axes."""
        generation, unit = self.units[name]
        where = np.unravel_index(np.asarray(unit.points), self.generations[generation].shape)
        now = [place[index] for place, index in zip(self.places[generation], where, strict=True)]
        return np.ravel_multi_index(now, tuple(map(len, self.axes)))


def read_plan(folder: Path) -> Plan:
    """The plan of a sweep folder."""
    entries = Folder(folder)
    tables: list[dict[str, Any]] = []
    try:
        while True:
            try:
                content = entries.read(plan_file(len(tables) + 1), LARGEST)
            except FileNotFoundError:
                if tables:
                    break
                raise
            tables.append(unsealed(plan_file(len(tables) + 1), content, required=False))
        first = tables[0]
        if first["format"] not in (LAST_SWEEPS, FORMAT):
            raise RunError(f"{str(folder)!r} is a sweep of format {shown(first['format'])}; use another attnflow.")
        generations = tuple(
            Generation(
                checked(map(Axis.from_json, table["axes"])),
                tuple(Unit(tuple(u["points"]), tuple(u["names"]), int(u["width"])) for u in table["units"]),
            )
            for table in tables
        )
        width, together, pairs = (int(first[key]) for key in ("width", "together", "pairs"))
        plan = Plan(first["source"], first["numerics"], width, together, pairs, generations, first["format"])
        _consistent(plan)
    except FileNotFoundError:
        raise RunError(f"{str(folder)!r} is no sweep: it has no sweep.json; give the folder of a sweep.") from None
    except RunError:
        raise
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, AttnflowError) as error:
        raise RunCorrupted(f"the plan in {str(folder)!r} cannot be read ({shown(str(error))}).") from None
    shards = {name.removesuffix(".npz") for name in entries.entries("shards") if fnmatch.fnmatch(name, "[!.]*.npz")}
    if unnamed := sorted(shards - plan.units.keys()):
        if entries.is_file(plan_file(len(tables) + 1)):  # another process has extended the sweep since
            return read_plan(folder)
        raise RunCorrupted(
            f"no plan in {str(folder)!r} names the shard {f'{unnamed[0]}.npz'!r}: {plan_file(len(tables) + 1)!r} is "
            "missing or a file was added; put back what is missing, or remove the shard."
        )
    return plan


def plan_file(number: int) -> str:
    """The name of the file with the plan of a generation, counted from 1."""
    return "sweep.json" if number == 1 else f"sweep-{number}.json"


def _consistent(plan: Plan) -> None:
    """Refuse a plan whose names could lead out of its folder, or whose points do not exist."""
    source = plan.source
    if (
        source["kind"] not in TOGETHER
        or not isinstance(source.get("text", ""), str)
        or not isinstance(plan.numerics, dict)
    ):
        raise ValueError("its source is of no kind that there is")
    if sum(len(generation.units) for generation in plan.generations) != len(plan.units):
        raise ValueError("a unit is named twice")
    for generation in plan.generations:
        most = math.prod(generation.shape)
        for unit in generation.units:
            good = len(unit.points) == len(unit.names) > 0 and unit.width >= 1
            if not good or not all(0 <= p < most for p in unit.points):
                raise ValueError("a unit names points that do not exist")
            if not all(isinstance(n, str) and len(n) == 32 and set(n) <= set("0123456789abcdef") for n in unit.names):
                raise ValueError("a task has a name that is no hash")
    plan.places  # noqa: B018 (refuses values that are nowhere)


def arrange(
    source: AbstractSource,
    axes: Sequence[Axis],
    *,
    before: Plan | None = None,
    width: int | None = None,
    workers: int = 1,
    on_progress: Callable[[int, int], None] | None = None,
) -> Plan:
    """Resolve and check all points that are new, and arrange them in units; nothing is written."""
    source.check_axes(axes)
    known = set() if before is None else {_key(p) for g in before.generations for p in points_of(g.axes)}
    total = math.prod(map(len, axes))
    examined = []
    for number, point in enumerate(points_of(axes)):
        if _key(point) in known:
            continue
        examined.append((number, source.examine(point)))
        if on_progress is not None:
            on_progress(number + 1, total)
    if before is None:
        shapes: dict[str, int] = {}
        for _, one in examined:
            if one.shape is not None:
                shapes[one.shape] = shapes.get(one.shape, 0) + 1
        largest = max(shapes.values(), default=WIDEST)
        widest = width or min(WIDEST, _power(largest / (2 * workers)))
        together = int(np.clip(total // (4 * workers), 1, TOGETHER[source.kind]))
        before = Plan(source.facts(), numerics(), widest, together, 0 if width else GROUP[True], ())
    units = []
    groups: dict[str | None, list[Any]] = {}
    for found in examined:
        groups.setdefault(found[1].shape, []).append(found)
    for shape, members in groups.items():
        bound = _power(before.pairs / members[0][1].pairs) if shape and before.pairs else before.width
        own = min(before.width, bound)
        size = own if shape else before.together
        for first in range(0, len(members), size):
            some = members[first : first + size]
            names = tuple(_named(one.identity, before.numerics, own) for _, one in some)
            units.append(Unit(tuple(number for number, _ in some), names, own))
    return dataclasses.replace(before, generations=(*before.generations, Generation(tuple(axes), tuple(units))))


def _key(point: Point) -> str:
    return told_apart(list(point.values()))


def _power(number: float) -> int:
    """The largest power of two that is at most `number`, at least 1."""
    return 1 << max(0, math.floor(math.log2(max(number, 1))))


def _named(identity: str, made_with: dict[str, str], width: int) -> str:
    return hashlib.sha256(json.dumps([identity, made_with, width], sort_keys=True).encode()).hexdigest()[:32]


def write_plan(folder: Path, plan: Plan) -> None:
    """Write the newest generation; refused where another process was first."""
    number, newest = len(plan.generations), plan.generations[-1]
    table = {
        "format": FORMAT,
        "source": plan.source,
        "numerics": plan.numerics,
        "width": plan.width,
        "together": plan.together,
        "pairs": plan.pairs,
        "axes": [axis.to_json() for axis in newest.axes],
        "units": [{"points": u.points, "names": u.names, "width": u.width} for u in newest.units],
    }
    content = sealed(plan_file(number), table)
    make_folders(folder)
    if not patiently(lambda: Folder(folder).create(plan_file(number), content), folder):
        file = str(folder / plan_file(number))
        raise RunExists(f"another process has made {file!r} at the same time; start the sweep again to join it.")


def make_folders(folder: Path) -> None:
    """Make the folders inside of a sweep folder; those that are there stay, and links are refused."""
    for name in FOLDERS:
        Folder(folder).make(name)


def is_of_a_sweep(path: Path) -> bool:
    """Whether a file may be what `write_plan` leaves before the plan is there, here or in another process."""
    earlier = path.name.startswith((".sweep.json", "..sweep.json"))
    return path.name in (*FOLDERS, "sweep.json") or is_temporary(path.name) or earlier


def same_sweep(plan: Plan, source: AbstractSource, axes: Sequence[Axis], folder: Path) -> bool:
    """Whether the folder has the sweep with these axes; False if they extend it. Anything else is refused."""
    facts, where = _told(source.facts()), str(folder)
    if facts != (there := _told(plan.source)):
        part = next((key for key in facts if facts[key] != there.get(key)), "kind")
        raise RunError(f"{where!r} holds another sweep (its {part} differs); choose another folder.")
    same_numerics(plan, where)
    old, new = [axis.keys for axis in plan.axes], [axis.keys for axis in axes]
    if old != new:
        raise RunError(
            f"{where!r} holds a sweep over {_keys(old)}, and here it is over {_keys(new)}; choose another folder."
        )
    same = True
    for then, now in zip(plan.axes, axes, strict=True):
        have = {told_apart(value) for value in now.values}
        if gone := [value for value in then.values if told_apart(value) not in have]:
            raise RunError(
                f"the axis {then.dim!r} of the sweep in {where!r} has the value {shown(gone[0][0])}, which is left out "
                "here; an axis may get more values, but keeps those that it has."
            )
        same = same and len(now) == len(then)
    return same


def same_numerics(plan: Plan, where: str) -> None:
    """Refuse other versions of the numerics than those that the sweep was begun with."""
    here = numerics()
    if here != plan.numerics:
        name = next(name for name in here if here[name] != plan.numerics.get(name))
        raise RunError(
            f"the sweep in {where!r} was begun with {name} {plan.numerics.get(name)}, and here is {here[name]}; "
            "use that version, or choose another folder."
        )


def _told(facts: dict[str, Any]) -> dict[str, Any]:
    """What tells one source from another: of plugins their content, wherever they are."""
    return facts | {"plugins": sorted(row["sha256"] for row in facts.get("plugins", []))}


def _keys(axes: Sequence[tuple[str, ...]]) -> str:
    return " × ".join("+".join(keys) for keys in axes)
