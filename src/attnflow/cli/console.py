"""What all commands share: output, exit codes, and the cache of compiled programs."""

import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from attnflow import errors

say = Console(stderr=True, highlight=False)

EXIT_CODES: tuple[tuple[type[Exception], int], ...] = (
    (errors.InvalidInput, 2),
    (errors.FlowFailed, 3),
    (errors.RunExists, 4),
    (errors.RunLocked, 4),
    (errors.RunCorrupted, 5),
    (errors.RunError, 6),
    (errors.AttnflowError, 2),
)
CLAIM_FAILS = 1
INTERRUPTED = 130

Json = Annotated[bool, typer.Option("--json", help="Print machine-readable JSON on standard output.")]
Plugin = Annotated[
    list[Path] | None,
    typer.Option("--plugin", help="A Python file that registers words; may be given again.", metavar="FILE.py"),
]
Folder = Annotated[Path, typer.Argument(help="A run folder.", metavar="RUN")]


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


def use_compilation_cache() -> None:
    """Keep compiled programs on disk, so that the second run starts at once.

    Programs that can call back into Python are not kept; Equinox puts such calls into every Diffrax solve to raise its
    checks as errors. On the command line they become NaN instead, which ends a flow as failed.
    """
    os.environ.setdefault("EQX_ON_ERROR", "nan")  # read when Equinox is imported

    import jax

    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        jax.config.update("jax_compilation_cache_dir", str(base / "attnflow" / "compiled"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
