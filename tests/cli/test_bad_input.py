"""The worst command lines and folders: one sentence, the documented exit code, and nothing left over."""

import json
import shutil

import pytest

from tests.cli.commands import attnflow
from tests.marks import graded

SPEC = """
[field]
name = "attention"
beta = 2.0
[tokens]
name = "uniform"
space = { name = "sphere", dim = 3 }
n = 4
seed = 0
[solve]
until = 1.0
save = { name = "evenly", count = 2 }
method = { name = "fixed", step = 0.5 }
"""
CHANGES = [
    ("beta = 2.0", 'beta = ["a"]', "`values` of Along('beta')"),
    ("beta = 2.0", "beta = 2020-01-01", "`field.beta` is the date or time 2020-01-01"),
    ("beta = 2.0", f"beta = 1{'0' * 400}", "give a smaller number"),
    ("beta = 2.0", f"beta = 1{'0' * 5000}", "thousands of digits"),
    ("beta = 2.0", "beta = true", "`beta` is True"),
    ("beta = 2.0", "beta = 1e300", "[-1e+15, 1e+15]"),
    ("n = 4", "n = 1000000000000", "GiB of memory, and this machine has"),
    ("n = 4", f"n = 1{'0' * 400}", "GiB of memory, and this machine has"),
    ("count = 2", "count = 1000000000000", "GiB of memory, and this machine has"),
    ("dim = 3", "dim = 100000000", "give at most 1048576"),
    ("step = 0.5", "step = 1e-12", "1e+12 steps, which take at least 116 days"),
    ('{ name = "fixed", step = 0.5 }', '{ name = "adaptive", rtol = 1e-30, atol = 1e-30 }', "below the rounding"),
    ("until = 1.0", "until = 1e-320", "`until` is 1e-320"),
    ("until = 1.0", "until = true", "`solve.until` is True"),
    ("seed = 0", "seed = []", "give at least one seed"),
    ("seed = 0", "seed = [0, 0]", "more than once"),
    ("[field]", 'name = ""\n[field]', "it names the folder"),
    ("[field]", 'name = "a\\nb"\n[field]', "control characters"),
    ("[field]", f"x = {'[' * 500}{']' * 500}\n[field]", "nested too deeply"),
    ('name = "attention"', "name = 3", "`field.name` is 3"),
    ('name = "attention"', "name = []", "`field.name` is []"),
]


@pytest.fixture
def place(tmp_path):
    (tmp_path / "s.toml").write_text(SPEC)
    return tmp_path


def refused(place, arguments, code):
    """The sentence with which a command ends; no file may be there that was not there before."""
    before = sorted(place.rglob("*"))
    done = attnflow(*arguments, cwd=place)
    text = " ".join(done.stderr.split())
    assert done.returncode == code, text
    assert text.count("error: ") == 1
    assert "Traceback" not in text
    assert sorted(place.rglob("*")) == before
    return text


@pytest.mark.parametrize(("old", "new", "words"), CHANGES)
def test_specifications(place, old, new, words):
    assert old in SPEC
    (place / "s.toml").write_text(SPEC.replace(old, new, 1))
    assert words in refused(place, ["run", "s.toml", "--out", "o"], 2)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["run", "a" * 5000], 2, "File name too long"),
        (["run", "s.toml", "--out", "a" * 300], 2, "300 characters"),
        (["run", "s.toml", "--out", "--json"], 2, "reads like an option"),
        (["run", "s.toml", "--out", "a\nb"], 2, "line breaks"),
        (["run", "s.toml", "--set", "field.beta='2'"], 2, "`beta` is '2'"),
        (["run", "s.toml", "--set", "field.beta=2\nx=3"], 2, "`beta` is"),
        (["run", "s.toml", "--set", "solve.until=1e12", "--set", "solve.method.step=1e-3"], 2, "steps, which take"),
        (["run", "."], 2, "Is a directory"),
        (["show", "a" * 5000], 6, "File name too long"),
        (["list", "--root", "nofile"], 6, "there is no folder 'nofile'"),
        (["list", "--root", "a" * 5000], 6, "File name too long"),
        (["predict", "particles", "--d", "3", "--beta", "1e308"], 2, "`--beta` is 1e+308; give a number in [0, 1e+10]"),
        (["predict", "particles", "--d", "3", "--beta", "5", "--figure", "."], 2, "a.pdf"),
        (["predict", "middle", "--context", "1", "--beta", "1", "--time", "1"], 2, "`--context` is 1"),
        (["probe", "run", "gpt2", "--text", "s.toml"], 2, "`MODEL` is 'gpt2', neither a file nor one of the networks"),
        (["text", "a b", "--network", "gpt2"], 2, "`--network` is 'gpt2', neither a file nor one of the networks"),
        (["text", "a b", "--until", "0"], 2, "`--until` is 0.0; give a finite number above 0."),
        (["text", "a b", "--sinusoids", "nan"], 2, "`--sinusoids` is nan; give a finite number."),
        (["sweep", "s.toml", "--over", "tokens.n=2", "--out", "-x"], 2, "`--out` is '-x', which reads like an option"),
        (["lab", "nosuch"], 2, "`RUN` is 'nosuch', which does not exist"),
        (["check", "nosuch.json"], 2, "`CERTIFICATE.json` is 'nosuch.json', which cannot be read"),
        (["sweep", "s.toml", "--over", "tokens.n=2,0"], 2, "the point tokens.n = 0 is refused: `n` is 0"),
        (["predict", "middle", "--context", "64", "--beta", "1", "--time", "0"], 2, "`--time` is 0"),
        (["predict", "middle", "--context", "64", "--beta", "1", "--time", "1e300"], 2, "`--time` is 1e+300"),
        (["predict", "middle", "--context", "64", "--beta", "1e300", "--time", "1"], 2, "`--beta` is 1e+300"),
        (["predict", "middle", "--context", "64", "--beta", "1", "--time", "1", "--alibi", "-1"], 2, "`--alibi` is -1"),
        (["predict", "middle", "--context", "64", "--beta", "1", "--time", "1", "--share", "2"], 2, "`--share` is 2"),
        (["run", "s.toml", "--set", "solve=3"], 2, "`solve` is 3; it must be a table [solve]"),
        (["run", "s.toml", "--set", "solve.keep=['speed','speed']"], 2, "each once"),
        (["run", "s.toml", "--set", "solve.tol=1e-300"], 2, "below the rounding"),
        (["run", "s.toml", "--set", "tokens.seed=99999999999999999999"], 2, "give a smaller integer"),
        (["run", "s.toml", "--set", "solve.until=1e300", "--set", "solve.method.name=adaptive"], 2, "use solve_long"),
        (
            ["predict", "layers", "--layers", "0", "--heads", "1", "--d", "8", "--d-k", "8", "--context", "8"],
            2,
            "layers",
        ),
        (
            ["predict", "layers", "--layers", "9", "--heads", "1", "--d", "1", "--d-k", "8", "--context", "8"],
            2,
            "`--d` is 1",
        ),
        (
            ["predict", "layers", "--layers", "9", "--heads", "1", "--d", "8", "--d-k", "0", "--context", "8"],
            2,
            "`--d-k` is 0",
        ),
    ],
)
def test_command_lines(place, arguments, code, words):
    assert words in refused(place, arguments, code)


def test_bytes_that_are_no_text(place):
    (place / "s.toml").write_bytes(b"\xff\xfe" + SPEC.encode())
    assert "not text in UTF-8" in refused(place, ["run", "s.toml"], 2)


def test_arrays_that_do_not_fit_on_the_disk_leave_no_folder(place, faults):
    faults.replace("space on a disk", lambda path: shutil._ntuple_diskusage(1, 1, 0))
    assert "has 0 bytes free" in refused(place, ["run", "s.toml", "--out", "o"], 6)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run, made from a file that begins with a byte order mark."""
    place = tmp_path_factory.mktemp("bad")
    (place / "s.toml").write_bytes(b"\xef\xbb\xbf" + SPEC.encode())
    attnflow("run", "s.toml", "--out", "runs/good", "--no-figures", cwd=place, check=0)
    return place


def without(*keys):
    return lambda facts: {k: v for k, v in facts.items() if k not in keys}


def with_(**changes):
    return lambda facts: facts | changes


def older(facts):
    """A manifest of the first format, which has no digest."""
    return without("digest")(facts) | {"format": 1}


DAMAGE = [
    ("a list", lambda facts: [1, 2], "it is [1, 2]"),
    ("empty", lambda facts: {}, "it has no 'format'"),
    ("no status", without("status"), "it has no 'status'"),
    ("status 3", with_(status=3), "'status' is 3"),
    ("another status", with_(status="done"), "'status' is 'done'"),
    ("a text of checksums", with_(checksums="abc"), "'checksums' is 'abc'"),
    ("a number in checksums", with_(checksums={"spec.toml": 3}), "an entry that is no text"),
    ("no checksums", lambda facts: older(facts) | {"checksums": {}}, "no checksums although it is finished"),
    ("another hash", lambda facts: older(facts) | {"spec_hash": "0" * 64}, "its hash differs"),
    ("no versions", with_(versions=None), "'versions' is None"),
    ("a version that is a number", with_(versions={"jax": 3}), "an entry that is no text"),
    ("another number", lambda facts: facts | {"wall_time": facts["wall_time"] + 1}, "it was altered"),
    ("no digest", without("digest"), "it was altered"),
    ("a number of an outcome", with_(outcome=3), "'outcome' is 3"),
    ("an empty outcome", with_(outcome={}), "'outcome' is {}"),
    ("plugins", with_(plugins=[3]), "'plugins' has 3"),
    ("no wall time", with_(wall_time="long"), "'wall_time' is 'long'"),
]


@graded(("change", "words"), [row[1:] for row in DAMAGE], ids=[row[0] for row in DAMAGE])
def test_damaged_manifests(finished, tmp_path, change, words):
    shutil.copytree(finished / "runs" / "good", tmp_path / "runs" / "bad")
    shutil.copytree(finished / "runs" / "good", tmp_path / "runs" / "good")
    file = tmp_path / "runs" / "bad" / "manifest.json"
    file.write_text(json.dumps(change(json.loads(file.read_text()))))
    for command in (["show", "runs/bad"], ["show", "runs/bad", "--json"], ["resume", "runs/bad"]):
        assert words in refused(tmp_path, command, 5)
    listed = attnflow("list", cwd=tmp_path, check=0).stdout
    assert "runs/good" in listed
    assert "runs/bad" in listed
    rows = {row["run"]: row for row in json.loads(attnflow("list", "--json", cwd=tmp_path, check=0).stdout)}
    assert rows["runs/good"]["status"] == "finished"
    assert rows["runs/bad"]["status"] == "finished" or words in rows["runs/bad"]["message"]


def test_another_format(finished, tmp_path):
    shutil.copytree(finished / "runs" / "good", tmp_path / "runs" / "bad")
    file = tmp_path / "runs" / "bad" / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"format": 7}))
    assert "written in format 7" in refused(tmp_path, ["show", "runs/bad"], 6)


@pytest.mark.parametrize("where", ["resume", "extend"])
def test_a_folder_that_cannot_be_written_to(finished, tmp_path, faults, where):
    shutil.copytree(finished / "runs" / "good", tmp_path / "run")
    file = tmp_path / "run" / "manifest.json"
    if where == "resume":
        file.write_text(json.dumps(older(json.loads(file.read_text())) | {"status": "interrupted"}))
    faults.fail("lock a file", OSError(30, "Read-only file system"))
    rest = [] if where == "resume" else ["--until", "2"]
    assert "Read-only file system" in refused(tmp_path, [where, "run", *rest], 6)
