"""The gallery is found by itself, and every module of it keeps the contract."""

import dataclasses
import importlib
import inspect
import json
import pkgutil
import re
import subprocess
import sys

import pytest

import attnflow_gallery as gallery
from attnflow.errors import InvalidInput, InvalidSpec
from attnflow.experiments import find, names
from attnflow.experiments.settings import Settings, parse_settings


def test_a_file_is_all_it_takes(log):
    (log.parent / "_helper.py").write_text("")
    assert names() == ["tiny-mean"]
    found = find("tiny-mean")
    assert found.statement == "The mean of a few numbers is what it is."
    assert found.about == "Shown: nothing of interest."
    assert found.papers == ("geshkovski2025perspective",)
    assert f"{gallery.__name__}.tiny_mean" not in sys.modules, "listing must not import"
    assert found.module().QUICK.size == 100


def test_papers_may_be_annotated(log):
    (log.parent / "other.py").write_text('"""Statement."""\nPAPERS: tuple[str, ...] = ("arXiv:1",)\n')
    assert find("other").papers == ("arXiv:1",)


def test_unknown_names(log):
    with pytest.raises(InvalidInput, match="did you mean 'tiny-mean'"):
        find("tiny_mean")


def test_the_list_is_light():
    code = (
        "import sys, json; from attnflow.experiments import names, find; [find(n) for n in names()];"
        "print(json.dumps([names(), sorted(m for m in sys.modules if m.startswith('attnflow_gallery.')),"
        "sorted(set(sys.modules) & {'matplotlib', 'xarray', 'diffrax', 'PIL', 'zarr'})]))"
    )
    listed, loaded, heavy = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True).stdout)
    assert "two-clusters" in listed
    assert loaded == heavy == []


CONTRACT = ("PAPERS", "Parameters", "QUICK", "run", "claims", "draw", "MUTATIONS", "motion")


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_every_experiment_keeps_the_contract(name):
    experiment = find(name)
    module = experiment.module()
    assert experiment.statement.endswith(".")
    assert len(experiment.statement) <= 120
    assert experiment.about, "say what is shown and what is not"
    for file in pkgutil.iter_modules(module.__path__, f"{module.__name__}."):
        importlib.import_module(file.name)  # one that is named like a name of the contract hides it from here on
    assert not [word for word in CONTRACT if inspect.ismodule(getattr(module, word, None))]
    assert module.MUTATIONS
    assert experiment.papers
    assert all(re.fullmatch(r"arXiv:\d{4}\.\d{4,5}|[a-z]+\d{4}[a-z]+", paper) for paper in experiment.papers)
    assert experiment.papers == module.PAPERS
    assert module.Parameters.__dataclass_params__.frozen
    assert isinstance(module.QUICK, module.Parameters)
    assert module.Parameters() != module.QUICK
    for function in (module.run, module.claims, module.draw):
        assert callable(function)
    for parameters in (module.Parameters(), module.QUICK):
        settings = Settings(name, parameters == module.QUICK, parameters)
        again = parse_settings(settings.to_toml())
        assert again == settings
        assert again.hash == settings.hash


def test_settings_refuse_what_they_do_not_know(log):
    parameters = dataclasses.replace(find("tiny-mean").module().QUICK, levels=(0.5,))
    text = Settings("tiny-mean", True, parameters).to_toml()
    assert parse_settings(text).parameters == parameters
    with pytest.raises(InvalidSpec, match="did you mean 'size'"):
        parse_settings(text.replace("size", "sise"))
    with pytest.raises(InvalidSpec, match="did you mean 'quick'"):
        parse_settings(text.replace("quick", "quik"))
    with pytest.raises(InvalidSpec, match="`quick` is 3"):
        parse_settings(text.replace("quick = true", "quick = 3"))
