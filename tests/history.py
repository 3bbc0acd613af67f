"""Which commits the checkout descends from."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent


def in_history(commit):
    """Whether HEAD descends from a commit; an unpacked archive has no history to ask, and nothing to say against it."""
    if not (ROOT / ".git").exists():
        return True
    asked = ["git", "merge-base", "--is-ancestor", commit, "HEAD"]
    return subprocess.run(asked, cwd=ROOT, capture_output=True).returncode == 0
