"""Experiments: one published result each, made runnable, with claims that can fail.

`names()` lists them, `reproduce(name, path)` carries one out in a run folder, `resume(path)` continues it. A result is
one module of `gallery`; nothing else has to know about it. A file of one's own that keeps the same contract is carried
out by `reproduce(Path("mine.py"), path)`.
"""

from attnflow.experiments.catalogue import Experiment, find, names
from attnflow.experiments.claim import Claim
from attnflow.experiments.execute import look_up, read_claims, reproduce, resume
from attnflow.experiments.parts import open_part
from attnflow.experiments.study import Study

__all__ = [
    "Claim",
    "Experiment",
    "Study",
    "find",
    "look_up",
    "names",
    "open_part",
    "read_claims",
    "reproduce",
    "resume",
]
