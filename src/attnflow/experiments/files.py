"""An experiment that is a folder of files, each with its part of the contract."""

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

FILES = {
    "Parameters": "simulate",
    "QUICK": "simulate",
    "run": "simulate",
    "claims": "compare",
    "draw": "figure",
    "MUTATIONS": "mutations",
    "motion": "animation",
}
"""The file that has each name of the contract."""


def from_files(package: str) -> Callable[[str], Any]:
    """`__getattr__` of the package of an experiment, which finds the names of the contract in its files.

    simulate.py has `Parameters`, `QUICK` and `run`, compare.py `claims`, figure.py `draw`, mutations.py `MUTATIONS` and
    animation.py, where there is one, `motion`. So the package itself says `PAPERS` and

        __getattr__ = from_files(__name__)
    """

    def get(name: str) -> Any:
        module = f"{package}.{FILES.get(name, '')}"
        if name not in FILES or importlib.util.find_spec(module) is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(module), name)

    return get
