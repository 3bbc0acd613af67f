"""Copies of the tree, and the tests that run in them: what they say of a line that is wrong."""

import ast
import concurrent.futures
import contextlib
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

TREE = ("src", "tests", "docs", "benchmarks", "campaigns")
"""Folders that tests look into; files beside them travel too."""
FACTS = """
import json, platform, jax, attnflow
print(json.dumps([attnflow.__file__, platform.python_version(), jax.__version__]))
"""


class Stopped(Exception):
    """The campaign was stopped while a test ran."""


class Bench:
    """The tree as it was (`base`), copies of it that may be changed, and pytest."""

    def __init__(self, root: Path, folder: Path, python: str, copies: int, deselected: list[str]):
        self.folder, self.python = folder, python
        self.deselected = [word for test in deselected for word in ("--deselect", test)]
        self.base = folder / "base"
        self.base.mkdir()
        for path in root.iterdir():
            if path.name in TREE:
                shutil.copytree(path, self.base / path.name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
            elif path.is_file():
                shutil.copy2(path, self.base)
        self.free: queue.Queue[Path] = queue.Queue()
        for k in range(copies):
            shutil.copytree(self.base, folder / f"copy-{k}")
            self.free.put(folder / f"copy-{k}")
        self.running: set[subprocess.Popen[str]] = set()
        self.stopped = False

    def environment(self, copy: Path) -> dict[str, str]:
        """The tests' own: the copy is imported, nothing is cached, and the compiler hurries as in `make test`."""
        found = re.search(r"^QUICKLY := (.*)$", (copy / "Makefile").read_text(), flags=re.M)
        usual = {"XLA_FLAGS": found.group(1) if found else "", "JAX_PLATFORMS": "cpu"}
        path = os.pathsep.join(filter(None, [str(copy / "src"), os.environ.get("PYTHONPATH", "")]))
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

    def pytest(self, copy: Path, arguments: list[str], limit: float | None) -> tuple[int | None, str, float]:
        """Exit code (None after the time limit), the first test that failed, seconds."""
        command = [self.python, "-m", "pytest", "-x", "-p", "no:cacheprovider", "--tb=no", "-rfE", "-m", "not slow"]
        began = time.monotonic()
        if self.stopped:
            raise Stopped
        with tempfile.TemporaryFile("w+", dir=self.folder) as file:
            process = subprocess.Popen(
                [*command, *self.deselected, *arguments], cwd=copy, env=self.environment(copy), stdout=file,
                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, start_new_session=True,
            )  # fmt: skip
            self.running.add(process)
            try:
                code: int | None = process.wait(limit)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                self.end(process)
            file.seek(0)
            text = file.read().replace(f"{copy}{os.sep}", "")
        if self.stopped:
            raise Stopped
        if code == -signal.SIGKILL:
            raise SystemExit("a test run was killed from outside, perhaps for lack of memory; use fewer --jobs.")
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", text, flags=re.M)
        last = text.strip().splitlines()[-1][:200] if text.strip() else ""
        return code, failed.group(1) if failed else last, time.monotonic() - began

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

    def check(self, copy: Path, arguments: list[str], limit: float) -> tuple[bool, str, float]:
        """Whether the tests notice what is wrong with this copy, which one, and after how many seconds."""
        began, doubtful = time.monotonic(), list[str]()
        while True:
            skipped = [word for test in doubtful for word in ("--deselect", test)]
            code, by, _ = self.pytest(copy, [*arguments, *skipped], limit)
            if code is None:
                return True, f"no answer after {limit:.0f} s", time.monotonic() - began
            if code in (0, 5):  # 5: no test was left
                return False, "", time.monotonic() - began
            if "::" not in by or by in doubtful or self.pytest(copy, [by], limit)[0] != 0:
                return True, by, time.monotonic() - began
            doubtful.append(by)  # it passed the second time: an accident


def nearest(root: Path, file: str) -> list[str]:
    """Tests of its room, those that name the module or what it defines first, then the conformance tests."""
    path = root / "src" / "attnflow" / file
    room, stem = file.split("/")[0], path.stem
    tree = ast.parse(path.read_text(encoding="utf-8"))
    public = [n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef) and n.name[0] != "_"]
    words = [re.escape(f"attnflow.{file.removesuffix('.py').replace('/', '.')}"), *public]
    ranked = []
    for test in sorted((root / "tests" / room).rglob("test_*.py")):
        text = test.read_text(encoding="utf-8")
        named = sum(bool(re.search(rf"\b{word}\b", text)) for word in words)
        ranked.append((test.stem != f"test_{stem}", -named, test.relative_to(root).as_posix()))
    return [name for _, _, name in sorted(ranked)] + ["tests/test_conformance.py"]
