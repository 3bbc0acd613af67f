"""Every registered field, mask, normaliser, encoding, norm and weight keeps the laws it declares.

New names in the registry are picked up by themselves: what can be made without arguments is, the rest needs an example
here (as tables of a specification, so that the spec language is tested too).
"""

import copy

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tomli_w

import attnflow as af
from attnflow.runs import parse_spec
from tests.conftest import rotation
from tests.marks import graded
from tests.words import REGISTRY

N, D = 10, 4
EPS = np.finfo(float).eps
RNG = np.random.default_rng(7)
A, B, C = (0.6 * RNG.standard_normal((D, D)) for _ in range(3))
HEADS = 0.6 * RNG.standard_normal((3, 2, D))
SMALL = 0.6 * RNG.standard_normal((2, D))

ATTENTION = {"name": "attention", "beta": 2.0}
PERCEPTRON = {
    "name": "perceptron", "inner": A.tolist(), "bias": [0.1, -0.2, 0.3, 0.0], "outer": B.tolist(), "activation": "tanh",
}  # fmt: skip
EXAMPLES = {
    "field": {
        "attention": {"beta": 2.0},
        "affine": {"matrix": A.tolist()},
        "relu": {"outer": A[0].tolist(), "inner": B[0].tolist(), "bias": 0.2},
        "drift": {"vector": C[0].tolist()},
        "mean-attention": {"value": A.tolist()},
        "in-turn": {
            "parts": [
                {"name": "drift", "vector": C[0].tolist()},
                {"name": "affine", "matrix": A.tolist()},
                {"name": "drift", "vector": C[1].tolist()},
            ],
            "durations": [0.2, 0.9, 0.4],
        },
        "perceptron": PERCEPTRON,
        "gated-perceptron": {
            "gate": {"name": "biased", "matrix": SMALL.tolist(), "bias": [0.1, -0.2]},
            "up": SMALL[::-1].tolist(),
            "outer": {"name": "biased", "matrix": SMALL.T.tolist(), "bias": [0.0, 0.1, 0.2, -0.1]},
        },
        "potential": {"directions": SMALL.tolist(), "biases": [0.1, -0.2], "weights": [0.5, 0.4], "activation": "gelu"},
        "composed": {"outer": PERCEPTRON, "inner": ATTENTION},
        "total": {"parts": [ATTENTION, PERCEPTRON]},
        "multiple": {"field": ATTENTION, "factor": -1.5},
        "rescaled": {"attention": {**ATTENTION, "value": A.tolist()}},
        "pre": {"field": ATTENTION},
        "post": {"field": ATTENTION},
        "peri": {"field": ATTENTION},
        "ngpt": {"field": ATTENTION, "alpha": 0.7},
        "mix": {"field": ATTENTION, "switch": 0.5},
        "scaled": {"field": ATTENTION},
        "attention-block": {"dim": D},
    },
    "mask": {"window": {"width": 4}, "table": {"values": np.sin(np.arange(N * N)).reshape(N, N).tolist()}},
    "kernel": {"exponential": {"beta": 2.0}, "gaussian": {"beta": 2.0}, "polynomial": {"degree": 3, "offset": 0.5}},
    "norm": {"rms": {"gain": [1.0, 2.0, 0.5, 1.5], "eps": 1e-3}},
    "map": {"biased": {"matrix": A.tolist(), "bias": [0.3, 0.0, -0.2, 0.1]}},
    "weight": {
        "constant": {"value": A.tolist()},
        "per-layer": {"values": [A.tolist(), B.tolist(), C.tolist()], "step": 0.25},
        "pieces": {"times": [0.0, 0.2, 0.7], "values": [A.tolist(), B.tolist(), C.tolist()]},
        "interpolated": {"values": [A.tolist(), B.tolist(), C.tolist()], "step": 0.25},
        "random": {"shape": [D, D], "seed": 3, "step": 0.25},
    },
}
SIGNED = {"polynomial", "cosine"}
EUCLIDEAN = {"pre", "post", "peri", "mix", "scaled", "rescaled"}


def table(kind, name):
    return {"name": name, **EXAMPLES.get(kind, {}).get(name, {})}


def wrapped():
    """A field for every registered part: name -> table."""
    found = {}
    for name in REGISTRY["field"]:
        found[f"field {name}"] = table("field", name)
    found["field heads"] = {**ATTENTION, "query": HEADS.tolist(), "key": HEADS[::-1].tolist()}
    for name in REGISTRY["kernel"]:
        signed = {"normaliser": {"name": "unnormalised"}} if name in SIGNED else {}
        found[f"kernel {name}"] = {"name": "attention", "kernel": table("kernel", name), **signed}
    for kind in ("mask", "normaliser", "encoding"):
        for name in REGISTRY[kind]:
            found[f"{kind} {name}"] = {**ATTENTION, kind: table(kind, name)}
    for name in REGISTRY["weight"]:
        found[f"weight {name}"] = {**ATTENTION, "value": table("weight", name)}
    for name in REGISTRY["map"]:
        found[f"map {name}"] = {**ATTENTION, "query": table("map", name), "value": table("map", name)}
    for name in REGISTRY["norm"]:
        found[f"norm {name}"] = {"name": "pre", "field": ATTENTION, "norm": table("norm", name)}
    return found


MODELS = wrapped()
MAIN = [name for name in MODELS if name.split()[0] in ("field", "kernel", "mask", "normaliser")]
"""What the two laws that take a compilation each are checked on; weights, norms and encodings have tests of their own."""


def with_beta(part, beta):
    """The same table with every `beta` in it replaced."""
    if isinstance(part, dict):
        return {key: beta if key == "beta" else with_beta(value, beta) for key, value in part.items()}
    return [with_beta(item, beta) for item in part] if isinstance(part, list) else part


def build(name, beta=2.0):
    """(field, tokens) through a specification."""
    field = with_beta(copy.deepcopy(MODELS[name]), beta)
    space = {"name": "euclidean" if field["name"] in EUCLIDEAN else "sphere", "dim": D}
    x = af.uniform(af.Sphere(D), n=N, seed=5).positions
    work = work_of(field, {"name": "array", "positions": x.tolist(), "space": space})
    return work.field, work.tokens


def work_of(field, tokens):
    """The work that a specification with these tables describes."""
    return parse_spec(tomli_w.dumps({"tokens": tokens, "field": field, "solve": {"until": 1.0}})).work


def has_beta(part):
    return "beta" in str(part)


@af.in_float64
@eqx.filter_jit
def drive(field, mu, t=0.3):
    """In one program: operation by operation every one would be compiled for itself."""
    return field.drive(mu, t)


@graded("name", MODELS, fast=5)
def test_shape_and_dtype(name):
    field, mu = build(name)
    field.check(mu)
    assert drive(field, mu).shape == (N, D)
    assert drive(field, mu).dtype == np.float64
    assert drive(field, mu.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(drive(field, mu.astype(np.float32)), drive(field, mu), atol=2e-4)


@pytest.mark.parametrize("name", MODELS)
def test_equivariance(name):
    """Rotations where the field declares it; permutations together with the places always, without them if declared."""
    field, mu = build(name)
    v = drive(field, mu)
    size = max(1.0, np.abs(v).max())
    solver = 1e-8 if "sinkhorn" in name else 0.0  # potentials to 1e-10
    tolerance = 200 * EPS * size + solver
    turn = rotation(D, 1)
    turned = drive(field, mu.moved(mu.positions @ turn))
    if field.laws.rotation:
        np.testing.assert_allclose(turned, v @ turn, atol=tolerance)
    else:
        assert np.abs(turned - v @ turn).max() > 1e-6, "declares no rotation equivariance but has it"
    order = np.random.default_rng(1).permutation(N)
    moved = af.Tokens(mu.positions[order], space=mu.space, place=mu.place[order])
    np.testing.assert_allclose(drive(field, moved), v[order], atol=tolerance)
    blind = drive(field, af.Tokens(mu.positions[order], space=mu.space))
    if field.laws.exchangeable:
        np.testing.assert_allclose(blind, v[order], atol=tolerance)
    else:
        assert np.abs(blind - v[order]).max() > 1e-6, "declares that places matter but they do not"


@pytest.mark.parametrize("name", [name for name in MODELS if has_beta(MODELS[name])])
def test_finite_at_large_beta(name):
    field, mu = build(name, beta=1e4)
    assert np.isfinite(drive(field, mu)).all()


@graded("name", [name for name in MODELS if has_beta(MODELS[name])], fast=2)
def test_batching(name):
    field, mu = build(name, beta=[1.0, 3.0])
    batch = field.velocity(mu, 0.3)
    alone, _ = build(name, beta=3.0)
    tolerance = 1e-8 if "sinkhorn" in name else 1e-13
    want = np.asarray(mu.space.tangent(mu.positions, drive(alone, mu)))  # by the program of the other tests
    np.testing.assert_allclose(batch[1], want, atol=tolerance)


LACKING = {
    "lipschitz": {"normaliser hardmax"},
    "steady": {"field in-turn", "field mix", "weight per-layer", "weight pieces", "weight random"},
    "exchangeable": {"mask causal", "mask window", "mask table", "encoding rotary", "encoding sinusoidal"},
}
"""Who does not promise what: a field that stops declaring a law is not tested for it, and must be written here."""


def declaring(*laws):
    """Of the models that are followed in time, those that promise all of these laws."""
    return [name for name in MAIN if not any(name in LACKING[law] for law in laws)]


@pytest.mark.parametrize("law", LACKING)
def test_what_lacks_a_law_is_listed(law):
    assert {name for name in MODELS if not getattr(build(name)[0].laws, law)} == LACKING[law]


@graded("name", declaring("lipschitz"), fast=6)
def test_differentiability(name):
    """Forward and reverse mode against central differences, in the positions of queries and tokens together."""
    field, mu = build(name)
    direction = np.random.default_rng(2).standard_normal((N, D))

    @af.in_float64
    @jax.jit
    def slopes():
        x, v = jnp.asarray(mu.positions), jnp.asarray(direction)

        def total(x):
            return jnp.sum(jnp.sin(2 * field.drive(mu.moved(x), 0.3)))

        h = 1e-5
        difference = (total(x + h * v) - total(x - h * v)) / (2 * h)
        return jax.jvp(total, (x,), (v,))[1], jnp.sum(jax.grad(total)(x) * v), difference

    forward, reverse, difference = slopes()
    # h^2 f''' ~ 1e-10 * 1e3, rounding 1e-15/h, Sinkhorn 1e-10/h
    loose = 1e-4 if "sinkhorn" in name else 1e-6
    np.testing.assert_allclose([forward, reverse], difference, rtol=loose, atol=loose)


@graded("name", declaring("lipschitz", "steady"))
def test_layers_converge_to_the_flow_at_order_one(name):
    """Halving the step halves the error: within 15 %, the size of the next term h/8 at T = 1."""
    field, mu = build(name)
    exact = af.advance(field, mu, 0.0, 1.0, af.Fixed(1 / 32)).positions

    @af.in_float64
    def layers(count):
        # a traced end compiles one program for all numbers of layers, where nothing jumps
        end = 1.0 if af.fields.breaks(field, 1.0).size else jnp.asarray(1.0)
        return af.advance(field, mu, 0.0, end, af.Layers(1 / count)).positions

    errors = [np.abs(layers(count) - exact).max() for count in (64, 128)]
    assert 1.7 < errors[0] / errors[1] < 2.3


def is_exact(made):
    return isinstance(made, type) and issubclass(made, af.fields.AbstractExact)


@graded("name", [f"field {name}" for name, made in REGISTRY["field"].items() if is_exact(made)])
def test_exact_flows(name):
    """`carry` starts with the velocity, `stretching` with its divergence; both compose, and are undone backwards."""
    field, mu = build(name)

    def path(t0, t1, x):
        query, there = af.fields.AtPoints(x), mu.moved(x).measure
        return field.carry(t0, t1, query, there), field.stretching(t0, t1, query, there)

    end = af.in_float64(jax.jit(path))

    @af.in_float64
    @jax.jit
    def others(x):
        at = mu.measure
        tokens = field.carry(0.3, 0.9, af.fields.AtTokens(), at)
        automatic = af.fields.carry_stretching(field, 0.3, 0.9, af.fields.AtPoints(x), at)
        slope = jax.vmap(lambda p: jnp.trace(jax.jacfwd(lambda q: _velocity(field, at, q))(p)))(x)
        return slope, tokens, automatic

    slope, tokens, automatic = others(mu.positions)
    two, one = end(0.5, 0.9, end(0.3, 0.5, mu.positions)[0])[0], end(0.3, 0.9, mu.positions)
    back = end(0.9, 0.3, one[0])
    velocity = mu.space.tangent(mu.positions, drive(field, mu))
    # differences of order four: h^4 times fifth derivatives, some hundred, over 30; rounding 1e-16/h
    h = 1e-3
    near, far = ([end(0.3, 0.3 + s, mu.positions) for s in (k * h, -k * h)] for k in (1, 2))
    for k, want in enumerate((velocity, slope)):
        rate = (8 * (near[0][k] - near[1][k]) - (far[0][k] - far[1][k])) / (12 * h)
        np.testing.assert_allclose(rate, want, rtol=0, atol=1e-11)
    np.testing.assert_allclose(two, one[0], rtol=0, atol=1e-13)
    np.testing.assert_allclose(tokens, one[0], rtol=0, atol=1e-13)
    np.testing.assert_allclose(back[0], mu.positions, rtol=0, atol=1e-13)
    np.testing.assert_allclose([back[1], -automatic], [-one[1], -one[1]], rtol=0, atol=1e-12)


def _velocity(field, mu, p):
    """At one point, constant along the normals of the space."""
    return field.velocity(mu, 0.3, at=mu.space.retract(p[None]))[0]


@graded("name", REGISTRY["space"], fast=4)
def test_spaces(name):
    """Retraction is idempotent and moves tangent vectors by themselves to first order."""
    gain = [1.0, 2.0, 0.5, 1.5]
    made = {
        "ellipsoid": {"gain": gain},
        "centred-sphere": {"dim": D, "gain": gain},
        "torus": {"circles": D // 2},
        "product": {"factors": [{"name": "euclidean", "dim": 2}, {"name": "torus", "circles": 1}]},
    }.get(name, {"dim": D})
    space = work_of(ATTENTION, {"name": "uniform", "n": 1, "space": {"name": name, **made}}).tokens.space
    assert space.dim == D
    x = space.sample(np.random.default_rng(0), N)
    v = np.random.default_rng(1).standard_normal((N, D))
    np.testing.assert_allclose(space.retract(x), x, atol=10 * EPS)
    assert space.defect(x).max() < 10 * EPS
    h = 1e-5
    moved = (space.retract(x + h * v) - space.retract(x - h * v)) / (2 * h)
    np.testing.assert_allclose(moved, space.tangent(x, v), atol=1e-8)
    np.testing.assert_allclose(space.tangent(x, space.tangent(x, v)), space.tangent(x, v), atol=100 * EPS)
    assert np.all(space.distance(x, x) < 1e-7)
