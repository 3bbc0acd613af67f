"""The type stub of the front door, made from its lazy list: `python -m tests.stub` writes it."""

from pathlib import Path

import attnflow

PATH = Path(attnflow.__file__).with_suffix(".pyi")
HEADER = '''"""What `import attnflow` offers, for editors and type checkers; written by `python -m tests.stub`."""

# ruff: noqa: I001 (the order is that of the lazy list in __init__.py)

__version__: str
'''


def text():
    """One import for every name of `_HOME` and every room of `_ROOMS`; `as` marks it as public."""
    where = {room: path.rsplit(".", 1) for room, path in attnflow._ROOMS.items()}
    lines = [f"from {parent} import {module} as {room}" for room, (parent, module) in where.items()]
    lines += [f"from {home} import {name} as {name}" for home, names in attnflow._HOME.items() for name in names]
    return HEADER + "\n" + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PATH.write_text(text())
