"""The public formulas by room, and their oracles."""

import importlib
import inspect

import attnflow
from attnflow import theory
from attnflow.flows import Observable
from tests.formulas.oracle import ORACLES

ROOMS = {
    "theory": theory,
    "uniform": theory.uniform,
    "merging": theory.merging,
    "landscape": theory.landscape,
    "causal": theory.causal,
    "random_layers": theory.random_layers,
    "special": attnflow.special,
    "observe": attnflow.observe,
    "transport": attnflow.transport,
    "meanfield": attnflow.meanfield,
    "layers": attnflow.random_layers,
}
"""Short names of rooms; "random_layers" is the one of theory."""
FORMULAS = {
    f"{room}.{name}": function
    for room, module in ROOMS.items()
    for name in module.__all__
    if hasattr(function := getattr(module, name), "domain")
}


def functions(room):
    """Names of all public functions and observables of a room, formulas or not."""
    values = {name: getattr(ROOMS[room], name) for name in ROOMS[room].__all__}
    return {name for name, value in values.items() if inspect.isfunction(value) or isinstance(value, Observable)}


def oracles(room):
    """The oracles of a room by name."""
    importlib.import_module(f"tests.formulas.{room}")
    return {name: oracle for name, oracle in ORACLES.items() if name.startswith(f"{room}.")}


def procedures(room):
    """Public functions of a room that are no formulas, each with what it is instead."""
    return getattr(importlib.import_module(f"tests.formulas.{room}"), "PROCEDURES", {})
