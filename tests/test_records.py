"""The newest record of the mutation campaign covers the package, has no survivors and names a commit of this history."""

import ast
import collections
import datetime
import importlib
import itertools
import json
import sys

import pytest

from attnflow.lab import limits
from tests.extremes import FIELDS
from tests.history import ROOT, in_history, is_squashed

CAMPAIGNS = ROOT / "campaigns"
CERTIFICATES = ROOT / "docs" / "certificates"
MATHEMATICS = {"fields", "sums", "flows", "observe", "meanfield", "theory"}
ROOMS = MATHEMATICS | {"control", "random_layers", "decoders", "runs", "learn", "stability"}
LEAST = 120
MAKE = "run `make long` (or campaigns/mutations.py) at a commit and keep what it writes into campaigns/records"


@pytest.fixture(scope="module")
def parts():
    """The modules of the campaign, which are scripts beside the package."""
    sys.path.insert(0, str(CAMPAIGNS))
    try:
        yield importlib.import_module("_mutants"), importlib.import_module("_record")
    finally:
        sys.path.remove(str(CAMPAIGNS))


@pytest.fixture(scope="module")
def record():
    found = [json.loads(path.read_text()) for path in sorted((CAMPAIGNS / "records").glob("mutations-*.json"))]
    if not found:
        pytest.fail(f"there is no record of the mutation campaign; {MAKE}.")
    return max(found, key=lambda one: datetime.datetime.fromisoformat(one["date"]))


def test_it_has_enough_mutants_of_every_room(record):
    rooms = collections.Counter(one["file"].split("/")[0] for one in record["mutants"])
    assert set(rooms) == ROOMS
    assert rooms.total() == record["count"] >= LEAST, f"{rooms.total()} mutants, at least {LEAST} are needed; {MAKE}."
    assert len({(one["file"], one["line"]) for one in record["mutants"]}) == record["count"]
    assert record["only"] is None


def test_no_mutant_survives(record, parts):
    """Each was killed by something that is named, or a person said why it makes no difference."""
    known = parts[1].equivalents(CAMPAIGNS / "equivalent.toml")
    for one in record["mutants"]:
        change = f"{one['file']}:{one['line']}: {one['before']} -> {one['after']}"
        assert one["verdict"] != "gone", f"a line is gone, put another mutant in its place: {change}"
        if one["verdict"] == "killed":
            assert one["by"].startswith("tests/"), change
            assert one["tier"] in ("test", "study"), change
        else:
            assert one["verdict"] == "equivalent", f"a mutant survives, write a test that sees it: {change}"
            assert known.get((one["file"], one["before"], one["after"])), change


def test_nothing_is_lost_from_one_record_to_the_next(parts):
    """What a tier of tests killed in a record is killed in that tier, or an earlier one, where a later record has it."""
    found = [json.loads(path.read_text()) for path in (CAMPAIGNS / "records").glob("mutations-*.json")]
    found = sorted(
        (one for one in found if "again" in one), key=lambda one: datetime.datetime.fromisoformat(one["date"])
    )
    for before, after in itertools.pairwise(found):
        assert parts[1].lost(before, after) == []


def test_what_is_lost_is_named(parts):
    def of(verdict, tier):
        one = {"file": "a.py", "place": "f", "line": 3, "before": "b", "after": "c", "verdict": verdict, "tier": tier}
        return {"mutants": [one | {"by": "tests/test_a.py::test_b"}]}

    lost = parts[1].lost
    assert lost(of("killed", "study"), of("killed", "test")) == []
    assert lost(of("survived", ""), of("survived", "")) == []
    assert lost(of("killed", "test"), {"mutants": []}) == []
    for after in (of("killed", "study"), of("survived", ""), of("gone", "")):
        assert lost(of("killed", "test"), after) == ["a.py:3: b -> c, killed by tests/test_a.py::test_b"]


def test_it_names_its_time_and_a_commit_of_this_history(record, parts):
    when = datetime.datetime.fromisoformat(record["date"])
    assert when.tzinfo is not None
    assert when <= datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)
    assert len(record["commit"]) == 40
    assert in_history(record["commit"]), f"{record['commit']} is not in the history of HEAD; {MAKE}."
    if (ROOT / ".git").exists():  # what ran is what that commit holds
        assert parts[1].of_commit(ROOT, record["commit"]) == record["source"]


def test_a_digest_on_disk_is_that_of_git(parts, tmp_path):
    """The content of a blob is hashed as git does it: `printf 'x = 1\\n' | git hash-object --stdin`."""
    package = tmp_path / "src" / "attnflow"
    package.mkdir(parents=True)
    (package / "a.py").write_bytes(b"x = 1\n")
    blob = "7d4290a117a4ddcc11daae7ea675841033830c8f"
    assert parts[1].of_folder(tmp_path) == parts[1].digest([("src/attnflow/a.py", blob)])


SOURCE = '''"""Text 1 + 1."""

import math

SECONDS = 3.0
__all__ = ["f"]


def f(x: "Float[Array, '2 3']", n: int = 2, chunk: int = 7) -> float:
    """Text 2 * 2."""
    if x < n and n > 0:
        raise ValueError(f"n is {n + 1}, not {2 * n}")
    return -math.sin(0.5 * x, axis=1)
'''


def test_where_lines_can_be_changed(parts):
    found = parts[0].mutants("theory/a.py", SOURCE)
    assert {one.line for one in found} == {9, 11, 13}
    after = {one.after.strip() for one in found}
    for line in (
        "if x <= n and n > 0:",
        "if x < n or n > 0:",
        "return math.sin(0.5 * x, axis=1)",
        "return -math.cos(0.5 * x, axis=1)",
        "return -math.sin(1.0 * x, axis=1)",
        "return -math.sin(0.5 / x, axis=1)",
        "return -math.sin(0.5, axis=1)",
        "return -math.sin(0.5 * x, axis=0)",
    ):
        assert line in after
    assert not [line for line in after if "chunk: int = 7" not in line and "chunk" in line]
    assert all(parts[0].differs(one, SOURCE) for one in found)


def test_mutants_are_drawn_by_their_seed_from_every_room(parts):
    package = ROOT / "src" / "attnflow"
    one, again, other = (parts[0].draw(package, 9, seed, "theory/landscape/rings.py") for seed in (3, 3, 4))
    assert one == again != other
    assert {mutant.file for mutant in other} == {"theory/landscape/rings.py"}
    found = parts[0].draw(package, 24, 3)
    assert {room: sum(m.room == room for m in found) for room in ROOMS} == {
        r: 1 + 2 * (r in MATHEMATICS) for r in ROOMS
    }
    assert len({(mutant.file, mutant.line) for mutant in found}) == 24
    for mutant in [*one, *found]:
        lines = (package / mutant.file).read_text().splitlines()
        assert lines[mutant.line - 1] == mutant.before != mutant.after
        lines[mutant.line - 1] = mutant.after
        ast.parse("\n".join(lines))


def test_a_mutant_is_found_again_where_its_line_has_moved(parts, tmp_path):
    made = next(
        one for one in parts[0].mutants("a.py", SOURCE) if one.after.strip() == "return math.sin(0.5 * x, axis=1)"
    )
    file, line, before, after = made.key()
    entry = {"file": file, "line": line, "place": parts[0].place(SOURCE, line), "kind": made.kind}
    entry |= {"before": before, "after": after}
    assert entry["place"] == "f"
    assert parts[0].find(tmp_path, entry) is None
    path = tmp_path / "a.py"
    path.write_text(SOURCE.replace("SECONDS", f"def g(x):\n    {before}\n\n\n\n\nSECONDS"))
    moved = parts[0].find(tmp_path, entry)
    assert (moved.line, moved.after) == (line + 6, made.after)
    moved.apply(tmp_path)
    assert path.read_text().splitlines()[line + 5] == "    return math.sin(0.5 * x, axis=1)"
    assert parts[0].find(tmp_path, entry).line == 6  # the line of another function is all that is left
    path.write_text(SOURCE.replace("0.5", "0.25"))
    assert parts[0].find(tmp_path, entry) is None


def test_parts_of_a_campaign_are_joined(parts):
    record = parts[1]
    common = {"commit": "c", "source": "s", "seed": 0, "count": 3, "only": None, "again": None, "options": []}

    def entry(line, verdict, *met):
        return {"file": "a.py", "line": line, "before": "b", "after": str(line), "verdict": verdict, "met": list(met)}

    first = common | {"date": "2026-01-01", "mutants": [entry(1, "killed"), entry(2, "survived", "near")]}
    second = common | {"date": "2026-01-02", "mutants": [entry(2, "killed", "near"), entry(3, "survived", "near")]}
    found = record.merge([second, first])
    assert {one["line"]: one["verdict"] for one in found["mutants"]} == {1: "killed", 2: "killed", 3: "survived"}
    record.judge(found, {("a.py", "b", "3"): "no difference", ("a.py", "b", "1"): "wrong: a test saw it"})
    assert [one["verdict"] for one in found["mutants"]] == ["killed", "killed", "equivalent"]
    with pytest.raises(SystemExit, match="two campaigns: seed"):
        record.merge([first, second | {"seed": 1}])


def newest(pattern, parts):
    """The newest record of a campaign; its commit is one of this history, with the source that it names if git has it."""
    found = [json.loads(path.read_text()) for path in sorted((CAMPAIGNS / "records").glob(pattern))]
    assert found, f"there is no record {pattern}; run the campaign at a commit and keep what it writes."
    one = max(found, key=lambda record: datetime.datetime.fromisoformat(record["date"]))
    assert in_history(one["commit"])
    if (ROOT / ".git").exists() and not is_squashed(one["commit"]):
        assert parts[1].of_commit(ROOT, one["commit"]) == one["source"]
    return one


def test_the_newest_crashes_left_nothing_broken(parts):
    """Hundreds of processes died in every phase of a run, and every run was carried on to the same bits."""
    deaths = newest("crash-*.json", parts)["deaths"]
    assert deaths["findings"] == []
    assert set(deaths["counts"]) == {"import", "compile", "rows", "figures"}
    assert min(deaths["counts"].values()) >= 20
    assert sum(deaths["counts"].values()) == sum(not one["too late"] for one in deaths["all"])
    assert {one["kind"] for one in deaths["all"]} == {
        "solve",
        "solve_long",
        "merge_times",
        "evolve",
        "evolve_cells",
        "fit",
    }


def test_every_field_was_finite_or_refused_at_extremes(parts):
    fields = newest("extremes-*.json", parts)["fields"]
    assert set(fields) == set(FIELDS)
    for name, one in fields.items():
        assert one["findings"] == [], name
        assert one["counts"]["finite"] > 0, name


def test_the_lab_stayed_up_under_clients_who_misbehave(parts):
    """50 clients at a time did what no page does; the server answered all the time, and nothing was left running."""
    record = newest("lab-*.json", parts)
    assert record["findings"] == []
    assert record["clients"] >= 50
    assert record["rounds"] >= 4
    done = {name.partition(":")[0] for name in record["counts"]}
    assert {"vanish", "replace", "garbage", "oversized", "greedy", "elsewhere", "half", "outside"} <= done
    assert {"garbage: 1008", "greedy: 1008", "oversized: 1009", "elsewhere: InvalidStatus"} <= set(record["counts"])
    assert 2 <= record["processes"] <= limits.CLIENTS
    assert record["page, s"]["count"] >= 100
    assert record["frame of the good client, s"]["count"] >= 100
    assert record["server, MiB"]["most"] <= 400
    assert record["largest process, MiB"] <= limits.MEMORY / 2**20


def test_the_newest_fuzzing_has_no_findings(parts):
    """Every example of `campaigns/fuzz.py` ended in an answer or in one sentence, and every kind of input was tried."""
    record = newest("fuzz-*.json", parts)
    kinds = {"specifications", "calls", "command lines", "files"}
    assert kinds <= set(record["kinds"])
    for kind, one in record["kinds"].items():
        assert one["examples"] > 0, kind
        assert one["findings"] == [], kind


def test_no_folder_of_a_stranger_did_harm(parts):
    """1,000 deaths and 10,000 damages of folders: the same numbers, or one sentence, and nothing outside was touched."""
    record = newest("strangers-*.json", parts)
    assert record["findings"] == []
    harmless = {"right", "right, with litter", "refused", "another valid folder"}
    for what, least in (("kills", 1_000), ("damages", 10_000)):
        tables = [table for ways in record[what].values() for table in ways.values()]
        assert sum(sum(table.values()) for table in tables) == record["cases"][what] >= least
        assert {outcome for table in tables for outcome in table} <= harmless
    ends = {how for ways in record["kills"].values() for how in ways}
    assert ends == {"between two changes", "in the middle of a write", "several times", "SIGKILL"}
    assert sum(sum(ways.get("SIGKILL", {}).values()) for ways in record["kills"].values()) >= 20
    assert set(record["damages"]) == set(record["folders"])
    assert {how for ways in record["damages"].values() for how in ways} == set(record["ways"])


LONGEST = {3: 180, 4: 180, 5: 10, 6: 90}
"""CPU seconds that a complete list of n tokens may take."""


def test_the_campaign_of_certificates_found_none_that_is_false(parts):
    """campaigns/certificates.py, whole, at a commit of this history: nothing false accepted or proved, no point outside."""
    record = newest("certificates-*.json", parts)
    assert record["scale"] >= 1
    assert record["mutations"]["count"] >= 300
    assert {"triangle", "list at 2", "apart", "flow", "consensus"} <= set(record["mutations"]["by certificate"])
    assert record["mutations"]["accepted"] == []
    assert record["balls"]["count"] >= 10_000
    primitives = {"force", "slope", "gradient", "hessian", "velocity", "growth", "angle"}
    assert record["balls"]["outside"] == dict.fromkeys({*primitives, *(f"checker {one}" for one in primitives)}, 0)
    assert record["adversaries"]["count"] >= 1000
    assert record["adversaries"]["false"] == []
    rows = {(row["n"], str(row["beta"])): row for row in record["lists"]}
    counts = {key: len(row.get("classes", ())) for key, row in rows.items()}
    assert counts == {
        (3, "[-0.3, 20.0]"): 3,
        (4, "[0.25, 10.0]"): 5,
        (5, "1.0"): 7,
        (5, "5.0"): 7,
        (5, "9.0"): 7,
        (6, "1.0"): 12,
        (6, "2.0"): 12,
        (6, "4.0"): 12,
    }
    assert all(row["cpu"] <= LONGEST[row["n"]] for row in rows.values())
    assert all(row["euler"] == 0 for row in rows.values())
    assert all(row["confirmed"] for row in rows.values() if not isinstance(row["beta"], list))
    assert len(record["equilibria"]) >= 40
    assert all(row["known"] and row["confirmed"] and row["cpu"] < 2 for row in record["equilibria"])
    assert record["flows"]["count"] >= 20
    assert record["flows"]["outside"] == []
    # every certificate of the documents is confirmed; of the lists, slices that adjoin and cover the claimed interval
    files = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted(CERTIFICATES.glob("*.json"))}
    assert {row["file"] for row in record["saved"]} == set(files)
    assert all(row["confirmed"] for row in record["saved"])
    for name, one in files.items():
        parts = sorted(row["beta"] for row in record["saved"] if row["file"] == name)
        assert [parts[0][0], parts[-1][1]] == one["claims"]["beta"]
        assert all(a[1] == b[0] for a, b in itertools.pairwise(parts))
