"""A tiny experiment for the machinery: three parts, two claims, and ways to die that the environment asks for."""

import importlib
import os
import sys
from pathlib import Path
from unittest.mock import patch

import attnflow_gallery as gallery

BARE = {
    "format": 1, "name": "tiny-mean", "status": "created", "spec_hash": "", "created": "2026-01-01T00:00:00",
    "wall_time": 0.0, "peak_memory": 0, "versions": {}, "device": "", "platform": "", "dtype": "float64",
}  # fmt: skip
"""The least that a manifest holds."""
SOURCE = '''"""The mean of a few numbers is what it is.

Shown: nothing of interest.
"""

import dataclasses
import os
import signal

import numpy as np
import xarray as xr

from attnflow.experiments import Claim
from attnflow.plots.style import styled

PAPERS = ("geshkovski2025perspective",)


@dataclasses.dataclass(frozen=True)
class Parameters:
    size: int = 1000
    shift: float = 0.0
    levels: tuple[float, ...] = (1.0, 2.5)
    seed: int = 3


QUICK = Parameters(size=100)


def run(parameters, study):
    way = os.environ.get("TINY", "")

    def make(index, name):
        with open(os.environ["TINY_LOG"], "a") as log:
            log.write(name)
        study.progress(f"part [{name}]", index / 3)
        if name == "c" and way == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if name == "c" and way in ("swallow", "stumble"):  # as `solve` does with Ctrl-C
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                pass
        if name == "c" and way in ("break", "stumble"):
            raise ZeroDivisionError("broken")
        values = np.random.default_rng([parameters.seed, index]).standard_normal(parameters.size)
        return xr.Dataset({"values": ("draw", values)}, {"draw": np.arange(parameters.size)}, {"name": name})

    return {name: study.part(name, lambda i=i, n=name: make(i, n)) for i, name in enumerate("abc")}


def claims(parameters, data):
    found = [float(part["values"].mean()) + parameters.shift for part in data.values()]
    worst = max(found, key=abs)
    error = parameters.size**-0.5
    wrong = 10.0 if os.environ.get("TINY") == "wrong" else 0.0
    return [
        Claim.equal("the mean is 0", 0.0, worst + wrong, 5 * error, "five standard errors"),
        Claim.true("there are three", len(found) == 3, "3 parts", "counted"),
    ]


def draw(parameters, data):
    """The first part, a < b."""
    with styled() as figure:
        fig = figure.Figure(figsize=(2, 2))
        fig.subplots().plot(data["a"]["values"])
        return fig
'''


def install(folder, monkeypatch):
    """Make the tiny experiment all that the gallery holds; gives back the file that logs which parts were made."""
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    (folder / "tiny_mean.py").write_text(SOURCE)
    monkeypatch.setattr(gallery, "__path__", [str(folder)])
    monkeypatch.delitem(sys.modules, f"{gallery.__name__}.tiny_mean", raising=False)
    monkeypatch.delenv("TINY", raising=False)
    importlib.invalidate_caches()
    log = folder / "log.txt"
    log.write_text("")
    monkeypatch.setenv("TINY_LOG", str(log))
    return log


def dying(way):
    """A context in which the third part of the tiny experiment goes a way of `SOURCE`: kill, swallow, stumble, break.

    With "wrong" a claim fails.
    """
    return patch.dict(os.environ, TINY=way)


def command(folder, then):
    """Python code for a process of its own: the gallery is that of `folder`."""
    return f"import attnflow_gallery as gallery; gallery.__path__[:] = [{str(folder)!r}]; {then}"
