"""Which cases `make test` leaves to `make study`: `tests/studies.txt`, one name a line.

`make tiers` runs the suite with its durations and writes the list anew. A case goes to the studies if it takes more than
`CASE` seconds and its test has a cheaper case, or if it is the only case of its test and takes more than `ALONE` seconds.
So every test but the most expensive ones keeps a case in `make test`. The command line, which is tested from end to end,
stays. Names that no longer exist do no harm.
"""

import collections
import re
import sys
from pathlib import Path

PATH = Path(__file__).parent / "studies.txt"
CASE, ALONE = 0.3, 2.9
STAYS = ("tests/cli/", "tests/runs/test_folder.py::test_kill_minus_nine")


def names():
    """The cases on the list."""
    return set(PATH.read_text().splitlines()) if PATH.exists() else set()


def chosen(log):
    """The names that the durations in `log` send to the studies."""
    cost, cases = collections.Counter(), collections.defaultdict(list)
    for seconds, name in re.findall(r"^\s*([\d.]+)s (?:call|setup|teardown)\s+(tests/.*?)\s*$", log, flags=re.M):
        cost[name] += float(seconds)
    for name in cost:
        cases[name.split("[")[0]].append(name)
    for test, found in cases.items():
        if test.startswith(STAYS):
            continue
        if len(found) == 1:
            yield from (name for name in found if cost[name] > ALONE)
        else:
            yield from (name for name in sorted(found, key=lambda name: cost[name])[1:] if cost[name] > CASE)


if __name__ == "__main__":
    PATH.write_text("\n".join(sorted(chosen(Path(sys.argv[1]).read_text()))) + "\n")
