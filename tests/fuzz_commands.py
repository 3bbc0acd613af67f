"""Command lines, files, environments and folders, good and bad; `check_*` raise `Finding` as those of `tests/fuzz.py`.

A refusal has the exit code that belongs to it, and no file is left outside of the folder that was asked for. A folder
with a flipped bit is refused, or gives what it gave before.
"""

import functools
import json
import os
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

from hypothesis import strategies as st

import attnflow as af
from attnflow import runs
from tests.cli.commands import attnflow
from tests.fuzz import GOOD, Finding, as_toml, budget, place_of, scalars, sentence, texts, values

CODES = {0, 1, 2, 3, 4, 5, 6}
ENCODINGS = st.sampled_from(["utf-8", "utf-8", "ascii", "latin-1", "cp437", "cp1252"])


def furnish(place):
    """Files, a run, a broken one and an unfinished one in the folder `place`, for commands that are given there."""
    place.mkdir()
    (place / "good.toml").write_text(as_toml(GOOD["solve"]))
    (place / "bad.toml").write_text("[solve]\nuntil = ")
    code, _, err = command(["run", "good.toml", "--out", "run"], place)
    if code:
        raise Finding(err)
    shutil.copytree(place / "run", place / "broken")
    (place / "broken" / "manifest.json").write_text("[1, 2]")
    seen = []
    runs.execute(runs.parse_spec(as_toml(GOOD["solve"]), ["solve.chunk=1"]), place / "unfinished", on_progress=seen.append,
            cancel=lambda: len(seen) > 1)  # fmt: skip


@st.composite
def texts_of_files(draw):
    """Bytes that somebody might call a specification."""
    good = as_toml(GOOD["solve"]).encode()
    cut = draw(st.integers(0, len(good)))
    junk = draw(
        st.one_of(st.binary(max_size=12), st.sampled_from([b"\xff\xfe", b"\xef\xbb\xbf", b"[" * 600, b"\x00", b"="]))
    )
    return draw(st.sampled_from([good[:cut] + junk + good[cut:], junk, good[:cut], junk + good]))


COMMANDS = [
    "run", "resume", "extend", "show", "list", "animate", "presets", "predict", "experiments", "cite", "--version",
    "report", "compare", "kinds", "-h",
]  # fmt: skip
WORDS_OF_COMMANDS = st.one_of(
    st.sampled_from(["good.toml", "bad.toml", "run", "broken", "nothing", "metastability", "staircase", ".", "/", "",
                     "particles", "middle", "layers", "solve"]),
    st.sampled_from(["--out", "--json", "--set", "--root", "--until", "--save", "--beta", "--d", "--n", "--figure",
                     "--plugin", "--format", "--seconds", "--fps", "--help", "--", "-x", "--nonsense", "--context",
                     "--alibi", "--depth", "--share", "--layers", "--heads", "--d-k", "--step", "--logit-scale"]),
    st.sampled_from(["out", "--json", "a\nb", "x" * 300, "field.beta=2", "field.beta=", "=", "a.b.c=3", "tokens.n=1e3",
                     "solve.until=1e300", "tokens=3", "2", "-1", "1e308", "nan", "3", "0", "1e6", "fig", "fig.nope"]),
)  # fmt: skip
command_lines = st.builds(
    lambda first, rest: [first, *rest], st.sampled_from(COMMANDS), st.lists(WORDS_OF_COMMANDS, max_size=6)
)


def command(arguments, cwd, encoding="utf-8"):
    """(exit code, what is printed, what is said) of a command in this process, on a wide terminal of this encoding."""
    done = attnflow(*arguments, cwd=cwd, encoding=encoding, COLUMNS="4000")
    return done.returncode, done.stdout, done.stderr


def check_command(arguments, place, *, runs=False, seconds=60.0, encoding="utf-8"):
    """Carry a command out; `runs` says that the first argument may do work, else `run` is checked and not carried out."""
    if not runs and arguments[0] in ("run", "resume", "extend", "report", "animate", "cite", "compare"):
        arguments = [*arguments, "--nonsense-that-ends-it"] if arguments[0] != "run" else [*arguments, "--set", "a"]
    allowed = {a for a in arguments if a and not a.startswith("-")} | {"runs"}
    before = {p.name for p in place.iterdir()}
    above = {p.name for p in place.parent.iterdir()}
    with budget(seconds), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            code, out, err = command(arguments, place, encoding)
        except Finding:
            raise
        except Exception as error:
            raise Finding(f"{arguments}: {type(error).__name__}: {str(error)[:200]}{place_of(error)}") from error
    if code not in CODES:
        raise Finding(f"{arguments}: exit code {code}")
    # a group without its command prints its help; an option without its value has no usage
    if code and "Usage:" not in out + err and not re.search("[─-] Error [─-]", err):
        said = [line for line in err.splitlines() if line.startswith("error: ")]
        if len(said) != 1:
            raise Finding(f"{arguments}: exit code {code} with {len(said)} sentences: {err[-300:]!r}")
        sentence(said[0])
    new = {p.name for p in place.iterdir()} - before
    if {p.name for p in place.parent.iterdir()} != above or not new <= {
        Path(a).parts[0] for a in allowed if Path(a).parts
    }:
        raise Finding(f"{arguments}: leaves {sorted(new)}")
    if code == 2 and new:
        raise Finding(f"{arguments}: refused, and leaves {sorted(new)}")


@st.composite
def damages(draw):
    """(file of a run, what becomes of it)."""
    file = draw(st.sampled_from(["manifest.json", "spec.toml", "checkpoint", "arrays.zarr", "report.html", "figures"]))
    if file == "manifest.json" and draw(st.integers(0, 3)):
        keys = ["format", "name", "status", "spec_hash", "created", "wall_time", "peak_memory", "checksums", "outcome",
                "summary", "steps", "plugins", "becoming", "experiment", "frames", "kind", "message"]  # fmt: skip
        value = draw(st.one_of(st.none(), values, st.dictionaries(texts, scalars, max_size=2)))
        return file, {draw(st.sampled_from(keys)): value}
    return file, draw(st.one_of(st.none(), st.binary(max_size=20), st.sampled_from([b"[1, 2]", b"{}", b"null", b"["])))


def damage(run, file, change):
    """Damage a run folder: entries of its manifest (a dict), a file (bytes), or remove it (None)."""
    path = run / file
    if isinstance(change, dict):
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
    elif change is None:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    elif path.is_dir():
        next(p for p in sorted(path.rglob("*")) if p.is_file()).write_bytes(change)
    else:
        path.write_bytes(change)


EVERY_COMMAND = [
    ["show"], ["show", "--json"], ["list"], ["list", "--json"], ["resume"], ["extend", "--until", "2"], ["report"],
    ["animate"], ["cite"], ["cite", "--json"], ["compare", "run"], ["compare", "run", "--figure", "fig.pdf"],
]  # fmt: skip
"""What can be done with a run folder."""
flips = st.tuples(st.floats(0, 1, exclude_max=True), st.floats(0, 1, exclude_max=True), st.integers(0, 7))
"""A file of a run, a place in the file and a bit."""


def flip(run, which, at, bit):
    """Flip a bit of a file of a run folder: the name of the file."""
    files = sorted(path for path in run.rglob("*") if path.is_file() and path.stat().st_size)
    file = files[int(which * len(files))]
    content = bytearray(file.read_bytes())
    content[int(at * len(content))] ^= 1 << bit
    file.write_bytes(bytes(content))
    return file.relative_to(run).as_posix()


def copied(place, name):
    """A fresh copy of a run, below the folder damaged."""
    shutil.rmtree(place / "damaged", ignore_errors=True)
    shutil.copytree(place / name, place / "damaged" / "run")
    return place / "damaged" / "run"


def on_copy(arguments):
    """A command for the copy."""
    return [*arguments, "--root", "damaged"] if arguments[0] == "list" else [*arguments, "damaged/run"]


def check_damaged(place, change, arguments):
    """A command on a damaged copy of the run."""
    damage(copied(place, "run"), *change)
    check_command(on_copy(arguments), place, runs=True)


def check_flipped(place, change, arguments):
    """A command on a copy of the run with a flipped bit: it is refused; `list` may say what it said before."""
    copied(place, "run")
    before = command(on_copy(["list"]), place)
    file = flip(place / "damaged" / "run", *change)
    check_command(on_copy(arguments), place, runs=True)
    flip(copied(place, "run"), *change)
    code, out, _ = command(on_copy(arguments), place)
    fine = arguments[0] == "list" and ("damaged:" in out or '"damaged"' in out or file != "manifest.json")
    if code not in (5, 6) and not fine:
        raise Finding(f"{arguments} reads {file} with a flipped bit {change}: exit code {code}")
    if arguments == ["list"] and file != "manifest.json" and out != before[1]:
        raise Finding(f"list says something else after a flipped bit in {file}")


@functools.cache
def resumed(place):
    """The arrays that the unfinished run comes to."""
    runs.resume(copied(place, "unfinished"))
    return af.open_run(place / "damaged" / "run").dataset.load()


def check_unfinished(place, change, whole):
    """An unfinished run with a flipped bit: `resume` refuses it, or comes to the same arrays, which `whole` has."""
    file = flip(copied(place, "unfinished"), *change)
    check_command(["resume", "damaged/run", "--no-figures"], place, runs=True)
    flip(copied(place, "unfinished"), *change)
    if command(["resume", "damaged/run", "--no-figures"], place)[0]:
        return
    found = af.open_run(place / "damaged" / "run").dataset.load()
    if not found.identical(whole):
        raise Finding(f"resume goes on after a flipped bit {change} in {file}, to other arrays")


VARIABLES = {
    "JAX_PLATFORMS": ["", "cpu", "gpu", "cuda", "tpu", "nonsense", "cpu,gpu"],
    "PYTHONIOENCODING": ["ascii", "latin-1", "utf-8", "cp437:strict"], "PYTHONUTF8": ["0", "1"],
    "LC_ALL": ["C", "POSIX", "nonsense", "en_US.UTF-8"], "PYTHONCOERCECLOCALE": ["0"], "TZ": ["nonsense"],
    "COLUMNS": ["0", "1", "5", "19", "20", "-5", "x", "²", "9" * 30], "LINES": ["0", "x"], "TERM": ["dumb", "", "nonsense"],
    "NO_COLOR": ["1"], "FORCE_COLOR": ["1", "x"], "HOME": ["/dev/null", "", "/proc"], "TMPDIR": ["/dev/null/x"],
    "XDG_CACHE_HOME": ["/dev/null/x", "/proc/x", ""], "JAX_COMPILATION_CACHE_DIR": ["/dev/null/x", "/proc/x", ""],
    "MPLCONFIGDIR": ["/dev/null/x", ""], "ATTNFLOW_LIMITS": ["off", "x"], "ATTNFLOW_PROGRESS": ["on", "x"],
    "EQX_ON_ERROR": ["raise", "nan"], "JAX_ENABLE_X64": ["0", "1"], "PYTHONOPTIMIZE": ["2"], "OMP_NUM_THREADS": ["0", "x"],
}  # fmt: skip
environments = st.dictionaries(st.sampled_from(sorted(VARIABLES)), st.integers(0, 99), min_size=1, max_size=3).map(
    lambda chosen: {name: VARIABLES[name][k % len(VARIABLES[name])] for name, k in chosen.items()}
)
LIGHT = [["list", "--root", "."], ["show", "run"], ["predict", "particles", "--beta", "9", "--d", "3"], ["presets"],
         ["compare", "run", "run"], ["--help"], ["show", "nothing"]]  # fmt: skip
FULL = ["run", "good.toml", "--out", "out"]
plain_lines = st.sampled_from([*LIGHT, *LIGHT, FULL])
INTERRUPTED = """
import os, signal, sys
from attnflow.cli import main

class Finder:
    left = {count}
    def find_spec(self, name, path, target=None):
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
main()
"""
"""A process that gets Ctrl-C when it imports the module of this number."""


def process(arguments, place, code, environment):
    """A command in a process of its own, in which nothing is imported before."""
    shutil.rmtree(place / "out", ignore_errors=True)
    environ = {
        name: os.environ[name] for name in ("PATH", "PYTHONPATH", "HOME", "XDG_CACHE_HOME") if name in os.environ
    }
    line = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(line, cwd=place, capture_output=True, env=environ | environment, timeout=600)
    said = done.stderr.decode(errors="replace")
    if "Traceback" in said or "Warning" in said:
        raise Finding(f"{arguments} in {environment}: {said[-400:]!r}")
    return done.returncode, done.stdout, said


def check_environment(place, environment, arguments):
    """A command in an odd environment: it answers, or refuses in one sentence."""
    code, out, said = process(arguments, place, "from attnflow.cli import main; main()", environment)
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    if code not in CODES or (code and len(errors) != 1) or not (out or code):
        raise Finding(f"{arguments} in {environment}: exit code {code}, {out[-200:]!r}, {said[-300:]!r}")
    if code and arguments != ["show", "nothing"] and "JAX_PLATFORMS" not in environment:
        raise Finding(f"{arguments} in {environment} is refused: {errors}")


def check_interruption(place, count, arguments):
    """Ctrl-C at an import: the command ends at once with a line, or it has ended before."""
    code, _, said = process(arguments, place, INTERRUPTED.format(count=count), {})
    lines = [line for line in said.splitlines() if line.startswith("interrupted")]
    if (code, len(lines)) != (130, 1) and code not in (0, 6):
        raise Finding(f"{arguments} at import {count}: exit code {code}, {said[-300:]!r}")
