"""The reference: one page for each group of rooms, one entry for each public name.

Public are the names of `attnflow` itself (its stub) and those in the `__all__` of a room.
"""

import importlib
from collections.abc import Iterator

import attnflow

GROUPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "tokens": ("Tokens, spaces and text", ("tokens", "spaces", "axes", "text")),
    "fields": ("Fields", ("fields", "kernels", "masks", "weights", "norms", "encodings", "sums")),
    "flows": ("Flows", ("flows", "saving", "stopping", "noises", "step_rules", "layer_updates")),
    "layers": ("Decoders and random layers", ("decoders", "random_layers")),
    "observe": ("Observables and transport", ("observe", "transport")),
    "densities": ("Densities", ("meanfield",)),
    "theory": ("Theory", ("theory", "special", "references")),
    "stability": ("Stability and proofs", ("stability", "certify")),
    "control": ("Control and learning", ("control", "learn")),
    "probe": ("Trained networks", ("probe",)),
    "runs": ("Runs and sweeps", ("runs", "sweeps", "errors")),
    "figures": ("Figures", ("plots", "style")),
    "experiments": ("Experiments", ("experiments", "kit")),
}
"""File, title and rooms of every page."""


def rooms() -> dict[str, str]:
    """The public rooms and where they are; theory has rooms of its own."""
    return dict(attnflow._ROOMS)


def names(room: str) -> list[str]:
    """The public names of a room that are no rooms."""
    home = rooms()[room]
    module = importlib.import_module(home)
    inner = {name.rpartition(".")[2] for name in rooms().values() if name.startswith(f"{home}.")}
    return [name for name in module.__all__ if name not in inner and not _is_room(module, name)]


def _is_room(module: object, name: str) -> bool:
    return type(getattr(module, name)).__name__ == "module"


def entries(room: str) -> Iterator[tuple[str, str]]:
    """(name, dotted path) of everything public in a room and in the rooms within it."""
    home = rooms()[room]
    module = importlib.import_module(home)
    for name in sorted(names(room), key=_order):
        yield name, _path(getattr(module, name), f"{home}.{name}")
    for name in module.__all__:
        if _is_room(module, name) and f"{home}.{name}" not in rooms().values():
            inner = importlib.import_module(f"{home}.{name}")
            for one in getattr(inner, "__all__", ()):
                yield one, _path(getattr(inner, one), f"{home}.{name}.{one}")


def _path(found: object, public: str) -> str:
    """Where a function or class is defined, else where it is public: a module may have the name of a function in it."""
    name, module = getattr(found, "__qualname__", ""), getattr(found, "__module__", "") or ""
    return f"{module}.{name}" if name.isidentifier() and module.startswith("attnflow.") else public


def _order(name: str) -> tuple[int, str]:
    """Functions first, then classes, then those that others derive from."""
    return (2 if name.startswith("Abstract") else int(name[0].isupper())), name.lower()


def pages() -> dict[str, str]:
    """The text of every page of the reference."""
    known = rooms()
    left = set(known) - {room for _, some in GROUPS.values() for room in some}
    if left:
        raise SystemExit(f"these rooms are on no page of the reference: {', '.join(sorted(left))}")
    found = {}
    for file, (title, some) in GROUPS.items():
        parts = [f"# {title}\n"]
        for room in (room for room in some if room in known):
            module = importlib.import_module(known[room])
            first = (module.__doc__ or "").strip()
            parts.append(f"## `af.{room}` {{ #{room} }}\n\n{first}\n")
            parts += [f"::: {path}\n    options:\n      heading_level: 3\n" for _, path in entries(room)]
        found[file] = "\n".join(parts)
    rows = [f"| [{title}]({file}.md) | {_rooms(some)} |" for file, (title, some) in GROUPS.items()]
    found["index"] = "\n".join(["# Reference\n", "| page | rooms |", "|---|---|", *rows, ""])
    return found


def _rooms(some: tuple[str, ...]) -> str:
    return ", ".join(f"`af.{room}`" for room in some if room in rooms())
