"""Does a damaged or hostile file of weights always end in an answer or one sentence? Minutes; part of `make long`.

    python campaigns/weights.py                                    10,000 mutated headers, the record of today
    python campaigns/weights.py --count 500 --seed 3 --record trial.json

Whole files of four formats (safetensors, GGUF, torch zipped and of the older kind) are mutated in their headers, and
read as `network` reads them, by processes that may take the size of the file and 256 MB (`tests/probe/hostile.py`). A
finding is a traceback, a refusal that is not one sentence, an event that runs foreign code, memory or a process that
ends early. The hostile files that have names are read too. Exit code 1 if there is a finding.
"""

import argparse
import collections
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import _record

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.probe import hostile, small  # noqa: E402

BATCH = 1000
"""Files that one process reads."""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--count", type=int, default=10_000, help="mutated files")
    options.add_argument("--seed", type=int, default=34)
    options.add_argument("--record", type=Path, help="where the record goes")
    given = options.parse_args()
    path, record = _record.begin(ROOT, "weights", given.record, count=given.count, seed=given.seed)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        wholes = small.wholes(Path(folder))
        config = (Path(folder) / "config.json").read_bytes()
    named = {name.replace(" ", "_"): content for name, content in hostile.hostile().items()}
    rows = read(wholes, config, named)
    refused_by_name = sum(row["said"] != "read" for row in rows if row["file"] in named)
    files = list(hostile.mutants(wholes, given.seed, given.count))
    mutated: list[dict[str, Any]] = []
    for first in range(0, len(files), BATCH):
        mutated += read(wholes, config, dict(files[first : first + BATCH]))
        print(f"{len(mutated)} of {given.count}", flush=True)
    record["findings"] = [row for row in rows + mutated if is_finding(row)]
    record["hostile"] = {"files": len(named), "refused": refused_by_name}
    said = collections.Counter(
        (row["file"].split("-", 1)[1], "read" if row["said"] == "read" else "refused") for row in mutated
    )
    record["mutants"] = {f"{form}, {what}": count for (form, what), count in sorted(said.items())}
    record["peak_mb"] = max(row["peak_mb"] for row in rows + mutated)
    record["seconds"] = round(time.monotonic() - started)
    _record.save(record, path)
    print(f"record: {path}, {len(record['findings'])} findings")
    sys.exit(1 if record["findings"] or refused_by_name < len(named) else 0)


def read(wholes: dict[str, bytes], config: bytes, files: dict[str, bytes]) -> list[dict[str, Any]]:
    """What a process says about these files; one at which it ended early is a finding, and the rest are read again."""
    found: list[dict[str, Any]] = []
    left = dict(files)
    while left:
        with tempfile.TemporaryDirectory() as folder:
            for name, content in ({f"whole-{name}": one for name, one in wholes.items()} | left).items():
                (Path(folder) / name).write_bytes(content)
            (Path(folder) / "config.json").write_bytes(config)
            command = [sys.executable, "-m", "tests.probe.hostile", folder]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            if list(Path(folder).glob("HACKED*")):
                raise SystemExit("a file of weights ran code; look at the batch that was read last.")
        rows = [row for row in map(json.loads, done.stdout.splitlines()) if row["file"] in left]
        found += rows
        for row in rows:
            del left[row["file"]]
        if left:
            culprit = min(left)
            if done.returncode == 0:
                raise SystemExit(f"{culprit} was not read.")
            said = f"the process ended with {done.returncode}\n{done.stderr[-1000:]}"
            found.append({"file": culprit, "said": said, "events": [], "peak_mb": 0})
            del left[culprit]
    return found


def is_finding(row: dict[str, Any]) -> bool:
    """Whether a file got anything else than an answer or one sentence."""
    said = row["said"]
    sentence = said.endswith(".") and "\n" not in said and len(said) < 500
    return bool(row["events"]) or not (said == "read" or sentence)


if __name__ == "__main__":
    main()
