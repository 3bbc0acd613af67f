"""The machinery of the campaigns: how mutants are drawn and joined, what a program is, and which records are refused."""

import ast
import collections
import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "attnflow"


@pytest.fixture(scope="module")
def scripts():
    """The modules of the campaigns, which are scripts beside the package."""
    sys.path.insert(0, str(ROOT / "campaigns"))
    try:
        names = ("_bench", "_mutants", "_program", "_record", "checks", "long")
        yield {name.strip("_"): importlib.import_module(name) for name in names}
    finally:
        sys.path.remove(str(ROOT / "campaigns"))


def test_what_is_lost_is_named(scripts):
    def of(verdict):
        mutant = {"file": "a.py", "place": "f", "line": 3, "before": "b", "after": "c", "verdict": verdict}
        return {"mutants": [mutant | {"by": "tests/test_a.py::test_b"}]}

    lost = scripts["record"].lost
    assert lost(of("killed"), of("killed")) == []
    assert lost(of("survived"), of("survived")) == []
    assert lost(of("killed"), {"mutants": []}) == []
    for verdict in ("survived", "gone"):
        assert lost(of("killed"), of(verdict)) == ["a.py:3: b -> c, killed by tests/test_a.py::test_b"]


def test_a_digest_on_disk_is_that_of_git(scripts, tmp_path):
    """The content of a blob is hashed as git does it: `printf 'x = 1\\n' | git hash-object --stdin`."""
    package = tmp_path / "src" / "attnflow"
    package.mkdir(parents=True)
    (package / "a.py").write_bytes(b"x = 1\n")
    blob = "7d4290a117a4ddcc11daae7ea675841033830c8f"
    assert scripts["record"].of_folder(tmp_path) == scripts["record"].digest([("src/attnflow/a.py", blob)])


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


def test_where_lines_can_be_changed(scripts):
    found = scripts["mutants"].mutants("theory/a.py", SOURCE)
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
    assert all(scripts["mutants"].differs(one, SOURCE) for one in found)


def test_mutants_are_drawn_by_their_seed_from_every_room(scripts, tmp_path):
    mutants = scripts["mutants"]
    one, again, other = (mutants.draw(PACKAGE, 9, seed, "theory/landscape/rings.py") for seed in (3, 3, 4))
    assert one == again != other
    assert {mutant.file for mutant in other} == {"theory/landscape/rings.py"}
    assert {mutants.TOP, "certify", "cli", "lab", "probe", "text", *mutants.MATHEMATICS} <= set(mutants.rooms(PACKAGE))
    shares = dict.fromkeys(mutants.MATHEMATICS, 1) | {mutants.TOP: 2, "cli": 2, "plots": 2}
    for room in shares:
        (tmp_path / (room if room != mutants.TOP else "")).mkdir(exist_ok=True)
        (tmp_path / (room if room != mutants.TOP else "") / "a.py").write_text(SOURCE)
    drawn = mutants.draw(tmp_path, 12, 3)
    assert collections.Counter(mutant.room for mutant in drawn) == shares
    assert len({(mutant.file, mutant.line) for mutant in drawn}) == 12
    for package, mutant in [*((PACKAGE, mutant) for mutant in one), *((tmp_path, mutant) for mutant in drawn)]:
        lines = (package / mutant.file).read_text().splitlines()
        assert lines[mutant.line - 1] == mutant.before != mutant.after
        lines[mutant.line - 1] = mutant.after
        ast.parse("\n".join(lines))


@pytest.mark.slow
def test_a_mutant_meets_the_tests_of_its_room_first(scripts):
    near, wide = scripts["bench"].nearest(ROOT, "theory/landscape/rings.py")
    assert all(name.startswith("tests/theory/") for name in near[:-1])
    assert near[-1] == "tests/test_conformance.py"
    assert not {name for name in wide if name.startswith("tests/theory/")}
    near, wide = scripts["bench"].nearest(ROOT, "feasible.py")
    assert near[0] == "tests/test_feasible.py"
    assert all(name.count("/") == 1 for name in near)


def test_a_mutant_is_found_again_where_its_line_has_moved(scripts, tmp_path):
    made = next(
        one
        for one in scripts["mutants"].mutants("a.py", SOURCE)
        if one.after.strip() == "return math.sin(0.5 * x, axis=1)"
    )
    file, line, before, after = made.key()
    entry = {"file": file, "line": line, "place": scripts["mutants"].place(SOURCE, line), "kind": made.kind}
    entry |= {"before": before, "after": after}
    assert entry["place"] == "f"
    assert scripts["mutants"].find(tmp_path, entry) is None
    path = tmp_path / "a.py"
    path.write_text(SOURCE.replace("SECONDS", f"def g(x):\n    {before}\n\n\n\n\nSECONDS"))
    moved = scripts["mutants"].find(tmp_path, entry)
    assert (moved.line, moved.after) == (line + 6, made.after)
    moved.apply(tmp_path)
    assert path.read_text().splitlines()[line + 5] == "    return math.sin(0.5 * x, axis=1)"
    assert scripts["mutants"].find(tmp_path, entry).line == 6  # the line of another function is all that is left
    path.write_text(SOURCE.replace("0.5", "0.25"))
    assert scripts["mutants"].find(tmp_path, entry) is None


def test_parts_of_a_campaign_are_joined(scripts):
    record = scripts["record"]
    common = {"commit": "c", "source": "s", "seed": 0, "count": 3, "only": None, "again": None, "marks": "not long"}
    common |= {"options": []}

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


SIMULATE = '''"""Text."""
import dataclasses
import numpy as np
from attnflow import solve, theory

@dataclasses.dataclass(frozen=True)
class Parameters:
    """Sizes."""
    beta: float = 2.0
    """Inverse temperature."""

QUICK = Parameters(3.0)

def _start(beta: float) -> list:
    return [np.sin(k * beta) for k in range(3)]

def run(parameters, study):
    """Text."""
    start = _start(parameters.beta)
    return {"flow": solve(start, "SA", until=5.0)}
'''
COMPARE = """from attnflow import theory
from attnflow.experiments import Claim, consequence
from attnflow.experiments.kit import Rows
from attnflow_gallery.example.simulate import Parameters

ORIGIN = consequence("Rates")
REASON = "twice the next term"

def claims(parameters: Parameters, data):
    rows, words = Rows(), f"growth rate at β = {parameters.beta:g}"
    for model in ("SA", "USA"):
        predicted, measured = theory.rate(parameters.beta, model), data["flow"].rate
        rows.add(predicted, measured, 1e-9 if measured > 0 else 0, f"{model}, rate")
    return [rows.equal(words, REASON, origin=ORIGIN), Claim.true("it ends", data["flow"].ended, "counted")]
"""
MUTATIONS = """from attnflow.experiments import Mutation, scaled
from attnflow_gallery.example import simulate

MUTATIONS = (
    Mutation("β 1 % larger", simulate, "_start", scaled("beta", 1.01)),
    Mutation("other flow", simulate, "solve", scaled("until", 2.0)),
)
"""
FIGURE = "def draw(parameters, data):\n    return data"


def program(scripts, folder, old="", new=""):
    """The hash of the experiment above, with a text replaced in all files."""
    place = folder / f"{len(list(folder.iterdir()))}" / "example"
    place.mkdir(parents=True)
    sources = {"simulate": SIMULATE, "compare": COMPARE, "mutations": MUTATIONS, "figure": FIGURE}
    assert any(old in text for text in sources.values())
    for name, text in sources.items():
        (place / f"{name}.py").write_text(text.replace(old, new))
    return scripts["program"].program_hash(sorted(place.glob("*.py")))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Text."""', '"""Other text."""'),
        ('"""Inverse temperature."""', ""),
        ("growth rate at β = {parameters.beta:g}", "rate of growth, {parameters.beta:.3f}"),
        ("twice the next term", "twice the term that comes next"),
        ("it ends", "ends"),
        ("counted", "as counted"),
        ('f"{model}, rate"', 'f"rate of {model}"'),
        ("β 1 % larger", "larger"),
        ('consequence("Rates")', 'consequence("Growth")'),
        ("rows", "comparisons"),
        ("measured", "found"),
        ("_start", "_first_tokens"),
        ("for k in range", "for    k  in  range"),
        ("until=5.0)}", "until=5.0)}  # comment"),
        ("(beta: float) -> list", "(beta)"),
        ("import numpy as np", "import numpy as np, math"),
        ("REASON", "WHY"),
        ("def draw(parameters, data):", "def draw(parameters, data, size=3):"),
        ("from attnflow import solve, theory", "from attnflow import theory, solve"),
    ],
)
def test_words_and_names_keep_a_program(scripts, tmp_path, old, new):
    assert program(scripts, tmp_path) == program(scripts, tmp_path, old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("np.sin", "np.cos"),
        ("k * beta", "k + beta"),
        ("k * beta", "k * k"),
        ("range(3)", "range(4)"),
        ("Parameters(3.0)", "Parameters(4.0)"),
        ("beta: float = 2.0", "beta: float = 2.5"),
        ('start, "SA"', 'start, "USA"'),
        ('("SA", "USA")', '("SA",)'),
        ("until=5.0", "until=6.0"),
        ('"flow"].rate', '"flow"].rates'),
        ("1e-9 if", "1e-8 if"),
        ("measured > 0", "measured >= 0"),
        ("predicted, measured, 1e-9", "measured, predicted, 1e-9"),
        ("rows.equal", "rows.at_most"),
        ("theory.rate", "theory.time"),
        ("import solve, theory", "import advance as solve, theory"),
        ('scaled("beta"', 'scaled("gamma"'),
        ("1.01", "1.02"),
        ('simulate, "solve"', 'simulate, "_start"'),
        (', Claim.true("it ends", data["flow"].ended, "counted")', ""),
    ],
)
def test_what_is_computed_changes_a_program(scripts, tmp_path, old, new):
    assert program(scripts, tmp_path) != program(scripts, tmp_path, old, new)


def test_faults_in_a_record_of_mutants_are_named(scripts):
    check, rooms = scripts["checks"].check_mutations, ["fields", "theory"]
    killed = {"before": "b", "after": "c", "verdict": "killed", "by": "tests/test_a.py::test_b"}
    mutants = [killed | {"file": f"{room}/a.py", "line": k} for room in rooms for k in range(60)]
    record = {"mutants": mutants, "count": 120, "only": None}
    assert check(record, rooms, {}) == []
    assert check(record, [*rooms, "plots"], {}) == ["no mutant is in plots"]
    assert check(record | {"only": "a.py"}, rooms, {}) == ["all mutants are of a.py"]
    assert check(record | {"mutants": mutants[1:]}, rooms, {}) == ["119 mutants of 120, at least 120 are needed"]
    for verdict, words in (("survived", "survives"), ("gone", "is gone"), ("equivalent", "survives")):
        planted = record | {"mutants": [mutants[0] | {"verdict": verdict, "by": ""}, *mutants[1:]]}
        (sentence,) = check(planted, rooms, {})
        assert words in sentence
        assert "fields/a.py:0: b -> c" in sentence
    assert check(planted, rooms, {("fields/a.py", "b", "c"): "no difference"}) == []
    before, after = ({"date": date, "again": None} for date in ("2026-01-01", "2026-01-02"))
    place = {"place": "f"}
    before["mutants"], after["mutants"] = [mutants[0] | place], [mutants[0] | place | {"verdict": "survived"}]
    assert len(scripts["checks"].check_lost([after, before])) == 1


def test_faults_in_a_record_of_broken_physics_are_named(scripts):
    check = scripts["checks"].check_physics
    row = {"claims": ["a", "b"], "mutations": ["x", "y"], "killed": [[True, False], [False, True]], "program": "1"}
    assert check({"one": row}, {"one": "1"}) == []
    (sentence,) = check({"one": row}, {"one": "2", "two": "1"})
    assert sentence == "no present record of broken physics; run `python campaigns/physics.py one two`"
    survivor = row | {"killed": [[True, False], [False, False]]}
    assert check({"one": survivor}, {"one": "1"}) == ["one: no broken physics makes this claim fail: b"]
    (sentence,) = check({"one": row | {"killed": [[True, False]]}}, {"one": "1"})
    assert "no verdict for every claim" in sentence


def test_other_faults_are_named(scripts):
    checks = scripts["checks"]
    long = {"source": "s", "passed": 3, "failed": 0}
    assert checks.check_long(long, "s") == []
    for record, source in ((None, "s"), (long, "t"), (long | {"failed": 1}, "s")):
        assert len(checks.check_long(record, source)) == 1
    fuzz = {kind: {"examples": 1, "findings": []} for kind in ("specifications", "calls", "command lines", "files")}
    assert checks.check_fuzz({"kinds": fuzz}) == []
    assert checks.check_fuzz({"kinds": fuzz | {"calls": {"examples": 1, "findings": ["f"]}}}) == ["calls: ['f']"]
    runs = {"zonal": {str(salt): {"claims": 1, "failed": []} for salt in (5, 6, 7)}}
    assert checks.check_replicate(runs, ["zonal"], []) == []
    assert checks.check_replicate(runs, ["zonal"], ["zonal"]) == ["zonal: only 3 salts"]
    runs["zonal"]["7"]["failed"] = [{"statement": "s"}]
    assert checks.check_replicate(runs, ["zonal"], []) == ["zonal, salt 7: a claim failed; say why"]


def test_a_run_of_all_cases_is_recorded_if_it_is_green(scripts, tmp_path):
    report = tmp_path / "report.xml"
    text = '<testsuites><testsuite tests="5" failures="{}" errors="1" skipped="0" time="2.5"/></testsuites>'
    report.write_text(text.format(1))
    assert scripts["long"].counts(report) == {"passed": 3, "failed": 2, "seconds": 2.5}
