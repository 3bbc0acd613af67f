"""Compiled programs: kept on disk, so that the second process starts at once; forgotten when memory maps run out."""

import itertools
import os
import sys
from pathlib import Path

from attnflow.errors import InvalidInput, RunError

_FLOWS, EVERY = itertools.count(), 8
"""Flows so far, and the number of flows of which one counts the maps."""


def cache_compilations(folder: str | Path | None = None) -> Path:
    """Keep compiled programs in `folder`, for this process and later ones; returns the folder.

    Call it first: `import attnflow as af; af.cache_compilations()`. A program is read back by every later process with
    the same versions, sizes and device. It sets JAX's persistent compilation
    cache and `EQX_ON_ERROR`, the only global settings that attnflow ever changes. The command line calls it by itself.

    Programs that call back into Python are never kept: those of the sum `FastSphere`, and those in which Equinox raises
    its checks as errors. The latter become NaN instead (`EQX_ON_ERROR=nan`), which ends a flow as failed; Equinox reads
    that when it is imported, so it must not have been.

    Arguments:
        folder: default `JAX_COMPILATION_CACHE_DIR` if that is set, else attnflow/compiled in the user's cache folder.
            A folder that cannot be written to is refused with `RunError`, and no program is kept.
    """
    late = "equinox" in sys.modules and "EQX_ON_ERROR" not in os.environ
    if late or os.environ.setdefault("EQX_ON_ERROR", "nan") != "nan":
        raise InvalidInput(
            "Equinox is imported already, or EQX_ON_ERROR is not 'nan', so that programs could not be kept; call "
            "attnflow.cache_compilations() before anything else, or set EQX_ON_ERROR=nan in the environment."
        )

    import jax

    given = folder if folder is not None else os.environ.get("JAX_COMPILATION_CACHE_DIR")
    where = Path(given) if given else user_cache("compiled")
    try:
        where.mkdir(parents=True, exist_ok=True)
        writable = os.access(where, os.W_OK | os.X_OK)
    except OSError:
        writable = False
    if not writable:
        jax.config.update("jax_compilation_cache_dir", None)
        raise RunError(
            f"compiled programs are not kept, because {str(where)!r} cannot be written to; set "
            "JAX_COMPILATION_CACHE_DIR to a folder that can."
        )
    jax.config.update("jax_compilation_cache_dir", str(where))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    return where


def make_room(share: float = 0.5) -> bool:
    """Forget compiled programs when they use more than `share` of the memory maps that Linux allows a process.

    A compiled flow keeps some 300 maps, and the limit is 65,530 unless `vm.max_map_count` says otherwise: a process
    that compiles flows of hundreds of sizes would crash in the compiler. Returns whether programs were forgotten; those
    in use are compiled again. Elsewhere than on Linux nothing is counted.
    """
    try:
        with open("/proc/sys/vm/max_map_count") as limit, open("/proc/self/maps", "rb") as maps:
            crowded = sum(1 for _ in maps) > share * int(limit.read())
    except (OSError, ValueError):
        return False
    if crowded:
        import gc

        import jax

        jax.clear_caches()
        gc.collect()
    return crowded


def make_room_at_times() -> bool:
    """`make_room`, which takes a millisecond or more, for one flow in eight; every flow asks before it starts."""
    return next(_FLOWS) % EVERY == 0 and make_room()


def user_cache(part: str) -> Path:
    """Where attnflow keeps `part` for a user: attnflow/PART in XDG_CACHE_HOME, or else in ~/.cache."""
    try:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # a container whose user has no home
        raise InvalidInput(
            f"there is no home folder to keep {part} in; give a folder, or set XDG_CACHE_HOME."
        ) from None
    return base / "attnflow" / part
