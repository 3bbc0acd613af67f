"""New fields meet batches, float32, run folders that are resumed, masks beside them, and absent rows."""

import numpy as np
import pytest
import tomli_w

import attnflow as af
from attnflow.control import Schedule
from attnflow.fields import Drift, InTurn, MeanAttention, ReluUnit
from attnflow.runs import execute, parse_spec, resume
from tests.marks import graded

RNG = np.random.default_rng(8)
W, A = RNG.standard_normal((2, 3, 4))
FIELDS = {
    "relu": lambda k: ReluUnit(W[k], A[k], 0.2),
    "drift": lambda k: Drift(W[k]),
    "mean-attention": lambda k: MeanAttention(np.outer(W[k], A[k])),
    "in-turn": lambda k: InTurn([Drift(W[k]), ReluUnit(W[k], A[k], 0.2)], [0.3, 0.4]),
}
SPACES = {"sphere": af.Sphere(4), "euclidean": af.Euclidean(4)}


def tokens_on(space, n=6, seed=0):
    x = np.random.default_rng(seed).standard_normal((n, 4))
    return af.Tokens(space.retract(x), space=space)


@pytest.mark.parametrize("space", SPACES)
@graded("name", ["mean-attention", "in-turn"])  # the latter is a drift and a unit
def test_single_precision(name, space):
    tokens = tokens_on(SPACES[space])
    single = tokens.astype(np.float32)
    ends = [af.advance(FIELDS[name](0), mu, 0.0, 0.7, af.Exact()).positions for mu in (tokens, single)]
    assert np.asarray(ends[1]).dtype == np.float32
    np.testing.assert_allclose(ends[1], ends[0], atol=3e-6 * (1 + np.abs(ends[0]).max()))


@graded("name", ["relu", "drift", "mean-attention"])
def test_batches_are_their_members(name):
    """Weights and tokens as batches, together and crossed, against one system at a time."""
    space = af.Sphere(4)
    many = {
        "relu": ReluUnit(af.Along("w", W), af.Along("w", A), 0.2),
        "drift": Drift(af.Along("w", W)),
        "mean-attention": MeanAttention(af.Along("w", np.stack([np.outer(W[k], A[k]) for k in range(3)]))),
    }[name]
    tokens = af.uniform(space, n=5, seed=[1, 2])
    flow = af.solve(many, tokens, 0.8, method=af.Exact(), save=2, keep=["positions"])
    for k in range(3):
        for s, seed in enumerate((1, 2)):
            alone = af.solve(
                FIELDS[name](k), af.uniform(space, n=5, seed=seed), 0.8, method=af.Exact(), save=2, keep=["positions"]
            )
            found = flow.positions.isel(w=k, seed=s).values
            np.testing.assert_allclose(found, alone.positions.values, atol=1e-14)


def test_schedules_take_single_precision():
    tokens = tokens_on(af.Sphere(4))
    schedule = Schedule(tokens.space, [(FIELDS["drift"](0), 0.5), (FIELDS["mean-attention"](1), 1.0)])
    end = schedule(tokens.astype(np.float32)).positions
    np.testing.assert_allclose(end, schedule(tokens).positions, atol=1e-6)


@pytest.mark.slow
def test_heads_and_a_mask_in_turn():
    heads, tokens = 0.4 * RNG.standard_normal((2, 2, 4)), tokens_on(af.Sphere(4))
    attention = af.Attention(2.0, query=heads, key=heads, mask=af.Causal())
    method = af.Fixed(0.1)  # which steps to the jump: the same steps
    mixed = af.solve(
        InTurn([attention, Drift(W[0])], [0.5, 0.2]), tokens, 0.7, method=method, save=1, keep=["positions"]
    )
    first = af.solve(attention, tokens, 0.5, method=method, save=1, keep=["positions"]).tokens(-1)
    alone = af.solve(Drift(W[0]), first, 0.2, method=method, save=1, keep=["positions"])
    np.testing.assert_allclose(mixed.positions.values[-1], alone.positions.values[-1], rtol=0, atol=1e-13)


@pytest.mark.slow
def test_beside_masked_attention():
    """A gate plus causal attention: the drives add up, and `Exact` is refused."""
    tokens = tokens_on(af.Sphere(4))
    gate, attention = FIELDS["relu"](1), af.Attention(2.0, mask=af.Causal())
    total = (gate + attention).velocity(tokens)
    np.testing.assert_allclose(total, gate.velocity(tokens) + attention.velocity(tokens), rtol=0, atol=1e-14)
    mixed = InTurn([gate, attention], [0.5, 0.5])
    method = af.Fixed(0.1)
    first = af.solve(gate, tokens, 0.5, method=method, save=1, keep=["positions"]).tokens(-1)
    direct = af.solve(attention, first, 0.5, method=method, save=1, keep=["positions"]).positions.values[-1]
    np.testing.assert_allclose(
        af.solve(mixed, tokens, 1.0, method=method, save=1, keep=["positions"]).positions.values[-1], direct, atol=1e-13
    )


@pytest.mark.long
def test_run_folders(tmp_path):
    """A specification with fields in turn runs, resumes and is the schedule."""
    space = af.Sphere(4)
    x = tokens_on(space).positions
    spec = {
        "tokens": {"name": "array", "positions": np.asarray(x).tolist()},
        "field": {
            "name": "in-turn", "durations": [0.3, 0.5, 0.4],
            "parts": [
                {"name": "drift", "vector": W[0].tolist()},
                {"name": "relu", "outer": W[1].tolist(), "inner": A[1].tolist(), "bias": 0.2},
                {"name": "mean-attention", "value": np.outer(W[2], A[2]).tolist()},
            ],
        },
        "solve": {"until": 1.2, "method": {"name": "exact"}, "save": {"name": "evenly", "count": 6}},
    }  # fmt: skip
    execute(parse_spec(tomli_w.dumps(spec)), tmp_path / "run")
    end = af.open_run(tmp_path / "run").positions.values[-1]
    schedule = Schedule(space, [(Drift(W[0]), 0.3), (ReluUnit(W[1], A[1], 0.2), 0.5),
                                (MeanAttention(np.outer(W[2], A[2])), 0.4)])  # fmt: skip
    np.testing.assert_allclose(np.asarray(end), schedule(af.Tokens(x, space=space)).positions, atol=1e-13)
    resume(tmp_path / "run")


@pytest.mark.slow
def test_tokens_that_stand_still_until_the_field_jumps():
    """A flow is not frozen before the last jump: the second gate moves what the first leaves alone."""
    x = np.array([[1.0, 0, 0], [0, 1.0, 0]])
    far = ReluUnit([0.0, 0, 1], [0.0, 0, 1], -0.5)  # no token is there
    field = InTurn([far, Drift([0.0, 0, 1])], [50.0, 1.0])
    flow = af.solve(field, af.Tokens(x), 51.0, save=102, method=af.Exact())
    assert len(flow.time) == 103
    assert flow.positions.values[-1][:, 2].min() > 0.7
