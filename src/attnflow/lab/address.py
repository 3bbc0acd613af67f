"""An address of the lab as a specification: what the page shows, for a run folder."""

import contextlib
import json
import math
import urllib.parse
from collections.abc import Sequence
from typing import Any

import numpy as np
import tomli_w

from attnflow.errors import InvalidInput
from attnflow.lab.forms import check_table
from attnflow.lab.limits import check_tokens
from attnflow.runs.plugins import Given
from attnflow.runs.spec import Spec, parse_spec
from attnflow.spaces import Sphere
from attnflow.tokens import ring, uniform
from attnflow.wording import shown

FALLBACKS: dict[str, Any] = {
    "source": "page",
    "spec": "",
    "run": "",
    "space": "sphere",
    "n": 400,
    "seed": 0,
    "start": "uniform",
    "jitter": 0.01,
    "zipf": 0.0,
    "beta": 9.0,
    "model": "SA",
    "mask": "all",
    "value": "I",
    "noise": 0.0,
    "then": "",
    "t": 0.0,
    "words": "the cat saw the dog and the dog saw the cat",
    "points": "0,0,700,300,-900,200,1500,-400",
}
"""What an address leaves out; a test compares it with the table of the page."""
GRAIN = 1000
"""Painted points are angles in this part of a radian."""


def table_of(address: str) -> dict[str, Any]:
    """The specification, as a table, of the first setting that an address of the lab shows, up to its time.

    An address without a time goes to t = 10. Changes of beta, runs and recordings are refused.
    """
    state = dict(FALLBACKS)
    for part in urllib.parse.urlsplit(address).fragment.split("&"):
        key, _, value = part.partition("=")
        if key in state:
            kind = type(FALLBACKS[key])
            try:
                state[key] = kind(float(value)) if kind is int else kind(urllib.parse.unquote(value))
            except (ValueError, OverflowError):
                raise InvalidInput(f"`--from-url` has {key} = {shown(value)}; give a number.") from None
    check_tokens(state["n"])
    if state["source"] == "recording" or (state["source"] == "python" and state["run"]):
        raise InvalidInput("`--from-url` shows a finished run or a recording; give an address of the page or a form.")
    if state["then"]:
        raise InvalidInput("`--from-url` changes beta on its way, which no specification says; use Open in Python.")
    if state["source"] == "python":
        return _from_json(state["spec"])
    return _flow(state)


def spec_of_address(address: str, changes: Sequence[str] = (), plugins: Given = ()) -> Spec:
    """The specification of the first setting that an address of the lab shows, up to its time."""
    return parse_spec(tomli_w.dumps(table_of(address)), changes, plugins)


def _from_json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidInput(f"`--from-url` has the specification {shown(text)}; copy the address again.")
    return check_table(found)


def _flow(state: dict[str, Any]) -> dict[str, Any]:
    d = 2 if state["space"] == "circle" else 3
    field: dict[str, Any] = {"name": "attention", "beta": state["beta"]}
    if state["model"] != "SA":
        field["normaliser"] = {"name": "unnormalised", "clock": state["model"]}
    if state["mask"] == "causal":
        field["mask"] = {"name": "causal"}
    if state["value"] != "I":
        field["value"] = _matrix(state["value"], d)
    solve: dict[str, Any] = {"until": state["t"] or 10.0}
    if state["noise"]:
        solve["noise"] = {"name": "brownian", "kappa": state["noise"], "seed": state["seed"]}
    return {"name": "from-the-lab", "tokens": _tokens(state, d), "field": field, "solve": solve}


def _matrix(text: str, d: int) -> list[list[float]]:
    if text == "-I":
        return (-np.eye(d)).tolist()
    try:
        return np.array([float(one) for one in text.split(",")]).reshape(d, d).tolist()
    except ValueError:
        raise InvalidInput(f"`--from-url` has value = {shown(text)}; give {d * d} numbers, by rows.") from None


def _tokens(state: dict[str, Any], d: int) -> dict[str, Any]:
    """The start in words where specifications have some, else as an array."""
    n, seed = state["n"], state["seed"]
    own = {"words": _words, "points": _points}.get(state["start"])
    if own is None and not state["zipf"]:
        given = {"space": {"name": "sphere", "dim": d}, "n": n, "seed": seed}
        return (
            {"name": "ring", "jitter": state["jitter"], **given}
            if state["start"] == "ring"
            else {"name": "uniform", **given}
        )
    if own is not None:
        x, labels = own(state, d)
    else:
        made = (
            ring(Sphere(d), n=n, jitter=state["jitter"], seed=seed)
            if state["start"] == "ring"
            else uniform(Sphere(d), n=n, seed=seed)
        )
        x, labels = np.asarray(made.positions), None
    table = {"name": "array", "positions": x.tolist(), "normalise": True}
    if state["zipf"]:
        table["masses"] = (np.arange(1, len(x) + 1) ** -state["zipf"]).tolist()
    return table if labels is None else table | {"labels": labels}


def _words(state: dict[str, Any], d: int) -> tuple[np.ndarray, list[str]]:
    """A point for each word, as `page/own.js` draws it: equal words start at the same point."""
    words = state["words"].split()[:120]
    rows = [np.random.default_rng((_number(one) + state["seed"]) % 2**32).standard_normal(d) for one in words]
    return np.array([row / math.sqrt(row @ row) for row in rows]), words


def _number(word: str) -> int:
    """The hash FNV-1a of the bytes of a word in small letters."""
    found = 0x811C9DC5
    for byte in word.lower().encode():
        found = (found ^ byte) * 0x01000193 % 2**32
    return found


def _angles(text: str) -> list[float]:
    """The numbers of a text; what is none is left out."""
    found = []
    for one in text.split(","):
        with contextlib.suppress(ValueError):
            found.append(float(one) / GRAIN)
    return [one for one in found if math.isfinite(one)]


def _points(state: dict[str, Any], d: int) -> tuple[np.ndarray, None]:
    """Painted points as angles; a text that has none says those of the beginning, as in `page/state.js`."""
    numbers = _angles(state["points"])
    if len(numbers) < d - 1:
        numbers = _angles(FALLBACKS["points"])
    angles = np.array(numbers[: len(numbers) // (d - 1) * (d - 1)]).reshape(-1, d - 1)[:400]
    around, up = angles[:, 0], angles[:, 1] if d == 3 else np.zeros(len(angles))
    x = np.stack([np.cos(up) * np.cos(around), np.cos(up) * np.sin(around), np.sin(up)], axis=1)
    return x[:, :d], None
