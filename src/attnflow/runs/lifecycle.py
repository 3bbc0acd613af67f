"""One attempt to complete a run: what its manifest says while it lasts and after it, whatever happens."""

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attnflow.errors import AttnflowError, RunError
from attnflow.runs.folder import Run
from attnflow.runs.plugins import Plugins


@contextlib.contextmanager
def attempt(run: Run, plugins: Plugins) -> Iterator[dict[str, Any]]:
    """The run is `running` inside; at the end its manifest gets the entries that were put into what is yielded.

    They begin as {"status": "interrupted"}, which stays if the process is told to stop. An error makes the run
    `failed`, with the message. Wall time, CPU time and memory are recorded in each case, and those of earlier attempts
    count.
    """
    manifest, began = run.manifest(), time.perf_counter()
    before, used = run.wall_time(manifest), manifest.get("cpu_time", 0.0) - time.process_time()
    run.remove_temporaries()
    plugins.keep(run.folder)
    none = {"message": None} if "message" in manifest else {}  # of a failure before
    run.update(status="running", began=time.time(), wall_time=before, **none)
    status: dict[str, Any] = {"status": "interrupted"}

    def finish() -> None:
        spent = {"wall_time": before + time.perf_counter() - began, "cpu_time": used + time.process_time()}
        run.update(began=None, peak_memory=peak_memory(), **spent, **status)

    try:
        yield status
    except BaseException as error:
        if isinstance(error, Exception):
            known = isinstance(error, AttnflowError)
            status |= {"status": "failed", "message": str(error) if known else f"{type(error).__name__}: {error}"}
        with contextlib.suppress(RunError):  # the first error is the one to report
            finish()
        raise
    finish()


def peak_memory() -> int:
    """Largest resident size of this process so far, in bytes; 0 where the system does not tell (Windows)."""
    with contextlib.suppress(OSError):  # getrusage would count what the parent process held when it started this one
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
