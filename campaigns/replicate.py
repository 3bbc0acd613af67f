"""Do the claims of the gallery hold for fresh random numbers? Hours on two cores; part of `make long`.

    python campaigns/replicate.py                     all experiments in full, five or ten salts, the record of today
    python campaigns/replicate.py vertices --salts 7 8 --runs /tmp/again
    python campaigns/replicate.py --on tcp://HOST:PORT --runs /shared/again

Every random stream of an experiment depends on its salt (`attnflow reproduce NAME --salt 7`). The record holds every
claim that failed, with what was found; a statistical claim may fail at the level that its text states. The campaign is
a sweep over experiments and salts in the folder `--runs`: runs that are finished there are not repeated, an interrupted
campaign continues, and the workers of a cluster share it. Exit code 1 if a claim failed.
"""

import argparse
import datetime
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import _record

ROOT = Path(__file__).resolve().parent.parent
SEED = 20261118
"""Chosen before the first of its salts was used. After a failure the claim changes, and a new seed is taken."""
AGAIN = dict.fromkeys(("conditional-sampling", "homogenisation-rate", "layer-norms"), 20261119)
"""Experiments whose claims changed after a failure, with the seed of their new salts."""
TEN = (
    "causal-rate",
    "changing-weights",
    "conditional-sampling",
    "distances-through-time",
    "general-interaction",
    "homogenisation-rate",
    "mixed-values",
    "perceptron-holds-clusters",
    "places",
    "several-heads",
    "skip-strength",
    "sphere-patterns",
    "stability-of-measures",
)
"""Experiments that are repeated with ten salts; the others with the first five of them."""


def salt_of(name: str, salt: int) -> int:
    """A salt that is given stays; -1 to -10 are those that the seed of the experiment draws."""
    return salt if salt >= 0 else random.Random(AGAIN.get(name, SEED)).sample(range(1000, 10**6), 10)[-1 - salt]


def salts_of(name: str) -> list[int]:
    """The salts of an experiment if none are given."""
    return [-1 - k for k in range(10 if name in TEN else 5)]


def one(name: str, salt: int, folder: str) -> dict[str, str]:
    """One experiment with one salt, in a process of its own; {"error"} where it could not be carried out."""
    salt = salt_of(name, salt)
    where = Path(folder) / f"{name}-{salt}"
    verb = ["resume", str(where)] if (where / "manifest.json").exists() else ["reproduce", name, "--salt", str(salt)]
    verb += [] if verb[0] == "resume" else ["--out", str(where)]
    done = subprocess.run([sys.executable, "-m", "attnflow", *verb], capture_output=True, text=True)
    if not (where / "claims.json").exists():
        raise RuntimeError((done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1])
    claims = json.loads((where / "claims.json").read_text())
    facts = json.loads((where / "manifest.json").read_text())
    kept = ("statement", "predicted", "measured", "tolerance", "detail")
    failed = [{key: claim[key] for key in kept} for claim in claims if not claim["holds"]]
    found = {"claims": len(claims), "wall_time": round(facts["wall_time"]), "commit": facts["commit"]}
    return {"found": json.dumps(found | {"failed": failed})}


def found_by(sweep: Any) -> dict[tuple[str, int], dict[str, Any]]:
    """What came of each experiment and salt."""
    errors = {(point["name"], point["salt"]): {"error": error} for point, error in sweep.errors}
    texts = sweep.dataset["found"].stack(point=("name", "salt", "folder")) if "found" in sweep.dataset else ()
    rows = {(str(t["name"].item()), int(t["salt"].item())): json.loads(str(t.item())) for t in texts if str(t.item())}
    return rows | errors


def main() -> int:
    """Run the campaign."""
    import attnflow as af
    from attnflow.experiments import Salted, find, names

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="experiments; all by default")
    parser.add_argument(
        "--salts",
        type=int,
        nargs="+",
        help="by default five or, for some experiments, ten, drawn from the seed of the campaign",
    )
    parser.add_argument("--on", default="local", help="here, local, or the address of a Dask scheduler")
    parser.add_argument("--jobs", type=int, help="experiments at a time; one a core by default")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "replicate", help="where the run folders go")
    parser.add_argument("--record", type=Path, help="default: campaigns/records/replicate-DATE.json")
    options = parser.parse_args()
    chosen = [name for name in options.names or names() if issubclass(find(name).module().Parameters, Salted)]
    path = options.record or ROOT / "campaigns" / "records" / f"replicate-{datetime.date.today()}.json"
    record = _record.load(path) if path.exists() else {"runs": {}}
    runs = options.runs.resolve()
    groups: dict[tuple[int, ...], list[str]] = {}
    for name in chosen:
        groups.setdefault(tuple(options.salts or salts_of(name)), []).append(name)
    bad, rows_of = 0, {}
    for salts, some in groups.items():
        sweep = af.sweep(
            one,
            {"name": some, "salt": list(salts), "folder": [str(runs)]},
            runs / f"sweep-{len(salts)}",
            on=options.on,
            workers=options.jobs,
            retry=True,
            on_progress=lambda at: print(f"{at.done} of {at.of} done, {at.failed} failed {at.note}", flush=True),
        )
        rows_of |= found_by(sweep)
    for (name, given), found in sorted(rows_of.items()):
        salt = salt_of(name, given)
        failed = found.get("failed", [])
        bad += "error" in found or bool(failed)
        words = found.get("error") or f"{len(failed)} of {found['claims']} claims fail, {found['wall_time']} s"
        rows = [
            f"\n    {one['statement']}: {one['measured']} against {one['predicted']} ± {one['tolerance']}"
            for one in failed
        ]
        print(f"{name}, salt {salt}: {words}", *rows, flush=True)
        record["runs"].setdefault(name, {})[str(salt)] = found
    record["runs"] = dict(sorted(record["runs"].items()))
    _record.save(record, path)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
