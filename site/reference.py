"""The reference: one page for each group of rooms, one entry for each public name.

Public are the names of `attnflow` itself (its stub) and those in the `__all__` of a room. An entry has the docstring,
an example that the suite runs (site/examples, else a statement of a page or an experiment), and links to the pages and
experiments that use the name; a class that users do not write says what makes it, an abstract one what derives from it.
"""

import importlib
from collections.abc import Collection, Iterator
from itertools import chain
from textwrap import indent
from typing import Any

import attnflow
import examples
import kin
import uses
from tutorials import TUTORIALS

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
MOST = 8
"""Pages or experiments that an entry links to."""


def rooms() -> dict[str, str]:
    """The public rooms and where they are; theory has rooms of its own."""
    return dict(attnflow._ROOMS)


def entries(room: str) -> Iterator[tuple[str, str]]:
    """(name, dotted path) of everything public in a room and in the rooms within it."""
    return ((name, path) for name, path, _ in values(room))


def values(room: str) -> Iterator[tuple[str, str, Any]]:
    """The same with what the name stands for."""
    home = rooms()[room]
    module = importlib.import_module(home)
    known = set(rooms().values())
    for name in sorted((name for name in module.__all__ if not _is_room(module, name)), key=_order):
        yield name, uses.path(getattr(module, name), f"{home}.{name}"), getattr(module, name)
    for name in module.__all__:
        if _is_room(module, name) and f"{home}.{name}" not in known:
            inner = importlib.import_module(f"{home}.{name}")
            for one in getattr(inner, "__all__", ()):
                yield one, uses.path(getattr(inner, one), f"{home}.{name}.{one}"), getattr(inner, one)


def top() -> Iterator[tuple[str, str]]:
    """(name, dotted path) of what stands at the top, as in `af.solve`."""
    for home, names in attnflow._HOME.items():
        for name in names:
            yield name, uses.path(getattr(attnflow, name), f"{home}.{name}")


def alone() -> list[str]:
    """Paths of names at the top that belong to no room."""
    within = {path for room in rooms() for _, path in entries(room)}
    return [path for _, path in top() if path not in within]


def _is_room(module: object, name: str) -> bool:
    return type(getattr(module, name)).__name__ == "module"


def _order(name: str) -> tuple[int, str]:
    """Functions first, then classes, then those that others derive from."""
    return (2 if name.startswith("Abstract") else int(name[0].isupper())), name.lower()


def pages(only: Collection[str] = ()) -> dict[str, str]:
    """The text of every page of the reference; with `only`, of these pages."""
    known = rooms()
    if left := set(known) - set(chain.from_iterable(some for _, some in GROUPS.values())):
        raise SystemExit(f"these rooms are on no page of the reference: {', '.join(sorted(left))}")
    found = {}
    shown = {file: group for file, group in GROUPS.items() if not only or file in only}
    for file, (title, some) in shown.items():
        parts = [f"# {title}\n"]
        for room in some:
            first = (importlib.import_module(known[room]).__doc__ or "").strip()
            parts.append(f"## `af.{room}` {{ #{room} }}\n\n{first}\n")
            parts += [entry(path) for path in dict.fromkeys(path for _, path in entries(room))]
        found[file] = "\n".join(parts)
    rows = [f"| [{title}]({file}.md) | {_rooms(some)} |" for file, (title, some) in shown.items()]
    own = {path for file in shown for room in GROUPS[file][1] for _, path in entries(room)} | set(alone())
    names = [f"[`af.{name}`][{path}]" for name, path in sorted(top()) if path in own]
    found["index"] = "\n".join(
        [
            "# Reference\n",
            "Every public name, from its docstring. Names of a room are written `af.ROOM.NAME`.\n",
            "| page | rooms |\n|---|---|",
            *rows,
            "\n## At the top\n",
            f"`import attnflow as af` gives all rooms, `af.__version__`, and {', '.join(names)}.\n",
            *(entry(path) for path in alone()),
        ]
    )
    return found


def entry(path: str) -> str:
    """One name: its docstring, an example that the suite runs, and who uses it."""
    parts = [f"::: {path}\n    options:\n      heading_level: 3\n"]
    used = uses.everywhere().get(path, uses.Uses())
    if (own := examples.known().get(path)) is not None:
        parts.append(f'???+ example "Example"\n\n{indent(_code(own, "pycon"), "    ")}\n')
    elif (example := used.example()) is not None:
        page, text = example
        parts.append(f'??? example "Example, from {_from(page)}"\n\n{indent(_code(text), "    ")}\n')
    parts += [f"{words} {_named(some)}.\n{{ .used }}\n" for words, some in kindred(path).items() if some]
    links = [f"[{page.removesuffix('.md')}](../{_page(page)})" for page in sorted(used.statements)][:MOST]
    links += [f"[{name}](../gallery/{name}.md)" for name in sorted(used.experiments)][:MOST]
    if links:
        parts.append(f"Used in {', '.join(links)}.\n{{ .used }}\n")
    return "\n".join(parts)


def _from(where: str) -> str:
    if where.endswith(".py"):
        return f"the script {where.removeprefix('tutorials/')}"
    return f"the page {where}" if where.endswith(".md") else f"the experiment {where}"


def _page(name: str) -> str:
    """The page that shows a file: itself, or the tutorial of a script."""
    script = name.removeprefix("tutorials/")
    return next((f"tutorials/{one}.md" for one, (_, files) in TUTORIALS.items() if script in files), name)


def kindred(path: str) -> dict[str, list[str]]:
    """How a user comes to a class that an example of its own does not show."""
    if path in examples.known():
        return {}
    if path.rpartition(".")[2].startswith("Abstract"):
        return {"Derived from it:": kin.derived(path)}
    return {"You get one from": kin.made_by(path)}


def _named(some: list[str]) -> str:
    return ", ".join(f"[`{path.rpartition('.')[2]}`][{path}]" for path in some[:MOST])


def _code(text: str, language: str = "python") -> str:
    return f"```{language}\n{text}\n```"


def _rooms(some: tuple[str, ...]) -> str:
    return ", ".join(f"`af.{room}`" for room in some)
