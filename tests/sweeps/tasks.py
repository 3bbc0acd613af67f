"""Functions and specifications that the tests of sweeps repeat."""

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


def same(one, other):
    """Whether two datasets have equal variables, bit for bit, in one order of their coordinates or another."""
    assert set(one.variables) == set(other.variables)
    for name in one.variables:
        left, right = one[name].values, other[name].values
        assert left.dtype == right.dtype
        assert left.shape == right.shape
        assert left.tobytes() == right.tobytes(), name
    return True
