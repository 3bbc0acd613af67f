"""What a run was computed with: versions, commit, machine."""

import contextlib
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("attnflow", "jax", "jaxlib", "diffrax", "equinox", "numpy", "scipy", "xarray", "zarr")
EXTRAS = ("ducc0", "optax")


def versions() -> dict[str, str]:
    """Versions of the packages that a run may have used; extras only where they are installed."""
    found = {name: version(name) for name in PACKAGES}
    for name in EXTRAS:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def commit() -> str | None:
    """The commit of the checkout that the package lies in, with "+" if files of the package differ from it."""
    package = Path(__file__).resolve().parent.parent

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=package, capture_output=True, text=True, timeout=10, check=True)
        return done.stdout.strip()

    try:
        if git("ls-files", "--error-unmatch", "__init__.py") != "__init__.py":
            return None
        return git("rev-parse", "HEAD") + "+" * bool(git("status", "--porcelain", "."))
    except (OSError, subprocess.SubprocessError):
        return None


def processor() -> str:
    """The name of the processor as the system gives it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def environment() -> dict[str, Any]:
    """Versions, the commit if the package lies in a git checkout, and the machine."""
    import jax

    device = jax.devices()[0]
    return {
        "commit": commit(),
        "processor": f"{os.cpu_count()} cores, {processor()}",
        "versions": {"python": platform.python_version()} | versions(),
        "platform": f"{platform.system()} {platform.machine()}",
        "device": f"{device.platform}: {device.device_kind}",
    }
