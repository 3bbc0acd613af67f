"""`attnflow kinds`."""

import dataclasses
import json
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from attnflow import errors
from attnflow.cli.console import Json, Plugin


def kinds(
    name: Annotated[str | None, typer.Argument(help="Describe this kind of work.", metavar="KIND")] = None,
    plugin: Plugin = None,
    json_: Json = False,
) -> None:
    """List the kinds of work that a specification can ask for, or the tables and keys of one of them."""
    from attnflow.cli.tables import out
    from attnflow.runs.kinds import entries
    from attnflow.runs.nearest import did_you_mean
    from attnflow.runs.plugins import load, words

    with load(plugin or ()).active():
        known: dict[str, Any] = words("kind")
        if name is not None and name not in known:
            raise errors.InvalidInput(f"`KIND` is {name!r}{did_you_mean(name, known)}")
        chosen = known if name is None else {name: known[name]}
        about = {one: (kind.__doc__ or "").strip().splitlines()[0] for one, kind in chosen.items()}
        if json_:
            fields = {one: [dataclasses.asdict(entry) for entry in entries(kind)] for one, kind in chosen.items()}
            print(json.dumps({one: {"about": about[one], "fields": fields[one]} for one in chosen}, indent=2))
        elif name is None:
            for one, text in about.items():
                out.print(f"[bold]{escape(one)}[/bold]  {escape(text)}", soft_wrap=True)
        else:
            out.print(escape(about[name]), soft_wrap=True)
            table = Table("in the specification", "is", "default")
            for entry in entries(known[name]):
                where = f"[{entry.name}]" if entry.apart else f"{name}.{entry.name}"
                what = f"one of {', '.join(words(entry.part))}" if entry.part else "a value"
                default = "needed" if entry.needed else "" if entry.default is None else json.dumps(entry.default)
                table.add_row(escape(where), escape(what), escape(default))
            out.print(table)
