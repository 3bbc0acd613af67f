"""Parts: what is stored is what was made, once."""

import contextlib
import dataclasses
import json
import os
import shutil

import numpy as np
import pytest
import xarray as xr

import attnflow as af
from attnflow.errors import InvalidInput, RunCorrupted, RunError
from attnflow.experiments import Study, open_part, reproduce, resume
from attnflow.folders import Folder
from attnflow.runs import Run
from tests.marks import graded
from tests.runs.boundaries import boundaries, remains
from tests.runs.kinds import after


def example():
    return xr.Dataset(
        {
            "x": (("a", "b"), np.arange(6.0).reshape(2, 3) / 7, {"unit": np.float64(0.1)}),
            "flag": ("a", [True, False]),
            "count": ((), np.int32(4)),
            "single": ("b", np.array([np.nan, -0.0, np.inf], np.float32)),
        },
        {"a": [0.1, 0.2], "model": ("a", np.array(["SA", "USA0"], dtype=object)), "b": ["p", "q", "r"]},
        {"steps": np.arange(3), "words": "β ≤ 1"},
    )


def stored(folder, dataset=None):
    """The bytes of the part `one` of a study, which is `dataset` if the study has not made it."""
    Study(folder).part("one", lambda: dataset)
    return (folder / "one.npz").read_bytes()


def test_a_part_keeps_values_kinds_and_labels(tmp_path):
    made = Study(tmp_path).part("one", example)
    for name, variable in example().variables.items():
        np.testing.assert_array_equal(made[name].values, variable.values)
        assert made[name].dims == variable.dims
        if variable.dtype != object:
            assert made[name].dtype == variable.dtype
    assert set(made.coords) == {"a", "b", "model"}
    assert made["x"].sel(a=0.2, b="q") == 4.0 / 7
    assert made.attrs == {"steps": [0, 1, 2], "words": "β ≤ 1"}
    assert made["x"].attrs == {"unit": 0.1}
    assert stored(tmp_path / "other", made) == stored(tmp_path)
    assert made.identical(open_part(tmp_path / "one.npz"))


def test_a_part_is_made_once(tmp_path):
    first = Study(tmp_path).part("one", example)

    def never():
        raise AssertionError

    again = Study(tmp_path).part("one", never)
    assert stored(tmp_path / "again", again) == stored(tmp_path / "first", first) == stored(tmp_path)


def test_what_cannot_be_kept_is_refused(tmp_path):
    study = Study(tmp_path)
    for name in ("", "a/b", "../a", ".hidden"):
        with pytest.raises(InvalidInput, match="becomes a file"):
            study.part(name, example)
    study.part("one", example)
    with pytest.raises(InvalidInput, match="asked for twice"):
        study.part("one", example)
    with pytest.raises(InvalidInput, match="make an xarray Dataset"):
        study.part("two", lambda: {"x": 1})
    with pytest.raises(InvalidInput, match="holds Python objects"):
        study.part("three", lambda: xr.Dataset({"x": ("a", np.array([1, None], dtype=object))}))
    with pytest.raises(InvalidInput, match="cannot be written as JSON"):
        study.part("four", lambda: xr.Dataset(attrs={"x": {1, 2}}))
    with pytest.raises(InvalidInput, match="is called 'header'"):
        study.part("five", lambda: xr.Dataset({"header": 1.0}))
    assert [file.name for file in tmp_path.iterdir()] == ["one.npz"]


@pytest.mark.parametrize("keep", [0.0, 0.5, 0.98])
def test_a_damaged_part_is_noticed(keep, tmp_path):
    Study(tmp_path).part("one", example)
    content = (tmp_path / "one.npz").read_bytes()
    (tmp_path / "one.npz").write_bytes(content[: int(keep * len(content))])
    with pytest.raises(RunCorrupted, match="remove it and resume"):
        Study(tmp_path).part("one", example)


def test_altered_numbers_are_noticed(tmp_path):
    Study(tmp_path).part("one", example)
    content = bytearray((tmp_path / "one.npz").read_bytes())
    spot = bytes(content).index(np.float64(4.0 / 7).tobytes())
    content[spot] ^= 1
    (tmp_path / "one.npz").write_bytes(content)
    with pytest.raises(RunCorrupted):
        open_part(tmp_path / "one.npz")


def test_progress_is_passed_on(tmp_path):
    seen = []
    study = Study(tmp_path, lambda at: seen.append((at.note, at.time, at.until)))
    study.progress("half", 0.5)
    study.progress("more than all", 1.2)
    assert seen == [("half", 0.5, 1.0), ("more than all", 1.0, 1.0)]


def test_parts_share_the_whole_and_have_shares_of_their_own(tmp_path):
    seen = []
    study = Study(tmp_path, lambda at: seen.append((at.note, at.time)))

    def make(value):
        study.progress("inside", 0.5)
        return xr.Dataset({"value": value})

    for _ in study.along("xy"):
        made = study.parts(
            {name: (make, len(study.asked)) for name in ("p", "q")} if not study.asked else {"r": example}
        )
    assert list(made) == ["r"]
    assert [at for _, at in seen] == [0.0, 0.125, 0.25, 0.375, 0.5]
    assert study.window == (0.0, 1.0)
    again = Study(tmp_path).parts({"p": (make, 7), "q": (make, 8)})
    assert [int(one["value"]) for one in again.values()] == [0, 0], "parts that are there are not made again"


def test_refined_flows_know_their_error(tmp_path):
    """x' = beta-free attention of two tokens: the error of RK4 falls by 16, and the estimate is right to a part in ten."""
    tokens = af.from_array([[1.0, 0.0], [0.0, 1.0]])
    work = af.flows.Solve(
        af.Attention(0.0), tokens, 2.0, save=[2.0], method=af.Fixed(0.1), keep=(),
        observe={"overlap": lambda mu: mu.positions[0] @ mu.positions[1]},
    )  # fmt: skip
    found = Study(tmp_path).refined("pair", work)
    # gamma' = (1 - gamma^2) at beta = 0 with n = 2: gamma = tanh t
    off = abs(float(found["overlap"][-1]) - np.tanh(2.0))
    assert off == pytest.approx(float(found["overlap_error"][-1]), rel=0.1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pair-coarse.npz", "pair-fine.npz"]
    with pytest.raises(InvalidInput, match="`method`"):
        Study(tmp_path / "other").refined("pair", dataclasses.replace(work, method=af.Adaptive()))


def tumbling():
    tokens = af.uniform(af.Sphere(3), n=6, seed=1)
    return af.flows.Solve(
        af.Attention(2.0), tokens, 3.0, save=12, method=af.Fixed(0.05), chunk=2, keep=("positions",),
        observe={"order": af.observe.order_parameter},
    )  # fmt: skip


def test_a_part_that_is_work_goes_on_from_within(tmp_path):
    """Stopped twice within the part, it takes up its rows, and is bit by bit what was made in one piece."""
    whole = Study(tmp_path / "whole").part("flow", tumbling())
    texts = []

    def stop(at):
        texts.append(at.note)
        if len(texts) in (2, 4):
            raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            Study(tmp_path / "parts", stop).part("flow", tumbling())
    found = Study(tmp_path / "parts", stop).part("flow", tumbling())
    assert found.identical(whole)
    assert 6 <= len(texts) <= 10, "rows that are there are not made again"
    assert all(text.startswith("flow: ") for text in texts)
    assert [path.name for path in (tmp_path / "parts").iterdir()] == ["flow.npz"]
    np.testing.assert_allclose(found["order"][0], np.linalg.norm(tumbling().tokens.positions.mean(axis=0)), rtol=1e-14)


def test_an_experiment_is_cancelled_within_a_part_and_goes_on(tmp_path):
    (tmp_path / "mine.py").write_text(EXPERIMENT)
    cancel = after(3, lambda: True)
    with pytest.raises(KeyboardInterrupt):
        reproduce(tmp_path / "mine.py", tmp_path / "run", cancel=cancel)
    assert Run.open(tmp_path / "run").manifest()["status"] == "interrupted"
    run, claims = resume(tmp_path / "run", plugins=[tmp_path / "mine.py"])
    assert [claim.holds for claim in claims] == [True]
    assert run.manifest()["status"] == "finished"


@pytest.mark.parametrize("kind", ["part", "rows"])
def test_parts_and_rows_of_other_settings_are_refused(kind, tmp_path):
    """Each names the settings it was made with; those that name none, of earlier versions, are taken."""

    def stop(at):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) if kind == "rows" else contextlib.nullcontext():
        Study(tmp_path, stop if kind == "rows" else None, settings="theirs").part("one", tumbling())
    with pytest.raises(RunCorrupted, match="with other settings.*remove it and resume"):
        Study(tmp_path, settings="mine").part("one", tumbling())
    right = Study(tmp_path, settings="theirs").part("one", tumbling())
    shutil.copy(tmp_path / "one.npz", tmp_path / "two.npz")
    with pytest.raises(RunCorrupted, match="it is the part 'one'"):
        Study(tmp_path, settings="theirs").part("two", tumbling())
    assert right.identical(Study(tmp_path / "other").part("one", tumbling()))
    assert Study(tmp_path / "other", settings="mine").part("one", tumbling()).identical(right)


PLACES = ("parts", "parts/.one.claim", "parts/one.npz", "parts/one.rows")


@pytest.mark.parametrize("kind", ["link to a file", "link to a folder", "pipe"])
@pytest.mark.parametrize("place", PLACES)
def test_a_study_of_somebody_else_leads_nowhere(place, kind, tmp_path):
    """A link or a pipe in the folder is refused at once, and nothing outside is read or written."""
    outside, path = tmp_path / "outside", tmp_path / "run" / place
    (outside / "folder").mkdir(parents=True)
    Study(outside).part("one", example)
    before = contents(tmp_path)
    path.parent.mkdir(parents=True)
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(outside / ("one.npz" if "file" in kind else "folder"))
    with pytest.raises((RunCorrupted, RunError), match=r"is a link, a pipe or a device|cannot write"):
        Study(Folder(tmp_path / "run").inside("parts")).part("one", tumbling())
    assert {name: content for name, content in contents(tmp_path).items() if name.startswith("outside")} == before
    assert list((outside / "folder").iterdir()) == []


def test_a_study_needs_no_hard_links(tmp_path, faults):
    faults.fail("link a file", PermissionError(1, "no links here"))
    Study(tmp_path).part("one", tumbling())
    assert [path.name for path in tmp_path.iterdir()] == ["one.npz"]


def test_what_killed_processes_left_is_removed(tmp_path):
    study = Study(tmp_path)
    study.part("one", example)
    (tmp_path / "one.rows").mkdir()
    for name in ("one.rows/settings", ".two.claim"):
        (tmp_path / name).write_text("{}")
    study.tidy()
    assert [path.name for path in tmp_path.iterdir()] == ["one.npz"]


def test_equal_datasets_give_equal_bytes(tmp_path):
    """However variables and attributes came together, and however the arrays lie in memory."""
    x = np.arange(6.0).reshape(2, 3)
    first = xr.Dataset({"x": (("a", "b"), x), "y": ("a", [1, 2])}, {"b": [1, 2, 3], "a": [0, 1]}, {"p": 1, "q": "r"})
    second = xr.Dataset({"y": ("a", [1, 2]), "x": (("a", "b"), np.asfortranarray(x))}, {"a": [0, 1], "b": [1, 2, 3]})
    second.attrs = {"q": "r", "p": 1}
    assert first.identical(second)
    assert stored(tmp_path / "first", first) == stored(tmp_path / "second", second)


def contents(path):
    """Names of all files of a run, and the bytes of its parts."""
    files = {file.relative_to(path).as_posix(): file for file in path.rglob("*") if file.is_file()}
    return {
        name: file.read_bytes() if name.endswith(".npz") else b"" for name, file in files.items() if name != ".lock"
    }


def died(path):
    """Make the claims in a copied folder those of a process that is gone."""
    for claim in path.glob("parts/.*claim"):
        if words := claim.read_bytes():
            claim.write_text(json.dumps(json.loads(words) | {"born": "long ago"}))


@pytest.fixture(scope="module")
def deaths(tmp_path_factory):
    """An experiment, the folder it leaves when nothing happens, and what a death at each change leaves of it."""
    folder = tmp_path_factory.mktemp("deaths")
    (folder / "mine.py").write_text(EXPERIMENT)
    copy, states = remains(folder / "run", folder / "left")
    with boundaries(folder / "run", copy):
        reproduce(folder / "mine.py", folder / "run")
    return folder / "mine.py", folder / "run", list(states.values())


@graded("phase", ["after the part", pytest.param("any", marks=pytest.mark.slow)], slow=1)
def test_an_experiment_that_died_leaves_the_files_of_one_that_did_not(phase, deaths):
    file, whole, states = deaths
    is_finished = [(path / "parts" / "flow.npz").exists() and not (path / "claims.json").exists() for path in states]
    chosen = [path for path, late in zip(states, is_finished, strict=True) if late] if phase != "any" else states
    assert sum((path / "parts" / "flow.rows").exists() for path in chosen) > 10
    for path in chosen[:: 1 if phase == "any" else 4]:
        died(path)
        again = {"plugins": [file]} if (path / "manifest.json").exists() else None
        run, _ = reproduce(file, path) if again is None else resume(path, **again)
        run.verify()
        assert contents(path) == contents(whole), path.name


EXPERIMENT = '''"""Tokens that attract each other come closer.

Shown: six tokens.
"""

import dataclasses

import matplotlib.figure

import attnflow as af
from attnflow.experiments import Claim

PAPERS = ("geshkovski2025perspective",)


@dataclasses.dataclass(frozen=True)
class Parameters:
    until: float = 3.0


QUICK = Parameters(1.0)


def run(parameters, study):
    tokens = af.uniform(af.Sphere(3), n=6, seed=1)
    return study.part("flow", af.flows.Solve(
        af.Attention(2.0), tokens, parameters.until, save=12, method=af.Fixed(0.05), chunk=2, keep=("spread",)))


def claims(parameters, data):
    return [Claim.at_most("The spread falls.", float(data["spread"][0]), float(data["spread"][-1]), 0.0, "exact")]


def draw(parameters, data):
    return matplotlib.figure.Figure()
'''
