"""`attnflow cite`."""

import json
from typing import Annotated

import typer

from attnflow.cli import complete
from attnflow.cli.console import Json


def cite(
    what: Annotated[
        str,
        typer.Argument(
            help="An experiment (`attnflow experiments` lists them), a Python file with one, or a run folder.",
            metavar="EXPERIMENT|RUN",
            autocompletion=complete.citable,
        ),
    ],
    json_: Json = False,
) -> None:
    """Print BibTeX of the papers and the software that an experiment or a run used."""
    from attnflow.experiments import cited

    found = cited(what)
    print(json.dumps(found.to_json(), indent=2, ensure_ascii=False) if json_ else found.to_bibtex(), end="")
    if json_:
        print()
