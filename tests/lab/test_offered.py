"""What the lab offers and takes: every kind and word of the registry is taken or refused, and none opens a file."""

import functools
import inspect
import json
import os
import subprocess
import sys
import tomllib
import typing
from pathlib import Path

import numpy as np
import pytest

from attnflow import lab
from attnflow.lab import forms
from attnflow.runs.kinds import parts_of
from attnflow.runs.registry import HIDDEN, REGISTRY
from tests.lab.test_python import answered
from tests.runs.kinds import TEXTS

TOKENS = {"name": "uniform", "n": 4, "seed": 0, "space": {"name": "sphere", "dim": 3}}
FIELD = {"name": "attention", "beta": 4.0}
FLOW = {"tokens": TOKENS, "field": FIELD, "solve": {"until": 1.0}}
CIRCLE = {"name": "circle", "degree": 8}
DENSITY = {"density": {"name": "uniform", "basis": CIRCLE}, "field": FIELD, "evolve": {"until": 1.0}}
CELLS = {**DENSITY, "cells": {"name": "circle", "count": 8}, "evolve_cells": {"until": 1.0}}
del CELLS["evolve"]
SLOTS = {
    "space": "tokens.space",
    "tokens": "tokens",
    "field": "field",
    "weight": "field.value",
    "map": "field.value",
    "normaliser": "field.normaliser",
    "mask": "field.mask",
    "kernel": "field.kernel",
    "encoding": "field.encoding",
    "norm": "field.norm",
    "method": "solve.method",
    "solver": "solve.method.solver",
    "rule": "solve.method.rule",
    "update": "solve.method.update",
    "noise": "solve.noise",
    "save": "solve.save",
    "stop": "solve.stop",
    "observable": "solve.observe",
    "basis": "density.basis",
    "density": "density",
    "cells": "cells",
}
"""part -> where a word of it stands."""
AROUND = {
    "norm": FLOW | {"field": {"name": "pre", "field": FIELD}},
    "solver": FLOW | {"solve": {"until": 1.0, "method": {"name": "adaptive"}}},
    "rule": FLOW | {"solve": {"until": 1.0, "method": {"name": "fixed", "step": 0.1}}},
    "update": FLOW | {"solve": {"until": 1.0, "method": {"name": "layers", "step": 0.1}}},
    "basis": DENSITY,
    "density": DENSITY,
    "cells": CELLS,
}
"""What stands around the slot of a part, where it is not FLOW."""
PARTS = {"tokens": TOKENS, "field": FIELD, "weight": np.eye(3).tolist(), "basis": CIRCLE, "density": DENSITY["density"]}
"""What a word gets that needs a part; of other parts the first word."""
VALUES = dict.fromkeys(("positions", "centres", "values", "directions"), np.eye(3).tolist())
VALUES |= {key: [0.5] for key in ("times", "durations", "weights", "biases", "breaks")}
VALUES |= {
    "overlap": 0.5,
    "radius": 0.1,
    "amplitude": 0.1,
    "shape": [3, 3],
    "dim": 3,
    "count": 8,
    "n": 6,
    "path": "/etc/passwd",
}


def table_of(part, name):
    """A table for a word, with something for every argument that it needs."""
    table = {"name": name}
    for key, parameter in inspect.signature(REGISTRY[part][name]).parameters.items():
        if parameter.default is inspect.Parameter.empty and key not in HIDDEN:
            inner = parts_of(REGISTRY[part][name], key)[:1]
            value = (
                PARTS.get(inner[0]) or table_of(inner[0], next(iter(REGISTRY[inner[0]])))
                if inner
                else VALUES.get(key, 2)
            )
            table[key] = [value] if key in ("parts", "densities", "factors") else value
    return table


def specification(part, name):
    """A specification of the lab with a word where words of its part stand."""
    table = json.loads(json.dumps(AROUND.get(part, FLOW)))
    word = table_of(part, name)
    *above, last = SLOTS[part].split(".")
    slot = functools.reduce(lambda inner, key: inner[key], above, table)
    slot[last] = {"stop": [word], "observable": {"x": word}}.get(part, word)
    return table


WORDS = {f"{part} {name}": specification(part, name) for part in SLOTS for name in REGISTRY[part]}
KINDS = {kind: tomllib.loads(text) for kind, text in TEXTS.items()}

AUDITED = """
import json, sys
import numpy
from attnflow.errors import AttnflowError
from attnflow.lab import carried, forms, saving

for word in forms.REGISTRY["kind"]:  # what the registry imports is there before anything is listened to
    forms.REGISTRY["kind"][word]
events = []
STARTS = "subprocess", "socket", "shutil", "os.system", "os.exec", "os.spawn", "os.posix_spawn", "os.fork", "os.mkdir"

def hear(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes)):
        events.append(str(arguments[0]))
    elif event.startswith(STARTS):
        events.append(event)

def outcome(call, table):
    events.clear()
    try:
        call(table)
        error = ""
    except AttnflowError as refused:
        error = str(refused)
    return error, list(events)

sys.addaudithook(hear)
tables = json.load(sys.stdin)
checks = {name: outcome(forms.check_table, table) for name, table in tables.items()}
builds = {name: outcome(forms.offered_spec, table) for name, table in tables.items() if not checks[name][0]}
print(json.dumps([checks, builds, "pip" in sys.modules]))
"""


@pytest.fixture(scope="module")
def outcomes():
    """What check_table says to every example, and what is opened or started by it and by making what it takes."""
    tables = json.dumps(WORDS | KINDS)
    command = [sys.executable, "-B", "-c", AUDITED]
    environment = {key: value for key, value in os.environ.items() if "CACHE" not in key}  # compiled programs are files
    output = subprocess.run(command, input=tables, capture_output=True, text=True, check=True, env=environment)
    return json.loads(output.stdout)


def strange(outcomes):
    """What was opened or started, Python, its packages and descriptions of devices (by JAX) apart."""
    homes = (sys.prefix, sys.base_prefix, str(Path(lab.__file__).parents[1]), "/sys/", "/proc/")
    return {event for _, events in outcomes.values() for event in events if not event.startswith(homes)}


@pytest.mark.slow
def test_every_kind_and_word_is_taken_or_refused_before_anything_is_opened(outcomes):
    checks, _, _ = outcomes
    assert REGISTRY.keys() == SLOTS.keys() | forms.UNDRAWN | {"kind"}
    refused = {name for name, (error, _) in checks.items() if error}
    assert refused == {"tokens file"} | KINDS.keys() - set(forms.KINDS)
    assert strange(checks) == set()
    assert {error for name, (error, _) in checks.items() if name in KINDS and error} == {
        "the specification has none of [solve], [solve_long], [evolve], [evolve_cells]; give one of them. `attnflow "
        "presets` shows complete ones."
    }


def test_what_is_taken_opens_no_file_and_starts_nothing(outcomes):
    _, builds, has_pip = outcomes
    assert strange(builds) == set()
    assert not has_pip
    assert sum(not error for error, _ in builds.values()) > len(builds) / 2  # of the others values do not fit


def test_the_forms_offer_what_is_taken():
    """A word that takes a path may not be offered, whatever it is called."""
    offered = forms.forms()
    assert set(offered["kinds"]) == set(forms.KINDS)
    for part in REGISTRY.keys() - {"kind", "observable"}:
        words = forms.OFFERED.words(part)
        assert set(offered["words"].get(part, ())) == set(words)
        for name, maker in words.items():
            hints = [hint.annotation for hint in inspect.signature(maker).parameters.values()]
            assert not any(Path in (hint, *typing.get_args(hint)) for hint in hints), name
            assert not {"path", "file", "folder", "network", "url"} & inspect.signature(maker).parameters.keys()
    assert {
        name for name, maker in REGISTRY["tokens"].items() if "path" in inspect.signature(maker).parameters
    } == forms.FILES
    for table in offered["examples"].values():
        forms.check_table(table)


def hostile(path):
    """Specifications that name a file, a network or a plugin."""
    nu = {"name": "file", "path": path}
    probe = {"probe": {"network": path, "texts": ["one two three"]}}
    return [
        probe,
        probe | FLOW,
        {"probe": {"network": "smollm2", "texts": ["one two three"]}},
        {"probe": {"network": "random-llama", "texts": ["one two three"]}},
        FLOW | {"tokens": nu},
        FLOW | {"tokens": {**TOKENS, "path": path}},
        FLOW | {"plugins": [path]},
        FLOW | {"field": {"name": "my-plugin", "path": path}},
        FLOW | {"field": {**FIELD, "value": {"name": "file", "path": path}}},
        FLOW | {"field": {**FIELD, "value": path}},
        FLOW | {"solve": {"until": 1.0, "save": {"name": "at", "times": path}}},
        FLOW | {"solve": {"until": 1.0, "save": path}},
        FLOW | {"solve": {"until": 1.0, "observe": {"x": {"name": "distance", "nu": nu}}}},
        FLOW
        | {"solve": {"until": 1.0, "observe": {"x": {"name": "distance", "nu": {"name": "array", "positions": path}}}}},
    ]


@pytest.mark.parametrize("place", ["flow", "folder", "address"])
def test_a_client_names_no_file_and_no_network(tmp_path, faults, place):
    """Every refusal is one sentence, the same whether the file is there or not, and nothing is written or started."""
    faults.replace("fetch a network", None)
    there, missing = tmp_path / "there.csv", tmp_path / "other.csv"
    there.write_text("1,0,0\n0,1,0\n")
    runs = tmp_path / "runs"
    runs.mkdir()

    def refusals(path):
        for table in hostile(path):
            asked = {"spec": table}
            if place == "folder":
                asked["save"] = "stolen"
            elif place == "address":
                asked = {"save": "stolen", "address": f"#source=python&spec={json.dumps(table)}"}
            messages, frames = answered(runs, **asked)
            assert messages.keys() == {"error", "number"}, table
            assert not frames
            assert "Error" not in messages["error"]
            yield messages["error"].replace(path, "PATH")

    assert list(refusals(str(there))) == list(refusals(str(missing)))
    assert list(runs.iterdir()) == []


@pytest.mark.parametrize("then", ["/etc/passwd", [["/etc/passwd", 1.0]], [[0.0, {"name": "file"}]], {"path": "x"}])
def test_changes_on_the_way_are_numbers(then):
    assert "numbers from 0 on" in answered(None, spec=FLOW, then=then)[0]["error"]
