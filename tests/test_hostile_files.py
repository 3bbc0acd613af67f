"""Pipes, devices, files of holes, bombs, depth: one sentence each at the doors, without waiting and within little memory."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path


def test_every_door_refuses_hostile_files_in_one_sentence(tmp_path):
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile_files", str(tmp_path)],
        cwd=root, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])},
    )  # fmt: skip
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr[-2000:]
    wrong = {
        row["case"]: row["said"]
        for row in rows
        if "Traceback" in row["said"] or len(row["said"]) > 500 or not re.search(row["words"], row["said"])
    }
    assert not wrong, json.dumps(wrong, indent=1)
    assert len(rows) > 80
