"""Hatchling calls this when it builds the package: the README gets addresses that hold on a package index."""

import runpy
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Readme(MetadataHookInterface):
    """The field `readme` of the metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """The text of README.md, with absolute links."""
        root = Path(self.root)
        absolute = runpy.run_path(str(root / "tools" / "readme.py"))["absolute"]
        text = absolute((root / "README.md").read_text(encoding="utf-8"), metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
