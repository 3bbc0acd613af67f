"""The one seam through which tests make operations fail and turn settings that no user turns.

A point is a place of the package or of the standard library, named in `POINTS` by what it does; where code moves, its
row here follows and no test changes. The fixture `faults` undoes everything at the end of a test:

    def test_a_full_disk_is_said_in_one_sentence(faults):
        faults.fail("rename a file", OSError(errno.ENOSPC, "No space left on device"), call=3)

`replace` puts a value or function in the place of a point, `fail` raises at its k-th call, `calls` watches it.
"""

import importlib

import pytest

POINTS = {
    # the file system
    "flush a file": ("os", "fsync"),
    "link a file": ("os", "link"),
    "open a file": ("os", "open"),
    "rename a file": ("os", "replace"),
    # JAX
    "set an option of JAX": ("jax:config", "update"),
    # the lab
    "open a page in the browser": ("webbrowser", "open"),
    "serve the lab": ("attnflow.lab:Server", "serve_forever"),
    # flows
    "first slice": ("attnflow.flows.particles", "FIRST_SLICE"),
    "seconds of a slice": ("attnflow.flows.particles", "SECONDS"),
}
"""Name of every point -> (module or class in a module, attribute)."""


class Faults:
    """Changes of points, undone at the end of a test."""

    def __init__(self, monkeypatch):
        self.monkeypatch = monkeypatch

    def replace(self, point, value):
        """Put a value or function in the place of a point; return what stood there."""
        place, attribute = POINTS[point]
        module, _, owner = place.partition(":")
        target = importlib.import_module(module)
        target = getattr(target, owner) if owner else target
        original = getattr(target, attribute)
        self.monkeypatch.setattr(target, attribute, value)
        return original

    def fail(self, point, error, call=1):
        """Raise an error at the k-th call of a point and at all later ones; earlier calls go through."""
        count = 0

        def failing(*arguments, **keywords):
            nonlocal count
            count += 1
            if count >= call:
                raise error
            return original(*arguments, **keywords)

        original = self.replace(point, failing)

    def calls(self, point):
        """Watch a point, which goes on to work; return the growing list of (arguments, keywords) of its calls."""
        watched = []

        def watching(*arguments, **keywords):
            watched.append((arguments, keywords))
            return original(*arguments, **keywords)

        original = self.replace(point, watching)
        return watched


@pytest.fixture
def faults(monkeypatch):
    """The seam for faults and settings; see `tests/faults.py`."""
    return Faults(monkeypatch)
