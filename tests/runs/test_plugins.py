"""Plugins: words from a file, known where the file is given and nowhere else; nothing else is executed."""

import contextlib
import hashlib
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import attnflow as af
from attnflow import runs
from attnflow.errors import InvalidInput, InvalidSpec, RunError
from attnflow.runs import Run, execute, load_spec, open_run, parse_spec, resume, spec_of
from tests.faults import environment
from tests.runs.failing import stopping_after
from tests.words import REGISTRY

PLUGIN = """
import os
import numpy as np
import attnflow as af

with open(os.environ["PLUGIN_LOG"], "a") as log:
    log.write("x")


@af.register("field", "warm")
def warm(heat: float = 0.5, mask: af.Window | None = None):
    return af.Attention(1.0 / heat, mask=mask or af.masks.Everyone())


@af.register("mask", "neighbours")
def neighbours(reach: int = 1):
    return af.Window(reach + 1, causal=False)


@af.register("weight", "twice")
def twice(size: int):
    return 2.0 * np.eye(size)


@af.register("tokens", "pair")
def pair(angle: float = 1.0):
    return af.from_array(np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]]))
"""
TEXT = """
[tokens]
name = "pair"
angle = 1.5
[field]
name = "warm"
heat = 0.25
mask = { name = "neighbours", reach = 2 }
[solve]
until = 2.0
chunk = 4
save = { name = "evenly", count = 12 }
"""
PLAIN = TEXT.replace(
    'name = "pair"\nangle = 1.5', 'name = "uniform"\nn = 3\nspace = { name = "sphere", dim = 2 }'
).replace('name = "warm"\nheat = 0.25\nmask = { name = "neighbours", reach = 2 }', 'name = "attention"\nbeta = 4.0')


@pytest.fixture
def here(tmp_path):
    """A folder with mine.py, mine.toml and the log of how often mine.py was executed."""
    (tmp_path / "log").write_text("")
    (tmp_path / "mine.py").write_text(PLUGIN)
    (tmp_path / "mine.toml").write_text(TEXT)
    with contextlib.chdir(tmp_path), environment(PLUGIN_LOG=str(tmp_path / "log")):
        yield tmp_path


def executed(here):
    return len((here / "log").read_text())


def everything(folder):
    return {str(f.relative_to(folder)): f.read_bytes() for f in folder.rglob("*") if f.is_file() and f.name != ".lock"}


def interrupted(here, path="run"):
    """A run of mine.toml that Ctrl-C ended after its first chunk."""
    with stopping_after(1, KeyboardInterrupt):
        run, flow = execute(load_spec("mine.toml", plugins=["mine.py"]), here / path)
    assert flow.outcome.ending.value == "interrupted"
    assert run.manifest()["status"] == "interrupted"
    return run.path


def positions(path):
    with xr.open_zarr(path / "arrays.zarr", chunks=None, consolidated=False) as data:
        return data["positions"].values


def test_words_of_a_file_are_words_of_its_specifications(here):
    spec = load_spec("mine.toml", ["field.mask.reach=3"], plugins=["mine.py"])
    assert spec.table["field"] == {"name": "warm", "heat": 0.25, "mask": {"name": "neighbours", "reach": 3}}
    made = spec.work
    assert isinstance(made.field, af.Attention)
    assert made.field.mask.width == 4
    assert made.tokens.n == 2
    assert executed(here) == 1, "building again does not load again"
    nested = parse_spec(
        PLAIN, ['field.value={ name = "twice", size = 2 }', 'field.mask.name="neighbours"'], plugins=["mine.py"]
    )
    np.testing.assert_array_equal(nested.work.field.value.weight.value, 2 * np.eye(2))
    assert nested.table["field"]["mask"] == {"name": "neighbours", "reach": 1}


def test_they_are_known_nowhere_else(here):
    spec = load_spec("mine.toml", plugins=["mine.py"])
    assert parse_spec(PLAIN).plugins.loaded == ()
    with pytest.raises(InvalidSpec, match=r"`field.name` is 'warm' \(if it comes from a plugin, give --plugin FILE\)"):
        load_spec("mine.toml")
    assert spec.work.tokens.n == 2
    with pytest.raises(InvalidSpec, match="if it comes from a plugin"):
        parse_spec(spec.to_toml())


def test_a_specification_alone_executes_nothing(here):
    for source in ("mine.toml",):
        with pytest.raises(InvalidSpec):
            load_spec(source)
    for line in ('plugins = ["mine.py"]', 'plugin = "mine.py"'):
        with pytest.raises(InvalidSpec, match="unknown key 'plugin"):
            parse_spec(f"{line}\n{PLAIN}")
    for table in ('{ name = "mine.py" }', '{ name = "mine:warm" }', '{ name = "os.system" }'):
        with pytest.raises(InvalidSpec, match="if it comes from a plugin"):
            parse_spec(PLAIN, [f"field={table}"])
    assert executed(here) == 0


def test_the_hash_of_a_specification_counts_its_plugins(here):
    plain = parse_spec(PLAIN)
    one = parse_spec(PLAIN, plugins=["mine.py"])
    assert one == plain
    assert one.hash != plain.hash
    (here / "mine.py").write_text(PLUGIN + "\n# more\n")
    assert parse_spec(PLAIN, plugins=["mine.py"]).hash != one.hash


@pytest.mark.slow
def test_a_run_records_and_keeps_its_plugins(here):
    run, flow = execute(load_spec("mine.toml", plugins=["mine.py"]), here / "run")
    assert executed(here) == 1
    digest = hashlib.sha256(PLUGIN.encode()).hexdigest()
    assert run.manifest()["plugins"] == [{"file": "mine.py", "path": "mine.py", "sha256": digest}]
    assert (run.path / "plugin-mine.py").read_text() == PLUGIN
    assert "plugin-mine.py" in run.manifest()["checksums"]
    run.verify()
    same = af.solve(
        af.Attention(4.0, mask=af.Window(3, causal=False)),
        af.from_array(np.array([[1.0, 0.0], [np.cos(1.5), np.sin(1.5)]])),
        2.0, save=af.saving.Evenly(12), chunk=4,
    )  # fmt: skip
    np.testing.assert_array_equal(flow.positions, same.positions)
    execute(parse_spec(PLAIN), here / "plain")
    assert "plugins" not in Run.open(here / "plain").manifest()


def test_plugins_may_be_given_to_execute(here):
    run, _ = execute(parse_spec(PLAIN), here / "plain", plugins=["mine.py"])
    assert [row["file"] for row in run.manifest()["plugins"]] == ["mine.py"]
    spec = load_spec("mine.toml", plugins=["mine.py"])
    before = executed(here)
    run, _ = execute(spec, here / "run", plugins=["mine.py"])
    assert executed(here) == before, "a file that the specification was loaded with is not executed again"
    assert len(run.manifest()["plugins"]) == 1


def test_resuming_with_the_same_file_is_bit_identical(here):
    whole, _ = execute(load_spec("mine.toml", plugins=["mine.py"]), here / "whole")
    path = interrupted(here)
    _, flow = resume(path, plugins=["mine.py"])
    assert flow.outcome.complete
    np.testing.assert_array_equal(positions(path), positions(whole.path))
    Run.open(path).verify()
    (here / "elsewhere").mkdir()
    (here / "mine.py").rename(here / "elsewhere" / "renamed.py")
    _, flow = resume(path, plugins=[here / "elsewhere" / "renamed.py"])  # finished: only opened
    np.testing.assert_array_equal(flow.positions, positions(path))


def test_resuming_without_the_file_says_what_to_give(here):
    path = interrupted(here)
    before, times = everything(path), executed(here)
    for act in (resume, lambda p: spec_of(Run.open(p))):
        with pytest.raises(
            RunError, match=r"made with the file 'mine.py', which is not given.*--plugin mine.py"
        ) as told:
            act(path)
        assert "\n" not in str(told.value)
    assert executed(here) == times, "the copy in the folder is never executed by itself"
    assert everything(path) == before
    resume(path, plugins=["mine.py"])
    assert Run.open(path).manifest()["status"] == "finished"


def test_a_changed_file_is_refused_before_it_is_executed(here):
    path = interrupted(here)
    before, times = everything(path), executed(here)
    (here / "mine.py").write_text(PLUGIN.replace("1.0 / heat", "2.0 / heat"))
    with pytest.raises(RunError, match=r"'mine.py' is not the file that .* was made with \(SHA-256") as told:
        resume(path, plugins=["mine.py"])
    assert "plugin-mine.py" in str(told.value)
    assert executed(here) == times
    assert everything(path) == before
    (here / "mine.py").write_bytes((path / "plugin-mine.py").read_bytes())  # as the message says
    resume(path, plugins=["mine.py"])
    assert Run.open(path).manifest()["status"] == "finished"


def test_a_file_that_no_longer_loads_leaves_the_run_as_it_is(here, faults):
    path = interrupted(here)
    before = everything(path)
    faults.replace("plugins that were executed", {})
    with (
        environment(PLUGIN_LOG=str(here / "no" / "folder")),  # the same file, in a poorer process
        pytest.raises(InvalidInput, match=r"'mine.py' cannot be loaded \(line 6: FileNotFoundError"),
    ):
        resume(path, plugins=["mine.py"])
    assert everything(path) == before
    resume(path, plugins=["mine.py"])
    assert Run.open(path).manifest()["status"] == "finished"


def test_a_file_too_many_is_refused(here):
    path = interrupted(here)
    (here / "other.py").write_text("raise AssertionError\n")
    with pytest.raises(RunError, match=r"made without the file 'other.py'; leave it out"):
        resume(path, plugins=["mine.py", "other.py"])
    assert Run.open(path).manifest()["status"] == "interrupted"


def test_a_folder_lists_without_its_plugin(here):
    path = interrupted(here, "runs/one")
    (here / "mine.py").unlink()
    (found,) = runs.list_runs(here / "runs")
    assert found.path == path
    assert found.manifest()["plugins"][0]["file"] == "mine.py"
    found.verify()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def f(:\n", r"line 1: SyntaxError: "),
        ("\nimport nothing_of_this_name\n", r"line 2: ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("1 / 0\n", r"line 1: ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)\n", r"line 1: SystemExit: 3"),
        ("raise ValueError('two\\nlines')\n", r"line 1: ValueError: two lines"),
        ("\0", "SyntaxError|ValueError"),
        ("import attnflow as af\naf.register('feild', 'a')\n", r"line 2: `kind` is 'feild'; did you mean 'field'"),
        ("import attnflow as af\naf.register('field', 'My_Field')\n", r"`name` is 'My_Field'; use small letters"),
        ("import attnflow as af\naf.register('field', 3)\n", r"`name` is 3; use small letters"),
        ("import attnflow as af\naf.register('mask', 'causal')(af.Causal)\n", r"the package has the mask 'causal' already"),
        ("import attnflow as af\naf.register('mask', 'mine')(3)\n", r"is made by 3; give a function or a class"),
        ("import attnflow as af\naf.register('mask', 'mine')(lambda **k: 1)\n", r"takes '\*\*k'; name its arguments"),
        ("import attnflow as af\naf.register('mask', 'mine')(dict)\n", r"arguments of the mask 'mine' cannot be read"),
        (
            "import attnflow as af\nfor _ in range(2):\n    af.register('mask', 'mine')(af.Causal)\n",
            r"line 3: the mask 'mine' is registered twice",
        ),
    ],
)  # fmt: skip
def test_a_bad_file_is_one_sentence(here, text, words):
    (here / "bad.py").write_text(text)
    modules = set(sys.modules)
    with pytest.raises(InvalidInput, match=words) as told:
        load_spec("mine.toml", plugins=["bad.py"])
    assert str(told.value).startswith("'bad.py' cannot be loaded (")
    assert str(told.value).endswith("; correct the file, or leave it out.")
    assert "\n" not in str(told.value)
    assert not {name for name in set(sys.modules) - modules if name.startswith("attnflow_plugin")}


def test_files_that_are_none(here):
    for given, words in (
        (["nowhere.py"], r"cannot read 'nowhere.py' \(No such file"),
        (["mine.toml"], r"'mine.toml' is no plugin; give a Python file"),
        ("mine.py", r"`plugins` is 'mine.py'; give a list of files, \['mine.py'\]"),
    ):
        with pytest.raises(InvalidInput, match=words):
            load_spec("mine.toml", plugins=given)
    (here / "folder.py").mkdir()
    with pytest.raises(InvalidInput, match="cannot read 'folder.py'"):
        load_spec("mine.toml", plugins=["folder.py"])


def test_two_files_with_the_same_word_or_name(here):
    (here / "other.py").write_text("import attnflow as af\naf.register('mask', 'neighbours')(af.Causal)\n")
    with pytest.raises(InvalidInput, match=r"'mine.py' and 'other.py' both register the mask 'neighbours'"):
        load_spec("mine.toml", plugins=["mine.py", "other.py"])
    (here / "sub").mkdir()
    (here / "sub" / "mine.py").write_text("raise AssertionError\n")
    with pytest.raises(InvalidInput, match="have the same name"):
        load_spec("mine.toml", plugins=["mine.py", "sub/mine.py"])
    times = executed(here)
    load_spec("mine.toml", plugins=["mine.py", "./mine.py", here / "mine.py"])
    assert executed(here) == times, "one file is one plugin, however it is spelt"
    (here / "other.py").write_text("import attnflow as af\naf.register('field', 'neighbours')(af.Attention)\n")
    spec = load_spec("mine.toml", plugins=["mine.py", "other.py"])
    assert len(spec.plugins.loaded) == 2, "a mask and a field may share a name"


def test_outside_of_a_plugin_nothing_is_registered():
    maker = af.register("mask", "nobodys")(af.Causal)
    assert maker is af.Causal
    with pytest.raises(InvalidSpec, match="`field.mask.name` is 'nobodys'"):
        parse_spec(PLAIN, ["field.mask.name=nobodys"])
    with pytest.raises(InvalidInput, match="has the mask 'causal' already"):
        af.register("mask", "causal")


def test_classes_of_a_plugin_find_their_module(here):
    """Dataclasses with postponed annotations look their module up by its name."""
    (here / "typed.py").write_text(
        "from __future__ import annotations\nimport dataclasses\nimport attnflow as af\n\n\n"
        "@dataclasses.dataclass\nclass Reach:\n    value: int = 2\n\n\n"
        "@af.register('mask', 'reaching')\ndef reaching(width: int = Reach().value) -> af.Window:\n"
        "    return af.Window(width)\n"
    )
    spec = parse_spec(PLAIN, ['field.mask.name="reaching"'], plugins=["typed.py"])
    assert spec.work.field.mask.width == 2


def test_a_report_reads_the_specification_with_its_plugins(here):
    seen = []

    def draw(run, flow):
        seen.append(spec_of(run).table["field"]["name"])
        return {"plateaus": []}

    run, _ = execute(load_spec("mine.toml", plugins=["mine.py"]), here / "run", draw=draw)
    assert seen == ["warm"]
    assert json.loads((run.path / "manifest.json").read_text())["status"] == "finished"
    assert executed(here) == 1


OBSERVABLE = """
import numpy as np
import attnflow as af


@af.register("observable", "height")
def height(axis: int = 0, power: float = 1.0):
    return lambda t, mu: np.sum(np.asarray(mu.masses) * np.asarray(mu.positions)[:, axis] ** power)


@af.register("observable", "moment")
@af.Observable
def moment(mu, axis: int = 0, *, power: float = 1.0):
    return mu.masses @ mu.positions[:, axis] ** power


@af.register("observable", "fragile")
def fragile():
    return lambda t, mu: 1 / 0
"""


@pytest.mark.slow
def test_observables_lie_among_the_arrays(here):
    (here / "seen.py").write_text(OBSERVABLE)
    asked = """
[solve.observe]
square = { name = "height", axis = 1, power = 2 }
moment = { name = "moment", axis = 1, power = 2 }
order = { name = "order-parameter" }
"""
    spec = parse_spec(PLAIN + asked, ["tokens.seed=[0, 5]"], plugins=["seen.py"])
    assert spec.table["solve"]["observe"]["order"] == {"name": "order-parameter"}
    assert spec.table["solve"]["observe"]["moment"] == {"name": "moment", "axis": 1, "power": 2}
    run, flow = execute(spec, here / "run")
    run.verify()
    found = open_run(run.path, plugins=["seen.py"]).dataset
    np.testing.assert_allclose(found["moment"], found["square"], rtol=1e-15)
    moment = spec.plugins.loaded[0].module.moment
    last = [moment(flow.tokens(-1, seed=k), axis=1, power=2) for k in (0, 1)]
    np.testing.assert_allclose(last, found["moment"][:, -1], rtol=1e-15)
    np.testing.assert_array_equal(last, [spec.work.observe["moment"](flow.tokens(-1, seed=k)) for k in (0, 1)])
    assert found["square"].dims == ("seed", "time")
    expected = (flow.positions.values[..., 1] ** 2).mean(axis=-1)
    np.testing.assert_allclose(found["square"], expected, rtol=4e-16 * 3)  # a sum of three terms, rounded
    np.testing.assert_allclose(
        found["order"].sel(seed=5)[-1], af.observe.order_parameter(flow.tokens(-1, seed=1)), rtol=1e-15
    )
    without = open_run(run.path)
    np.testing.assert_array_equal(without.dataset["square"], found["square"])
    np.testing.assert_array_equal(without.positions, flow.positions)


def test_observables_are_tried_before_any_folder(here):
    (here / "seen.py").write_text(OBSERVABLE)
    spec = parse_spec(PLAIN + '[solve.observe]\nbad = { name = "fragile" }\n', plugins=["seen.py"])
    with pytest.raises(InvalidInput, match="'bad' raised ZeroDivisionError at the start: division by zero"):
        execute(spec, here / "run")
    for line, words in (
        ('observe = "height"', "give tables by name"),
        ('observe = { name = "height" }', "give tables by name"),
        ('observe = { a = { name = "heigth" } }', "did you mean 'height'"),
    ):
        with pytest.raises(InvalidSpec, match=words):
            parse_spec(PLAIN.replace("[solve]", f"[solve]\n{line}"), plugins=["seen.py"])
    assert not (here / "run").exists()


@pytest.mark.parametrize(
    ("kind", "maker", "words"),
    [
        ("field", "lambda: 3.0", "gives a float for the field 'mine'; an AbstractField is needed"),
        ("field", "lambda: 1 / 0", r"the field 'mine' of a plugin cannot be made \(ZeroDivisionError: division by zero\)"),
        ("field", "lambda: af.Attention(float('nan'))", "`beta` is nan"),
        ("tokens", "lambda: [[1.0, 0.0]]", "gives a list for the tokens 'mine'; a Tokens is needed"),
        ("observable", "lambda: 3.0", r"gives a float for the observable 'mine'; a function of \(t, measure\) is needed"),
    ],
)  # fmt: skip
def test_what_a_plugin_makes_is_looked_at_before_any_folder(here, kind, maker, words):
    (here / "made.py").write_text(f"import attnflow as af\naf.register('{kind}', 'mine')({maker})\n")
    change = f"{kind}.name=mine" if kind != "observable" else "solve.observe={ a = { name = 'mine' } }"
    with pytest.raises(InvalidInput, match=words):
        execute(parse_spec(PLAIN, [change], plugins=["made.py"]), here / "run")
    assert not (here / "run").exists()


def test_ctrl_c_while_a_file_is_loaded_is_ctrl_c(here):
    (here / "long.py").write_text("raise KeyboardInterrupt\n")
    modules = set(sys.modules)
    with pytest.raises(KeyboardInterrupt):
        load_spec("mine.toml", plugins=["long.py"])
    assert set(sys.modules) == modules
    assert parse_spec(PLAIN).plugins.loaded == ()


def test_the_page_lists_all_kinds_that_can_be_registered():
    """The sentence of docs/extending.md against the registry."""
    page = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
    sentence = page.partition("* Kinds are the parts of a specification:")[2].partition("A name that the package")[0]
    assert set(re.findall(r"`(\w+)`", sentence)) == set(REGISTRY)
