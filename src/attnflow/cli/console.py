"""What all commands share: output, exit codes, and the cache of compiled programs."""

import contextlib
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperCommand

from attnflow import errors, folders
from attnflow.cli import INTERRUPTED, complete
from attnflow.compilations import cache_compilations
from attnflow.wording import fresh_path, shown

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

Json = Annotated[bool, typer.Option("--json", help="Print machine-readable JSON on standard output.")]
Plugin = Annotated[
    list[Path] | None,
    typer.Option("--plugin", help="A Python file that registers words; may be given again.", metavar="FILE.py"),
]
NoFigures = Annotated[
    bool, typer.Option("--no-figures", help="Leave out figures and report; `attnflow report RUN` draws them.")
]
Folder = Annotated[Path, typer.Argument(help="A run folder.", metavar="RUN", autocompletion=complete.run_folders)]


@contextlib.contextmanager
def in_words_of_options(words: Mapping[str, str]) -> Iterator[None]:
    """A block whose refusals name options: an argument of Python, `over`, is said as `words` has it, `--over`.

    What follows "is refused:" speaks of an entry of a specification, and stays.
    """
    try:
        yield
    except errors.AttnflowError as error:
        about, refused, reason = str(error).partition(" is refused: ")
        name = "|".join(map(re.escape, words)) or "(?!)"
        said = re.sub(rf"`({name})`|^({name})(?= is )", lambda found: f"`{words[found[1] or found[2]]}`", about)
        error.args = (said + refused + reason, *error.args[1:])
        raise


class _Command(TyperCommand):
    """A command whose refusals name its options."""

    words: Mapping[str, str] = {}

    def invoke(self, ctx: Any) -> Any:
        named = [option for option in self.params if option.opts[0][0] == "-"]
        options = {str(option.name).strip("_"): max(option.opts, key=len) for option in named}
        with in_words_of_options({**options, **self.words}):
            return super().invoke(ctx)


class Commands(typer.Typer):
    """Commands whose refusals name options instead of arguments of Python."""

    def command(self, name: str | None = None, *, words: Mapping[str, str] | None = None, **options: Any) -> Any:
        """Register a function as a command; `words` has names of arguments that are no names of its options."""
        return super().command(name, cls=type("Command", (_Command,), {"words": words or {}}), **options)


def exit_code(error: errors.AttnflowError) -> int:
    """The exit code that belongs to a refusal."""
    return next(code for kind, code in EXIT_CODES if isinstance(error, kind))


def refusal(error: Exception) -> errors.AttnflowError | None:
    """What a person is told of an error that has to do with files, memory or devices; None for any other error."""
    if isinstance(error, errors.AttnflowError):
        return error
    if isinstance(error, OSError):
        where = f" {shown(str(error.filename))}" if error.filename else " a file"
        return errors.RunError(f"cannot use{where} ({error.strerror or error}); give another path.")
    if isinstance(error, MemoryError):
        return errors.TooLarge("the memory of this machine is not enough; use fewer tokens, members or frames.")
    if (wanted := os.environ.get("JAX_PLATFORMS")) and not _has_device():
        return errors.InvalidInput(
            f"the environment has JAX_PLATFORMS={shown(wanted)}, and JAX finds no such device here; unset it, or set "
            "JAX_PLATFORMS=cpu."
        )
    return None


def _has_device() -> bool:
    """Whether JAX finds a device of the kind that it is told to use; its errors are of several types."""
    import jax

    try:
        return bool(jax.devices())
    except Exception:
        return False


def say_error(error: BaseException) -> None:
    """A refusal in one sentence."""
    say.print(f"[bold red]error:[/bold red] {escape(str(error))}", soft_wrap=True)


def leave_interrupted(where: Path, *more: str) -> NoReturn:
    """Say how to continue, and `more` on lines of its own, and end the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C once more must not cost this sentence
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


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Work that takes Ctrl-C as KeyboardInterrupt, to keep what it has done; elsewhere Ctrl-C ends the command."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def figure_file(path: Path | None) -> Path | None:
    """The file of `--figure`, if it has a name and an ending that says its format."""
    if path is not None and not fresh_path("--figure", path).suffix:
        raise errors.InvalidInput(f"`--figure` is {shown(str(path))}; give a file such as a.pdf.")
    return path


def save_figure(figure: Any, path: Path) -> None:
    """Write a Matplotlib figure into a file that a person named."""
    from attnflow.plots import page

    try:
        page.save_figure(folders.Folder(path.parent), path.name, figure)
    except (OSError, ValueError) as error:
        raise errors.RunError(f"cannot draw into {str(path)!r} ({error}); give a file such as a.pdf.") from None


def use_compilation_cache() -> None:
    """Keep compiled programs on disk (`attnflow.cache_compilations`) where that is possible: in a fresh process."""
    try:
        cache_compilations()
    except errors.RunError as error:
        say.print(f"note: {error}", soft_wrap=True, markup=False)
    except errors.InvalidInput:
        pass
