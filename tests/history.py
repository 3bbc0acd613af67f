"""Which commits the checkout descends from."""

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent
SQUASHED = json.loads((ROOT / "campaigns" / "squashed.json").read_text(encoding="utf-8"))
"""Commits that records name and that became one before they reached main, and that one."""


def is_squashed(commit):
    """Whether a commit was squashed, so that its own source can no longer be checked."""
    return commit in SQUASHED["commits"]


def in_history(commit):
    """Whether HEAD descends from a commit; an unpacked archive has no history to ask, and nothing to say against it.

    A squashed commit stands for the one that holds its work.
    """
    if not (ROOT / ".git").exists():
        return True
    kept = SQUASHED["into"] if is_squashed(commit) else commit
    asked = ["git", "merge-base", "--is-ancestor", kept, "HEAD"]
    return subprocess.run(asked, cwd=ROOT, capture_output=True).returncode == 0
