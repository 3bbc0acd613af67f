"""The command line, end to end: a run that is interrupted and resumed in processes of its own, the rest in this one."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from attnflow.runs import Run, load_spec
from tests.cli.commands import attnflow

SMALL = ["--set", "tokens.n=8", "--set", "tokens.seed=4", "--set", "solve_long.method.frames=30"]

# compiled programs are shared by all commands of one test run, as they are on a user's machine
CACHE = str(Path(tempfile.gettempdir()) / f"attnflow-tests-{os.environ.get('PYTEST_XDIST_TESTRUNUID', os.getpid())}")


def in_a_process(*arguments, cwd, check=None):
    done = subprocess.run(
        [sys.executable, "-c", "from attnflow.cli import main; main()", *arguments],
        cwd=cwd, capture_output=True, text=True, env=os.environ | {"XDG_CACHE_HOME": CACHE, "COLUMNS": "200"},
    )  # fmt: skip
    if check is not None:
        assert done.returncode == check, done.stderr
    return done


def test_python_m_attnflow_is_the_command(tmp_path):
    command = [sys.executable, "-m", "attnflow"]
    done = subprocess.run([*command, "show", "--help"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "Usage: attnflow show " in done.stdout
    refused = subprocess.run([*command, "show", "nowhere"], cwd=tmp_path, capture_output=True, text=True)
    assert refused.returncode == attnflow("show", "nowhere", cwd=tmp_path).returncode != 0
    assert "is not a run folder" in refused.stderr


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with `mine.toml`, begun from a preset, and `runs/one`, which carried it out."""
    path = tmp_path_factory.mktemp("cli")
    (path / "mine.toml").write_text(attnflow("presets", "metastability", cwd=path, check=0).stdout)
    out = attnflow("run", "mine.toml", *SMALL, "--out", "runs/one", "--json", cwd=path, check=0).stdout
    manifest = json.loads((path / "runs/one/manifest.json").read_text())
    assert json.loads(out) == {key: value for key, value in manifest.items() if key != "digest"} | {"run": "runs/one"}
    return path


@pytest.mark.slow
def test_a_run_leaves_arrays_figures_and_a_report(place):
    run = place / "runs" / "one"
    for name in ("spec.toml", "manifest.json", "arrays.zarr/zarr.json", "report.html"):
        assert (run / name).is_file(), name
    for name in ("summary", "snapshots", "series", "overlaps", "attention", "staircase", "tree"):
        assert (run / "figures" / f"{name}.pdf").read_bytes()[:4] == b"%PDF"
    page = (run / "report.html").read_text()
    assert "<script src=" not in page, "the report must not load anything"
    assert "metastability" in page
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["status"] == "finished"
    assert "plateaus" in manifest["summary"]


def test_show_and_list(place):
    table = attnflow("show", "runs/one", cwd=place, check=0).stdout
    for word in ("wall time", "peak memory", "energy", "clusters", "report"):
        assert word in table
    assert "from t" in table
    exponent = float(xr.open_zarr(place / "runs/one/arrays.zarr", consolidated=False)["merge_log_time"][-1]) / np.log(
        10
    )
    assert f"consensus at t = 10^{exponent:.9g}." in table
    assert f"1 at t = 10^{exponent:.5g}" in table
    shown = json.loads(attnflow("show", "runs/one", "--json", cwd=place, check=0).stdout)
    listed = json.loads(attnflow("list", "--json", cwd=place, check=0).stdout)
    assert shown["spec_hash"] == listed[0]["spec_hash"]
    assert "finished" in attnflow("list", cwd=place, check=0).stdout
    assert "no runs" in attnflow("list", cwd=place / "runs" / "one", check=0).stdout


def test_listing_survives_a_damaged_manifest(place):
    (place / "other" / "bad").mkdir(parents=True)
    (place / "other" / "bad" / "manifest.json").write_text("{")
    assert "damaged" in attnflow("list", "--root", "other", cwd=place, check=0).stdout
    assert (
        json.loads(attnflow("list", "--root", "other", "--json", cwd=place, check=0).stdout)[0]["status"] == "damaged"
    )


def test_a_run_is_animated(place):
    short = ["--seconds", "3", "--fps", "4", "--width", "240"]
    done = attnflow("animate", "runs/one", "--out", "one.gif", *short, cwd=place, check=0)
    assert done.stdout.strip() == "one.gif"
    assert "batch" not in done.stderr
    assert (place / "one.gif").read_bytes()[:6] == b"GIF89a"
    attnflow("animate", "runs/one", *short, cwd=place, check=0)
    assert "://" not in (place / "runs" / "one.html").read_text()
    (place / "runs" / "one.html").unlink()
    for more, code, words in (
        (["runs/none"], 6, "is not a run folder"),
        (["runs/one", "--out", "a.avi"], 2, "html, gif or mp4"),
        (["runs/one", "--format", "webm"], 2, "`--format` is 'webm'"),
        (["runs/one", "--member", "seed"], 2, "such as seed=1"),
        (["runs/one", "--member", "seed=1"], 2, "it is one system"),
        (["runs/one", "--out", "nowhere/a.gif", *short], 6, "cannot write"),
    ):
        refused = attnflow("animate", *more, cwd=place, check=code)
        assert words in refused.stderr
        assert refused.stderr.strip().endswith(".")
    manifest = place / "runs" / "one" / "manifest.json"
    whole = manifest.read_text()
    Run.open(place / "runs" / "one").update(status="interrupted")
    assert "attnflow resume runs/one" in attnflow("animate", "runs/one", cwd=place, check=6).stderr
    manifest.write_text(whole)


def test_resuming_a_finished_run_shows_it(place):
    done = attnflow("resume", "runs/one", cwd=place, check=0)
    assert "finished already" in done.stderr
    assert "wall time" in done.stdout


def test_kinds_of_work_are_described(place):
    text = attnflow("kinds", "solve", cwd=place, check=0).stdout
    for word in ("[tokens]", "solve.until", "needed", "evenly"):
        assert word in text
    found = json.loads(attnflow("kinds", "--json", cwd=place, check=0).stdout)
    assert {entry["name"]: entry["default"] for entry in found["fit"]["fields"]}["steps"] == 300
    plugin = Path(__file__).parent.parent / "outside" / "kind.py"
    assert "gossip" in attnflow("kinds", "--plugin", str(plugin), cwd=place, check=0).stdout
    assert attnflow("kinds", "slove", cwd=place).returncode == 2


def test_presets_start_a_file(place):
    named = load_spec("metastability", SMALL[1::2])
    assert json.loads((place / "runs/one/manifest.json").read_text())["spec_hash"] == named.hash
    assert "metastability" in attnflow("presets", cwd=place, check=0).stdout
    assert json.loads(attnflow("presets", "metastability", "--json", cwd=place, check=0).stdout)["field"]["beta"]


def test_version_and_help(place):
    assert attnflow("--version", cwd=place, check=0).stdout.startswith("attnflow 0.")
    for command in ("run", "resume", "show", "list", "presets"):
        assert "Example:" in attnflow(command, "--help", cwd=place, check=0).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["run", "metastabilty"], 2, "did you mean 'metastability'"),
        (["run", "metastability", "--set", "field.bta=9"], 2, "did you mean 'beta'"),
        (["run", "metastability", "--set", "field.beta=nan"], 2, "`beta` is nan"),
        (["run", "metastability", "--out", "runs/one"], 4, "exists already"),
        (["run", "metastability", "--out", "mine/file/run"], 6, "cannot write"),
        (["show", "nowhere"], 6, "not a run folder"),
        (["resume", "nowhere"], 6, "not a run folder"),
        (["presets", "nothing"], 2, "no preset"),
        (["frobnicate"], 2, "No such command"),
    ],
)
def test_wrong_arguments(place, arguments, code, words):
    (place / "mine").mkdir(exist_ok=True)
    (place / "mine" / "file").write_text("")
    done = attnflow(*arguments, cwd=place)
    assert done.returncode == code
    assert words in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_a_damaged_run_is_refused(place):
    shutil.copytree(place / "runs" / "one", place / "copies" / "one")
    attnflow("show", "copies/one", cwd=place, check=0)
    (place / "copies" / "one" / "report.html").write_text("")
    done = attnflow("show", "copies/one", cwd=place)
    assert done.returncode == 5
    assert "report.html" in done.stderr


@pytest.mark.slow  # `make test` interrupts an experiment in test_reproduce and kills a flow in runs/test_folder
def test_ctrl_c_and_resume(place):
    process = subprocess.Popen(
        [sys.executable, "-c", "from attnflow.cli import main; main()", "run", "million", "--out", "runs/stopped",
         "--set", "tokens.n=20", "--set", 'solve.method={name="fixed", step=0.0005}', "--set", "solve.until=60.0",
         "--set", "solve.save.count=40"],
        cwd=place, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"XDG_CACHE_HOME": CACHE},
    )  # fmt: skip
    for _ in range(1200):
        if (place / "runs" / "stopped" / "checkpoint").exists():
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "attnflow resume runs/stopped" in " ".join(errors.split())
    done = in_a_process("resume", "runs/stopped", cwd=place, check=0)
    assert "wall time" in done.stdout
    assert json.loads((place / "runs/stopped/manifest.json").read_text())["status"] == "finished"
    assert (place / "runs/stopped/report.html").is_file()


def test_predict(place):
    text = attnflow("predict", "particles", "--beta", "9", "--d", "2", "--n", "64", cwd=place, check=0).stdout
    for word in ("growth rates", "degree 4", "3.7 clusters", "plateau lifetime", "conditions, source"):
        assert word in text
    found = json.loads(
        attnflow(
            "predict", "particles", "--beta", "9", "--d", "3", "--json", "--figure", "a.pdf", cwd=place, check=0
        ).stdout
    )
    assert found[1]["value"] == 4
    assert (place / "a.pdf").read_bytes()[:4] == b"%PDF"
    assert attnflow("predict", "particles", "--beta", "nan", "--d", "3", cwd=place).returncode == 2
    assert attnflow("predict", "particles", "--beta", "9", "--d", "1", cwd=place).returncode == 2
    assert (
        attnflow("predict", "particles", "--beta", "9", "--d", "3", "--figure", "no/where/a.pdf", cwd=place).returncode
        == 6
    )


def test_predict_middle_and_layers(place):
    middle = ["predict", "middle", "--context", "4096", "--alibi", "0.0005", "--beta", "1", "--time", "1"]
    found = {one["quantity"]: one for one in json.loads(attnflow(*middle, "--json", cwd=place, check=0).stdout)}
    assert 900 < found["middle"]["value"] < 920
    text = attnflow(*middle, "--figure", "m.pdf", cwd=place, check=0).stdout
    assert "takeover" in text
    assert (place / "m.pdf").read_bytes()[:4] == b"%PDF"
    layers = ["predict", "layers", "--layers", "96", "--heads", "64", "--d", "512", "--d-k", "128", "--context", "256"]
    found = json.loads(attnflow(*layers, "--json", "--figure", "d.pdf", cwd=place, check=0).stdout)
    assert found[0]["value"] == 1.5
    assert (place / "d.pdf").read_bytes()[:4] == b"%PDF"
