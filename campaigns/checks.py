"""Do the records of the campaigns say what the project claims? `make records`; part of `make release-check`.

    python campaigns/checks.py                    all checks
    python campaigns/checks.py physics long       these only

Every check reads the newest record of a campaign in `campaigns/records` and prints a line with yes or no; exit code 1
if one says no. A record of broken physics counts for the program that it ran with (`_program.py`), the record of `long`
cases (`long.py`) for the source that it ran with. Commits in records are information for readers.
"""

import argparse
import ast
import itertools
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import _mutants
import _record
from _program import program_hash

ROOT = Path(__file__).resolve().parent.parent
RECORDS = ROOT / "campaigns" / "records"
GALLERY = ROOT / "src" / "attnflow_gallery"
Record = dict[str, Any]

LEAST_MUTANTS = 120
LONGEST = {3: 180, 4: 180, 5: 10, 6: 90}
"""CPU seconds that a complete list of equilibria of n tokens may take."""
CLASSES = {
    (3, "[-0.3, 20.0]"): 3, (4, "[0.25, 10.0]"): 5, (5, "1.0"): 7, (5, "5.0"): 7, (5, "9.0"): 7, (6, "1.0"): 12,
    (6, "2.0"): 12, (6, "4.0"): 12,
}  # fmt: skip
"""Classes of equilibria that each complete list has, by number of tokens and beta."""
LAYERS = {"smollm2": 30, "minilm": 6, "rxnmapper": 12}
HARMLESS = {"right", "right, with litter", "refused", "another valid folder"}
"""How reading a damaged folder may end."""


def check_mutations(record: Record, rooms: Iterable[str], equivalents: dict[tuple[str, str, str], str]) -> list[str]:
    """Say what is wrong with a record of mutants: survivors, lines that are gone, rooms without a mutant, too few.

    Arguments:
        record: what campaigns/mutations.py wrote.
        rooms: all rooms of the package.
        equivalents: reasons of a person by file, line before and line after.
    """
    mutants = record["mutants"]
    drawn = {_mutants.room_of(mutant["file"]) for mutant in mutants}
    lines = {(mutant["file"], mutant["line"]) for mutant in mutants}
    wrong = _false(
        (set(rooms) <= drawn, f"no mutant is in {', '.join(sorted(set(rooms) - drawn))}"),
        (len(mutants) == record["count"] >= LEAST_MUTANTS, f"{len(mutants)} mutants of {record['count']}, at least "
         f"{LEAST_MUTANTS} are needed"),
        (len(lines) == len(mutants), "two mutants change one line"),
        (record["only"] is None, f"all mutants are of {record['only']}"),
    )  # fmt: skip
    for mutant in mutants:
        change = f"{mutant['file']}:{mutant['line']}: {mutant['before']} -> {mutant['after']}"
        verdict, reason = mutant["verdict"], equivalents.get((mutant["file"], mutant["before"], mutant["after"]))
        if verdict == "killed":
            wrong += _false((mutant["by"].startswith("tests/"), f"no test is named that killed {change}"))
        elif verdict == "gone":
            wrong.append(f"a line is gone, put another mutant in its place: {change}")
        elif verdict != "equivalent" or not reason:
            wrong.append(f"a mutant survives, write a test that sees it: {change}")
    return wrong


def check_lost(records: Iterable[Record]) -> list[str]:
    """Name the mutants that were killed in a record and survive in the next one that has them."""
    ordered = sorted((record for record in records if "again" in record), key=lambda record: record["date"])
    return [f"lost: {line}" for pair in itertools.pairwise(ordered) for line in _record.lost(*pair)]


def check_physics(rows: dict[str, Record], programs: dict[str, str]) -> list[str]:
    """Name experiments with no record of their present program, and claims that no broken physics makes fail.

    Arguments:
        rows: for each experiment the row of campaigns/physics.py.
        programs: for each experiment of the gallery its present hash.
    """
    stale = [name for name, program in sorted(programs.items()) if rows.get(name, {}).get("program") != program]
    names = " ".join(stale)
    wrong = _false((not stale, f"no present record of broken physics; run `python campaigns/physics.py {names}`"))
    for name, row in sorted(rows.items()):
        killed = row["killed"]
        whole = len(killed) == len(row["claims"]) > 0 and {len(kills) for kills in killed} == {len(row["mutations"])}
        survivors = [claim for claim, kills in zip(row["claims"], killed, strict=False) if not any(kills)]
        wrong += _false((whole, f"{name}: the record has no verdict for every claim under every mutation"))
        wrong += [f"{name}: no broken physics makes this claim fail: {claim}" for claim in survivors]
    return wrong


def check_replicate(runs: dict[str, Record], salted: Iterable[str], often: Iterable[str]) -> list[str]:
    """Name experiments that were not repeated with enough fresh salts, and failures without a reason.

    Arguments:
        runs: by experiment and salt, what campaigns/replicate.py wrote.
        salted: experiments with random numbers.
        often: those that are repeated with ten salts; three are enough for the others.
    """
    names = set(salted)
    wrong = _false((set(runs) == names, f"other experiments have random numbers: {sorted(set(runs) ^ names)}"))
    for name, by_salt in runs.items():
        enough = len(by_salt) >= (10 if name in often else 3)
        wrong += _false(
            (enough, f"{name}: only {len(by_salt)} salts"), ("0" not in by_salt, f"{name}: salt 0 is no fresh")
        )
        for salt, run in by_salt.items():
            explained = all(failure.get("why") for failure in run.get("failed", []))
            wrong += _false(
                ("error" not in run and run["claims"] > 0, f"{name}, salt {salt}: it ended without claims"),
                (explained, f"{name}, salt {salt}: a claim failed; say why"),
            )
    return wrong


def check_long(record: Record | None, source: str) -> list[str]:
    """Refuse a release without a green run of all cases, `long` ones too, with the present source."""
    if record is None:
        return ["there is no record of `long` cases; run `make long`"]
    return _false(
        (record["source"] == source, "the newest record of `long` cases is of another source; run `make long`"),
        (record["failed"] == 0 < record["passed"], f"{record['failed']} cases failed, {record['passed']} passed"),
    )


def check_crash(record: Record) -> list[str]:
    """Hundreds of processes died in every phase of a run, and every run was carried on to the same bits."""
    deaths = record["deaths"]
    counts, kinds = deaths["counts"], {death["kind"] for death in deaths["all"]}
    died = sum(not death["too late"] for death in deaths["all"])
    expected = {"solve", "solve_long", "merge_times", "evolve", "evolve_cells", "fit"}
    return _false(
        (deaths["findings"] == [], f"findings: {deaths['findings']}"),
        (set(counts) == {"import", "compile", "rows", "figures"}, f"phases: {sorted(counts)}"),
        (min(counts.values()) >= 20, f"fewer than 20 deaths in a phase: {counts}"),
        (sum(counts.values()) == died, f"{died} deaths, {sum(counts.values())} are counted"),
        (kinds == expected, f"other kinds of runs: {sorted(kinds ^ expected)}"),
    )


def check_extremes(record: Record, fields: Iterable[str]) -> list[str]:
    """Every field was finite or refused at extremes."""
    tried, names = record["fields"], set(fields)
    wrong = _false((set(tried) == names, f"other fields: {sorted(set(tried) ^ names)}"))
    for name, row in tried.items():
        ok = row["findings"] == [] and row["counts"]["finite"] > 0
        wrong += _false((ok, f"{name}: {row['findings'] or 'never finite'}"))
    return wrong


def check_lab(record: Record, clients: int, memory: int) -> list[str]:
    """50 clients at a time did what no page does; the server answered all the time, and nothing was left running.

    Arguments:
        record: what campaigns/lab.py wrote.
        clients: the most processes that the lab has at a time.
        memory: bytes that a process may take.
    """
    ways = {name.partition(":")[0] for name in record["counts"]}
    expected = {"vanish", "replace", "garbage", "oversized", "greedy", "elsewhere", "half", "outside"}
    refusals = {"garbage: 1008", "greedy: 1008", "oversized: 1009", "elsewhere: InvalidStatus"}
    measured = min(record["page, s"]["count"], record["frame of the good client, s"]["count"])
    return _false(
        (record["findings"] == [], f"findings: {record['findings']}"),
        (record["clients"] >= 50 and record["rounds"] >= 4, "fewer than 50 clients or 4 rounds"),
        (expected <= ways, f"not tried: {sorted(expected - ways)}"),
        (refusals <= set(record["counts"]), f"not refused: {sorted(refusals - set(record['counts']))}"),
        (2 <= record["processes"] <= clients, f"{record['processes']} processes"),
        (measured >= 100, f"only {measured} answers were timed"),
        (record["server, MiB"]["most"] <= 400, f"the server took {record['server, MiB']['most']} MiB"),
        (record["largest process, MiB"] <= memory / 2**20, f"a process took {record['largest process, MiB']} MiB"),
    )


def check_fuzz(record: Record) -> list[str]:
    """Every example ended in an answer or in one sentence, and every kind of input was tried."""
    missing = {"specifications", "calls", "command lines", "files"} - set(record["kinds"])
    wrong = _false((not missing, f"not tried: {sorted(missing)}"))
    for kind, row in record["kinds"].items():
        ok = row["examples"] > 0 and row["findings"] == []
        wrong += _false((ok, f"{kind}: {row['findings'] or 'no example'}"))
    return wrong


def check_strangers(record: Record) -> list[str]:
    """1,000 deaths and 10,000 damages of folders: the same numbers or one sentence, and nothing outside was touched."""
    wrong = _false((record["findings"] == [], f"findings: {record['findings']}"))
    for what, least in (("kills", 1_000), ("damages", 10_000)):
        tables = [table for ways in record[what].values() for table in ways.values()]
        count, outcomes = (
            sum(sum(table.values()) for table in tables),
            {outcome for table in tables for outcome in table},
        )
        wrong += _false(
            (count == record["cases"][what] >= least, f"{count} {what}, at least {least} are needed"),
            (outcomes <= HARMLESS, f"{what} ended in: {sorted(outcomes - HARMLESS)}"),
        )
    ends = {how for ways in record["kills"].values() for how in ways}
    signals = sum(sum(ways.get("SIGKILL", {}).values()) for ways in record["kills"].values())
    ways_to_die = {"between two changes", "in the middle of a write", "several times", "SIGKILL"}
    damaged = {how for ways in record["damages"].values() for how in ways}
    return wrong + _false(
        (ends == ways_to_die, f"other ways to die: {sorted(ends ^ ways_to_die)}"),
        (signals >= 20, f"only {signals} deaths by SIGKILL"),
        (set(record["damages"]) == set(record["folders"]), "some folders were not damaged"),
        (damaged == set(record["ways"]), f"other damages: {sorted(damaged ^ set(record['ways']))}"),
    )


def check_certificates(record: Record, saved: dict[str, Any]) -> list[str]:
    """Nothing false was accepted or proved, no point was outside, and every saved certificate is confirmed.

    Arguments:
        record: what campaigns/certificates.py wrote.
        saved: the certificates of the documents by file name.
    """
    mutations, balls, adversaries, flows = (record[key] for key in ("mutations", "balls", "adversaries", "flows"))
    tried = {"triangle", "list at 2", "apart", "flow", "consensus"} - set(mutations["by certificate"])
    primitives = {"force", "slope", "gradient", "hessian", "velocity", "growth", "angle"}
    inside = dict.fromkeys({*primitives, *(f"checker {name}" for name in primitives)}, 0)
    lists = {(row["n"], str(row["beta"])): row for row in record["lists"]}
    counts = {key: len(row.get("classes", ())) for key, row in lists.items()}
    single = [row for row in lists.values() if not isinstance(row["beta"], list)]
    equilibria = record["equilibria"]
    wrong = _false(
        (record["scale"] >= 1, f"only {record['scale']} of the campaign ran"),
        (mutations["count"] >= 300 and not tried, f"{mutations['count']} false certificates, none of {sorted(tried)}"),
        (mutations["accepted"] == [], f"false certificates were accepted: {mutations['accepted']}"),
        (balls["count"] >= 10_000 and balls["outside"] == inside, f"points outside of balls: {balls['outside']}"),
        (adversaries["count"] >= 1000 and adversaries["false"] == [], f"false proofs: {adversaries['false']}"),
        (counts == CLASSES, f"other classes of equilibria: {counts}"),
        (all(row["cpu"] <= LONGEST[row["n"]] for row in lists.values()), "a list took too long"),
        (all(row["euler"] == 0 for row in lists.values()), "an Euler characteristic is not 0"),
        (all(row["confirmed"] for row in single), "a list was not confirmed"),
        (len(equilibria) >= 40, f"only {len(equilibria)} equilibria"),
        (all(row["known"] and row["confirmed"] and row["cpu"] < 2 for row in equilibria), "an equilibrium is doubtful"),
        (flows["count"] >= 20 and flows["outside"] == [], f"flows outside of their tubes: {flows['outside']}"),
        ({row["file"] for row in record["saved"]} == set(saved), "the documents have other certificates"),
        (all(row["confirmed"] for row in record["saved"]), "a saved certificate was not confirmed"),
    )  # fmt: skip
    for name, certificate in saved.items():  # slices of beta adjoin and cover the interval that is claimed
        parts = sorted(row["beta"] for row in record["saved"] if row["file"] == name)
        whole = parts and [parts[0][0], parts[-1][1]] == certificate["claims"]["beta"]
        adjoin = all(before[1] == after[0] for before, after in itertools.pairwise(parts))
        wrong += _false((whole and adjoin, f"{name}: slices of beta do not cover the interval"))
    return wrong


def check_oracle(record: Record) -> list[str]:
    """Forward passes agree with transformers in every layer, and adapters were tried on the libraries.

    1e-5 in float32; in float64 1e-11 for post-norm networks, and 1e-5 for Llama, whose angles transformers computes in
    float32. Streams of small random models, three layers of width 32, round to less than 1e-5 in float32.
    """
    wrong = _false((set(record["networks"]) == set(LAYERS), f"networks: {sorted(record['networks'])}"))
    for name, network in record["networks"].items():
        dtypes = [row["dtype"] for row in network["texts"]]
        wrong += _false((dtypes == 2 * ["float32"] + 2 * ["float64"], f"{name}: dtypes {dtypes}"))
        for row in network["texts"]:
            limit = 1e-11 if row["dtype"] == "float64" and name != "smollm2" else 1e-5
            complete = len(row["hidden"]) == LAYERS[name] + 1 and len(row["after_attention"]) == LAYERS[name]
            error = max(row["hidden"] + row["after_attention"])
            wrong += _false((complete, f"{name}: layers are missing"), (error <= limit, f"{name}: error {error:g}"))
    adapters = record["adapters"]
    libraries = {"transformers", "transformer_lens", "nnsight"}
    if set(adapters) != libraries:
        return [*wrong, f"libraries: {sorted(adapters)}"]
    models = {"llama", "bert", "gpt2", "without attention"} - set(adapters["transformers"])
    wrong += _false((not models, f"not tried with transformers: {sorted(models)}"))
    notes = adapters["transformer_lens"]["notes on processed weights"]
    wrong += _false(("center_writing_weights" in notes[0], f"notes on processed weights: {notes}"))
    for name, library in adapters.items():
        errors = [error for stream in library.values() if isinstance(stream, dict) for error in stream.values()]
        ok = library["version"] and errors and max(errors) <= record["limit"]
        wrong += _false((ok, f"{name}: version {library['version']!r}, errors {errors}"))
    return wrong


def check_weights(record: Record) -> list[str]:
    """10,000 damaged files of weights gave no finding, and every hostile one was refused."""
    hostile = record["hostile"]
    return _false(
        (sum(record["mutants"].values()) == record["count"] >= 10_000, f"{record['count']} files, 10,000 are needed"),
        (hostile["refused"] == hostile["files"] > 80, f"{hostile['refused']} of {hostile['files']} files are refused"),
        (record["findings"] == [], f"findings: {record['findings']}"),
    )


def check_sweeps(record: Record) -> list[str]:
    """A sweep survived workers, schedulers and full disks, with no more work than deaths explain."""
    bound = record["tasks"] + len(record["kills"]) * record["largest unit"]
    killed = record["workers killed"] >= 10 and record["schedulers killed"] == 2 and record["full disks met"] > 0
    return _false(
        (record["findings"] == [], f"findings: {record['findings']}"),
        (record["tasks"] >= 2000, f"only {record['tasks']} tasks"),
        (killed, "too few workers, schedulers or disks failed"),
        (record["tasks"] <= record["completions"] <= record["bound"] == bound, f"{record['completions']} completions"),
    )


def check_steering(record: Record) -> list[str]:
    """60 instances on three spheres were steered to within 1e-3 of their targets in W_2."""
    rows = record["instances"]
    cases = {(row["d"], row["measures"], row["atoms"]) for row in rows}
    return _false(
        (len(rows) == 60, f"{len(rows)} instances"),
        (cases == set(itertools.product((3, 4, 8), (2, 3, 4, 5), (1, 4))), f"other instances: {sorted(cases)}"),
        (all(row["w2"] < 1e-3 < row["before"] for row in rows), "an instance misses its target"),
    )


def newest(campaign: str) -> Record | None:
    """The newest record of a campaign."""
    return max(records(campaign), key=lambda record: record["date"], default=None)


def records(campaign: str) -> list[Record]:
    """All records of a campaign."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RECORDS.glob(f"{campaign}-*.json"))]


def experiments() -> dict[str, Path]:
    """The folders of the gallery by the names of their experiments."""
    return {path.parent.name.replace("_", "-"): path.parent for path in sorted(GALLERY.glob("*/__init__.py"))}


def physics() -> list[str]:
    """Check the newest row of broken physics of every experiment of the gallery."""
    rows: dict[str, Record] = {}
    for record in sorted(records("physics"), key=lambda record: record["date"]):
        rows |= record["experiments"]
    return check_physics(rows, {name: program_hash(sorted(path.glob("*.py"))) for name, path in experiments().items()})


def mutations() -> list[str]:
    """Check the newest record of mutants, and that none was lost on the way to it."""
    record = newest("mutations") or {"mutants": [], "count": 0, "only": None}
    known = _record.equivalents(ROOT / "campaigns" / "equivalent.toml")
    rooms = _mutants.rooms(ROOT / "src" / "attnflow")
    return check_mutations(record, rooms, known) + check_lost(records("mutations"))


def _checks() -> dict[str, Callable[[], list[str]]]:
    """All checks by the names of their campaigns."""
    limits, certificates = ROOT / "src" / "attnflow" / "lab" / "limits.py", ROOT / "docs" / "certificates"
    arguments: dict[str, Callable[[], tuple[Any, ...]]] = {
        "certificates": lambda: ({path.name: json.loads(path.read_text()) for path in certificates.glob("*.json")},),
        "crash": tuple,
        "extremes": lambda: (
            [ast.literal_eval(key) for key in _assigned(ROOT / "tests" / "extremes.py", "FIELDS").keys],
        ),
        "fuzz": tuple,
        "lab": lambda: (_number(limits, "CLIENTS"), _number(limits, "MEMORY")),
        "oracle": tuple,
        "steering": tuple,
        "strangers": tuple,
        "sweeps": tuple,
        "weights": tuple,
    }

    def of(campaign: str) -> Callable[[], list[str]]:
        def check() -> list[str]:
            record = newest(campaign)
            if record is None:
                return [f"there is no record; run `python campaigns/{campaign}.py` and keep what it writes"]
            return globals()[f"check_{campaign}"](record, *arguments[campaign]())

        return check

    def replicate() -> list[str]:
        often = ast.literal_eval(_assigned(ROOT / "campaigns" / "replicate.py", "TEN"))
        salted = [name for name, path in experiments().items() if "Salted" in (path / "simulate.py").read_text()]
        return check_replicate((newest("replicate") or {"runs": {}})["runs"], salted, often)

    long = lambda: check_long(newest("long"), _record.of_folder(ROOT))  # noqa: E731
    return {"mutations": mutations, "physics": physics, "replicate": replicate, "long": long} | {
        campaign: of(campaign) for campaign in arguments
    }


def _assigned(path: Path, name: str) -> Any:
    """The expression that a file gives to a name."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return node.value
    raise LookupError(f"{path} does not assign {name}")


def _number(path: Path, name: str) -> int:
    """A number that a file gives to a name, which may be computed from others."""
    return eval(compile(ast.Expression(_assigned(path, name)), str(path), "eval"), {"__builtins__": {}})


def _false(*statements: tuple[object, str]) -> list[str]:
    """The sentences of the statements that are false."""
    return [sentence for holds, sentence in statements if not holds]


def main() -> int:
    """Run the checks; print yes or no line by line."""
    checks = _checks()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(checks)}; all by default")
    names = parser.parse_args().names or list(checks)
    if unknown := set(names) - set(checks):
        parser.error(f"there is no check {', '.join(sorted(unknown))}; known are {', '.join(checks)}")
    failed = 0
    for name in names:
        wrong = checks[name]()
        failed += bool(wrong)
        print(
            f"{'NO ' if wrong else 'yes'}  {name}", *(f"       {sentence}" for sentence in wrong), sep="\n", flush=True
        )
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
