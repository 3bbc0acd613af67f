"""What the manifest of a run holds."""

from typing import Any

from attnflow.runs.files import content_hash
from attnflow.wording import shown

FORMAT = 3
"""Of the folder: from 2 on the manifest has a digest; from 3 on `n` of clustered tokens counts all of them."""
ENTRIES: dict[str, Any] = {
    "format": int,
    "name": str,
    "status": str,
    "spec_hash": str,
    "created": str,
    "wall_time": int | float,
    "peak_memory": int | float,
    "versions": dict,
    "device": str,
    "platform": str,
    "dtype": str,
}
"""What every manifest has, and of which type."""
OPTIONAL: dict[str, Any] = {
    "checksums": dict,
    "outcome": dict,
    "summary": dict,
    "steps": dict,
    "plugins": list,
    "becoming": dict,
    "experiment": str,
    "message": str,
    "commit": str,
    "processor": str,
    "package": str,
    "sources": str,
    "finished": str,
    "cpu_time": int | float,
    "began": int | float,
    "salt": int,
    "frames": int,
    "quick": bool,
    "kind": str,
}
"""What it may have besides; None stands for nothing."""
STATUSES = ("created", "running", "drawing", "interrupted", "failed", "extending", "finished")


def damage(manifest: Any) -> str:
    """What is wrong with the content of a manifest; empty if nothing is."""
    if not isinstance(manifest, dict):
        return f"it is {shown(manifest)}"
    for key, kind in ENTRIES.items():
        if key not in manifest:
            return f"it has no {key!r}"
        if not isinstance(manifest[key], kind) or isinstance(manifest[key], bool):
            return f"{key!r} is {shown(manifest[key])}"
    if manifest["status"] not in STATUSES:
        return f"'status' is {shown(manifest['status'])}"
    for key, kind in OPTIONAL.items():
        if manifest.get(key) is not None and not isinstance(manifest[key], kind):
            return f"{key!r} is {shown(manifest[key])}"
    outcome = manifest.get("outcome")
    if outcome is not None and not all(isinstance(outcome.get(key), str) for key in ("ending", "message")):
        return f"'outcome' is {shown(outcome)}"
    for entry in manifest.get("plugins") or []:
        if not isinstance(entry, dict) or not all(isinstance(entry.get(k), str) for k in ("file", "path", "sha256")):
            return f"'plugins' has {shown(entry)}"
    for key in ("checksums", "versions"):
        if not all(isinstance(value, str) for value in (manifest.get(key) or {}).values()):
            return f"{key!r} has an entry that is no text"
    own = {key: value for key, value in manifest.items() if key != "digest"}
    if manifest["format"] != 1 and manifest.get("digest") != content_hash(own, ()):
        return "it was altered"
    return ""
