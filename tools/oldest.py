"""Print the oldest versions that `pyproject.toml` allows, one `name==version` a line, as constraints for pip.

    python tools/oldest.py > build/oldest.txt && make test LOCK=build/oldest.txt VENV=build/oldest

The suite then runs with the lower bound of every requirement, of the package and of all its extras.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENT = re.compile(r"([\w-]+)>=([\d.]+)")


def oldest(project: dict[str, object]) -> dict[str, str]:
    """Return name -> lowest allowed version of every requirement in the table `project` of a pyproject.toml."""
    extras = project["optional-dependencies"]
    assert isinstance(extras, dict)
    requirements = [project["dependencies"], *extras.values()]
    bounds: dict[str, str] = {}
    for requirement in (requirement for group in requirements for requirement in group):  # type: ignore[attr-defined]
        if match := REQUIREMENT.match(requirement):
            name, version = match.groups()
            bounds[name] = max(bounds.get(name, version), version, key=lambda text: tuple(map(int, text.split("."))))
    return bounds


if __name__ == "__main__":
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    print(*(f"{name}=={version}" for name, version in sorted(oldest(project).items())), sep="\n")
