"""Experiments: one published result each, made runnable, with claims that can fail.

`names()` lists them, `reproduce(name, path)` carries one out in a run folder, `resume(path)` continues it. Experiments
come from installed packages that name them in the entry point `attnflow.experiments` (see `catalogue`); those of
attnflow are in the package `attnflow_gallery`. A file that keeps the same contract is carried out by
`reproduce(Path("mine.py"), path)`.
"""

from typing import TYPE_CHECKING

from attnflow.lazy import loader

if TYPE_CHECKING:
    from attnflow.experiments.catalogue import Experiment, find, names
    from attnflow.experiments.citation import Citation, cited
    from attnflow.experiments.claim import NUMERICS, Claim, Origin, consequence, observed, published, reported
    from attnflow.experiments.execute import assist, look_up, read_claims, reproduce, resume
    from attnflow.experiments.files import from_files
    from attnflow.experiments.mutation import (
        Mutation,
        altered,
        faster,
        kill_matrix,
        other_beta,
        result,
        scaled,
        with_arguments,
    )
    from attnflow.experiments.parts import open_part
    from attnflow.experiments.randomness import Salted
    from attnflow.experiments.study import Study

__all__ = [
    "NUMERICS",
    "Citation",
    "Claim",
    "Experiment",
    "Mutation",
    "Origin",
    "Salted",
    "Study",
    "altered",
    "assist",
    "cited",
    "consequence",
    "faster",
    "find",
    "from_files",
    "kill_matrix",
    "look_up",
    "names",
    "observed",
    "open_part",
    "other_beta",
    "published",
    "read_claims",
    "reported",
    "reproduce",
    "result",
    "resume",
    "scaled",
    "with_arguments",
]
_HOME = {
    "attnflow.experiments.catalogue": ["Experiment", "find", "names"],
    "attnflow.experiments.citation": ["Citation", "cited"],
    "attnflow.experiments.claim": ["NUMERICS", "Claim", "Origin", "consequence", "observed", "published", "reported"],
    "attnflow.experiments.execute": ["assist", "look_up", "read_claims", "reproduce", "resume"],
    "attnflow.experiments.files": ["from_files"],
    "attnflow.experiments.mutation": [
        "Mutation",
        "altered",
        "faster",
        "kill_matrix",
        "other_beta",
        "result",
        "scaled",
        "with_arguments",
    ],
    "attnflow.experiments.parts": ["open_part"],
    "attnflow.experiments.randomness": ["Salted"],
    "attnflow.experiments.study": ["Study"],
}
__getattr__, __dir__ = loader(__name__, _HOME)
