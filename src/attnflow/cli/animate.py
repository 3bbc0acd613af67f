"""`attnflow animate`: a run in motion."""

from pathlib import Path
from typing import Annotated, Any

import typer

from attnflow import errors
from attnflow.cli import INTERRUPTED
from attnflow.cli.console import Folder, Plugin, say, stoppable
from attnflow.wording import fresh_path


def animate(
    folder: Folder,
    out: Annotated[
        Path | None, typer.Option(help="The file; default the name of the run folder, beside it.", metavar="FILE")
    ] = None,
    format_: Annotated[
        str | None, typer.Option("--format", help="html (a player), gif or mp4; default as FILE says, or html.")
    ] = None,
    member: Annotated[
        list[str] | None,
        typer.Option("--member", help="Which system of a batch, counted from 0; default the first.", metavar="DIM=K"),
    ] = None,
    seconds: Annotated[float, typer.Option(help="How long it lasts.")] = 9.0,
    fps: Annotated[int, typer.Option(help="Pictures per second, at most 50.")] = 20,
    width: Annotated[int, typer.Option(help="Pixels across.")] = 700,
    plugin: Plugin = None,
) -> None:
    """Write an animation of a run: tokens or a density, with a cursor in the curves beside them."""
    from attnflow import runs
    from attnflow.cli.progress import Bar
    from attnflow.plots import animate as animated

    out = fresh_path("--out", out) if out else None
    run = runs.Run.open(folder)
    manifest = run.manifest()
    if "experiment" in manifest:
        raise errors.RunError(f"{str(folder)!r} holds the experiment {manifest['experiment']!r}; animate takes a flow.")
    if manifest["status"] != "finished":
        raise errors.RunError(f"{str(folder)!r} is not finished; continue it with `attnflow resume {folder}` first.")
    index = _member(member or [])
    where = out or folder.resolve().with_name(f"{folder.resolve().name}.{format_ or 'html'}")
    with stoppable(), Bar(say, where.name, "reading") as bar:

        def drawn(done: int, of: int) -> None:
            bar.at(f"picture {done} of {of}", done / of)

        options: dict[str, Any] = {"seconds": seconds, "fps": fps, "width": width, "format": format_}
        try:
            run.verify()
            flow = runs.open_run(folder, plugins=plugin or ())
            left = [f"{name}=0" for name in getattr(flow, "dims", ()) if name not in index]
            animated(flow, where, member=index, on_picture=drawn, **options)
        except KeyboardInterrupt:
            say.print("interrupted; nothing was written.")
            raise typer.Exit(INTERRUPTED) from None
    if left:
        say.print(f"the run holds a batch; this is its member {', '.join(left)} (--member chooses).", soft_wrap=True)
    print(where)


def _member(given: list[str]) -> dict[str, int]:
    """`seed=1` as {"seed": 1}."""
    index = {}
    for text in given:
        name, _, number = text.partition("=")
        if not number.isdecimal():
            raise errors.InvalidInput(f"--member is {text!r}; give a dimension and a number, such as seed=1.")
        index[name] = int(number)
    return index
