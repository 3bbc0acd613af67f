"""What all commands share: output, exit codes, and the cache of compiled programs."""

import contextlib
import os
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from attnflow import errors
from attnflow.cli import complete
from attnflow.compilations import cache_compilations

say = Console(stderr=True, highlight=False)

EXIT_CODES: tuple[tuple[type[Exception], int], ...] = (
    (errors.InvalidInput, 2),
    (errors.FlowFailed, 3),
    (errors.RunExists, 4),
    (errors.RunLocked, 4),
    (errors.RunCorrupted, 5),
    (errors.RunError, 6),
    (errors.FetchFailed, 6),
    (errors.AttnflowError, 2),
)
CLAIM_FAILS = 1
INTERRUPTED = 130

Json = Annotated[bool, typer.Option("--json", help="Print machine-readable JSON on standard output.")]
Plugin = Annotated[
    list[Path] | None,
    typer.Option("--plugin", help="A Python file that registers words; may be given again.", metavar="FILE.py"),
]
NoFigures = Annotated[
    bool, typer.Option("--no-figures", help="Leave out figures and report; `attnflow report RUN` draws them.")
]
Folder = Annotated[Path, typer.Argument(help="A run folder.", metavar="RUN", autocompletion=complete.run_folders)]


def exit_code(error: errors.AttnflowError) -> int:
    """The exit code that belongs to a refusal."""
    return next(code for kind, code in EXIT_CODES if isinstance(error, kind))


def say_error(error: BaseException) -> None:
    """A refusal in one sentence."""
    say.print(f"[bold red]error:[/bold red] {escape(str(error))}", soft_wrap=True)


def leave_interrupted(where: Path, *more: str) -> NoReturn:
    """Say how to continue, and `more` on lines of its own, and end the process."""
    if (where / "manifest.json").exists():
        from attnflow.runs.folder import Run
        from attnflow.runs.recorded import resume_command

        command = resume_command(where, Run(where).manifest())
        text = f"interrupted; what was saved is kept. Continue with: {command}"
    else:
        text = "interrupted before anything was saved."
    say.print("\n".join([text, *more]), soft_wrap=True, markup=False)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(INTERRUPTED)  # an orderly exit would first wait for compiled code that nobody needs any more


def save_figure(figure: Any, path: Path) -> None:
    """Write a Matplotlib figure into a file that a person named."""
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise errors.RunError(f"cannot draw into {str(path)!r} ({error}); give a file such as a.pdf.") from None


def use_compilation_cache() -> None:
    """Keep compiled programs on disk (`attnflow.cache_compilations`) where that is possible: in a fresh process."""
    with contextlib.suppress(errors.InvalidInput):
        cache_compilations()
