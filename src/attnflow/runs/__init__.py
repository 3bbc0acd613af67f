"""Runs: a specification in TOML, and the folder that one execution of it leaves behind."""

from attnflow.runs.execute import check_spec, execute, extend, open_run, resume
from attnflow.runs.folder import Run, list_runs
from attnflow.runs.plugins import register
from attnflow.runs.presets import preset_names, preset_text
from attnflow.runs.spec import Spec, load_spec, parse_spec
from attnflow.runs.store import ZarrSink

__all__ = [
    "Run",
    "Spec",
    "ZarrSink",
    "check_spec",
    "execute",
    "extend",
    "list_runs",
    "load_spec",
    "open_run",
    "parse_spec",
    "preset_names",
    "preset_text",
    "register",
    "resume",
]
