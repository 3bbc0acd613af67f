"""Is every field finite, or refused, at extreme beta, n and d? Half an hour on two cores; part of `make long`.

    python campaigns/extremes.py                                    beta = 0 to 10^4, n = 1 to 10^7, d = 2 to 4096
    python campaigns/extremes.py --fields softmax causal --sizes 1 2 300 --record trial.json

Sums over all pairs that would take more than a few seconds are left out and counted; 10^7 tokens are for the fields
that have a fast sum. The record has, for each field, how many examples are finite, refused and left out, and every
finding. Exit code 1 if there is one.
"""

import argparse
import collections
import itertools
import sys
import time
from pathlib import Path

import _record

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.extremes import BETAS, FIELDS, check, is_affordable  # noqa: E402
from tests.fuzz import Finding  # noqa: E402

SIZES = (1, 2, 3, 17, 300, 4_000, 100_000, 10_000_000)
DIMENSIONS = (2, 3, 4, 64, 512, 4096)


def main() -> int:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fields", nargs="*", default=list(FIELDS), choices=list(FIELDS))
    parser.add_argument("--sizes", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--record", type=Path, help="default: campaigns/records/extremes-DATE.json")
    options = parser.parse_args()
    tried = {"betas": list(BETAS), "sizes": options.sizes, "dimensions": list(DIMENSIONS)}
    path, record = _record.begin(ROOT, "extremes", options.record, **tried, fields={})
    for name in options.fields:
        began, counts, findings = time.process_time(), collections.Counter[str](), []
        for d, n, beta in itertools.product(DIMENSIONS, options.sizes, BETAS):
            if not is_affordable(name, beta, n, d):
                counts["left out"] += 1
                continue
            try:
                counts[check(name, beta, n, d)] += 1
            except Finding as finding:
                print(f"    {finding}", flush=True)
                findings.append(str(finding))
        record["fields"][name] = {
            "counts": dict(counts), "cpu_seconds": round(time.process_time() - began), "findings": findings,
        }  # fmt: skip
        print(f"{name}: {record['fields'][name]}", flush=True)
        _record.save(record, path)
    return bool(sum(len(found["findings"]) for found in record["fields"].values()))


if __name__ == "__main__":
    sys.exit(main())
