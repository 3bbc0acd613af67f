"""Several experiments at a time, each in a process of its own."""

import concurrent.futures
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from attnflow import errors

PAUSE = 0.2
"""Seconds between two looks for a folder that another process makes."""
APPEAR = 60.0
"""Seconds after which the folder is not waited for any longer."""


def in_processes(
    work: Sequence[tuple[str, Path, list[str]]], jobs: int, on_end: Callable[[str, Any, Exception | None], None]
) -> None:
    """Carry out `attnflow reproduce NAME --out DIR OPTIONS` for every (NAME, DIR, OPTIONS), `jobs` at a time.

    Arguments:
        on_end: called with the name, the run and the error of each, in the order in which they end.

    Ctrl-C reaches the processes too; each stops at its last complete part.
    """
    from attnflow.runs.folder import Run

    def one(name: str, where: Path, options: list[str]) -> Any:
        command = [sys.executable, "-m", "attnflow", "reproduce", name, "--json"]
        done = subprocess.run([*command, "--out", str(where), *options], capture_output=True, text=True)
        if done.returncode not in (0, 1) or not (where / "claims.json").exists():
            raise errors.RunError(done.stderr.strip() or f"{name!r} ended with the exit code {done.returncode}.")
        return Run.open(where)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(one, *item): item[0] for item in work}
        try:
            for future in concurrent.futures.as_completed(futures):
                error = future.exception()
                if error is not None and not isinstance(error, Exception):
                    raise error
                on_end(futures[future], None if error else future.result(), error)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise


def assist(folder: str, plugins: list[str]) -> None:
    """What a worker of `attnflow reproduce --on` does: make parts of the experiment, as soon as its folder is there."""
    from attnflow import experiments

    began = time.monotonic()
    while not (Path(folder) / "manifest.json").exists():
        if time.monotonic() - began > APPEAR:
            return
        time.sleep(PAUSE)
    experiments.assist(folder, plugins=plugins)
