"""Copies of the tree, and the tests that run in them: what they say of a line that is wrong."""

import ast
import concurrent.futures
import contextlib
import functools
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from _mutants import TOP, room_of

TREE = ("src", "tests", "docs", "examples", "benchmarks", "campaigns", "site", "tools")
"""Folders that tests look into; files beside them travel too."""
CONFORMANCE = "tests/test_conformance.py"
"""The tests that all rooms share."""
LONGEST = 600.0
"""Seconds for one test, with the start of its process."""
FACTS = """
import json, platform, jax, attnflow
print(json.dumps([attnflow.__file__, platform.python_version(), jax.__version__]))
"""


class Stopped(Exception):
    """The campaign was stopped while a test ran."""


class Bench:
    """The tree as it was (`base`), copies of it that may be changed, and pytest."""

    def __init__(self, root: Path, folder: Path, python: str, copies: int, options: list[str]):
        self.folder, self.python, self.options = folder, python, options
        self.known: dict[str, bool] = {}
        self.marks: dict[str, str] = {}
        """Of every test that failed in a copy, by its id: `slow`, or `test` if it has no mark."""
        self.base = folder / "base"
        self.base.mkdir()
        for path in root.iterdir():
            if path.name in TREE:
                shutil.copytree(path, self.base / path.name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
            elif path.is_file():
                shutil.copy2(path, self.base)
        # with the hash of its source beside it, so that the compiled file of a changed one is never taken
        by_content = ["--invalidation-mode", "checked-hash"]
        subprocess.run([python, "-m", "compileall", "-q", *by_content, self.base / "src"], check=True)
        self.free: queue.Queue[Path] = queue.Queue()
        for k in range(copies):
            shutil.copytree(self.base, folder / f"copy-{k}")
            self.free.put(folder / f"copy-{k}")
        self.running: set[subprocess.Popen[str]] = set()
        self.stopped = False

    def environment(self, copy: Path) -> dict[str, str]:
        """The tests' own: the copy is imported, and no compiled file of Python is written."""
        usual = {"JAX_PLATFORMS": "cpu"}
        here = str(Path(__file__).parent)
        path = os.pathsep.join(filter(None, [str(copy / "src"), here, os.environ.get("PYTHONPATH", "")]))
        ours = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        return usual | dict(os.environ) | ours

    def facts(self) -> dict[str, str]:
        """Versions, after a look at what every copy imports."""
        copies = [self.base, *self.folder.glob("copy-*")]
        with concurrent.futures.ThreadPoolExecutor(max_workers=len(copies)) as pool:
            found = list(pool.map(self._imported, copies))  # raises for any of them
        return {"python": found[0][0], "jax": found[0][1]}

    def _imported(self, copy: Path) -> tuple[str, str]:
        command, environment = [self.python, "-c", FACTS], self.environment(copy)
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{self.python} cannot import attnflow: {done.stderr.strip().splitlines()[-1]}")
        file, python, version = json.loads(done.stdout)
        if not Path(file).resolve().is_relative_to(copy.resolve()):
            raise SystemExit(f"attnflow is imported from {file} and not from the copy; nothing would be tested.")
        return python, version

    def pytest(self, copy: Path, arguments: list[str], limit: float) -> tuple[int | None, str]:
        """Exit code (None after the time limit), and the first test that failed or did not end."""
        if self.stopped:
            raise Stopped
        descriptor, name = tempfile.mkstemp(dir=self.folder, prefix="watched-")
        os.close(descriptor)
        watched = Path(name)
        command = [self.python, "-m", "pytest", "-x", "-p", "no:cacheprovider", "-p", "_watch", "--watched", name]
        command += ["--tb=no", *self.options, *arguments]
        process = subprocess.Popen(
            command, cwd=copy, env=self.environment(copy), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL, text=True, start_new_session=True,
        )  # fmt: skip
        self.running.add(process)
        try:
            code: int | None = process.wait(max(1.0, limit))
        except subprocess.TimeoutExpired:
            code = None
        finally:
            self.end(process)
        said = watched.read_text(encoding="utf-8").splitlines()
        watched.unlink()
        if self.stopped:
            raise Stopped
        if code == -signal.SIGKILL:
            print("a test run was killed from outside, perhaps for lack of memory; use fewer --jobs.", flush=True)
            return None, ""
        events = [line.split(" ", maxsplit=2) for line in said]
        failed = [(test, mark) for event, mark, test in events if event == "failed"]
        began = [(test, mark) for event, mark, test in events if event == "began"]
        test, mark = (failed or began[-1:] or [("tests/conftest.py", "test")])[0]
        self.marks[test] = mark
        return code, test

    def end(self, process: "subprocess.Popen[str]") -> None:
        """End a test run and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.running.discard(process)

    def stop(self) -> None:
        """End all."""
        self.stopped = True
        for process in list(self.running):
            self.end(process)

    def sound(self, test: str) -> bool:
        """True if a test is selected and passes without a change; of a file, if it can be imported."""
        if test not in self.known:
            arguments, good = ([test], (0,)) if "::" in test else (["--collect-only", test], (0, 5))
            self.known[test] = self.pytest(self.base, arguments, LONGEST)[0] in good
        return self.known[test]

    def check(self, copy: Path, tests: list[str], limit: float) -> tuple[str, str]:
        """Whether the tests notice what is wrong with this copy: killed (and by which), survived, or cut by the limit.

        A test counts if it fails twice and passes without the change.
        """
        end, doubtful = time.monotonic() + limit, list[str]()
        while True:
            unsound = [test for test, sound in list(self.known.items()) if not sound]
            skipped = [word for test in [*doubtful, *unsound] if "::" in test for word in ("--deselect", test)]
            code, by = self.pytest(copy, [*tests, *skipped], end - time.monotonic())
            if code is None:
                return "cut", ""
            if code in (0, 5):  # 5: no test was left
                return "survived", ""
            if by == "tests/conftest.py":  # nothing could be imported, which the base could
                return "killed", by
            if self.sound(by) and ("::" not in by or self.pytest(copy, [by], LONGEST)[0] != 0):
                return "killed", by
            if "::" not in by:
                tests = [test for test in tests if test != by]
            doubtful.append(by)


@functools.cache
def _names(root: Path) -> dict[str, set[str]]:
    """The files with tests, and the identifiers and dotted names in each."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted((root / "tests").rglob("test_*.py"))}
    return {
        path.relative_to(root).as_posix(): {*re.findall(r"\w+", text), *re.findall(r"\w+(?:\.\w+)+", text)}
        for path, text in texts.items()
    }


@functools.cache
def nearest(root: Path, file: str) -> tuple[list[str], list[str]]:
    """The test files that a change of a file of the package meets first, and those that it meets then.

    First come those of its room (of a file in no folder: those in no folder that name it), and the conformance tests;
    then those elsewhere that name the module or what it defines. Files that name it most come first.
    """
    path = root / "src" / "attnflow" / file
    room, stem = room_of(file), path.stem
    tree = ast.parse(path.read_text(encoding="utf-8"))
    public = [n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef) and n.name[0] != "_"]
    words = {f"attnflow.{file.removesuffix('.py').replace('/', '.')}", *public}
    near, wide = list[tuple[bool, int, str]](), list[tuple[bool, int, str]]()
    for name, names in _names(root).items():
        named = len(words & names)
        in_room = name.count("/") == 1 if room == TOP else name.startswith(f"tests/{room}/")
        if name != CONFORMANCE and (named or (in_room and room != TOP)):
            (near if in_room else wide).append((Path(name).stem != f"test_{stem}", -named, name))
    return [name for *_, name in sorted(near)] + [CONFORMANCE], [name for *_, name in sorted(wide)]
