"""The plugins that a run was made with, as its manifest records them."""

from pathlib import Path
from typing import Any

from attnflow.errors import RunError
from attnflow.runs.plugins import Given, Plugins, current, execute_file, read


def checked(folder: Path, manifest: dict[str, Any], given: Given) -> Plugins:
    """The plugins that a run was made with; files are compared with the manifest before any of them is executed."""
    recorded = manifest.get("plugins") or []
    if not isinstance(given, Plugins) and not given:
        known = {entry["sha256"] for entry in recorded}
        given = Plugins(tuple(one for one in current().loaded if one.source.sha256 in known))
    sources = [one.source for one in given.loaded] if isinstance(given, Plugins) else read(given)
    hashes = [source.sha256 for source in sources]
    for entry in recorded:
        if entry["sha256"] in hashes:
            continue
        same = [source for source in sources if source.path.name == entry["file"]]
        if same:
            raise RunError(
                f"{str(same[0].path)!r} is not the file that {str(folder)!r} was made with (SHA-256 "
                f"{same[0].sha256[:12]}…, not {entry['sha256'][:12]}…); put it back ({same[0].copy} in the run folder "
                "is its text), or start a new run with it."
            )
        raise RunError(
            f"{str(folder)!r} was made with the file {entry['file']!r}, which is not given; use it with "
            f"`{resume_command(folder, manifest)}`, in Python with plugins=[{entry['path']!r}]."
        )
    for source in sources:
        if source.sha256 not in {entry["sha256"] for entry in recorded}:
            raise RunError(f"{str(folder)!r} was made without the file {str(source.path)!r}; leave it out.")
    return given if isinstance(given, Plugins) else Plugins(tuple(map(execute_file, sources)))


def resume_command(folder: Path, manifest: dict[str, Any]) -> str:
    """What a person types to continue a run, its plugins included."""
    return " ".join(
        [f"attnflow resume {folder}", *(f"--plugin {row['path']}" for row in manifest.get("plugins") or [])]
    )
