"""Carry out work in a folder and show it: the bar while it runs, the closing table after it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attnflow.cli.console import leave_interrupted, say, stoppable


def perform(start: Callable[..., Any], where: Path, name: str, json_: bool, figures: bool = True) -> None:
    """Run with a progress bar, then print the closing table."""
    from attnflow.cli.progress import Bar
    from attnflow.cli.tables import print_run
    from attnflow.plots import draw_run, summarise

    with stoppable(), Bar(say, name, figures=figures) as bar:

        def draw(run: Any, flow: Any) -> dict[str, Any]:
            bar.drawing()
            return draw_run(run, flow, bar.figure) if figures else summarise(flow)

        try:
            finished, _ = start(draw=draw, on_progress=bar.update)
            interrupted = finished.manifest()["status"] != "finished"
        except KeyboardInterrupt:
            interrupted = True
        if interrupted:
            bar.stop()
            leave_interrupted(where)
    if json_:
        print(json.dumps({"run": str(where), **finished.manifest()}, indent=2))
    else:
        print_run(finished)
