"""What tables say of batches, of killed runs and of runs without figures; comparing runs."""

import io
import json
import os
import shutil
from pathlib import Path

import pytest
from rich.console import Console

import attnflow as af
from attnflow.cli import tables
from attnflow.experiments import Claim, names
from attnflow.runs import Run, preset_names, redraw
from tests.cli.commands import attnflow
from tests.experiments.tiny import BARE

SPEC = """
name = "batch"
[tokens]
name = "uniform"
n = 8
seed = [0, 1, 2]
space = { name = "sphere", dim = 2 }
[field]
name = "attention"
beta = 9.0
[solve]
until = 6.0
save = { name = "evenly", count = 4 }
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Two runs of three members that differ in beta, made without figures."""
    path = tmp_path_factory.mktemp("walls")
    (path / "batch.toml").write_text(SPEC)
    for beta in (4, 9):
        run = attnflow(
            "run",
            "batch.toml",
            "--set",
            f"field.beta={beta}",
            "--out",
            f"runs/{beta}",
            "--no-figures",
            cwd=path,
            check=0,
        )
        (path / f"{beta}.txt").write_text(run.stdout)
    return path


@pytest.mark.slow
def test_tables_of_a_batch_say_which_member_and_summarise_all(place):
    shown = attnflow("show", "runs/9", cwd=place, check=0).stdout
    assert shown.split("wall time")[0] == (place / "9.txt").read_text().split("wall time")[0]
    assert "seed = 0, the first of 3 members" in shown
    assert "all 3 members at the end" in shown
    batch = json.loads((place / "runs/9/manifest.json").read_text())["summary"]["batch"]
    opened = af.open_run(place / "runs" / "9")
    energy = opened.energy.values[:, -1]
    assert batch["energy_at_end"] == {"mean": energy.mean(), "min": energy.min(), "max": energy.max()}
    counts = opened.clusters()["count"].values[:, -1]
    assert batch["clusters_at_end"] == {"mean": counts.mean(), "min": counts.min(), "max": counts.max()}
    assert sum(batch["clusters"].values()) == batch["members"] == 3


@pytest.mark.long
def test_figures_are_left_out_and_drawn_later(place):
    shutil.copytree(place / "runs/9", place / "later")
    run = Run.open(place / "later")
    assert not run.report.exists()
    assert not run.figures.exists()
    assert "attnflow report runs/9" in (place / "9.txt").read_text()
    before = run.manifest()["checksums"]
    drawn = attnflow("report", "later", cwd=place, check=0).stdout
    assert "report.html" in drawn
    assert (run.figures / "summary.pdf").exists()
    page = run.report.read_text()
    assert "seed = 0, the first of 3 members" in page
    assert "all 3 members at the end" in page
    run.verify()
    after = run.manifest()
    assert after["status"] == "finished"
    assert set(before.items()) <= set(after["checksums"].items()), "arrays stay as they are"


def test_what_is_not_finished_has_no_report(place):
    shutil.copytree(place / "runs/9", place / "half")
    Run.open(place / "half").update(status="interrupted")
    assert "attnflow resume half" in attnflow("report", "half", cwd=place, check=6).stderr


def test_a_killed_run_is_interrupted(place):
    shutil.copytree(place / "runs/9", place / "other" / "killed")
    run = Run.open(place / "other" / "killed")
    run.update(status="running", began=1000.0, wall_time=2.0, summary=None, outcome=None, checksums={})
    os.utime(run.checkpoint, (1007.5, 1007.5))
    shown = attnflow("show", "other/killed", cwd=place, check=0).stdout
    assert "interrupted" in shown
    assert "attnflow resume other/killed" in shown
    assert "9.5 s" in shown
    listed = attnflow("list", "--root", "other", cwd=place, check=0).stdout
    assert "interrupted" in listed
    assert "attnflow resume RUN" in listed
    assert json.loads(attnflow("list", "--root", "other", "--json", cwd=place, check=0).stdout)[0]["wall_time"] == 9.5
    with run.lock():
        assert run.is_held()
        assert run.facts()["status"] == "running"
        assert "resume" not in attnflow("show", "other/killed", cwd=place, check=0).stdout
    assert not run.is_held()
    attnflow("resume", "other/killed", "--no-figures", cwd=place, check=0)
    assert run.manifest()["wall_time"] > 9.5


def test_runs_are_compared(place):
    done = attnflow("compare", "runs/4", "runs/9", "--figure", "both.pdf", cwd=place, check=0).stdout
    assert (place / "both.pdf").read_bytes()[:4] == b"%PDF"
    for word in ("field.beta", "energy at the end", "runs/4", "runs/9", "finished"):
        assert word in done
    found = json.loads(attnflow("compare", "runs/4", "runs/9", "--json", cwd=place, check=0).stdout)
    assert found["differs"] == {"field.beta": [4, 9]}
    summary = Run.open(place / "runs/9").manifest()["summary"]
    assert found["found"]["energy_at_end"][1] == summary["energy_at_end"]
    assert "are the same" in attnflow("compare", "runs/4", "runs/4", cwd=place, check=0).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["runs/4"], 2, "give two folders"),
        (["runs/4", "runs/none"], 6, "not a run folder"),
        (["runs/4", "runs/9", "--figure", "nowhere/a.pdf"], 6, "cannot draw"),
        (["runs/4", "runs/9", "--figure", "."], 2, "`--figure` is '.'; give a file such as a.pdf."),
    ],
)
def test_what_cannot_be_compared_is_refused(place, arguments, code, said):
    assert said in attnflow("compare", *arguments, cwd=place, check=code).stderr


def flipped(run, name, at=0.5):
    """Flip a bit in a file of a run."""
    content = bytearray((run / name).read_bytes())
    content[int(at * len(content))] ^= 1
    (run / name).write_bytes(bytes(content))


COMMANDS = [["show"], ["show", "--json"], ["resume"], ["extend", "--until", "9"], ["report"], ["animate"], ["cite"],
            ["compare", "runs/4"]]  # fmt: skip


@pytest.mark.parametrize("file", ["arrays.zarr/energy/c/0/0", "arrays.zarr/zarr.json", "checkpoint", "manifest.json"])
def test_no_command_reads_a_flipped_bit(place, file):
    shutil.copytree(place / "runs/9", place / "flipped", dirs_exist_ok=True)
    flipped(place / "flipped", file)
    there = {path: path.read_bytes() for path in (place / "flipped").rglob("*") if path.is_file()}
    for command in COMMANDS:
        done = attnflow(*command, "flipped", cwd=place, check=5)
        assert done.stderr.count("error: ") == 1, command
        assert done.stdout == "", command
    assert there == {path: path.read_bytes() for path in (place / "flipped").rglob("*") if path.name in
                     {one.name for one in there} and path.is_file()}  # fmt: skip
    listed = attnflow("list", "--root", ".", cwd=place, check=0).stdout
    assert ("damaged" in listed) == (file == "manifest.json")
    if "energy" in file:  # in Python, numbers are checked where they are read
        with pytest.raises(RuntimeError):
            af.open_run(place / "flipped").energy.load()


def test_a_finished_run_says_that_its_checkpoint_is_gone(place):
    shutil.copytree(place / "runs/9", place / "light")
    assert "checkpoint" not in attnflow("show", "light", cwd=place, check=0).stdout
    (place / "light" / "checkpoint").unlink()
    assert "gone; the run can neither be extended" in attnflow("show", "light", cwd=place, check=0).stdout
    assert "no checkpoint to go on from" in attnflow("extend", "light", "--until", "9", cwd=place, check=6).stderr


def test_redraw_gives_back_the_flow(place):
    run, flow = redraw(place / "runs" / "4")
    assert flow.dataset.sizes["time"] == 5
    run.verify()


@pytest.fixture
def narrow(faults):
    """Tables as a terminal of 80 columns shows them."""
    stream = io.StringIO()
    faults.replace("tables of commands", Console(file=stream, width=80, highlight=False))
    return stream


def test_claims_are_readable_at_80_columns(narrow, tmp_path):
    statement = "the measured exponent of the decay of correlations agrees with the one that theory predicts"
    claim = Claim.equal(statement, 0.123456789, 0.123456788, 1e-6, "rounding")
    run = Run(tmp_path)
    (tmp_path / "claims.json").write_text(json.dumps([claim.to_json()]))
    (tmp_path / "spec.toml").write_text("")
    facts = {"status": "finished", "quick": True, "wall_time": 1.0, "experiment": "tiny-mean"}
    run.update(**BARE | facts | {"checksums": {"claims.json": run.folder.checksum("claims.json")}})
    attnflow("show", ".", cwd=tmp_path, check=0)
    text = narrow.getvalue()
    assert max(map(len, text.splitlines())) <= 80
    inside = [line[2:68].strip() for line in text.splitlines() if line.startswith("│")]
    assert " ".join(inside[:2]) == statement
    assert inside[2].startswith("predicted 0.123")
    assert "found off by -1.0e-09" in inside[2]


def test_the_claims_of_an_interrupted_experiment_come_with_the_command_that_continues_it(narrow, tmp_path):
    (tmp_path / "spec.toml").write_text("")
    Run(tmp_path).update(**BARE | {"status": "interrupted", "quick": False, "experiment": "tiny-mean"})
    attnflow("show", ".", cwd=tmp_path, check=0)
    assert "attnflow resume" in narrow.getvalue()


def test_lifetimes_that_are_proved_stand_beside_those_that_are_not(narrow, tmp_path):
    plateau = {"clusters": 2, "log_start": 0.0, "log_end": 3.0, "energy": -0.1}
    summary = {"kind": "tokens", "plateaus": [plateau, plateau | {"log_proved": 2.0}]}
    run = Run(tmp_path)
    run.update(**BARE | {"status": "interrupted", "summary": summary})
    tables.print_run(run)
    assert "apart until" in narrow.getvalue()
    assert narrow.getvalue().count("–") == 1


def test_predictions_are_a_table_at_80_columns(narrow):
    attnflow("predict", "particles", "--beta", "9", "--d", "2", "--n", "64", cwd=".", check=0)
    lines = narrow.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("├") for line in lines) == len(af.theory.predict_particles(9.0, d=2, n=64)) - 1
    assert all(len(line.split("│")[2].strip()) < 30 for line in lines if line.startswith("│"))


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("attnflow run me", ["mean-shift", "metastability", "mete.toml"]),
        ("attnflow presets mi", ["million"]),
        ("attnflow reproduce sta", ["stability-of-measures", "staircase"]),
        ("attnflow reproduce staircase two", ["two-clusters"]),
        ("attnflow cite two", ["two-clusters"]),
        ("attnflow show runs/", ["runs/4", "runs/9"]),
        ("attnflow compare runs/4 runs/9", ["runs/9"]),
    ],
)
def test_shells_complete_names(place, words, offered):
    (place / "mete.toml").touch()
    assert completed(words, place) == offered


def completed(words, place):
    """The names that a shell offers for the last word."""
    request = {"_ATTNFLOW_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    return attnflow(cwd=place, **request).stdout.split()


def test_completion_knows_what_there_is(tmp_path):
    assert completed("attnflow presets ", tmp_path) == preset_names()
    assert completed("attnflow reproduce ", tmp_path) == names()


def test_a_path_may_have_wide_spaces(tmp_path):
    from attnflow.wording import fresh_path

    for name in ("研究\u3000結果", "My\u00a0runs"):
        assert fresh_path("--out", tmp_path / name).name == name
    with pytest.raises(af.errors.InvalidInput, match="another character"):
        fresh_path("--out", Path("-x"))
    for name in ("a\nb", "a\u2028b", "a\x00b"):
        with pytest.raises(af.errors.InvalidInput, match="line breaks"):
            fresh_path("--out", name)


@pytest.mark.slow
def test_a_run_that_lost_its_checkpoint_is_not_computed_again(tmp_path):
    from attnflow.runs import execute, parse_spec
    from tests.runs.kinds import TEXTS

    run, _ = execute(parse_spec(TEXTS["merge_times"]), tmp_path / "run")
    run.checkpoint.unlink()
    with pytest.raises(af.errors.RunError, match="lost its checkpoint"):
        redraw(tmp_path / "run")
    assert run.manifest()["status"] == "finished"


def test_a_lock_that_cannot_be_asked_leaves_the_status(tmp_path, faults):
    run = Run(tmp_path)
    run.update(**BARE | {"status": "running"})
    (tmp_path / ".lock").write_bytes(b"")
    assert run.is_held() is False
    assert run.facts()["status"] == "interrupted"
    faults.fail("lock a descriptor", OSError(38, "Function not implemented"))
    assert run.is_held() is None
    assert run.facts()["status"] == "running"


@pytest.mark.parametrize("command", [["reproduce", "--all", "--quick", "--jobs", "9999"], ["run", "metastability"]])
def test_a_place_that_cannot_be_written_to_is_refused_before_anything_starts(command, tmp_path):
    (tmp_path / "file").write_text("")
    done = attnflow(*command, "--out", str(tmp_path / "file" / "x"), cwd=tmp_path, check=6)
    assert done.stderr.endswith("is not a folder; choose another --out.\n")
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_help_has_a_short_name(tmp_path):
    assert "Usage: " in attnflow("predict", "-h", cwd=tmp_path, check=0).stdout
