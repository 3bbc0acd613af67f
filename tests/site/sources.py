"""The modules that build the site, which are no package: `site` is a module of Python itself."""

import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def module(name):
    """One of the modules in the folder site/."""
    where = str(ROOT / "site")
    sys.path.insert(0, where)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(where)
