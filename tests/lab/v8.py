"""The modules of the page in an embedded V8."""

import functools
import json

from py_mini_racer import MiniRacer

from attnflow.lab.bundle import page_file, script

__all__ = ["call", "context", "page_file", "script"]

HELPERS = """
const plain = (value) => JSON.stringify(value, (_, one) =>
  ArrayBuffer.isView(one) ? Array.from(one) : one === undefined ? null : one);
"""


@functools.cache
def context():
    """One V8 for all tests of a process, with every module that needs no document."""
    made = MiniRacer()
    made.eval(script("engine", "theory", "state", "history", "predict", "save", "forms", "frames") + HELPERS)
    return made


def call(function, *arguments):
    """The value of a function of JavaScript at these arguments; both travel as JSON."""
    return json.loads(context().eval(f"plain(({function})(...{json.dumps(arguments)}))"))
