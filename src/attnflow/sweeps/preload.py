"""What a worker does before anything else: one thread, and compiled programs kept on disk.

Dask loads this module when it starts a worker (`--preload attnflow.sweeps.preload`), before JAX is imported.
"""

import contextlib
import os
import signal
from typing import Any

ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PJRT_NPROC", "NPROC")
"""Variables that limit threads: of BLAS, and of the pool of XLA.

(The flag --xla_cpu_multi_thread_eigen=false, which is often set for this, compiles other programs: results then differ
in their last bits from those of a process without it.)
"""

CHILD = "ATTNFLOW_SWEEP_CHILD"
"""Set for workers that the coordinator has started and ends itself: Ctrl-C in its terminal is not for them."""


def environment() -> dict[str, str]:
    """The environment of a worker: one thread for each library, for there is one worker a core."""
    return dict.fromkeys(ONE_THREAD, "1") | {"EQX_ON_ERROR": "nan", "ATTNFLOW_PROGRESS": "off"}


def dask_setup(*_: Any) -> None:
    """Called by Dask in the process of the worker."""
    os.environ.update(environment())
    if CHILD in os.environ:
        with contextlib.suppress(ValueError):  # not the main thread
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    _keep_programs()


def _keep_programs() -> None:
    from attnflow.compilations import cache_compilations
    from attnflow.errors import InvalidInput

    with contextlib.suppress(InvalidInput):  # a worker that has imported Equinox already compiles for itself
        cache_compilations()


def perform(folder: str, unit: str, plugins: list[str], made: Any = None) -> dict[str, Any]:
    """Carry out one unit in a worker: a folder, a name and paths go there, a small record comes back."""
    _keep_programs()
    from attnflow.sweeps.unit import carry_out_here

    return carry_out_here(folder, unit, plugins, made)
