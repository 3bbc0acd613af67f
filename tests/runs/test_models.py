"""Models other than plain attention, from a specification to a drawn and sealed run folder."""

import numpy as np
import pytest

from attnflow.errors import AttnflowError, InvalidSpec
from attnflow.plots.report import draw_run
from attnflow.runs.execution import execute, resume
from attnflow.runs.spec import parse_spec

START = """
[tokens]
name = "uniform"
n = 12
seed = 1
space = {{ name = "sphere", dim = 3 }}
[solve]
until = 1.0
chunk = 3
save = {{ name = "evenly", count = 8 }}
{solve}
[field]
{field}
"""
IDENTITY = "[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]"
MODELS = {
    "noisy": ('name = "attention"\nbeta = [2.0, 4.0]', 'noise = { name = "brownian", kappa = 0.1, seed = 3 }'),
    "random heads": (
        'name = "attention"\nbeta = 1.0\nvalue = { name = "random", shape = [2, 3, 3], seed = 1 }\n'
        'mask = { name = "causal", slope = 0.1 }',
        'method = { name = "layers", step = 0.125 }',
    ),
    "alternating": (
        'name = "total"\n[[field.parts]]\nname = "attention"\nbeta = 4.0\nnormaliser = { name = "unnormalised" }\n'
        f'[[field.parts]]\nname = "potential"\ndirections = {IDENTITY}\nbiases = [0.0, 0.1, 0.2]\n'
        "weights = [0.5, 0.2, 0.1]",
        'method = { name = "alternate", step = 0.125, symmetric = true }',
    ),
    "pre-norm": ('name = "pre"\nfield = { name = "attention", beta = 2.0 }', ""),
    "rescaled": (f'name = "rescaled"\nattention = {{ name = "attention", beta = 1.0, value = {IDENTITY} }}', ""),
}


def text(name):
    field, solve = MODELS[name]
    made = START.format(field=field, solve=solve)
    if name in ("pre-norm", "rescaled"):
        points = np.random.default_rng(0).standard_normal((12, 3)).tolist()
        tokens = f'[tokens]\nname = "array"\npositions = {points}\nspace = {{ name = "euclidean", dim = 3 }}\n'
        made = tokens + made[made.index("[solve]") :]
    return made


@pytest.mark.parametrize("name", [n if n == "noisy" else pytest.param(n, marks=pytest.mark.slow) for n in MODELS])
def test_a_model_runs_and_is_drawn_and_what_is_random_resumes_to_the_same_arrays(name, tmp_path):
    spec = parse_spec(text(name))
    assert parse_spec(spec.to_toml()).hash == spec.hash
    run, flow = execute(spec, tmp_path / "whole", draw=draw_run)
    assert run.manifest()["status"] == "finished"
    assert (run.figures / "summary.png").exists()

    if name not in ("noisy", "random heads"):
        return

    class Stopped(AttnflowError):
        pass

    def stop(progress):
        if progress.time > 0.4:
            raise Stopped

    with pytest.raises(Stopped):
        execute(spec, tmp_path / "cut", on_progress=stop)
    _, again = resume(tmp_path / "cut")
    assert np.array_equal(again.positions.values, flow.positions.values)


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ('name = "attention"\nbeta = 1.0\nmask = { name = "causal" }\nnormaliser = { name = "sinkhorn" }', "rows and"),
        ('name = "pre"\nfield = { name = "attention", bet = 1.0 }', "field.field.bet"),
        ('name = "attention"\nbeta = 1.0\nquery = { name = "randon", shape = [2, 2, 3] }', "randon"),
        ('name = "total"\nparts = [{ name = "attention" }]', "neither `beta` nor `kernel`"),
        ('name = "attention"\nbeta = { name = "random" }', "takes a value"),
        ('name = "perceptron"\ninner = [[1.0, 0.0, 0.0]]\nactivation = "swish"', "swish"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(field, words):
    with pytest.raises((InvalidSpec, AttnflowError), match=words):
        parse_spec(START.format(field=field, solve=""))
