"""Does `control.match_measures` carry random measures to random atoms? Ten minutes on two cores; part of `make long`.

    python campaigns/steering.py                   60 instances, seeds from the system, the record of today
    python campaigns/steering.py --seed 7 --instances 12 --record trial.json

20 instances on each of S^2, S^3 and S^7 with N = 2 ... 5 overlapping measures of 160 tokens and M = 1 or 4 atoms a
target. The first seed is drawn from the system when the campaign starts, so that it cannot have been used while the
code was written. Every measure is replayed alone under the one schedule. Exit code 1 if some W_2 is 1e-3 or more.
"""

import argparse
import concurrent.futures
import datetime
import secrets
import sys
import time
from pathlib import Path
from typing import Any

import _record

ROOT = Path(__file__).resolve().parent.parent
DIMS, TOKENS, SPREAD, TOL = (3, 4, 8), 160, 0.8, 1e-3


def one(seed: int, number: int) -> dict[str, Any]:
    """One instance: what was asked, and what was found."""
    import numpy as np

    from attnflow import Tokens, control, transport
    from attnflow.errors import AttnflowError
    from attnflow.experiments.kit.clouds import atoms, cloud

    d, count, each = DIMS[number % 3], 2 + number // 3 % 4, (1, 4)[number // 12 % 2]
    rng = np.random.default_rng([seed, number])
    inputs = [cloud(rng, d, TOKENS, SPREAD) for _ in range(count)]
    targets = [atoms(rng, d, each) for _ in range(count)]
    began = time.monotonic()
    row: dict[str, Any] = {"d": d, "measures": count, "atoms": each}
    try:
        match = control.match_measures(inputs, targets, seed=number)
    except AttnflowError as error:
        return row | {"error": str(error)}
    ends: list[Tokens] = [match.schedule(cloud) for cloud in inputs]
    found = [transport.distance(end, target, order=2) for end, target in zip(ends, targets, strict=True)]
    return row | {
        "w2": float(max(found)), "before": float(match.before.max()), "elements": len(match.schedule),
        "tries": match.tries, "seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, help="default: drawn from the system")
    parser.add_argument("--instances", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--record", type=Path, help="default: campaigns/records/steering-DATE.json")
    options = parser.parse_args()
    path = options.record or ROOT / "campaigns" / "records" / f"steering-{datetime.date.today()}.json"
    if _record.git(ROOT, "status", "--porcelain", "src"):
        print("src differs from the commit that the record will name; commit first.", file=sys.stderr)
        return 2
    seed = secrets.randbits(63) if options.seed is None else options.seed
    record = {"commit": _record.git(ROOT, "rev-parse", "HEAD").strip(), "seed": seed, "instances": []}
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        for row in pool.map(one, [seed] * options.instances, range(options.instances)):
            record["instances"].append(row)
            print(row, flush=True)
            _record.save(record, path)
    bad = [row for row in record["instances"] if not row.get("w2", 1.0) < TOL]
    print(f"{len(record['instances']) - len(bad)} of {len(record['instances'])} instances have W_2 below {TOL:g}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
