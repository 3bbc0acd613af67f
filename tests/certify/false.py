"""Certificates that were changed by hand, with the statement that their new claims make: only a proof can reject them."""

import contextlib
import copy

from attnflow.certify.checking.words import statement


def changed(one, change):
    """A certificate after `change`, which takes its plain values; the words follow the claims where they can."""
    other = copy.deepcopy(one if isinstance(one, dict) else one.to_json())
    change(other)
    with contextlib.suppress(KeyError, TypeError, ValueError, IndexError):  # no words for claims that are no claims
        other["statement"] = statement(other["kind"], other["claims"], other["data"])
    return other


def claim(**values):
    """The change of these claims."""
    return lambda one: one["claims"].update(values)


def places(values, *path):
    """Paths to all values inside plain values, containers too."""
    inside = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    for key, value in inside:
        yield (*path, key)
        yield from places(value, *path, key)


def put(path, value):
    """The change that puts a value in a place."""

    def change(one):
        for key in path[:-1]:
            one = one[key]
        one[path[-1]] = value

    return change
