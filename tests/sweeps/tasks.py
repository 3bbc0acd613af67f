"""Functions and specifications that the tests of sweeps repeat."""

import json
import os
import time
from pathlib import Path

import numpy as np

SPEC = """
name = "small"
[tokens]
name = "uniform"
n = 4
space = { name = "sphere", dim = 2 }
[field]
name = "attention"
beta = 2.0
[solve]
until = 1.0
save = { name = "evenly", count = 2 }
keep = ["positions"]
method = { name = "fixed", step = 0.25 }
"""


def unequal(a: int, b: str = "x", far: float = 3.0):
    """Variables of different sizes; one point always fails."""
    if a == 2 and b == "y":
        raise ValueError("two and y")
    return {"sum": a * 10 + far, "steps": np.arange(a + 1.0), "word": b}


def slow(k: int, seconds: float = 0.0):
    """The number and its square."""
    time.sleep(seconds)
    return {"k": float(k), "square": float(k) ** 2}


def fatal(k: int, marks: str = ""):
    """Kills its own process the first time that k is 3; with marks "always", every time."""
    if k == 3 and (marks == "always" or not Path(marks).exists()):
        if marks != "always":
            Path(marks).touch()
        os.kill(os.getpid(), 9)
    return {"k": float(k)}


def events(folder):
    """The lines of all journals of a sweep."""
    journals = sorted((folder / "journal").glob("*.jsonl"))
    return [json.loads(line) for journal in journals for line in journal.read_text().splitlines()]


def same(one, other):
    """Whether two datasets have equal variables, bit for bit, in one order of their coordinates or another."""
    assert set(one.variables) == set(other.variables)
    for name in one.variables:
        left, right = one[name].values, other[name].values
        assert left.dtype == right.dtype
        assert left.shape == right.shape
        left, right = (values.tolist() if values.dtype.kind in "OTU" else values.tobytes() for values in (left, right))
        assert left == right, name
    return True


SHARED = '''"""Parts say which process has made them.

Shown: nothing of interest.
"""

import dataclasses
import os
import time
from pathlib import Path

import matplotlib.figure
import numpy as np
import xarray as xr

from attnflow.experiments import Claim

PAPERS = ("geshkovski2025perspective",)
MARKS = Path("FOLDER")


@dataclasses.dataclass(frozen=True)
class Parameters:
    count: int = 12


QUICK = Parameters(count=4)


def make(k):
    (MARKS / str(os.getpid())).touch()
    until = time.monotonic() + 60
    while len(list(MARKS.iterdir())) < 3 and time.monotonic() < until:
        time.sleep(0.1)
    return xr.Dataset({"k": k, "pid": os.getpid()})


def run(parameters, study):
    return study.parts({f"part{k}": (make, k) for k in range(parameters.count)})


def claims(parameters, data):
    found = np.array([float(part["k"]) for part in data.values()])
    wanted = np.arange(parameters.count)
    return [Claim.equal("every part is there", wanted, found, 0.0, "counting", labels=list(data))]


def draw(parameters, data):
    return matplotlib.figure.Figure()
'''
"""An experiment whose parts wait until three processes make them."""
