"""Which cases run when. Every case belongs to one tier:

| tier | cases | runs |
|---|---|---|
| test | all others | `make test` |
| study | marked `slow`, or listed in studies.txt | `make study`, CI |
| rotating | listed in rotating.txt, at most `MOST` | a quarter of them with every number of commits, in studies |
| experiment | quick versions of experiments, marked `quick` | in studies, a fifth in turn; also if their sources changed, unless `costly` |
| long | marked `long` | `make long` |

`make tiers` measures all cases and writes the two lists anew. Without a history of commits everything takes its turn.
`make everything` runs all but `long` and writes the commit into everything.txt, from which changes are counted.
"""

import functools
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from tests import sources

FOLDER = Path(__file__).parent
STUDIES, ROTATING, EVERYTHING = (FOLDER / name for name in ("studies.txt", "rotating.txt", "everything.txt"))
TIERS = ("test", "study", "rotating", "experiment", "long")
CHOICES = {
    "test": ("test",),
    "study": ("study", "rotating", "experiment"),
    "all": ("test", "study", "rotating", "experiment"),
    "everything": ("test", "study", "rotating", "experiment"),
    "steady": ("study",),
    "long": ("long",),
}
"""What `--tiers` may be, and the tiers that it runs; `steady` is the studies that every CI runs."""
MOST = 400
QUARTERS, FIFTHS = 4, 5
CASE, ALONE, COSTLY, HEAVY = 0.1, 1.0, 0.5, 3.0
"""CPU seconds: of a case that leaves `make test` if its test has a cheaper one; of one that leaves it although it is the
only case of its test; of a study that takes its turn if its test has a cheaper study; of one that does so anyway."""
RECORDS = FOLDER.parent / "campaigns" / "records"
STAYS = ("tests/certify/test_soundness.py", "tests/cli/", "tests/runs/test_folder.py::test_kill_minus_nine")


@functools.cache
def listed(path):
    """The cases on a list, in its order."""
    return {name: at for at, name in enumerate(path.read_text().splitlines())} if path.exists() else {}


def tier(item):
    """The tier of a case."""
    marks = {mark.name for mark in item.iter_markers()}
    if "long" in marks:
        return "long"
    if "quick" in marks:
        return "experiment"
    if item.nodeid in listed(ROTATING):
        return "rotating"
    return "study" if "slow" in marks or item.nodeid in listed(STUDIES) else "test"


def runs(item, choice, commits):
    """Whether a case runs with `--tiers choice` at this number of commits (None: unknown)."""
    kind = tier(item)
    if kind not in CHOICES[choice]:
        return False
    if choice == "everything" or commits is None:
        return True
    if kind == "rotating":
        return (listed(ROTATING)[item.nodeid] + commits) % QUARTERS == 0
    if kind == "experiment":
        name = item.callspec.params["name"]
        turn = (sorted(sources.experiments()).index(name) + commits) % FIFTHS == 0
        costly = item.get_closest_marker("quick").kwargs.get("costly", False)
        return turn or (not costly and sources.experiment_changed(name, since()))
    return True


@functools.cache
def since():
    """The commit at which everything ran."""
    return EVERYTHING.read_text().strip() if EVERYTHING.exists() else ""


@functools.cache
def commits():
    """How many commits led here; None without a whole history."""
    asked = ["git", "rev-parse", "--is-shallow-repository"], ["git", "rev-list", "--count", "HEAD"]
    try:
        shallow, count = (
            subprocess.run(one, cwd=FOLDER.parent, capture_output=True, text=True, check=True).stdout for one in asked
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return None if shallow.strip() == "true" else int(count)


def killers():
    """The cases that killed a mutant in `make test`, by the newest record of the campaign."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in RECORDS.glob("mutations-*.json")]
    newest = max(records, key=lambda record: record["date"], default={"mutants": []})
    return {mutant["by"] for mutant in newest["mutants"]}


def sorted_out(measured, kept=frozenset()):
    """(studies, rotating): lists of names from the measured cases, rows with id, cpu and marks.

    What is `kept` stays in `make test`, whatever it costs.
    """
    studies, turning, cases = [], [], defaultdict(list)
    for row in measured:
        if not {"long", "quick"} & set(row["marks"]):
            cases[row["id"].split("[")[0]].append(row)
    for test, rows in cases.items():
        rows.sort(key=lambda row: row["cpu"])
        costly = [row for row in rows[1:] if row["cpu"] > CASE] if len(rows) > 1 or rows[0]["cpu"] <= ALONE else rows
        leaving = [row for row in costly if row["id"] not in kept and not test.startswith(STAYS)]
        study = [row for row in rows if row in leaving or "slow" in row["marks"]]
        studies += study
        turning += [row for row in study if row["cpu"] > (HEAVY if row is study[0] else COSTLY)]
    turning.sort(key=lambda row: -row["cpu"])  # neighbours take different turns, so that all turns cost the same
    rotating = [row["id"] for row in turning[:MOST]]
    steady = {row["id"] for row in studies if "slow" not in row["marks"]} - set(rotating)
    return sorted(steady), rotating


if __name__ == "__main__":
    rows = [json.loads(line) for path in Path(sys.argv[1]).glob("*.jsonl") for line in path.read_text().splitlines()]
    for path, names in zip((STUDIES, ROTATING), sorted_out(rows, killers()), strict=True):
        path.write_text("".join(f"{name}\n" for name in names))
