"""An address of the lab as a specification: the start is the one that the page draws."""

import json
import urllib.parse

import numpy as np
import pytest

from attnflow import lab
from attnflow.errors import InvalidInput
from tests.cli.test_cli import attnflow
from tests.lab.v8 import call

PAGE = "http://127.0.0.1:8000/?token=x#"
START = "(hash) => Array.from(modules.starts.positions(modules.state.settingOf(modules.state.parsed(hash), false)))"
MASSES = "(hash) => Array.from(modules.starts.masses(modules.state.settingOf(modules.state.parsed(hash), false)))"


@pytest.mark.parametrize("state", ["", "start=ring&space=circle", "start=words", "start=points"])
def test_what_an_address_leaves_out_is_what_the_page_has(state):
    table = call("() => Object.fromEntries(Object.entries(modules.state.TABLE).map(([k, e]) => [k, e.fallback]))")
    whole = urllib.parse.urlencode(table | dict(urllib.parse.parse_qsl(state)), quote_via=urllib.parse.quote)
    assert lab.spec_of_address(PAGE + whole).table == lab.spec_of_address(PAGE + state).table


@pytest.mark.parametrize(
    "state",
    [
        "n=12&seed=3",
        "space=circle&start=ring&n=9&jitter=0.1&seed=2",
        "space=circle&n=7&zipf=1.5",
        "start=words&words=a%20B%20\u00e9t\u00e9%20a&seed=9",
        "start=points&points=100,200,-300,400,50,60",
        "start=points&space=circle&points=100,200,-300",
        "start=points&points=a,b",
        "start=points&points=1,x,2",
        "start=words&words=one",
    ],
)
def test_starts_are_those_of_the_page(state):
    """To 1e-14: both draw by PCG64 and the ziggurat; cosines and square roots round by 2^-53."""
    tokens = lab.spec_of_address(PAGE + state).work.tokens
    np.testing.assert_allclose(np.ravel(tokens.positions), call(START, f"#{state}"), rtol=0, atol=1e-14)
    np.testing.assert_allclose(np.ravel(tokens.masses), call(MASSES, f"#{state}"), rtol=1e-12)


def test_the_dynamics_are_those_of_the_page():
    spec = lab.spec_of_address(PAGE + "n=5&beta=3&model=USA0&mask=causal&value=1,0,0,0,2,0,0,0,3&noise=0.1&t=4")
    field, work = spec.table["field"], spec.table["solve"]
    assert (field["beta"], field["mask"]["name"], field["normaliser"]["name"]) == (3.0, "causal", "unnormalised")
    assert field["value"] == [[1, 0, 0], [0, 2, 0], [0, 0, 3]]
    assert (work["until"], work["noise"]["kappa"]) == (4.0, 0.1)
    table = {
        "tokens": {"name": "simplex", "n": 3, "space": {"name": "sphere", "dim": 3}},
        "field": {"name": "attention", "beta": 1},
        "solve": {"until": 1},
    }
    own = lab.spec_of_address(f"{PAGE}source=python&spec={urllib.parse.quote(json.dumps(table))}")
    assert own.table["tokens"]["name"] == "simplex"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("then=1:2", "changes beta"),
        ("source=recording", "recording"),
        ("source=python&run=x", "finished run"),
        ("source=python&spec=x", "copy the address"),
        ("n=many", "give a number"),
        ("source=python&spec=%7B%22tokens%22:%7B%22name%22:%22file%22%7D%7D", "names a file"),
        ("n=1e15&zipf=1", "at most 100000"),
        ("value=1,2", "9 numbers"),
    ],
)
def test_what_no_specification_says_is_refused(state, words):
    with pytest.raises(InvalidInput, match=words):
        lab.spec_of_address(PAGE + state)


def test_the_command_takes_one_of_both(tmp_path):
    for given in ([], ["metastability", "--from-url", PAGE]):
        refused = attnflow("run", *given, cwd=tmp_path, check=2)
        assert "one specification" in refused.stderr
