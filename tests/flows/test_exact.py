"""Fields that know their flow, weights in pieces of any length, and maps that are inverted."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.spatial.transform import Rotation as Turn

import attnflow as af
from attnflow.control import Schedule
from attnflow.errors import InvalidInput
from attnflow.fields import (
    AbstractExact,
    Affine,
    AtPoints,
    Drift,
    Laws,
    MeanAttention,
    Pieces,
    ReluUnit,
    breaks,
    carry_stretching,
)
from attnflow.flows import AdamsBashforth, Ending, Exact
from attnflow.runs import execute, load_spec
from tests.kit import end, frames
from tests.marks import graded
from tests.outside.exact import ReluUnit as OutsideUnit
from tests.outside.exact import Rotation

RNG = np.random.default_rng(0)
TIMES = np.array([0.0, 0.3, 0.35, 1.1])
MATRICES, BIASES = RNG.standard_normal((4, 3, 3)), RNG.standard_normal((4, 3))
FLAT = af.Tokens(RNG.standard_normal((5, 3)), space=af.Euclidean(3))
ROUND = af.uniform(af.Sphere(3), n=5, seed=1)
POINTS = af.uniform(af.Sphere(3), n=4, seed=9).positions
AFFINE = Affine(Pieces(TIMES, MATRICES), Pieces(TIMES, BIASES))
TURNING = Affine(Pieces(TIMES, MATRICES))
OUTSIDE = Path(__file__).parent.parent / "outside" / "exact.py"


def relu(**changes):
    weights = {
        "outer": Pieces(TIMES, RNG.standard_normal((4, 3))), "inner": Pieces(TIMES, RNG.standard_normal((4, 3))),
        "bias": Pieces(TIMES, [0.5, -0.1, 0.3, 0.0]),
    }  # fmt: skip
    return OutsideUnit(**(weights | changes))


CASES = {"affine": (AFFINE, FLAT), "sphere": (TURNING, ROUND), "relu": (relu(), FLAT)}


def legs(until):
    """(start, end, piece) up to `until`."""
    ends = np.append(TIMES[1:], np.inf)
    return [(a, min(b, until), k) for k, (a, b) in enumerate(zip(TIMES, ends, strict=True)) if a < until]


def test_pieces_change_at_their_times():
    weight = Pieces(TIMES, MATRICES)
    at = af.in_float64(jax.jit(lambda t: weight.at(t, jnp.float64)))
    for k, t in enumerate(TIMES):
        assert np.array_equal(at(t), MATRICES[k])
        assert np.array_equal(at(np.nextafter(t, -np.inf)), MATRICES[max(k - 1, 0)])
    assert np.array_equal(at(50.0), MATRICES[-1])
    assert np.array_equal(breaks(weight, 1.0), TIMES[1:3])
    assert np.array_equal(breaks(Pieces([0.0], MATRICES[:1]), 1.0), [])
    equal = np.arange(4) * 0.1
    pieces, layers = Pieces(equal, MATRICES), af.weights.PerLayer(MATRICES, 0.1)
    both = af.in_float64(jax.jit(jax.vmap(lambda t: (pieces.at(t, jnp.float64), layers.at(t, jnp.float64)))))
    assert np.array_equal(*both(np.concatenate([equal, np.nextafter(equal, -np.inf), [0.17, 9.0]])))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Pieces([0.1, 0.2], MATRICES[:2]), "begin at 0"),
        (lambda: Pieces([0.0, 0.2, 0.2], MATRICES[:3]), "increase"),
        (lambda: Pieces([0.0, 0.2], MATRICES), "shape"),
        (lambda: af.solve(AFFINE, ROUND, 1.0), "`bias` of Affine is for tokens in R"),
        (lambda: af.solve(Affine(np.eye(2)), FLAT, 1.0), r"`matrix` of Affine has shape \(2, 2\)"),
        (lambda: af.solve(Affine(lambda t: jnp.eye(3)), FLAT, 1.0), "Function, which changes between its jumps"),
        (lambda: af.solve(Affine(af.weights.Interpolated(MATRICES)), FLAT, 1.0), "Interpolated, which changes"),
        (lambda: Affine(np.eye(3)).check(af.uniform(af.spaces.Ellipsoid([1.0, 2.0, 3.0]), n=3)), "Sphere or Euclidean"),
        (lambda: af.solve(af.Attention(1.0), ROUND, 1.0, method=Exact()), "and Attention does not; use Adaptive"),
        (lambda: af.solve(TURNING + TURNING, ROUND, 1.0, method=Exact()), "and Total does not"),
        (lambda: af.advance(af.Attention(1.0), ROUND, 0.0, 1.0, Exact()), "and Attention does not"),
        (
            lambda: af.solve(TURNING, ROUND, 1.0, method=Exact(), noise=af.Brownian(0.1)),
            "`method` is Exact, which follows no noise",
        ),
    ],
)
def test_refusals(make, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.long
def test_pieces_under_every_method():
    """x' = A x + b in pieces: SciPy's DOP853 afresh in every piece, matrix exponentials in NumPy, and our methods."""
    until, direct, closed = 1.5, FLAT.positions.ravel(), np.asarray(FLAT.positions)
    for a, b, k in legs(until):
        rate = lambda _, y, k=k: (y.reshape(-1, 3) @ MATRICES[k].T + BIASES[k]).ravel()  # noqa: E731
        direct = solve_ivp(rate, (a, b), direct, "DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
        grown = expm((b - a) * np.block([[MATRICES[k], BIASES[k][:, None]], [np.zeros((1, 4))]]))
        closed = closed @ grown[:3, :3].T + grown[:3, 3]
    np.testing.assert_allclose(closed, direct.reshape(-1, 3), atol=1e-10)

    def error(method, save=3):
        return np.abs(end(AFFINE, FLAT, until, save=save, method=method) - closed).max()

    assert error(Exact()) < 1e-13
    assert error(Exact(), 7) < 1e-13  # where it is saved does not matter
    assert error(af.Adaptive(1e-10, 1e-12)) < 1e-8
    assert error(af.Fixed(0.01)) < 1e-6
    assert 3.3 < error(af.Fixed(0.01, AdamsBashforth())) / error(af.Fixed(0.005, AdamsBashforth())) < 4.7
    # layers that divide the pieces read the right one: order 1
    assert 1.8 < error(af.Layers(0.0025)) / error(af.Layers(0.00125)) < 2.2


@graded("name", CASES, slow=1)
def test_exact_equals_adaptive(name):
    """Frames, `advance` there and back, maps and log-determinants; steps of 1e-11 grow by at most e^(4 * 1.5)."""
    field, tokens = CASES[name]
    exact, adaptive = (
        af.solve(field, tokens, 1.5, save=4, method=method, keep=["positions"])
        for method in (Exact(), af.Adaptive(1e-11, 1e-11))
    )
    np.testing.assert_allclose(exact.positions.values, adaptive.positions.values, atol=1e-7)
    there = af.advance(field, tokens, 0.0, 1.5, Exact())
    np.testing.assert_allclose(there.positions, exact.positions.values[-1], atol=1e-12)
    np.testing.assert_allclose(af.advance(field, there, 1.5, 0.0, Exact()).positions, tokens.positions, atol=1e-12)
    phi, psi = (
        af.flows.FlowMap.of(exact, method=Exact()),
        af.flows.FlowMap.of(adaptive, method=af.Adaptive(1e-11, 1e-11)),
    )
    last, logdet = phi.push(POINTS)
    for found, wanted in zip((last, logdet), psi.push(POINTS), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-5 if name == "relu" else 1e-7)  # a kink in the divergence
    back, minus = phi.inverse().push(last)
    np.testing.assert_allclose(back, POINTS, atol=1e-13)
    np.testing.assert_allclose(minus, -logdet, atol=1e-13)


@graded("name", CASES)
def test_stretching_is_the_determinant_of_the_map(name):
    """The closed form against automatic differentiation of `carry` in the tangent space."""
    field, tokens = CASES[name]

    @af.in_float64
    @jax.jit
    def both(t0, t1):
        query, mu = AtPoints(jnp.asarray(POINTS)), tokens.measure
        return field.stretching(t0, t1, query, mu), carry_stretching(field, t0, t1, query, mu)

    for span in ((0.4, 1.0), (1.0, 0.4)):
        closed, traced = both(*(np.asarray(t) for t in span))
        np.testing.assert_allclose(closed, traced, atol=1e-13)


@pytest.mark.slow
def test_cuts_batches_and_single_precision():
    """Continued, cancelled, in a batch, in float32."""
    field = Affine(af.Along("matrix", MATRICES[:2]))
    run = {"method": Exact(), "chunk": 2, "keep": ["positions"]}
    whole = af.solve(field, ROUND, 1.5, save=6, **run)
    assert whole.positions.dims == ("matrix", "time", "token", "dim")
    first = af.solve(field, ROUND, 0.75, save=3, **run)
    assert np.array_equal(first.continued(1.5, save=3).positions.values, whole.positions.values)
    seen = []
    cut = af.solve(field, ROUND, 1.5, save=6, **run, on_progress=seen.append, cancel=lambda: bool(seen))
    assert cut.outcome.ending is Ending.INTERRUPTED
    assert np.array_equal(cut.continued().positions.values, whole.positions.values)
    for k in range(2):
        x = ROUND.positions @ expm(1.5 * MATRICES[k]).T
        found = whole.positions.values[k, -1]
        np.testing.assert_allclose(found, x / np.linalg.norm(x, axis=1, keepdims=True), atol=1e-13)
    single, exact = (
        frames(TURNING, tokens, 1.5, save=3, method=Exact()) for tokens in (ROUND.astype(np.float32), ROUND)
    )
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, exact, atol=1e-4)


@pytest.mark.long
def test_derivatives_of_exact_flows():
    """Both modes against central differences (h^2 times a third derivative, eps/h), also in the end time."""

    def loss(matrices, t1=1.5):
        moved = af.advance(Affine(Pieces(TIMES, matrices)), ROUND, 0.0, t1, Exact()).positions
        return jnp.sum(jnp.sin(jnp.asarray(moved)))

    shift = np.zeros_like(MATRICES)
    shift[1, 0, 2] = 1.0

    @af.in_float64
    @jax.jit
    def both(matrices):
        return (*jax.jvp(loss, (matrices,), (shift,)), jax.grad(loss)(matrices)[1, 0, 2])

    slope = (both(MATRICES + 1e-5 * shift)[0] - both(MATRICES - 1e-5 * shift)[0]) / 2e-5
    _, forward, reverse = both(MATRICES)
    assert abs(reverse - slope) < 1e-8
    assert abs(reverse - forward) < 1e-12

    def late(t1):
        return af.advance(Affine(MATRICES[0]), ROUND, 0.0, t1, Exact()).positions

    rate = af.in_float64(jax.jacfwd(late))(0.7)
    np.testing.assert_allclose(rate, Affine(MATRICES[0]).velocity(ROUND.moved(late(0.7))), atol=1e-13)


class Mean(AbstractExact):
    """X[mu](x) = m, the mean of mu, on R^d: m grows like e^t and x by m(0) (e^t - 1); tokens feel one another."""

    def formula(self, t, query, mu):
        return jnp.broadcast_to(mu.masses @ mu.positions, query.points(mu).shape)

    def carry(self, t0, t1, query, mu):
        x = query.points(mu)
        return x + jnp.broadcast_to(jnp.expm1(t1 - t0) * (mu.masses @ mu.positions), x.shape)

    def stretching(self, t0, t1, query, mu):
        return carry_stretching(self, t0, t1, query, mu)

    @property
    def is_free(self):
        return False

    def lipschitz(self, space):
        return 0.0

    def times(self, factor):
        raise NotImplementedError

    def children(self, space):
        return ()

    def check_parameters(self, tokens):
        pass

    @property
    def laws(self):
        return Laws(rotation=True, exchangeable=True, lipschitz=True, steady=True)


@pytest.mark.long
def test_tokens_that_feel_one_another():
    """Points are carried in the measure of the tokens, with masses, and with absent rows that stay."""
    masses = np.array([0.5, 0.2, 0.1, 0.1, 0.1])
    tokens = af.Tokens(FLAT.positions, masses, space=af.Euclidean(3))
    exact, adaptive = (
        af.solve(Mean(), tokens, 2.0, save=2, method=method, keep=["positions"])
        for method in (Exact(), af.Adaptive(1e-11, 1e-12))
    )
    np.testing.assert_allclose(exact.positions.values, adaptive.positions.values, atol=1e-9)
    phi = af.flows.FlowMap.of(exact, method=Exact())
    np.testing.assert_allclose(phi(POINTS), af.flows.FlowMap.of(adaptive)(POINTS), atol=1e-6)
    np.testing.assert_allclose(phi.inverse()(phi(POINTS)), POINTS, atol=1e-14)
    np.testing.assert_allclose(phi.log_determinant(POINTS), 0.0, atol=1e-14)
    few = af.stack("size", [5, 3], [tokens, af.Tokens(FLAT.positions[:3], space=af.Euclidean(3))])
    both, alone = (frames(Mean(), given, 2.0, save=2, method=Exact()) for given in (few, few.member(size=1)))
    np.testing.assert_allclose(both[1, :, :3], alone, atol=1e-13)


SUM = af.Attention(2.0) + af.Perceptron(0.5 * MATRICES[0], bias=BIASES[0], outer=0.5 * MATRICES[1])
LAYERED = {
    "renormalise": (af.Attention(4.0), ROUND, af.Layers(0.25)),
    "jumping": (
        af.Attention(2.0, value=Pieces(TIMES, MATRICES)),
        ROUND,
        af.Layers(0.05, af.layer_updates.ProjectRenormalise()),
    ),
    "flat": (af.norms.Pre(af.Attention(1.0)), FLAT, af.Layers(0.25)),
    "turn": (SUM, ROUND, af.Alternate(0.25, update=af.layer_updates.Renormalise())),
    "split": (
        af.Perceptron(0.5 * MATRICES[0], bias=BIASES[0]) + af.Perceptron(0.5 * MATRICES[1]),
        ROUND,
        af.Alternate(0.25, symmetric=True),
    ),
}


@graded(
    "name",
    [name if name in ("renormalise", "flat") else pytest.param(name, marks=pytest.mark.slow) for name in LAYERED],
    slow=1,
)
def test_layers_are_inverted(name):
    """To rounding: 8 to 30 layers, each of which stretches distances by at most 2. Nodes lie apart from layers."""
    field, tokens, method = LAYERED[name]
    phi = af.flow_map(field, tokens, 1.5, method=method, nodes=af.saving.At([0.5, 1.5]))
    last, logdet = phi.push(POINTS)
    back, minus = phi.inverse().push(last)
    np.testing.assert_allclose(back, POINTS, atol=1e-11)
    np.testing.assert_allclose(minus, -logdet, atol=1e-11)
    if name == "renormalise":  # and the map there of the map back
        np.testing.assert_allclose((phi @ phi.inverse())(POINTS), POINTS, atol=1e-11)
        np.testing.assert_allclose(phi.inverse().inverse()(POINTS), last, atol=1e-14)


@pytest.mark.slow
def test_a_layer_that_folds_is_refused():
    """The layer x -> x - x has no inverse, and x -> x - 3 x changes the orientation of R^3: no flow does that."""
    for value in (-1.0, -3.0):
        phi = af.flow_map(Affine(value * np.eye(3)), FLAT, 1.0, method=af.Layers(1.0))
        with pytest.raises(InvalidInput, match="no way back") as caught:
            phi.inverse()(POINTS)
        assert "4 of the 4 `points`" in str(caught.value)


TOML = """
name = "relu"
[tokens]
name = "array"
positions = [[1.0, 0.0], [0.5, -1.0], [-2.0, 0.3]]
space = { name = "euclidean", dim = 2 }
[field]
name = "relu-unit"
outer = { name = "pieces", times = [0.0, 0.4], values = [[1.0, 2.0], [0.5, -1.0]] }
inner = [1.0, -1.0]
bias = 0.2
[solve]
until = 1.0
save = { name = "evenly", count = 4 }
method = { name = "exact" }
"""


def test_a_specification_of_a_field_of_a_file(tmp_path):
    (tmp_path / "relu.toml").write_text(TOML)
    _, flow = execute(load_spec(tmp_path / "relu.toml", plugins=[OUTSIDE]), tmp_path / "run")
    x = np.array([[1.0, 0.0], [0.5, -1.0], [-2.0, 0.3]])
    a = np.array([1.0, -1.0])
    for w, h in ((np.array([1.0, 2.0]), 0.4), (np.array([0.5, -1.0]), 0.6)):
        k = a @ w
        x = x + np.maximum(x @ a + 0.2, 0)[:, None] * w * np.expm1(k * h) / k
    np.testing.assert_allclose(flow.positions.values[-1], x, atol=1e-13)


@pytest.mark.slow
def test_a_field_of_a_file_in_a_schedule():
    """Pushed, inverted, joined and bounded as the package's own element is; the other turns points as SciPy does."""
    w, a, axis = RNG.standard_normal((3, 3))
    others = [
        (Drift([1.0, 0.0, 0.5]), 0.5),
        (OutsideUnit(0.5 * a, w, -0.2), 0.3),
        (Rotation(axis), 0.7),
        (Rotation(w), 0.1),
    ]
    mine = Schedule(FLAT.space, [(OutsideUnit(w, a, 0.3), 0.8), *others])
    theirs = Schedule(FLAT.space, [(ReluUnit(w, a, 0.3), 0.8), *others])
    assert mine.is_free
    np.testing.assert_allclose(mine.budget, theirs.budget, rtol=1e-14)
    x = np.asarray(FLAT.positions)
    end, log_det = mine.push(x)
    for found, wanted in zip((end, log_det), theirs.push(x), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-14)
    back, change = mine.inverse().push(end)
    np.testing.assert_allclose(back, x, atol=1e-13)
    np.testing.assert_allclose(change, -log_det, atol=1e-13)
    assert mine.then(mine).counts == {"Drift": 2, "ReluUnit": 4, "Rotation": 4}
    slow, fast = (Schedule(FLAT.space, [(Rotation(axis, speed), 0.7)]) for speed in (1.0, 2.0))
    np.testing.assert_allclose(slow.then(fast).push(x)[0], x @ Turn.from_rotvec(2.1 * axis).as_matrix().T, atol=1e-13)
    sphere = Schedule(ROUND.space, [(Rotation(axis), 0.7), (MeanAttention(np.eye(3)), 0.1)])
    assert not sphere.is_free
    np.testing.assert_allclose(sphere.budget, 0.7 * np.linalg.norm(axis) + 0.1, rtol=1e-14)
    turned = ROUND.moved(ROUND.positions @ Turn.from_rotvec(0.7 * axis).as_matrix().T)
    alone = Schedule(ROUND.space, [(MeanAttention(np.eye(3)), 0.1)])
    np.testing.assert_allclose(sphere(ROUND).positions, alone(turned).positions, atol=1e-14)
    with pytest.raises(InvalidInput, match="give MeanAttention its `value`"):
        Schedule(ROUND.space, [(MeanAttention(), 1.0)]).inverse()
