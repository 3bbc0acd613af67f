"""Examples of the reference: every public name has one, and the lines give what is written under them."""

import contextlib
import inspect
import os

import jax
import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot

from tests.marks import graded
from tests.site.sources import module

examples, kin, uses = map(module, ("examples", "kin", "uses"))
WITHOUT = {
    "attnflow.compilations.cache_compilations": "changes where a process keeps its programs",
    "attnflow.experiments.execute.assist": "waits for another process",
    "attnflow.experiments.execute.read_claims": "needs the run folder of an experiment: tests/experiments",
    "attnflow.experiments.execute.resume": "needs the run folder of an experiment: tests/experiments",
    "attnflow.experiments.mutation.kill_matrix": "runs an experiment many times: campaigns/physics.py",
    "attnflow.experiments.kit.panels.panels": "its docstring has one",
    "attnflow.experiments.kit.panels.Panels": "what `panels` yields",
    "attnflow.experiments.kit.trained.texts_for": "needs a trained network",
    "attnflow.experiments.kit.trained.BesideNulls": "needs trained networks",
    "attnflow.flows.stepper.AbstractSingle": "for a kind of work: docs/add/kind.md",
    "attnflow.plots.report.draw_run": "`attnflow run` calls it; five seconds",
    "attnflow.probe.adapters.from_transformer_lens": "needs PyTorch",
    "attnflow.probe.adapters.from_transformers": "needs PyTorch",
    "attnflow.sums.base.Case": "what a sum makes its offer for: docs/add/sum.md",
}
"""Names that need an example and have none, with the reason."""


def shared():
    """What examples share with whatever else runs in their process, and must leave as it was."""
    return {
        "JAX": dict(jax.config.values),
        "Matplotlib": dict(mpl.rcParams),
        "NumPy": (np.get_printoptions(), np.geterr()),
        "figures": pyplot.get_fignums(),
        "environment": {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"},
        "folder": os.getcwd(),
    }


@graded("room", examples.files())
def test_an_example_gives_what_is_written_under_it(room, tmp_path):
    """Each starts from the lines under `## Setup`; nothing of a room is left for the next one.

    A process for every room would show no more: 8 CPU seconds a room, where all of them take 35 together.
    """
    _, found = examples.sections(examples.files()[room])
    with contextlib.chdir(tmp_path):
        before = shared()
        names = examples.begin(found.get(examples.SETUP, ""))
        wrong = []
        for name, text in found.items():
            for source, written, now in examples.run(text, dict(names)) if name != examples.SETUP else ():
                if not examples.same(written, now):
                    wrong.append(f"{name}: {source.strip()} gives {now}, not {written}")
        after = shared()
    assert wrong == []
    assert [what for what in before if after[what] != before[what]] == []


def needs_an_example(value):
    """Functions and classes do; constants and names of types do not."""
    own = type(value).__module__.startswith("attnflow")  # an `Observable`, as `observe.spread`
    return inspect.isclass(value) or inspect.isroutine(value) or (own and callable(value))


@pytest.mark.long
def test_every_public_name_has_an_example():
    """Its own, one of a page or an experiment that the suite runs, or, for a class, what makes it or derives from it."""
    own, used = examples.known(), uses.everywhere()
    missing = {
        path
        for path, value in kin.public().items()
        if needs_an_example(value)
        and path not in own
        and (path not in used or used[path].example() is None)
        and not kin.made_by(path)
        and not (inspect.isabstract(value) and kin.derived(path))
    }
    missing.add("attnflow.compilations.cache_compilations")  # at the top, in no room
    assert missing == set(WITHOUT)
    assert len(own) > 400


def test_an_example_is_shown_with_the_lines_that_it_needs():
    setup = ">>> import numpy as np\n>>> n = 3\n>>> x = np.ones(n)\n>>> y = 4"
    assert examples.whole(setup, ">>> x.sum()\n3.0") == (
        ">>> import numpy as np\n>>> n = 3\n>>> x = np.ones(n)\n>>> x.sum()\n3.0"
    )


@pytest.mark.parametrize(
    ("written", "now", "agree"),
    [
        ("0.12345", "0.12346", True),
        ("0.12345", "0.1236", False),
        ("(2, array([1. , 0.5]))", "(2,  array([1.  , 0.5 ]))", True),
        ("(2, array([1. , 0.5]))", "(3, array([1. , 0.5]))", False),
        ("1.2e-09", "1.3e-09", False),
        ("True", "False", False),
        ("[1, 2]", "[1, 2, 3]", False),
    ],
)
def test_results_are_compared_to_the_digits_that_are_shown(written, now, agree):
    assert examples.same(written, now) is agree


def test_an_error_is_shown_as_its_type_and_message():
    ((_, _, now),) = examples.run(">>> int('x')", {})
    assert now == "ValueError: invalid literal for int() with base 10: 'x'"
