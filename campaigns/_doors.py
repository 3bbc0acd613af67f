"""The doors by which campaigns/strangers.py enters a damaged folder, and what became of each: one of `OUTCOMES`."""

import contextlib
import gc
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import stat
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from _specimens import ACTIVITIES, LATER, READERS, Numbers, is_right, spec, tiny_file

RIGHT, REFUSED, VALID = "right", "refused", "another valid folder"
FORBIDDEN = (
    "silent other number",
    "raw exception",
    "hang",
    "memory",
    "outside touched",
    "outside read",
    "markup in a page",
)
OUTCOMES = (RIGHT, REFUSED, VALID, *FORBIDDEN)
PATIENCE = 60
"""Seconds after which a door counts as one that hangs."""
MEMORY = 1 << 30
"""Bytes that a door may need more than were in use before."""
MARK = "5e1f-sentinel"
"""A text in every file outside; an answer that holds it has read there."""


class Hang(BaseException):
    """A door has not answered in time."""


class Refusal(Exception):
    """A command that ended with one sentence and an exit code."""


class Raw(Exception):
    """A command that ended in another way than with an answer or one sentence."""


class Outside:
    """A tree of files beside the victim which nobody may touch, the home of this process among them."""

    def __init__(self, path: Path):
        self.path = path

    def lay(self) -> None:
        """Make the tree anew."""
        shutil.rmtree(self.path, ignore_errors=True)
        for name in (
            "target.txt",
            "home/.bashrc",
            "home/.ssh/id_rsa",
            "folder/c/0",
            "folder/zarr.json",
            "folder/x.npz",
        ):
            file = self.path / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{MARK} {name}\n", encoding="utf-8")

    def state(self) -> dict[str, Any]:
        """Types, times and contents of all entries."""
        entries: dict[str, Any] = {}
        for path in sorted(self.path.rglob("*")):
            facts = path.lstat()
            kind = stat.S_IFMT(facts.st_mode)
            content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(kind) else ""
            entries[path.relative_to(self.path).as_posix()] = (kind, facts.st_mtime_ns, facts.st_size, content)
        return entries


def open_pipes(place: Path) -> None:
    """Let whoever waits at a pipe below a folder go on."""
    for path in place.rglob("*"):
        with contextlib.suppress(OSError):
            if stat.S_ISFIFO(path.lstat().st_mode):
                os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))


@contextlib.contextmanager
def in_time(seconds: int) -> Iterator[None]:
    """A block that raises `Hang` when it takes longer."""

    def late(*_: Any) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def memory(which: str) -> int:
    """A number of bytes that the system knows of this process, such as VmHWM or VmRSS."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{which}:"):
            return 1024 * int(line.split()[1])
    return 0


def limit_memory(more: int = 6 << 30) -> None:
    """Let the system refuse memory to this process beyond what it has now and `more` bytes."""
    resource.setrlimit(resource.RLIMIT_AS, (memory("VmSize") + more, resource.RLIM_INFINITY))


def begin_peak() -> int:
    """Forget the largest size of this process so far; gives back what it is now."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")


def sentence(text: str) -> str:
    """A text that is one sentence for a person; `Raw` if it is not."""
    from tests import fuzz

    try:
        fuzz.sentence(text)
    except fuzz.Finding as error:
        raise Raw(str(error)[:300]) from None
    return text


def command(*arguments: str) -> str:
    """What a command prints; `Refusal` if it ends with a sentence."""
    from tests.fuzz_commands import CODES
    from tests.fuzz_commands import command as run

    code, out, err = run(list(arguments), Path.cwd())
    if not code:
        return str(out)
    lines = [line for line in err.splitlines() if line.startswith("error: ")]
    if code == 1 and arguments[0] == "check" and out.startswith("rejected: "):
        raise Refusal("rejected")
    if code == 3 and arguments[0] == "sweep":
        return str(out)
    if code not in CODES or len(lines) != 1:
        raise Raw(f"exit code {code} with {len(lines)} sentences: {err[-300:]!r}")
    raise Refusal(sentence(lines[0]))


Door = Callable[[Path], Any]


def _show(*more: str) -> Door:
    return lambda path: command("show", path.name, *more)


def _listed(path: Path) -> str:
    text = command("list", "--root", ".", "--json")
    entries = [entry for entry in json.loads(text) if entry["run"] == path.name]
    if not entries:
        raise Refusal("it is not listed")
    if entries[0].get("status") == "damaged" or "damaged" in json.dumps(entries[0])[:2000]:
        raise Refusal("it is listed as damaged")
    return json.dumps(entries[0])


def _resumed(path: Path) -> Numbers:
    from attnflow.runs import resume

    resume(path)
    return READERS["run"](path)


def _resumed_by_command(path: Path) -> Numbers:
    command("resume", path.name, "--no-figures")
    return READERS["run"](path)


def _extended(kind: str) -> Door:
    def door(path: Path) -> Numbers:
        from attnflow.runs import extend

        extend(path, LATER[kind])
        return READERS["run"](path)

    return door


def _redrawn(path: Path) -> Numbers:
    from attnflow.runs import redraw

    redraw(path)
    return READERS["run"](path)


def _reported(path: Path) -> Numbers:
    command("report", path.name)
    return READERS["run"](path)


def _animated(path: Path) -> None:
    command("animate", path.name, "--width", "200")


def _written(path: Path) -> None:
    from attnflow.runs import Run

    pages = [Run.open(path)._repr_html_()]
    with contextlib.suppress(AttributeError):
        import attnflow as af

        pages.append(af.open_run(path)._repr_html_())
    look_for_markup("a notebook", "".join(pages))


def _compared(path: Path) -> None:
    command("compare", path.name, path.name)


def _swept(path: Path) -> Numbers:
    ACTIVITIES["sweep"].carry_on(path)
    return READERS["sweep"](path)


def _told(path: Path) -> None:
    import attnflow as af

    sweep = af.open_sweep(path)
    look_for_markup("a notebook", sweep._repr_html_())
    repr(sweep.table), sweep.errors, sweep.status, sweep.mean(over="a")


def _looked(what: str) -> Door:
    return lambda path: command("sweep", what, path.name)


def _reproduced(path: Path) -> Numbers:
    from attnflow import experiments

    experiments.resume(path, plugins=[tiny_file()])
    return READERS["experiment"](path)


def _resumed_without(path: Path) -> None:
    command("resume", path.name)


def _saved(path: Path) -> Numbers:
    ACTIVITIES["stream npz"].carry_on(path)
    return READERS["stream"](path)


def _loaded(path: Path) -> None:
    from attnflow import certify

    repr(certify.Certificate.load(path))


def doors(family: str, kind: str, finished: bool) -> dict[str, tuple[float, Door]]:
    """The doors of a folder or a file, by name, each with its weight in the rotation.

    Arguments:
        family: which of `READERS` reads it.
        kind: the kind of run.
        finished: True for a folder whose work has ended.
    """
    read = {"read": (0.0, READERS[family])}
    common = {"show": (2.0, _show()), "show --json": (1.0, _show("--json")), "list": (1.0, _listed)}
    if family == "run":
        chosen = common | {"notebook": (0.5, _written), "compare": (0.3, _compared)}
        if not finished:
            more = {"resume": (3.0, _resumed), "attnflow resume": (1.0, _resumed_by_command)}
            more |= {"extend": (0.3, _extended(kind if kind in LATER else "solve")), "report": (0.3, _redrawn)}
            return read | chosen | more
        chosen |= {"attnflow resume": (0.5, _resumed_by_command), "redraw": (0.7, _redrawn)}
        if kind in LATER:
            chosen["extend"] = (1.0, _extended(kind))
        if kind == "labelled":
            chosen |= {"animate": (1.0, _animated), "report": (0.03, _reported)}
        return read | chosen
    if family == "sweep":
        looks = {f"sweep {what}": (1.0, _looked(what)) for what in ("show", "status", "collect")}
        return read | looks | {"sweep": (1.5, _swept), "tables": (0.5, _told)}
    if family == "experiment":
        again = {"resume": (1.0 if finished else 0.4, _reproduced), "resume without plugin": (0.5, _resumed_without)}
        return read | common | again | {"notebook": (0.3, lambda path: _experiment_page(path))}
    if family == "stream":
        return read | {"save": (0.3, _saved)}
    return read | {"check": (1.0, lambda path: command("check", path.name)), "load": (0.5, _loaded)}


def _experiment_page(path: Path) -> None:
    from attnflow.runs import Run

    look_for_markup("a notebook", Run.open(path)._repr_html_())


def look_for_markup(where: str, text: str) -> None:
    """Refuse a page that holds what a stranger wrote as it is."""
    if re.search(r"<img src=x onerror|</script><img", text):
        raise Markup(where)


class Markup(Exception):
    """A page holds the markup of a stranger."""


def visit(
    door: Door, path: Path, references: list[Numbers], text: str | None, forged: bool, partial: bool
) -> tuple[str, str]:
    """What becomes of one door: an outcome and the details of it.

    Arguments:
        door: called with the victim.
        path: the victim.
        references: numbers of which one set is right.
        text: what a command prints on the undamaged folder; None if that may change.
        forged: True if a stranger has computed all digests again, so that other numbers are his.
        partial: True if fewer rows may be there.
    """
    from attnflow.errors import AttnflowError

    before = begin_peak()
    try:
        with in_time(PATIENCE), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            answer = door(path)
    except Hang:
        outcome, detail = "hang", f"after {PATIENCE} s"
    except Refusal as error:
        outcome, detail = REFUSED, str(error)
    except Markup as error:
        outcome, detail = "markup in a page", str(error)
    except AttnflowError as error:
        try:
            outcome, detail = REFUSED, sentence(str(error))
        except Raw as raw:
            outcome, detail = "raw exception", str(raw)
    except Raw as error:
        outcome, detail = "raw exception", str(error)
    except (Exception, SystemExit) as error:
        outcome, detail = "raw exception", f"{type(error).__name__}: {str(error)[:200]} {_place(error)}"
    else:
        outcome, detail = RIGHT, ""
        if isinstance(answer, dict):
            if not is_right(answer, *references, partial=partial):
                outcome, detail = "silent other number", _difference(answer, references[0], partial)
        elif isinstance(answer, str):
            if MARK in answer:
                return "outside read", answer[:200]
            if text is not None and not _lines(text) <= _lines(answer):  # it may say besides that something is gone
                outcome, detail = "silent other number", _other_text(answer, text)
        if outcome == "silent other number" and forged:
            outcome = VALID
    if MARK in detail:
        return "outside read", detail[:200]
    if (peak := memory("VmHWM") - before) > MEMORY:
        gc.collect()
        return "memory", f"{peak >> 20} MiB more; {outcome}: {detail}"
    return outcome, detail


def _place(error: BaseException) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/attnflow/" in frame.filename]
    return f"({frames[-1].filename.rpartition('/attnflow/')[2]}:{frames[-1].lineno})" if frames else ""


def _difference(numbers: Numbers, reference: Numbers, partial: bool) -> str:
    foreign = sorted(set(numbers) - set(reference)) + ([] if partial else sorted(set(reference) - set(numbers)))
    if foreign:
        return f"variables {foreign[:5]}"
    values = {name: numbers[name] for name in numbers if name in ("done", "error")} if "done" in numbers else {}
    differing = [
        name
        for name in numbers
        if not is_right(
            values | {name: numbers[name]}, {key: reference[key] for key in (*values, name)}, partial=partial
        )
    ]
    return f"other values of {differing[:5]}, such as {numbers[differing[0]].ravel()[:3]}" if differing else "?"


def _lines(text: str) -> set[tuple[str, ...]]:
    """The words of all lines; columns are as wide as their widest entry."""
    return {tuple(line.split()) for line in text.splitlines()}


def _other_text(answer: str, text: str) -> str:
    return f"prints {sorted(' '.join(words) for words in _lines(answer) - _lines(text))[:2]}"[:300]


def pages(place: Path) -> Iterator[str]:
    """Names of pages below a folder that hold the markup of a stranger."""
    for path in place.rglob("*.html"):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if stat.S_ISREG(path.lstat().st_mode):
                try:
                    look_for_markup(path.name, path.read_text(encoding="utf-8"))
                except Markup:
                    yield path.name


def unfinished(kind: str, path: Path) -> None:
    """Carry a run out as far as its first rows, and stop it there."""
    from attnflow.runs import execute

    calls: list[Any] = []
    execute(spec(kind), path, on_progress=calls.append, cancel=lambda: len(calls) > 1)
