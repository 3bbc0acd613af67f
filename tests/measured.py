"""Costs of the cases of the suite: `pytest --measure FOLDER` writes one JSON line a case into FOLDER.

A line has the name of the case, its CPU seconds (those of its child processes among them), the number of programs that it
compiled with the seconds of compiling, lowering and tracing, and its marks.
"""

import json
import os
import time
from pathlib import Path

import jax.monitoring
import pytest

EVENTS = {
    "backend_compile_duration": "compile",
    "jaxpr_to_mlir_module_duration": "lower",
    "jaxpr_trace_duration": "trace",
}
MARKS = ("slow", "long", "optimised")


class Measured:
    """A plugin of pytest that measures."""

    def __init__(self, folder):
        self.path = Path(folder) / f"{os.getpid()}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.spent = dict.fromkeys(("programs", *EVENTS.values()), 0)
        jax.monitoring.register_event_duration_secs_listener(self.add)

    def add(self, name, seconds, **_facts):
        kind = EVENTS.get(name.rpartition("/")[2])
        if kind is not None:
            self.spent[kind] += seconds
            self.spent["programs"] += kind == "compile"

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        before, began, cpu = dict(self.spent), time.perf_counter(), _cpu()
        result = yield
        row = {"id": item.nodeid, "cpu": _cpu() - cpu, "wall": time.perf_counter() - began}
        row |= {name: value - before[name] for name, value in self.spent.items()}
        row = {name: round(value, 3) if isinstance(value, float) else value for name, value in row.items()}
        row["marks"] = [mark.name for mark in item.iter_markers() if mark.name in MARKS]
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        return result


def _cpu():
    return sum(os.times()[:4])
