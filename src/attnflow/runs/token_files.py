"""Files of tokens that a specification names, read when it is."""

from pathlib import Path
from typing import Any

import numpy as np

from attnflow.checks import shown
from attnflow.errors import InvalidSpec
from attnflow.reading import LARGEST_TEXT
from attnflow.tokens.files import read_tokens

MOST_NUMBERS = 10**6
"""Coordinates of tokens that a specification holds."""


def with_files(node: Any, folder: Path) -> Any:
    """Tables of tokens from a file as tables of arrays, so that a run depends on nothing outside its folder."""
    if isinstance(node, list):
        return [with_files(item, folder) for item in node] if node and isinstance(node[0], dict) else node
    if not isinstance(node, dict):
        return node
    if node.get("name") != "file" or not isinstance(node.get("path"), str):
        return {key: with_files(value, folder) for key, value in node.items()}
    found = {key: np.asarray(value) for key, value in read_tokens(folder / node["path"], LARGEST_TEXT).items()}
    if found["positions"].size > MOST_NUMBERS:
        raise InvalidSpec(
            f"`path` is {shown(node['path'])}, which holds {found['positions'].size} numbers; a specification takes "
            f"{MOST_NUMBERS}: use from_file in Python, and runs.ensure for a folder."
        )
    rest = {key: value for key, value in node.items() if key != "path"}
    return rest | {"name": "array"} | {key: value.tolist() for key, value in found.items()}
