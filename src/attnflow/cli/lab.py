"""`attnflow lab`: the page on which tokens flow."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from attnflow.cli.console import say
from attnflow.folders import write_file
from attnflow.wording import fresh_path


def lab(
    run: Annotated[
        Path | None,
        typer.Argument(
            help="A run folder or a sweep, a folder of such, or a stream of a network (.npz, .safetensors).",
            metavar="RUN",
        ),
    ] = None,
    export: Annotated[
        Path | None, typer.Option(help="Write the page as one file and leave; it runs from its folder.", metavar="FILE")
    ] = None,
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.", min=0, max=65535)] = 0,
    expose: Annotated[
        str | None, typer.Option(help="Answer on this host of the machine instead of loopback.", metavar="HOST")
    ] = None,
    open_: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
) -> None:
    """Open the lab: drag beta and watch tokens condense, linger and merge."""
    from attnflow.lab import Server, single_file

    if export is not None:
        write_file(fresh_path("--export", export), single_file().encode())
        print(export)
        return
    with Server(port, runs=run, expose=expose) as server:
        print(server.address, flush=True)
        whom = "this machine alone" if expose is None else f"whoever reaches {expose} and knows this address"
        say.print(f"the lab runs until Ctrl-C; it answers to {whom}.")
        if not server.python:
            say.print(
                "without the extra `lab` the page has its own engine alone; install `attnflow[lab]` for the rest."
            )
        if open_:
            webbrowser.open(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say.print("closed.")
