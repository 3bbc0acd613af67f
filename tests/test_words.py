"""A mathematician finds the words of the subject: by `dir()` in two steps, and in the glossary."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import attnflow
from attnflow import theory
from attnflow.renamed import RENAMED

GLOSSARY = (Path(__file__).parent.parent / "docs" / "glossary.md").read_text(encoding="utf-8")
WORDS = {
    "growth rate": "theory.uniform.growth_rates",
    "uniform measure spectrum": "theory.uniform.dominant_degree",
    "critical noise": "theory.uniform.critical_noise",
    "equiangular overlap": "theory.uniform.equiangular_overlap",
    "long context threshold": "theory.uniform.long_context_threshold",
    "merge time": "theory.merging.merge_time",
    "cap law": "theory.merging.cap_overlap",
    "staircase": "theory.merging.limit_staircase",
    "hemisphere probability": "theory.landscape.hemisphere_probability",
    "perceptron landscape": "theory.landscape.Landscape",
    "causal mask rates": "theory.causal.rates",
    "lost in the middle": "theory.causal.find_middle",
    "Lyapunov exponent": "theory.random_layers.pair_exponent",
    "collapse time": "theory.random_layers.collapse_time",
    "plateau": "observe.plateaus",
    "energy": "observe.energy",
    "order parameter": "observe.order_parameter",
    "Wasserstein distance": "transport.distance",
    "mode count": "observe.mode_count",
    "Gram matrix": "observe.overlaps",
    "cluster": "observe.clusters",
    "slow motion": "observe.slow_motion",
    "noise": "Brownian",
    "flow map": "flow_map",
    "log-determinant": "flows.FlowMap",
    "layer norm": "fields.LayerNorm",
    "density": "meanfield.Density",
    "continuity equation": "meanfield.evolve",
    "propagation of chaos": "meanfield.expected_distance",
    "retrieval profile": "decoders.retrieval_profile",
    "equilibrium": "stability.find_equilibrium",
    "Jacobian spectrum": "stability.spectrum",
    "certificate": "certify.Certificate",
    "steering": "control.Schedule",
    "match measures": "control.match_measures",
    "stream": "probe.Stream",
    "null": "probe.compare",
    "attention sink": "probe.find_sinks",
    "fitted temperature": "probe.fit_beta",
    "next-token law": "text.next_token_distribution",
}
ROOMS = ("causal", "landscape", "merging", "random_layers", "uniform")


@pytest.mark.parametrize("word", WORDS)
def test_a_word_is_found_in_two_steps(word):
    """Room, then name; theory is a house of its own, with rooms."""
    steps = WORDS[word].split(".")
    assert len(steps) - (steps[0] == "theory") <= 2
    here = attnflow
    for step in steps:
        assert step in dir(here)
        here = getattr(here, step)


@pytest.mark.parametrize("word", WORDS)
def test_the_glossary_has_the_word_and_its_name(word):
    rows = [line for line in GLOSSARY.splitlines() if line.startswith(f"| {word} |")]
    assert len(rows) == 1
    assert f"`{WORDS[word]}`" in rows[0]


def test_dotted_names_of_theory_in_the_glossary_exist():
    for path in re.findall(r"`(theory\.[\w.]+)`", GLOSSARY):
        assert found(f"attnflow.{path}") is not None


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_of_theory_shows_its_names_alone(room):
    here = getattr(theory, room)
    assert dir(here) == sorted(here.__all__)
    assert here.__doc__
    assert not set(here.__all__) & {module.name for module in pkgutil.iter_modules(here.__path__)}
    assert all(getattr(here, name).__doc__ for name in here.__all__)


def test_theory_shows_its_rooms():
    assert dir(theory) == sorted(theory.__all__) == sorted([*ROOMS, "Prediction", "predict_particles"])


@pytest.mark.parametrize("room", RENAMED)
def test_old_names_say_where_they_are_now(room):
    here = importlib.import_module(room)
    for old, now in RENAMED[room].items():
        assert old not in dir(here)
        with pytest.raises(AttributeError) as refusal:
            getattr(here, old)
        assert str(refusal.value) == f"{room}.{old} is now {now}."
        assert found(now) is not None


def test_a_name_that_moved_into_a_room_is_found_there():
    for room in ROOMS:
        for name in getattr(theory, room).__all__:
            with pytest.raises(
                AttributeError, match=rf"attnflow\.theory\.{name} is now attnflow\.theory\.\w+\.{name}\."
            ):
                getattr(theory, name)
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        theory.no_such_name  # noqa: B018


def found(path):
    """What a dotted path leads to; an AttributeError if it leads nowhere."""
    first, *steps = path.split(".")
    here = importlib.import_module(first)
    for step in steps:
        here = getattr(here, step)
    return here
