"""What follows from the parts of a field: sums that do not apply are refused, errors are stated, wrappers forget nothing."""

import equinox as eqx
import jax
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput, InvalidTokens
from attnflow.fields import Biased
from attnflow.sums import Circle, Cutoff, FastSphere, Harmonics, Tiled
from tests.kit import drive
from tests.marks import graded

RNG = np.random.default_rng(0)
CIRCLE = af.uniform(af.Sphere(2), n=40, seed=1)
BALL = af.uniform(af.Sphere(3), n=40, seed=1)
Q, K = RNG.standard_normal((2, 2, 2))
HEADS = RNG.standard_normal((2, 3, 2, 2))
TURN = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize(
    ("field", "tokens", "words"),
    [
        (af.Attention(1.0, query=HEADS[0], key=HEADS[1], sum=Circle(1e-8, 32)), CIRCLE, "Q = K = I and no encoding"),
        (af.Attention(1.0, encoding=af.encodings.Sinusoidal(), sum=Circle(1e-8, 32)), CIRCLE, "Q = K = I and no encoding"),
        (af.Attention(1.0, encoding=af.encodings.Sinusoidal(), sum=Harmonics(1e-8, 32, 3)), BALL, "Q = K = I and no encoding"),
        (af.Attention(1.0, query=Q, key=K, sum=Cutoff(1e-8)), CIRCLE, "Q = K = I and no encoding"),
        (af.Attention(1.0, encoding=af.encodings.Sinusoidal(), sum=Cutoff(1e-8)), BALL, "Q = K = I and no encoding"),
        (
            af.Attention(1.0, sum=Circle(1e-8, 32)),
            af.uniform(af.spaces.Ellipsoid([1.0, 2.0]), n=5),
            "points on the unit sphere, not on Ellipsoid",
        ),
        (af.Attention(1.0, mask=af.Causal(), sum=Cutoff(1e-8)), BALL, "does not support the mask Causal"),
        (af.Attention(1.0, mask=af.Window(3), sum=FastSphere(1e-8, 32)), BALL, "does not support the mask Window"),
        (af.Attention(1.0, mask=af.Causal(strict=True), sum=Circle(1e-8, 32)), CIRCLE, "the strict mask Causal"),
        (af.Attention(1.0, normaliser=af.Sinkhorn(), sum=Circle(1e-8, 32)), CIRCLE, "Softmax.. and Unnormalised"),
        (af.Attention(1.0, query=Q, sum=Tiled(bounded=True)), CIRCLE, "Tiled.bounded=True. needs weights of at most 1"),
        (af.Attention(1.0, mask=af.masks.Table(np.eye(40)), sum=Tiled(bounded=True)), CIRCLE, "see themselves"),
        (af.norms.Ngpt(af.Attention(1.0, query=Q, sum=Circle(1e-8, 32))), CIRCLE, "Q = K = I"),
        (
            af.norms.Pre(af.Attention(1.0, sum=Circle(1e-8, 32)), af.norms.RmsNorm()),
            af.from_array(CIRCLE.positions, space=af.Euclidean(2)),
            "points on the unit sphere, not on Euclidean",
        ),
    ],
    ids=str,
)  # fmt: skip
def test_a_sum_that_does_not_apply_is_refused(field, tokens, words):
    """By velocity, by drive, by solve, by advance, and for what can be seen there, inside compiled code."""
    where = (tokens,)
    for call in (
        lambda: field.velocity(*where),
        lambda: field.drive(*where),
        lambda: af.solve(field, tokens, 0.1),
        lambda: af.advance(field, tokens, 0.0, 0.1),
        lambda: af.in_float64(jax.jit(lambda x: field.drive(tokens.moved(x))))(tokens.positions),
    ):
        with pytest.raises(InvalidInput, match=words):
            call()


@graded("d", [2, 3])
def test_layers_that_leave_the_sphere_take_no_sum_for_unit_vectors(d):
    """x <- x + h P_x A: norms grow by |hA|^2/2 a layer; a series would take x for a unit vector."""
    n, beta, step, count = 2_300, 9.0, 0.2, 5
    tokens = af.uniform(af.Sphere(d), n=n, seed=0)
    flow = af.solve(
        af.Attention(beta), tokens, step * count, method=af.Layers(step, af.layer_updates.Project()), save=1
    )
    x = np.array(tokens.positions)
    for _ in range(count):
        weights = np.exp(beta * (x @ x.T) - beta)
        drive = weights @ x / weights.sum(axis=1, keepdims=True)
        x = x + step * (drive - (x * drive).sum(axis=1, keepdims=True) * x)
    assert np.abs(np.linalg.norm(x, axis=1) - 1).max() > 5e-5
    np.testing.assert_allclose(flow.positions.values[-1], x, atol=1e-12)
    assert "energy" not in flow.dataset  # it is that of points on the sphere
    field = af.Attention(beta, sum=Circle(1e-8, 64) if d == 2 else Harmonics(1e-8, 40, 3))
    with pytest.raises(InvalidInput, match="not on Euclidean"):
        af.solve(field, tokens, 1.0, method=af.Layers(step, af.layer_updates.Project()))
    with pytest.raises(InvalidInput, match="not on Euclidean"):
        af.advance(field, tokens, 0.0, 1.0, af.Layers(step, af.layer_updates.Project()))


@af.in_float64
@eqx.filter_jit
def drive_and_error(field, tokens):
    """In one program: operation by operation every one would be compiled for itself."""
    where = (tokens,)
    return field.drive(*where), field.error(*where)


def true_error(field, exact, tokens):
    drive, stated = drive_and_error(field, tokens)
    return np.linalg.norm(drive - drive_and_error(exact, tokens)[0], axis=1), np.asarray(stated)


@pytest.mark.long
@pytest.mark.parametrize(
    "normaliser", [af.Softmax(), af.Unnormalised(), af.Unnormalised("USA")], ids=["SA", "USA0", "USA"]
)
@pytest.mark.parametrize("mask", [af.masks.Everyone(), af.Causal(0.02)], ids=["everyone", "causal"])
def test_the_error_of_a_sum_counts_what_multiplies_it(normaliser, mask):
    """|V| = 1000 and the clock e^beta: the true error is below the stated one, and of its order."""
    tokens = af.uniform(af.Sphere(2), n=300, seed=3)
    for size in (1.0, 1000.0):
        made = [
            af.Attention(6.0, value=size * np.eye(2), normaliser=normaliser, mask=mask, sum=s)
            for s in (Circle(1e-4, 32), Tiled())
        ]
        off, stated = true_error(*made, tokens)
        assert (off <= stated + 1e-13 * size).all()
        assert (off / stated).max() >= 1e-5  # the bound is no empty promise
    flow = af.solve(made[0], tokens, 0.1, method=af.Layers(0.1), save=1)
    assert flow.dataset["floor"].values[0] >= stated.max()


@graded("wrap", [
    lambda f: af.norms.Ngpt(f, 2.0),
    lambda f: af.Composed(af.Perceptron(3 * np.eye(2), None, 2 * np.eye(2), "tanh"), f),
    lambda f: f + af.Perceptron(np.eye(2)),
    lambda f: af.norms.Ngpt(f + af.Perceptron(np.eye(2))),
], ids=["ngpt", "composed", "total", "nested"])  # fmt: skip
@pytest.mark.usefixtures("choices_of_a_cpu")
def test_wrappers_forget_nothing(wrap):
    """The sum is chosen through the wrapper, and its error reaches the outside with the wrapper's own factor."""
    many = af.uniform(af.Sphere(2), n=3_000, seed=0)
    found = [
        s for s in jax.tree.leaves(wrap(af.Attention(9.0)).prepare(many, flowing=True), is_leaf=is_sum) if is_sum(s)
    ]
    assert [type(s) for s in found] == [Circle]
    tokens = af.uniform(af.Sphere(2), n=64, seed=3)
    off, stated = true_error(wrap(af.Attention(6.0, sum=Circle(1e-4, 32))), wrap(af.Attention(6.0)), tokens)
    assert (off <= stated + 1e-13).all()
    assert off.max() >= 1e-5 * stated.max()


@graded("wrap", [af.norms.Pre, af.norms.Peri, af.norms.Scaled, af.norms.Mix], slow=1)
@pytest.mark.usefixtures("choices_of_a_cpu")
def test_streams_choose_sums_for_the_sphere_inside(wrap):
    """A norm puts tokens of R^d onto the sphere; a token at the origin, which has no direction, rules that out."""
    round_ = af.uniform(af.Sphere(2), n=3_000, seed=0).positions
    x = round_ * np.linspace(0.5, 3.0, 3_000)[:, None]
    tokens = af.Tokens(x, space=af.Euclidean(2))
    field = wrap(af.Attention(9.0)).prepare(tokens, flowing=True)
    assert isinstance(field.field.sum, Circle)
    where = (tokens,)
    off, stated = true_error(field, wrap(af.Attention(9.0, sum=Tiled())), tokens)
    assert (off <= stated + 1e-12).all()
    x[7] = 0.0
    with_origin = af.Tokens(x, space=af.Euclidean(2))
    assert isinstance(wrap(af.Attention(9.0)).prepare(with_origin).field.sum, Tiled)
    with pytest.raises(InvalidInput, match="not on Euclidean"):
        wrap(af.Attention(9.0, sum=Circle(1e-8, 64))).check(with_origin)
    assert np.isfinite(field.velocity(*where)).all()


@graded("norm", [af.norms.Unit(), af.norms.RmsNorm([0.5, 2.0]), af.norms.RmsNorm([0.5, 2.0], eps=0.3)])
def test_an_error_goes_through_a_norm_after_the_layer(norm):
    """|N(a) - N(b)| is at most the diameter of the image of N, and at most |gain|/sqrt(eps) times |a - b|."""
    tokens = af.Tokens(2.0 * af.uniform(af.Sphere(2), n=64, seed=3).positions, space=af.Euclidean(2))

    def layer(**given):
        return af.norms.Post(af.norms.Pre(af.Attention(6.0, **given)), norm)

    off, stated = true_error(layer(sum=Circle(1e-4, 32)), layer(), tokens)
    assert (off <= stated + 1e-13).all()
    assert stated.max() <= 2 * np.sqrt(2) * 2.0
    if getattr(norm, "eps", 0.0):
        assert off.max() >= 1e-5 * stated.max()


def is_sum(node):
    return isinstance(node, af.sums.AbstractSum)


@pytest.mark.slow
@pytest.mark.usefixtures("choices_of_a_cpu")
def test_heads_with_shared_weights_are_one_sum():
    """Without Q_h and K_h all heads weigh alike: a series serves them, and agrees with the heads one by one."""
    tokens = af.uniform(af.Sphere(3), n=50, seed=0)
    values = np.stack([np.eye(3), -TURN, 2 * TURN])
    heads = [af.Attention(4.0, value=values, sum=s) for s in (Harmonics(1e-10, 32, 3), Tiled(), None)]
    one = sum(drive(af.Attention(4.0, value=v), tokens) for v in values) / 3
    for field in heads:
        np.testing.assert_allclose(drive(field, tokens), one, atol=3e-10)
    assert isinstance(
        af.Attention(9.0, value=values).prepare(af.uniform(af.Sphere(3), n=4_000), flowing=True).sum, FastSphere
    )


def test_points_off_the_space_are_refused():
    """Away from the sphere two sums mean two different extensions of the field."""
    field = af.Attention(2.0)
    for scale in (9.0, 1 + 1e-5):
        for call in (field.velocity, field.drive):
            with pytest.raises(InvalidTokens, match=r"at\[0\] is .* away from Sphere\(dim=3\)"):
                call(BALL, at=scale * BALL.positions[:1])
    near = field.velocity(BALL, at=(1 + 1e-8) * BALL.positions[:2])
    np.testing.assert_allclose(near, field.velocity(BALL, at=BALL.positions[:2]), atol=1e-12)


@pytest.mark.parametrize("name", ["mask", "normaliser", "encoding", "sum"])
@pytest.mark.parametrize("made", [af.Attention])
def test_parts_of_the_wrong_kind_are_refused(made, name):
    kinds = {"mask": af.Causal, "normaliser": af.Softmax, "encoding": af.encodings.Rotary, "sum": af.sums.Tiled}
    with pytest.raises(
        InvalidInput, match=rf"`{name}` is the class {kinds[name].__name__}; write {kinds[name].__name__}\(\)"
    ):
        made(1.0, **{name: kinds[name]})
    with pytest.raises(InvalidInput, match=f"`{name}` is 'causal'; (give a|use one of 'SA', 'USA0', 'USA')"):
        made(1.0, **{name: "causal"})


def test_bounds_of_matrices():
    for shape in ((3, 3), (2, 5), (4, 3, 2)):
        m = RNG.standard_normal(shape)
        bound = af.in_float64(Biased(m, np.zeros(shape[-2])).bound)(0.0, float)
        assert (bound >= np.linalg.norm(m, 2, axis=(-2, -1)) * (1 - 1e-12)).all()
    assert af.in_float64(Biased(-7 * TURN, np.zeros(3)).bound)(0.0, float) == pytest.approx(7)


def test_a_wrapper_without_children_cannot_be_built():
    class Forgetful(af.AbstractField):
        inner: af.Attention

        def formula(self, t, query, mu):
            return self.inner.formula(t, query, mu)

        def check_parameters(self, tokens):
            pass

        @property
        def laws(self):
            return self.inner.laws

    with pytest.raises(TypeError, match="children"):
        Forgetful(af.Attention(1.0))


def test_layers_that_leave_the_sphere_still_know_where_the_tokens_started():
    """Ngpt inside a sum asks for tokens on a sphere: they are, though `Project` moves them off it."""
    tokens = af.uniform(af.Sphere(3), n=6, seed=0)
    field = af.norms.Ngpt(af.Attention(2.0)) + af.Perceptron(0.1 * np.eye(3))
    flow = af.solve(field, tokens, 0.2, method=af.Layers(0.1, af.layer_updates.Project()), save=1)
    assert np.isfinite(flow.positions.values).all()


@pytest.mark.usefixtures("choices_of_a_cpu")
def test_a_tolerance_is_shared_out_by_the_size_of_the_values():
    """The mean may be off by a tenth of what its tenfold may be; small values leave the tolerance as it is."""
    tokens = af.uniform(af.Sphere(2), n=4000)
    tol = {
        size: af.Attention(9.0, value=size * np.eye(2)).prepare(tokens, tol=1e-6, flowing=True).sum.tol
        for size in (0.1, 1.0, 10.0)
    }
    assert tol == {0.1: 1e-6, 1.0: 1e-6, 10.0: pytest.approx(1e-7)}
