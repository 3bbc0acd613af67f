"""Models other than plain attention, from a specification to a drawn and sealed run folder."""

import numpy as np
import pytest

import attnflow as af
from attnflow.errors import AttnflowError, InvalidSpec
from attnflow.plots import draw_run
from attnflow.runs import execute, parse_spec, resume
from tests.marks import graded

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


TRAINED = """
[tokens]
name = "uniform"
n = 6
space = { name = "euclidean", dim = 2 }
[field]
name = "total"
[[field.parts]]
name = "pre"
norm = { name = "layer", gain = [1.0, 2.0], bias = [0.1, 0.2], eps = 1e-5 }
[field.parts.field]
name = "attention"
beta = 0.7
average = "sum"
mask = { name = "causal" }
encoding = { name = "rotary", base = 5e5, pairing = "halves", turned = 2 }
query = { name = "biased", matrix = [[[1.0, 0.5], [0.0, 1.0]], [[0.2, 1.0], [1.0, 0.0]]], bias = [[0.1, 0.2], [0.3, 0.4]] }
key = { name = "identity" }
value = { name = "biased", matrix = { name = "random", shape = [2, 3, 2], step = 1.0 }, bias = [0.1, 0.2, 0.3] }
output = { name = "biased", matrix = [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]], bias = { name = "per-layer", values = [[0.5, 0.0], [0.0, 0.5]], step = 1.0 } }
[[field.parts]]
name = "pre"
norm = { name = "rms", eps = 1e-6 }
[field.parts.field]
name = "gated-perceptron"
gate = { name = "biased", matrix = [[1.0, -1.0]], bias = [0.3] }
up = [[0.5, 0.5]]
outer = { name = "biased", matrix = [[1.0], [2.0]], bias = [0.1, 0.0] }
activation = "gelu-tanh"
[solve]
until = 2.0
save = { name = "every-layer" }
method = { name = "alternate", step = 1.0, update = { name = "renormalise" }, sublayers = 2 }
"""


@pytest.mark.slow
def test_the_layers_of_a_trained_network_are_words():
    """The specification builds what the library does, writes itself out, and runs with frames after both halves."""
    spec = parse_spec(TRAINED)
    assert parse_spec(spec.to_toml()).hash == spec.hash
    assert spec.table["field"]["parts"][1]["field"]["outer"]["bias"] == [0.1, 0.0]
    fields, query = af.fields, [[[1.0, 0.5], [0.0, 1.0]], [[0.2, 1.0], [1.0, 0.0]]]
    attention = af.Attention(
        0.7, average="sum", mask=af.Causal(), encoding=fields.Rotary(5e5, "halves", 2),
        query=fields.Biased(query, [[0.1, 0.2], [0.3, 0.4]]),
        value=fields.Biased(fields.Random((2, 3, 2), step=1.0), [0.1, 0.2, 0.3]),
        output=fields.Biased([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]], fields.PerLayer([[0.5, 0.0], [0.0, 0.5]], 1.0)),
    )  # fmt: skip
    gated = fields.GatedPerceptron(
        fields.Biased([[1.0, -1.0]], [0.3]), [[0.5, 0.5]], fields.Biased([[1.0], [2.0]], [0.1, 0.0]), "gelu-tanh"
    )
    first = fields.Pre(attention, fields.LayerNorm([1.0, 2.0], [0.1, 0.2], 1e-5))
    field = first + fields.Pre(gated, fields.RmsNorm(eps=1e-6))
    made = spec.work
    method = af.Alternate(1.0, update=af.layer_updates.Renormalise(), sublayers=2)
    flows = [
        af.solve(one, made.tokens, 2.0, method=way, save=af.saving.EveryLayer(), keep=["positions"]).positions
        for one, way in ((field, method), (made.field, made.method))
    ]
    np.testing.assert_array_equal(*flows)
    np.testing.assert_array_equal(flows[0].time, [0.0, 0.5, 1.0, 1.5, 2.0])


def text(name):
    field, solve = MODELS[name]
    made = START.format(field=field, solve=solve)
    if name in ("pre-norm", "rescaled"):
        points = np.random.default_rng(0).standard_normal((12, 3)).tolist()
        tokens = f'[tokens]\nname = "array"\npositions = {points}\nspace = {{ name = "euclidean", dim = 3 }}\n'
        made = tokens + made[made.index("[solve]") :]
    return made


@graded("name", [n if n == "noisy" else pytest.param(n, marks=pytest.mark.slow) for n in MODELS], slow=1)
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
        ('name = "gated-perceptron"\ngate = [[1.0, 0.0, 0.0]]', "needs the key 'up'"),
        ('name = "attention"\nbeta = 1.0\nquery = { name = "biased", matrix = [[1.0]] }', "needs the key 'bias'"),
        ('name = "attention"\nbeta = 1.0\nencoding = { name = "rotary", pairing = "half" }', "`pairing` is 'half'"),
        (
            'name = "pre"\nfield = { name = "attention", beta = 1.0 }\nnorm = { name = "rms", eps = -1.0 }',
            "`eps` is -1",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(field, words):
    with pytest.raises((InvalidSpec, AttnflowError), match=words):
        parse_spec(START.format(field=field, solve=""))
