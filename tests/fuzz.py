"""A grammar of bad and good input: specifications and calls of the API; `tests/fuzz_commands.py` has command lines.

`check_*` carry one example out in this process and raise `Finding` if it ends in anything but an answer or a refusal,
one sentence of an `AttnflowError`. `tests/test_fuzz.py` runs some of these, `campaigns/fuzz.py` very many.
"""

import contextlib
import copy
import json
import math
import re
import signal
import tomllib
import traceback
import warnings

import numpy as np
import tomli_w
from hypothesis import strategies as st

import attnflow as af
from attnflow import observe, stability
from attnflow.errors import AttnflowError
from attnflow.runs import check_spec, parse_spec
from tests.runs.kinds import TEXTS
from tests.words import REGISTRY

LONGEST_SENTENCE = 1200


class Finding(AssertionError):
    """Something that must not happen."""


class Overdue(BaseException):
    """An example has used more than its budget."""


@contextlib.contextmanager
def budget(seconds):
    """CPU seconds that an example may use: work that compiled code does not give back at once counts too."""

    def late(*_):
        raise Overdue

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    except Overdue:
        raise Finding(f"not done after {seconds} CPU seconds") from None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def sentence(text):
    """Refuse what is not one sentence for a person."""
    if "\n" in text or not text.strip() or len(text) > LONGEST_SENTENCE:
        raise Finding(f"not one sentence: {text[:300]!r}")
    if not text.rstrip().endswith((".", "?", ")")) or re.search(r"object at 0x|Traceback|\bTracer<", text):
        raise Finding(f"shows internals or has no end: {text[:300]!r}")


@contextlib.contextmanager
def answered(seconds=30.0):
    """An answer or a refusal, in time and without warnings of NumPy."""
    with budget(seconds), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except AttnflowError as error:
            sentence(str(error))
        except Finding:
            raise
        except Exception as error:
            raise Finding(f"{type(error).__name__}: {str(error)[:200]}{place_of(error)}") from error


def place_of(error):
    """Where in the package an error comes from."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/attnflow/" in f.filename]
    return f" ({frames[-1].filename.rpartition('/attnflow/')[2]}:{frames[-1].lineno})" if frames else ""


# values, mostly wrong ones
numbers = st.one_of(
    st.sampled_from([0, 1, 2, 3, 8, -1, 0.0, -0.0, 0.1, 0.5, 1.0, 2.5, 9.0, -1.0, math.inf, -math.inf, math.nan]),
    st.sampled_from(
        [1e-320, 5e-324, 1e-30, 1e-12, 1e12, 1e15, 1e300, 10**12, 10**19, 2**63, 2**64, 10**400, -(10**30)]
    ),
    st.integers(-3, 70),
    st.floats(-4, 20),
)
texts = st.sampled_from(
    ["", "a", "softmax", "beta", "2", "../up", "a/b", "x" * 300, "ü", "a\nb", "--json", "name", "."]
)
scalars = st.one_of(numbers, texts, st.booleans())
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4), max_leaves=8)
WORDS = {kind: sorted(words) for kind, words in REGISTRY.items() if kind != "solver"}
KEYS = sorted({"n", "seed", "beta", "dim", "space", "name", "step", "mask", "kernel", "value", "query", "until", "save",
               "method", "noise", "stop", "keep", "observe", "tol", "chunk", "positions", "centres", "count"})  # fmt: skip

GOOD = {
    "solve": {
        "field": {"name": "attention", "beta": 2.0},
        "tokens": {"name": "uniform", "space": {"name": "sphere", "dim": 3}, "n": 4, "seed": 0},
        "solve": {"until": 1.0, "method": {"name": "fixed", "step": 0.5}, "save": {"name": "evenly", "count": 2}},
    },
    "solve_long": {
        "field": {"name": "attention", "beta": 4.0},
        "tokens": {"name": "uniform", "space": {"name": "sphere", "dim": 2}, "n": 4, "seed": 0},
        "solve_long": {"until": 5.0, "method": {"name": "long-time", "frames": 8}},
    },
    "merge_times": {
        "field": {"name": "attention", "beta": 4.0},
        "tokens": {"name": "ring", "space": {"name": "sphere", "dim": 2}, "n": 4, "jitter": 0.1, "seed": [0, 1]},
        "merge_times": {"until": 5.0},
    },
    "evolve": {
        "field": {"name": "attention", "beta": 2.0},
        "density": {"name": "perturbed", "basis": {"name": "circle", "degree": 8}, "degree": 1, "amplitude": 0.1},
        "evolve": {"until": 0.2, "save": {"name": "evenly", "count": 2}},
    },
    "evolve_cells": {
        "field": {"name": "attention", "beta": 2.0},
        "density": {"name": "uniform", "basis": {"name": "circle", "degree": 8}},
        "cells": {"name": "circle", "count": 32},
        "evolve_cells": {"until": 0.2, "save": {"name": "evenly", "count": 2}},
    },
    "fit": {
        "classifier": {"name": "residual", "dim": 2, "width": 3, "layers": 2},
        "data": {"name": "interleaved", "n": 8},
        "fit": {"steps": 2},
    },
    "match_measures": {
        "inputs": [{"name": "uniform", "space": {"name": "sphere", "dim": 3}, "n": 4, "seed": k} for k in (0, 1)],
        "targets": [
            {"name": "array", "positions": [[0.0, 0.0, 1.0]]},
            {"name": "array", "positions": [[1.0, 0.0, 0.0]]},
        ],
        "match_measures": {"tol": 1e-3},
    },
}
GOOD |= {kind: tomllib.loads(text) for kind, text in TEXTS.items() if kind not in GOOD}


def parts(kind):
    """A table of a part of a specification, right or wrong."""
    keys = st.dictionaries(st.sampled_from(KEYS), values, max_size=3)
    return st.builds(lambda name, rest: {"name": name} | rest, st.sampled_from(WORDS[kind]), keys)


def _paths(table, before=()):
    for key, value in table.items():
        yield (*before, key)
        if isinstance(value, dict):
            yield from _paths(value, (*before, key))


@st.composite
def specifications(draw, most=3):
    """A good specification with up to `most` changes: other values, other parts, keys too many, keys missing."""
    table = copy.deepcopy(GOOD[draw(st.sampled_from(sorted(GOOD)))])
    for _ in range(draw(st.integers(0, most))):
        path = draw(st.sampled_from(sorted(_paths(table))))
        inner = table
        for key in path[:-1]:
            inner = inner[key]
        change = draw(st.sampled_from(["value", "part", "extra", "missing"]))
        if change == "value":
            inner[path[-1]] = draw(values)
        elif change == "missing":
            inner.pop(path[-1])
        elif change == "part":
            key = draw(st.sampled_from(sorted(WORDS)))
            inner[key if draw(st.booleans()) else path[-1]] = draw(parts(key))
        else:
            inner[draw(st.sampled_from(KEYS))] = draw(values)
        if not any(_paths(table)):
            break
    return table


def as_toml(table):
    """The text of a specification; what TOML has no word for is left out by its author."""
    return tomli_w.dumps(table)


def check_specification(table):
    """Read and check a specification without running it."""
    with answered():
        check_spec(parse_spec(as_toml(table)))


X = np.eye(3)
SPHERE = af.Sphere(3)
OBJECTS = {
    "X": X, "list": X.tolist(), "ragged": [[1.0, 0.0], [1.0]], "tokens": af.uniform(SPHERE, n=3), "sphere": SPHERE,
    "batch": af.uniform(SPHERE, n=3, seed=[0, 1]), "field": af.Attention(2.0), "class": af.Attention,
    "method class": af.Adaptive, "fixed": af.Fixed(0.5), "mask": af.Causal(), "along": af.Along("beta", [1.0, 2.0]),
    "seeds": af.Along("seed", [5.0, 7.0]), "function": lambda *args: True, "none": None, "string array": np.array("a"),
    "complex": 1j * X, "empty": np.zeros((0, 3)), "float32": X.astype(np.float32), "dict": {"a": 1}, "nan": X * np.nan,
}  # fmt: skip
anything = st.one_of(scalars, values, st.sampled_from(sorted(OBJECTS)).map(lambda name: OBJECTS[name]))
CALLS = {
    "Attention": (af.Attention, ["kernel"], ["normaliser", "mask", "query", "key", "value", "encoding"]),
    "Sphere": (af.Sphere, ["dim"], []),
    "uniform": (af.uniform, ["space"], ["n", "seed"]),
    "ring": (af.tokens.ring, ["space"], ["n", "jitter", "seed"]),
    "clustered": (af.tokens.clustered, ["space"], ["centres", "n", "masses", "spread", "seed"]),
    "from_array": (af.from_array, ["positions"], ["masses", "space", "normalise"]),
    "Tokens": (af.Tokens, ["positions", "masses"], ["space", "place", "present", "dims", "dtype"]),
    "stack": (af.stack, ["dim", "values", "systems"], []),
    "Along": (af.Along, ["dim", "values", "labels"], []),
    "Adaptive": (af.Adaptive, [], ["rtol", "atol", "max_steps", "solver"]),
    "Fixed": (af.Fixed, ["step", "rule"], []),
    "Layers": (af.Layers, ["step", "update"], []),
    "Brownian": (af.Brownian, ["kappa"], ["common", "seed"]),
    "Evenly": (af.saving.Evenly, ["count"], []),
    "LogSpaced": (af.saving.LogSpaced, ["count", "first"], []),
    "At": (af.saving.At, ["times"], []),
    "LongTime": (af.LongTime, [], ["tol", "angle", "frames", "sensitive"]),
    "Causal": (af.Causal, ["slope", "strict"], []),
    "Window": (af.Window, ["width"], ["slope", "causal"]),
    "Sinkhorn": (af.Sinkhorn, [], ["tol", "iterations"]),
    "Hardmax": (af.Hardmax, [], ["tol"]),
    "Perceptron": (af.Perceptron, ["inner"], ["bias", "outer", "activation"]),
    "Random": (af.weights.Random, ["shape"], ["seed", "step", "scale", "mean"]),
    "clusters": (observe.clusters, ["tokens"], ["scale", "share"]),
    "overlap_histogram": (observe.overlap_histogram, ["tokens"], ["bins"]),
    "cluster_scale": (observe.cluster_scale, ["beta"], []),
    "velocity": (af.Attention(2.0).velocity, ["mu", "t"], ["at", "place"]),
    "spectrum": (stability.spectrum, ["field", "tokens"], []),
    "choice": (af.Attention(2.0).choice, ["tokens"], ["tol", "flowing"]),
    "leaders": (observe.leaders, ["matrix"], ["tol"]),
    "boolean_rows": (observe.boolean_rows, ["matrix"], ["tol"]),
    "convex_hull": (observe.convex_hull, ["points"], []),
    "distinct": (observe.distinct, ["points", "tol"], []),
    "hyperplane_coordinates": (observe.hyperplane_coordinates, ["points", "value"], []),
    "exit_distribution": (observe.exit_distribution, ["log_times"], ["confidence", "until"]),
    "animate": (af.animate, ["flow", "path"], ["format", "seconds", "fps", "width"]),
    "plot": (af.plot, ["result"], []),
    "parse_spec": (parse_spec, ["text"], ["changes", "plugins"]),
    "open_run": (af.open_run, ["path"], ["plugins"]),
    "tokens[...]": (OBJECTS["tokens"].__getitem__, ["at"], []),
    "predict_middle": (af.theory.causal.predict_middle, [], ["context", "slope", "beta", "time", "d", "share"]),
}
PLAIN = (TypeError,)
"""What Python itself raises for arguments that are missing or too many."""


@st.composite
def calls(draw, solve=True):
    """(name, positional arguments, keywords) of a call; `solve` is checked up to its first step."""
    name = draw(st.sampled_from(sorted([*CALLS, *["solve"] * 1] if solve else CALLS)))
    if name == "solve":
        base = {
            "field": OBJECTS["field"],
            "tokens": OBJECTS["tokens"],
            "until": 1.0,
            "method": OBJECTS["fixed"],
            "save": 1,
        }
        wrong = draw(st.lists(st.sampled_from([*base, "noise", "stop", "observe", "keep", "chunk", "tol", "check"]),
                              min_size=1, max_size=2))  # fmt: skip
        return name, [], base | {key: draw(anything) for key in wrong}
    _, positional, keywords = CALLS[name]
    given = [draw(anything) for _ in positional]
    chosen = draw(st.lists(st.sampled_from(keywords), max_size=2, unique=True)) if keywords else []
    needed = {
        "uniform": ["n"],
        "ring": ["n"],
        "clustered": ["centres", "n"],
        "clusters": ["scale"],
        "predict_middle": ["context", "slope", "beta", "time"],
    }.get(name, [])
    return name, given, {key: draw(anything) for key in {*chosen, *needed}}


class _Enough(Exception):
    pass


class _Before(af.flows.InMemory):
    def begin(self, layout):
        super().begin(layout)
        raise _Enough


def check_call(name, positional, keywords):
    """Carry a call out; `solve` up to its first step."""
    with answered(), contextlib.suppress(_Enough):
        if name == "solve":
            af.solve(**keywords, sink=_Before())
        else:
            CALLS[name][0](*positional, **keywords)


SMALL = {"until": 1.0, "steps": 2}
"""How far the runs of a campaign go."""


def small(table):
    """Whether a specification is so small that it may be run: few tokens, few frames, fixed steps that end soon."""
    text = json.dumps(table, default=str)
    large = [
        float(n)
        for n in re.findall(r"-?\d+\.?\d*(?:[eE][+-]?\d+)?", text)
        if abs(float(n)) > 40 or 0 < abs(float(n)) < 1e-2
    ]
    return not large and any(kind in table for kind in REGISTRY["kind"])
