"""Does `certify` ever prove what is false? About an hour on one core; part of `make long`.

    python campaigns/certificates.py                                   everything, the record of today
    python campaigns/certificates.py --seed 7 --scale 0.05 --record trial.json
    python campaigns/certificates.py --seed 7 --share 3/16 --record part-3.json     one share of sixteen
    python campaigns/certificates.py --join part-*.json                             the record of today, of all shares

Certificates whose claims were made false by construction must be rejected by the checker (_forgeries.py); balls of
every primitive must hold their points, and flows must be inside their tubes at 50 digits (_enclosures.py); inputs near
degenerate ones, whose truth is known otherwise, must not give a false certificate (_adversaries.py). Equilibria and
complete lists are proved, and every certificate in docs/certificates is confirmed, lists over intervals of beta in
groups of slices. Exit code 1 if anything is wrong.
"""

import argparse
import json
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import _record
from _adversaries import adversaries
from _enclosures import balls, flows
from _forgeries import mutations
from attnflow import certify
from attnflow.certify.checking.words import statement

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.certify.shapes import CASES  # noqa: E402

LISTS = ((5, 1.0), (5, 5.0), (5, 9.0), (6, 1.0), (6, 2.0), (6, 4.0), (3, (-0.3, 20.0)), (4, (0.25, 10.0)))
SLICES = 4
"""Slices of beta that the checker confirms in one go."""
BLOCKS = 10
"""Blocks of random cases, each with random numbers of its own."""
RANDOM = {mutations: 300, balls: 10_000, adversaries: 1000, flows: 20}
"""Random cases of each part."""


def proved(search: Callable[[], Any], check: bool = True) -> tuple[Any, dict[str, Any]]:
    """What a search found; the seconds it took, and what the checker says of it, or why it is undecided."""
    began = time.process_time()
    found = search()
    row: dict[str, Any] = {"cpu": round(time.process_time() - began, 2)}
    if isinstance(found, certify.Undecided):
        return found, row | {"undecided": f"{found.reason}; {found.where}"}
    if check:
        began = time.process_time()
        row |= {"confirmed": certify.check(found).confirmed, "checker": round(time.process_time() - began, 1)}
    return found, row


def equilibria(first: int) -> list[dict[str, Any]]:
    """Every sixth configuration of tests/certify/shapes.py: its index, and whether it is the known one."""
    rows = []
    for name, tokens, beta, index in CASES[first::6]:
        found, row = proved(partial(certify.equilibrium, tokens, beta))
        if isinstance(found, certify.Certificate):
            own = [found.claims[key] for key in ("unstable", "stable", "rotations")]
            row |= {"index": own, "known": own == list(index)}
        rows.append({"name": name, "beta": beta} | row)
    return rows


def one_list(n: int, beta: Any) -> list[dict[str, Any]]:
    """One complete list: what it took; at one beta, what the checker says of it."""
    found, row = proved(partial(certify.circle_equilibria, n=n, beta=beta), check=not isinstance(beta, tuple))
    if isinstance(found, certify.Certificate):
        row |= {"classes": found.claims["classes"], "euler": found.claims["euler"], **found.enclosures}
    return [{"n": n, "beta": beta} | row]


def saved(path: Path, first: int) -> list[dict[str, Any]]:
    """What the checker says of a certificate of the documents: all of it, or some of its slices of beta."""
    one = json.loads(path.read_text(encoding="utf-8"))
    if one["kind"] == "circle list":
        one["data"]["slices"] = part = one["data"]["slices"][first : first + SLICES]
        one["claims"]["beta"] = [part[0]["beta"][0], part[-1]["beta"][1]]
        one["statement"] = statement(one["kind"], one["claims"], one["data"])
    began = time.process_time()
    found = certify.check(one)
    row = {"file": path.name, "beta": one["claims"]["beta"], "confirmed": found.confirmed}
    return [row | {"reason": found.reason, "checker": round(time.process_time() - began, 1)}]


def units(seed: int, scale: float) -> Iterator[tuple[str, Callable[[], Any]]]:
    """All the work: (part, function), in an order that does not depend on the machine. Long ones come first."""
    if scale >= 1:
        for n, beta in reversed(LISTS):
            yield "lists", partial(one_list, n, beta)
        for first in range(6):
            yield "equilibria", partial(equilibria, first)
        for path in sorted((ROOT / "docs" / "certificates").glob("*.json")):
            one = json.loads(path.read_text(encoding="utf-8"))
            for first in range(0, len(one["data"]["slices"]) if one["kind"] == "circle list" else 1, SLICES):
                yield "saved", partial(saved, path, first)
    for block in range(BLOCKS):
        for number, (part, count) in enumerate(RANDOM.items()):
            rng, each = np.random.default_rng([seed, number, block]), max(int(scale * count) // BLOCKS, 1)
            arguments = (rng, each, block == 0) if part is adversaries else (rng, each)
            yield part.__name__, partial(part, *arguments)


def joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """One record of all shares: counts are added, findings are put one after the other."""
    first, done = parts[0], [unit for part in parts for unit in part["units"]]
    for part in parts[1:]:
        for key in ("seed", "scale", "source", "of"):
            if part[key] != first[key]:
                raise SystemExit(f"these are shares of two campaigns: {key} is {first[key]!r} and {part[key]!r}.")
    done = list({unit["number"]: unit for unit in done}.values())  # of a unit that was done twice, the later one
    numbers = sorted(unit["number"] for unit in done)
    if numbers != list(range(first["of"])):
        raise SystemExit(f"there are {len(numbers)} units of {first['of']}; a share is missing.")
    found: dict[str, Any] = {"seed": first["seed"], "scale": first["scale"], "source": first["source"]}
    for unit in sorted(done, key=lambda one: one["number"]):
        name, value = unit["part"], unit["found"]
        found[name] = _added(found[name], value) if name in found else value
    found["cpu"] = round(sum(unit["cpu"] for unit in done))
    found["adversaries"]["count"] = sum(sum(row.values()) for row in found["adversaries"]["cases"].values())
    return found


def _added(one: Any, two: Any) -> Any:
    """Numbers added, lists put one after the other, tables entry by entry."""
    if not isinstance(one, dict):
        return one + two
    both = {key: _added(one[key], two[key]) for key in one if key in two}
    return one | two | both


def wrong(record: dict[str, Any]) -> bool:
    """Whether anything was found that must not be."""
    rows = [row for part in ("equilibria", "lists", "saved") for row in record.get(part, ())]
    found = [
        record["mutations"]["accepted"],
        record["adversaries"]["false"],
        record["flows"]["outside"],
        any(record["balls"]["outside"].values()),
        any("undecided" in row or row.get("confirmed") is False or row.get("known") is False for row in rows),
    ]
    return any(map(bool, found))


def main() -> int:
    """Run the campaign, a share of it, or join shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, help="default: drawn from the system; shares need the same")
    parser.add_argument("--scale", type=float, default=1.0, help="a fraction of all cases")
    parser.add_argument("--share", help="K/N: every N-th piece of work from the K-th on (0 to N - 1), into --record")
    parser.add_argument("--only", help="one part of the share: mutations, balls, adversaries, flows, lists, saved, ...")
    parser.add_argument("--join", type=Path, nargs="+", help="records of all shares; the later counts")
    parser.add_argument("--record", type=Path, help="default: campaigns/records/certificates-DATE.json")
    options = parser.parse_args()
    if options.join:
        parts = [json.loads(path.read_text(encoding="utf-8")) for path in options.join]
    else:
        seed = secrets.randbits(63) if options.seed is None else options.seed
        which, many = map(int, (options.share or "0/1").split("/"))
        work = list(enumerate(units(seed, options.scale)))
        part: dict[str, Any] = {"seed": seed, "scale": options.scale, "source": _record.of_folder(ROOT)}
        part |= {"of": len(work), "units": []}
        for number, (name, function) in work[which::many]:
            if options.only not in (None, name):
                continue
            began = time.process_time()
            found = function()
            cpu = round(time.process_time() - began, 1)
            part["units"].append({"number": number, "part": name, "found": found, "cpu": cpu})
            print(number, name, f"{cpu} s", flush=True)
        if options.share:
            options.record.write_text(json.dumps(part) + "\n", encoding="utf-8")
            return 0
        parts = [part]
    record = joined(parts)
    path, head = _record.begin(ROOT, "certificates", options.record)
    if head["source"] != record["source"]:
        raise SystemExit("src is not what the shares ran with.")
    record = head | record
    _record.save(record, path)
    return int(wrong(record))


if __name__ == "__main__":
    sys.exit(main())
