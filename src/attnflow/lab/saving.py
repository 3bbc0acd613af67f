"""A run folder that the page asks for: what it shows, carried out below the chosen folder of runs."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attnflow import runs
from attnflow.errors import InvalidInput
from attnflow.lab.address import table_of
from attnflow.lab.forms import offered_spec
from attnflow.lab.limits import FOLDER, check_tokens, is_single
from attnflow.lab.sources import AbstractSource
from attnflow.wording import shown

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


class Saved(AbstractSource):
    """Writes the run folder `name` below `root`, of a specification or of an address of the page."""

    def __init__(self, asked: dict[str, Any], root: Path | None, cancel: Callable[[], bool]):
        self.path, self.cancel = folder_for(asked.get("save"), root), cancel
        super().__init__(self.path.name, None)
        table = asked.get("spec")
        if isinstance(address := asked.get("address"), str):
            table = table_of(address)
        self.spec = offered_spec(table)
        if (tokens := getattr(self.spec.work, "tokens", None)) is not None:
            check_tokens(tokens.n)
        size = runs.check_spec(self.spec, self.path).layout.size
        if size > FOLDER:
            raise InvalidInput(
                f"the run folder would hold {size / 2**20:.0f} MiB; the lab writes at most {FOLDER / 2**20:.0f}. "
                "Choose fewer tokens or frames, or use `attnflow run`."
            )

    def stream(self, begun: Callable[[dict[str, Any]], None], give: Callable[[bytes], None]) -> str:
        """Carry the work out; no frames are given. An interrupted folder stays, and can be resumed."""
        from attnflow.plots.report import draw_run

        begun({"saving": self.path.name})
        runs.execute(self.spec, self.path, draw=draw_run, on_progress=lambda _: None, cancel=self.cancel)
        return f"written: {self.path}"


def folder_for(name: Any, root: Path | None) -> Path:
    """The path of a new run folder: a plain name directly below the chosen folder of runs."""
    if root is None or is_single(root):
        raise InvalidInput("the lab was started without a folder of runs; start it with one, `attnflow lab runs`.")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InvalidInput(f"`save` is {shown(name)}; give a name of letters, digits, dots, dashes and underscores.")
    path = root / name
    if path.exists() or path.is_symlink():
        raise InvalidInput(f"there is a {shown(name)} already; choose another name.")
    return path
