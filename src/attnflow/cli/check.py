"""`attnflow check`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from attnflow.cli.console import Json


def check(
    certificate: Annotated[Path, typer.Argument(help="A certificate, as `save` wrote it.", metavar="CERTIFICATE.json")],
    json_: Json = False,
) -> None:
    """Confirm a certificate with the independent checker (mpmath.iv, no python-flint); exit code 1 if it rejects."""
    from attnflow.certify.checking import check as confirm

    found = confirm(certificate)
    if json_:
        print(json.dumps(asdict(found), indent=2, ensure_ascii=False))
    else:
        print(f"confirmed: {found.statement}" if found.confirmed else f"rejected: {found.reason}")
        for lemma in found.lemmas:
            print(f"  {lemma}")
    if not found.confirmed:
        raise typer.Exit(1)
