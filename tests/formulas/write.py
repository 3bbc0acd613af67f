"""Write the tables of oracles: `python -m tests.formulas.write [ROOM or ROOM.NAME ...]`; all rooms if left out."""

import json
import sys
import time

from tests.formulas.oracle import TABLES, table
from tests.formulas.rooms import FORMULAS, oracles


def write(room, names=()):
    """Write the table of a room anew, or the rows of some formulas of it."""
    rows = {name: row for name, row in table(room).items() if names and name in oracles(room)}
    for name, oracle in sorted(oracles(room).items()):
        if names and name not in names:
            continue
        began = time.perf_counter()
        rows[name] = [[point, oracle.exact(point)] for point in oracle.points(FORMULAS[name])]
        print(f"{name}: {len(rows[name])} points, {time.perf_counter() - began:.1f} s", flush=True)
    lines = [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(rows.items())]
    (TABLES / f"{room}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    wanted = sys.argv[1:] or sorted({name.split(".")[0] for name in FORMULAS})
    for entry in wanted:
        write(entry.split(".")[0], (entry,) if "." in entry else ())
