"""Runs where Python lacks what Linux has; the work is in `elsewhere.py`, in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.long
@pytest.mark.parametrize("locks", ["system", pytest.param("file", marks=pytest.mark.slow)])
def test_a_run_without_fcntl_resource_and_proc(locks, tmp_path):
    """Executed, resumed, opened, listed; refused while a living process holds it, and free once that one is killed."""
    script = Path(__file__).with_name("elsewhere.py")
    done = subprocess.run([sys.executable, str(script), str(tmp_path), locks], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
