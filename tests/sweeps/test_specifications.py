"""Sweeps of specifications, from Python and from the command line."""

import json
import re

import numpy as np
import pytest
import xarray as xr

import attnflow as af
from attnflow.errors import InvalidInput
from tests.cli.commands import attnflow
from tests.kit import end
from tests.sweeps.tasks import SPEC, events

AXES = ["--over", "field.beta=logspace(1,4,3)", "--over", "tokens.seed=range(0,3)"]


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "small.toml").write_text(SPEC)
    done = attnflow("sweep", "small.toml", *AXES, "--out", "s", "--json", cwd=folder, check=0)
    return folder, json.loads(done.stdout), done.stderr


@pytest.mark.long
def test_the_command_leaves_one_dataset(swept):
    folder, facts, said = swept
    assert (facts["tasks"], facts["done"], facts["failed"]) == (9, 9, 0)
    assert said.startswith("9 points: field.beta (3) × tokens.seed (3)\n")
    data = xr.open_zarr(folder / "s" / "results.zarr", consolidated=False)
    assert dict(data["positions"].sizes) == {"field.beta": 3, "tokens.seed": 3, "time": 3, "token": 4, "dim": 2}
    assert data["time"].values.tolist() == [0.0, 0.5, 1.0]
    tokens = af.uniform(af.Sphere(2), n=4, seed=2)
    alone = end(af.Attention(4.0), tokens, 1.0, method=af.Fixed(0.25))
    # programs that round in another order: 4 steps of 4 evaluations
    np.testing.assert_allclose(data["positions"].values[2, 2, -1], alone, atol=1e-13)


@pytest.mark.long
def test_the_command_again_resumes_and_extends(swept):
    folder, *_ = swept
    more = ["--over", "field.beta=logspace(1,4,3)", "--over", "tokens.seed=range(0,4)"]
    before = sum(event["tasks"] for event in events(folder / "s") if event["event"] == "done")
    data = af.open_sweep(folder / "s").dataset["positions"].load()
    done = attnflow("sweep", "small.toml", *more, "--out", "s", "--json", cwd=folder, check=0)
    assert json.loads(done.stdout)["done"] == 12
    assert sum(event["tasks"] for event in events(folder / "s") if event["event"] == "done") == before + 3
    grown = af.open_sweep(folder / "s").dataset["positions"].values
    assert grown[:, :3].tobytes() == data.values.tobytes()


@pytest.mark.long
def test_what_the_folder_says(swept):
    folder, *_ = swept
    for look in ("status", "collect", "show"):
        said = attnflow("sweep", look, "s", cwd=folder, check=0).stderr
        assert re.search(r"\d+ of \d+ done, 0 failed, 0 missing", said)
    figure = ["--plot", "positions", "--mean", "tokens.seed", "--figure", "f.pdf"]
    attnflow("sweep", "show", "s", *figure, cwd=folder, check=0)
    assert (folder / "f.pdf").read_bytes()[:4] == b"%PDF"


def test_figures_are_refused_in_the_words_of_the_command(swept):
    folder, *_ = swept
    for options, words in (
        (["--plot", "positions", "--along", "time"], "average one with `--mean`, or use `--at`"),
        (["--plot", "positions", "--along", "beta"], "`--along` is 'beta'"),
        (["--plot", "positions", "--at", "tme=1"], "`--at` has the dimension 'tme'; did you mean 'time'"),
        (["--plot", "positions", "--at", "time"], "`--at` is 'time'; give a dimension and a label, such as time=50."),
        (["--plot", "positions", "--at", "time=early"], "`--at` has time = 'early'; give one of the labels of time."),
    ):
        said = attnflow("sweep", "show", "s", *options, cwd=folder, check=2).stderr
        assert words in " ".join(said.split())
    figure = ["--plot", "positions", "--mean", "tokens.seed", "--at", "time=0.4", "--at", "field.beta=4"]
    attnflow("sweep", "show", "s", *figure, "--along", "dim", "--figure", "g.pdf", cwd=folder, check=0)
    assert (folder / "g.pdf").read_bytes()[:4] == b"%PDF"


def test_show_shows_a_sweep_and_other_commands_say_what_to_use(swept):
    folder, *_ = swept
    shown, listed = (attnflow(*command, "s", cwd=folder, check=0).stderr for command in (["show"], ["sweep", "show"]))
    assert sorted(shown.splitlines()) == sorted(listed.splitlines())
    assert "field.beta (3) × tokens.seed" in shown
    facts = [json.loads(attnflow(*c, "s", "--json", cwd=folder, check=0).stdout) for c in (["show"], ["sweep", "show"])]
    assert facts[0] == facts[1]
    for command in ("resume", "report", "animate", "compare"):
        said = attnflow(command, "s", *["s"] * (command == "compare"), cwd=folder, check=6).stderr
        assert "'s' is a sweep, not a run; use `attnflow sweep show s`, or open_sweep." in said


@pytest.mark.parametrize("folder", [None, 3, b"s"])
def test_open_sweep_takes_a_path(folder):
    with pytest.raises(InvalidInput, match=r"`folder` is .*; give the folder of a sweep\."):
        af.open_sweep(folder)


def test_a_dry_run_writes_nothing(swept):
    folder, *_ = swept
    before = sorted(folder.iterdir())
    said = attnflow("sweep", "small.toml", *AXES, "--dry-run", "--json", "--out", "d", cwd=folder, check=0)
    assert said.stderr.startswith("9 points: field.beta (3) × tokens.seed (3)\n")
    facts = json.loads(said.stdout)
    assert facts["tasks"] == 9
    assert facts["seconds"] > 0
    assert facts["disk"] > 9 * 3 * 4 * 2 * 8  # the positions alone
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--over", "field.bta=1,2"], "did you mean 'beta'"),
        (["--over", "feild.beta=1,2"], "did you mean 'field'"),
        (["--over", 'field.beta=1,2,"x"'], "the point field.beta = 'x' is refused"),
        (["--over", "field.beta=1,2", "--over", "tokens.n=4,0"], "the point field.beta = 1, tokens.n = 0 is refused"),
        (["--over", "field.beta"], "write KEY=VALUES"),
        (["--over", "tokens.n=16:64:4"], "write range(16,64,4) for whole numbers, or linspace(16,64,4) for 4 values."),
        (["--over", "field.beta=1:81"], "write range(1,81) for whole numbers, or linspace(1,81,N) for N values."),
        (["--over", "tokens.n=linspace(4,8,4)"], "the axis 'tokens.n' has the value 5.33333, and it takes integers"),
        (["--over", "field.beta=[1,2"], "are '[1,2'; write a list"),
        ([], "no axis"),
        (["--over", "name=a,b"], "changes nothing"),
        (["--over", "field.beta=1", "--on", "nowhere"], "`--on` is 'nowhere'"),
        (["--over", "field.beta=1", "--mean", "tokens.seed"], "need --plot"),
        (["--over", "field.beta=1", "--width", "0"], "`--width` is 0"),
        (["--over", "field.beta=1", "--workers", "0"], "`--workers` is 0"),
    ],
)
def test_bad_input_is_one_sentence_and_starts_nothing(arguments, words, swept):
    folder, *_ = swept
    before = sorted(folder.iterdir())
    done = attnflow("sweep", "small.toml", *arguments, "--out", "new", cwd=folder, check=2)
    assert words in " ".join(done.stderr.split())
    assert sorted(folder.iterdir()) == before


def test_axes_in_the_specification_and_together(tmp_path):
    (tmp_path / "axes.toml").write_text(SPEC + '[sweep]\n"field.beta, solve.until" = [[1.0, 0.5], [2.0, 1.0]]\n')
    data = af.sweep(tmp_path / "axes.toml", folder=tmp_path / "s").dataset
    assert data["field.beta"].values.tolist() == [1.0, 2.0]
    assert data["solve.until"].dims == ("field.beta",)
    assert data["time"].dims == ("field.beta", "time_number")  # each task has times of its own
    assert data["time"].values.tolist() == [[0, 0.25, 0.5], [0, 0.5, 1.0]]


def flow(beta, seed):
    tokens = af.uniform(af.Sphere(2), n=4, seed=seed)
    return af.flows.Solve(af.Attention(beta), tokens, 1.0, save=2, keep=["positions"], method=af.Fixed(0.25))


def test_a_function_that_makes_work_and_work_itself(swept, tmp_path):
    folder, *_ = swept
    data = af.sweep(flow, {"beta": [2.0, 4.0], "seed": [0, 2]}, tmp_path / "f").dataset
    kept = af.open_sweep(folder / "s").dataset["positions"].sel({"field.beta": 4.0}, method="nearest")
    np.testing.assert_allclose(data["positions"].values[1, 1], kept.sel({"tokens.seed": 2}).values, atol=1e-13)
    work = af.sweep(flow(2.0, 0), {"until": [1.0, 0.5]}, tmp_path / "w").dataset
    np.testing.assert_allclose(work["positions"].values[0], data["positions"].values[0, 0], atol=1e-13)
    with pytest.raises(InvalidInput, match="give a function"):
        af.sweep(flow(2.0, 0), {"field.beta": [1.0]}, tmp_path / "x")
