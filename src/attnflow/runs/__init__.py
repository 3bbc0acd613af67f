"""Runs: a specification in TOML, and the folder that one execution of it leaves."""

from typing import TYPE_CHECKING

from attnflow.lazy import loader

if TYPE_CHECKING:
    from attnflow.runs.execution import check_spec, ensure, execute, extend, open_run, redraw, resume
    from attnflow.runs.folder import Run
    from attnflow.runs.listing import list_runs
    from attnflow.runs.plugins import packed, register
    from attnflow.runs.presets import preset_names, preset_text
    from attnflow.runs.spec import Spec, load_spec, parse_spec, spec_of
    from attnflow.runs.store import ZarrSink

__all__ = [
    "Run",
    "Spec",
    "ZarrSink",
    "check_spec",
    "ensure",
    "execute",
    "extend",
    "list_runs",
    "load_spec",
    "open_run",
    "packed",
    "parse_spec",
    "preset_names",
    "preset_text",
    "redraw",
    "register",
    "resume",
    "spec_of",
]
_HOME = {
    "attnflow.runs.execution": ["check_spec", "ensure", "execute", "extend", "open_run", "redraw", "resume"],
    "attnflow.runs.folder": ["Run"],
    "attnflow.runs.listing": ["list_runs"],
    "attnflow.runs.plugins": ["packed", "register"],
    "attnflow.runs.presets": ["preset_names", "preset_text"],
    "attnflow.runs.spec": ["Spec", "load_spec", "parse_spec", "spec_of"],
    "attnflow.runs.store": ["ZarrSink"],
}
__getattr__, __dir__ = loader(__name__, _HOME)
