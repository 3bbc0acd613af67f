"""One spelling of formulas and one convention for SA, USA0 and USA: in sources of pages, and in the theory itself."""

import inspect
import re

import numpy as np
import pytest

import attnflow as af
from tests.site.sources import ROOT, module

kin = module("kin")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MODELS = ("SA", "USA0", "USA")
BETA = 2.0
THREE = np.array([[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.6, 0.8]])


def words(path):
    """The text of a page without code."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
    return re.sub(r"`[^`\n]*`", "", text)


def test_a_formula_does_not_begin_with_a_digit():
    """`$5 and $6` are prices, so that a formula which begins with a digit would stay as it is: `${2}x$`, not `$2x$`."""
    found = [
        (path.name, one) for path in PAGES for one in re.findall(r"(?<![\\$\w])\$\d[^$\n]*?(?<!\s)\$", words(path))
    ]
    assert [(name, one) for name, one in found if not re.search(r"\s\$$|\d [a-z]", one)] == []


def test_a_model_has_one_spelling():
    other = re.compile(r"USA[_-]\{?0|USA₀|\bUSA 0\b|\busa0?\b|\bUsa0?\b|\bS-A\b")
    assert [(path.name, found[0]) for path in PAGES if (found := other.search(words(path)))] == []


def theory():
    """Public functions of theory that take a model."""
    every = {path: one for path, one in kin.public().items() if path.startswith("attnflow.theory.")}
    return {path: one for path, one in every.items() if "model" in _arguments(one)}


def _arguments(value):
    return inspect.signature(value).parameters if inspect.isroutine(value) else {}


def test_theory_knows_the_same_words_for_models():
    found = theory()
    assert len(found) > 30
    for path, function in found.items():
        default = _arguments(function)["model"].default
        assert default in (*MODELS, inspect.Parameter.empty), path


def drive(model):
    """P_x of the sum over tokens, written once more in NumPy: weights as docs/models.md and docs/theory/index.md give them."""
    overlaps = THREE @ THREE.T
    weights = np.exp(BETA * (overlaps - 1)) / 3
    weights = {"SA": weights / weights.sum(1, keepdims=True), "USA0": weights, "USA": np.exp(BETA) * weights}[model]
    sums = weights @ THREE
    return sums - (sums * THREE).sum(1, keepdims=True) * THREE


@pytest.mark.parametrize("model", MODELS)
def test_the_simulator_means_what_the_pages_write(model):
    normaliser = af.Softmax() if model == "SA" else af.Unnormalised(model)
    found = af.Attention(BETA, normaliser=normaliser).velocity(af.from_array(THREE))
    np.testing.assert_allclose(found, drive(model), atol=1e-14)  # sums of three numbers of size e^2 at most


def test_theory_means_it_too():
    """USA is USA0 on a clock that runs e^beta times as fast: rates are multiplied by e^beta, times divided by it."""
    rates = {model: af.theory.uniform.growth_rates(BETA, 3, k=[1, 2], model=model) for model in MODELS}
    times = {model: af.theory.merging.merge_time(1.0, BETA, model=model) for model in MODELS}
    mean = np.exp(-BETA) * np.sinh(BETA) / BETA  # of e^(beta (<x, y> - 1)) over S^2: a rate of SA is divided by it
    np.testing.assert_allclose(rates["USA"], np.exp(BETA) * rates["USA0"], rtol=1e-13)
    np.testing.assert_allclose(rates["USA0"], mean * rates["SA"], rtol=1e-13)
    np.testing.assert_allclose(times["USA0"], np.exp(BETA) * times["USA"], rtol=1e-13)
