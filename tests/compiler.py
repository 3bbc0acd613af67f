"""How the suite compiles: most of its time is building programs that run once, so the compiler is told to hurry.

`flags` turns optimisation off and takes the older of the two ways in which XLA emits loops on a CPU, which needs a third
of the time where XLA still has it. Cases marked `optimised` compile as users do, in a process of their own. Programs of
both kinds are kept in a folder of the user's cache, which all workers of a run share and the next run finds again; a run
that finds nothing there takes longer, and nothing else. There is a worker for every core, so that the matrices of NumPy
and SciPy are multiplied by one thread: threads that wait for each other would take the time of the other workers.
"""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

LARGEST = 2**30
"""Bytes that the folder of programs may hold when a run begins; a fuller one is emptied."""
AS_USERS = "ATTNFLOW_COMPILE_AS_USERS"
"""The environment variable of a process that compiles as users do."""


def flags():
    """The value of XLA_FLAGS with which the suite compiles."""
    words = ["--xla_backend_optimization_level=0", "--xla_cpu_parallel_codegen_split_count=1"]
    version = tuple(int(part) for part in importlib.metadata.version("jaxlib").split(".")[:2])
    if version < (0, 11):  # an unknown flag ends the process, and XLA of JAX 0.11 has one emitter only
        words.append("--xla_cpu_use_fusion_emitters=false")
    return " ".join(words)


def hurry():
    """Set the flags and the folder of programs for this process; before JAX makes its backend."""
    if AS_USERS in os.environ:
        return
    os.environ.setdefault("XLA_FLAGS", flags())
    # Equinox's checks give NaN in place of a callback that raises: programs with callbacks are never kept
    os.environ.setdefault("EQX_ON_ERROR", "nan")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # for workers and other processes: NumPy is loaded here already
    import jax

    jax.config.update("jax_compilation_cache_dir", str(folder()))
    # processes that tests start share a folder of this run: some of them are killed while they write into it
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", os.getpid())
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(tempfile.gettempdir()) / f"attnflow-tests-{run}"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)


def folder():
    """Where compiled programs are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "attnflow" / "suite"


def tidy():
    """Empty the folder of programs if it has grown too large; once a run, before any worker starts."""
    if sum(path.stat().st_size for path in folder().glob("*")) > LARGEST:
        shutil.rmtree(folder(), ignore_errors=True)


def as_users(node):
    """Run one case in a process that compiles as users do: (whether it passed, what pytest printed)."""
    environment = {name: value for name, value in os.environ.items() if name not in ("XLA_FLAGS", "EQX_ON_ERROR")}
    environment = {name: value for name, value in environment.items() if not name.startswith("PYTEST_")}
    environment |= {"JAX_COMPILATION_CACHE_DIR": str(folder())}  # other flags make other programs
    environment |= {f"JAX_PERSISTENT_CACHE_MIN_{one}": "0" for one in ("COMPILE_TIME_SECS", "ENTRY_SIZE_BYTES")}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", node]
    done = subprocess.run(
        command, env=environment | {AS_USERS: "1"}, capture_output=True, text=True, cwd=Path(__file__).parent.parent
    )
    return done.returncode == 0, done.stdout + done.stderr
