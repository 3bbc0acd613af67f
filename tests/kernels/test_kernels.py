"""Kernels: expansions in degrees, sums by them, and refusals."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.kernels import (
    AbstractKernel,
    AbstractPair,
    AbstractZonal,
    Cosine,
    Expansion,
    Exponential,
    Gaussian,
    Polynomial,
    members_of,
)
from attnflow.sums import Circle, Columns, Dense, FastSphere, Harmonics, Tiled, Weights, choose
from tests.marks import graded

EPS = np.finfo(float).eps


class Learned(AbstractZonal):
    """log K(s) = a network of s."""

    network: eqx.nn.MLP
    is_signed = False

    def profile(self, s):
        return jax.vmap(self.network)(s.reshape(-1)).reshape(s.shape)


class Profile(AbstractZonal):
    """A function of <x, y> and a number; its expansion is one program, where that of the library is a few dozen."""

    function: object = eqx.field(static=True)
    is_signed: bool = eqx.field(static=True, default=False)
    number: float = eqx.field(converter=np.asarray, default=0.0)

    def profile(self, s):
        return self.function(s, jnp.asarray(self.number, s.dtype))

    def expansion(self, d, degree):
        return _by_quadrature(self, d, degree)


@eqx.filter_jit
def _by_quadrature(kernel, d, degree):
    return AbstractZonal.expansion(kernel, d, degree)


class Either(AbstractKernel):
    """One of several kernels of one sign, by its number, which is traced: one program serves them all."""

    kernels: tuple
    which: int = eqx.field(converter=np.asarray)
    is_isotropic = True

    @property
    def is_signed(self):
        return self.kernels[0].is_signed

    def block(self, query, key):
        return jax.lax.switch(self.which, [lambda q, k, one=one: one.block(q, k) for one in self.kernels], query, key)

    def expansion(self, d, degree):
        def of(one):
            return lambda: Expansion(*(jnp.asarray(number, float) for number in one.expansion(d, degree)))

        return jax.lax.switch(self.which, [of(one) for one in self.kernels])

    def needed_degree(self, d, error):
        return self.kernels[self.which].needed_degree(d, error)

    def is_bounded(self, unit):
        return False

    def magnitude(self, query, key):
        return None


def steep(s, beta):
    return beta * (s - 1)


def learned():
    with jax.enable_x64(True):
        network = eqx.nn.MLP("scalar", "scalar", 8, 1, jnp.tanh, key=jax.random.key(3), dtype=float)
    return Learned(jax.tree.map(lambda a: np.asarray(a, float) if eqx.is_array(a) else a, network))


def expansion(kernel, d, degree):
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, _expansion(kernel, d, degree))


@eqx.filter_jit
def _expansion(kernel, d, degree):
    return kernel.expansion(d, degree)


@graded(
    ("kernel", "d", "want"),
    [
        (Polynomial(2), 3, [1 / 3, 0, 2 / 3]),  # s^2 = (P_0 + 2 P_2)/3
        (Polynomial(2), 2, [1 / 2, 0, 1 / 2]),  # cos^2 = (1 + cos 2a)/2
        (Polynomial(3), 3, [0, 3 / 5, 0, 2 / 5]),
        (Polynomial(2), 4, [1 / 4, 0, 3 / 4]),  # U_2 = 4 s^2 - 1, P_2 = U_2/3
        (Polynomial(2, 1.0), 3, [1 / 4 + 1 / 12, 1 / 2, 1 / 6]),
        (Cosine(), 5, [0, 1]),
    ],
    fast=2,
)
def test_polynomials_have_their_classical_coefficients(kernel, d, want):
    found = expansion(kernel, d, 6)
    np.testing.assert_allclose(found.p * np.exp(found.scale), np.pad(want, (0, 7 - len(want))), atol=1e-14)
    assert found.rest < 1e-13
    assert kernel.needed_degree(d, 1e-10)[0] == len(want) - 1


@graded("d", [2, 3, 4, 6], fast=1)
@pytest.mark.parametrize("beta", [0.0, 1.0, 20.0])
def test_quadrature_finds_the_expansion_of_the_exponential(d, beta):
    by_nodes, exact = expansion(Profile(steep, number=beta), d, 40), expansion(Exponential(beta), d, 40)
    assert np.abs(by_nodes.p - exact.p).sum() <= by_nodes.noise + 41 * 8 * EPS * exact.p.max()
    np.testing.assert_allclose(by_nodes.scale, 0.0, atol=1e-15)
    degree, noise = Profile(steep, number=beta).needed_degree(d, 1e-9)
    assert noise < 1e-9
    assert degree == Exponential(beta).needed_degree(d, 1e-9)[0]


@af.in_float64
@eqx.filter_jit
def sums(made, kernel, mask, x, masses, charges):
    """(sums, stated error, log K or K of all pairs)."""
    side = (x, jnp.arange(len(x)))
    scale, found = made(Weights(kernel, mask, True), side, side, jnp.log(masses), Columns(charges))
    return jnp.exp(scale)[:, None] * found, made.error(kernel, masses), kernel.block(x, x)


SMOOTH = {
    "gaussian": Gaussian(3.0), "polynomial": Polynomial(5, 0.3), "cosine": Cosine(), "learned": learned(),
    "signed": Profile(lambda s, _: jnp.cos(3 * s), True), "large": Profile(lambda s, _: 40 + 3 * s),
}  # fmt: skip
SIGNED = {sign: tuple(name for name in SMOOTH if SMOOTH[name].is_signed == sign) for sign in (False, True)}
QUICK = {(False, 2, False), (True, 3, False), (False, 3, True)}
"""Combinations (signed, d, causal) that are not slow, a program each."""
CASES = [(name, d, causal) for name in SMOOTH for d in (2, 3, 4) for causal in (False, True)]


@graded(
    ("name", "d", "causal"),
    [c if (SMOOTH[c[0]].is_signed, *c[1:]) in QUICK else pytest.param(*c, marks=pytest.mark.slow) for c in CASES],
    slow=1,
)
def test_every_series_takes_a_kernel_with_an_expansion(name, d, causal):
    """Off by at most what the sum states, which is at most the tolerance.

    In four dimensions the program grows with the degree, so that fewer degrees are summed, to a larger tolerance.
    """
    alike, rng, mask = (
        SIGNED[SMOOTH[name].is_signed],
        np.random.default_rng(d),
        af.Causal(0.05) if causal else af.masks.Everyone(),
    )
    kernel = Either(tuple(SMOOTH[one] for one in alike), alike.index(name))
    x, masses = af.uniform(af.Sphere(d), n=150, seed=1).positions, rng.random(150) + 0.5
    masses, charges = masses / masses.sum(), np.concatenate([np.ones((150, 1)), x], axis=1)
    place = np.arange(150.0)
    tol, degree = (1e-8, 16) if d == 4 else (1e-9, 64)
    made = [Circle(tol, degree)] if d == 2 else [Harmonics(tol, degree, d)]
    made += [FastSphere(tol, degree)] if d == 3 and mask.sees_everyone else []
    for one in made:
        found, stated, values = sums(one, kernel, mask, x, masses, charges)
        weights = values if kernel.is_signed else np.exp(values)
        if not mask.sees_everyone:
            back = place[:, None] - place[None, :]
            weights = weights * np.where(back >= 0, np.exp(-0.05 * np.maximum(back, 0)), 0.0)
        want = (weights * masses[None, :]) @ charges
        assert np.abs(found - want).max() <= stated + 50 * EPS * np.abs(weights).max()
        assert stated < tol * np.abs(weights).max()


@pytest.mark.usefixtures("choices_of_a_cpu")
@graded("d", [2, 3])
def test_the_series_is_chosen_and_gives_the_velocity_of_tiles(d):
    tokens = af.uniform(af.Sphere(d), n=6000, seed=0)
    for kernel, normaliser in ((learned(), None), (Polynomial(4), af.Unnormalised())):
        field = af.Attention(kernel=kernel, normaliser=normaliser)
        choice = field.choice(tokens, 1e-8)
        assert isinstance(choice.sum, Circle | Harmonics | FastSphere)
        assert type(kernel).__name__ in choice.explain()
        fast = field.prepare(tokens, tol=1e-8).velocity(tokens)
        assert np.abs(fast[:40] - field.velocity(tokens, at=tokens.positions[:40])).max() < 1e-8


@graded("normaliser", [None, af.Unnormalised(), af.Hardmax(), af.Sinkhorn()], fast=2)
def test_a_gaussian_on_the_sphere_is_the_exponential(normaliser):
    tokens = af.uniform(af.Sphere(3), n=12, seed=4)
    one, other = (
        af.Attention(kernel=kernel, normaliser=normaliser).velocity(tokens)
        for kernel in (Gaussian(6.0), Exponential(6.0))
    )
    np.testing.assert_allclose(one, other, atol=1e-13 if not isinstance(normaliser, af.Sinkhorn) else 1e-8)


def test_a_gaussian_does_not_see_a_translation():
    """Positions of size 1e6: rounding of differences is that of the positions, 1e6 EPS, and no more."""
    x = af.uniform(af.Sphere(2), n=30, seed=2).positions
    field = af.Attention(kernel=Gaussian(5.0), normaliser=af.Unnormalised(), value=None)
    far = af.in_float64(jax.jit(lambda x: field.kernel.block(x, x)))(x + 1e6)
    want = -2.5 * ((x[:, None] - x[None, :]) ** 2).sum(2)
    assert np.abs(far - want).max() < 5 * 4 * 1e6 * 4 * EPS


def test_batches_and_derivatives():
    tokens = af.uniform(af.Euclidean(2), n=20, seed=0)
    batch = af.Attention(kernel=Gaussian(af.Along("beta", [1.0, 3.0]))).velocity(tokens)
    assert batch.shape == (2, 20, 2)
    for k, beta in enumerate((1.0, 3.0)):
        np.testing.assert_allclose(batch[k], af.Attention(kernel=Gaussian(beta)).velocity(tokens), atol=1e-14)

    @af.in_float64
    @jax.jit
    @jax.value_and_grad
    def size(beta):
        return jnp.sum(af.Attention(kernel=Gaussian(beta)).velocity(tokens) ** 2)

    step = 1e-5
    assert size(2.0)[1] == pytest.approx((size(2 + step)[0] - size(2 - step)[0]) / (2 * step), rel=1e-8)
    assert len(members_of(Gaussian(af.Along("beta", [1.0, 3.0])))) == 2
    assert len(members_of(Gaussian(af.Along("beta", [1.0, 1.0], labels=[0, 1])))) == 1


@pytest.mark.slow
def test_parameters_of_a_learned_kernel_have_derivatives_through_a_series():
    tokens = af.uniform(af.Sphere(2), n=40, seed=0)
    kernel = learned()

    def size(kernel, made):
        field = af.Attention(kernel=kernel, sum=made)
        return jnp.sum(field.velocity(tokens) ** 2)

    def gradient(made):
        slope = af.in_float64(eqx.filter_jit(eqx.filter_grad(size)))(kernel, made)
        return np.concatenate([np.ravel(a) for a in jax.tree.leaves(eqx.filter(slope, eqx.is_array))])

    exact = gradient(Tiled())
    np.testing.assert_allclose(gradient(Circle(1e-9, 32)), exact, atol=1e-7 * np.abs(exact).max())
    assert np.abs(exact).max() > 1e-3


@pytest.mark.slow
def test_clusters_are_linked_within_the_range_of_a_gaussian():
    """In R^2, without a `scale`: beta^(-1/2), which joins what is 0.4 apart at beta = 4 and not at beta = 9."""
    x = np.array([[0.0, 0.0], [0.4, 0.0], [5.0, 0.0]])
    for beta, count in ((4.0, 2), (9.0, 3)):
        flow = af.solve(
            af.Attention(kernel=Gaussian(beta)) - af.Attention(kernel=Gaussian(beta)),
            af.from_array(x, space=af.Euclidean(2)),
            1.0,
            save=1,
            method=af.Fixed(1.0),
        )
        with pytest.raises(InvalidInput, match="no single beta"):
            flow.clusters()
        still = af.solve(
            0.0 * af.Attention(kernel=Gaussian(beta)),
            af.from_array(x, space=af.Euclidean(2)),
            1.0,
            save=1,
            method=af.Fixed(1.0),
        )
        assert still.clusters()["count"].values.tolist() == [count, count]


@graded(
    ("kernels", "rule", "made"),
    [
        ((Gaussian(4.0), learned()), None, FastSphere(1e-3, 16)),
        ((Polynomial(3, 0.5), Cosine()), af.Unnormalised(), Harmonics(1e-3, 16, 3)),
    ],
    ids=["positive", "signed"],
    slow=1,
)
def test_float32(kernels, rule, made):
    tokens = af.uniform(af.Sphere(3), n=40, seed=0)
    for which in range(2):
        field, cut = (
            af.Attention(kernel=Either(kernels, which), normaliser=rule, sum=how) for how in (af.sums.Tiled(), made)
        )
        single = field.velocity(tokens.astype(np.float32))
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, field.velocity(tokens), atol=5e-6)
        found = cut.velocity(tokens.astype(np.float32))
        assert found.dtype == np.float32
        off = np.abs(found - single).max(axis=1)
        assert (off <= cut.error(tokens.astype(np.float32)) + 5e-6).all()


@af.in_float64
@eqx.filter_jit
def is_trusted(made, kernel, x, keys):
    sides = [(points, jnp.arange(len(keys))) for points in (x, keys)]
    log_mass = jnp.full(len(keys), -np.log(len(keys)))
    given = (Weights(kernel, af.masks.Everyone()), *sides, log_mass, Columns(jnp.ones((len(keys), 1))))
    scale, sums = made(*given)
    return made.trusted(given, scale, jnp.abs(sums[:, 0]))


@graded("made", [af.sums.FastSphere(1e-8, 64), af.sums.Harmonics(1e-8, 64, 3)], ids=["fast", "harmonics"])
@pytest.mark.parametrize("level", [-300.0, 300.0])
def test_trust_does_not_depend_on_the_size_of_a_kernel(made, level):
    """K and e^300 K are one softmax: trusted at the tokens, and not where a query sees e^(-80) of that."""
    kernel = Profile(lifted, number=level)
    spread = np.random.default_rng(0).standard_normal((40, 3)) * 0.1 + np.array([0.0, 0.0, 1.0])
    tokens = af.from_array(spread, space=af.Sphere(3), normalise=True)
    away = -tokens.positions
    exact = af.Attention(40.0)
    for points, trusted in ((None, True), (away, False)):
        found = af.Attention(kernel=kernel, sum=made).velocity(tokens, at=points)
        assert np.abs(found - exact.velocity(tokens, at=points)).max() < 2e-8
        x = tokens.positions if points is None else points
        assert bool(is_trusted(made, kernel, x, tokens.positions)) == trusted


def lifted(s, level):
    return level + 40 * (s - 1)


class Kinked(AbstractPair):
    is_isotropic = True
    is_signed = False

    def pair(self, query, key):
        return -jnp.sum(jnp.abs(query - key))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: af.Attention(), "neither `beta` nor `kernel`"),
        (lambda: af.Attention(2.0, kernel=Gaussian(1.0)), "both `beta` and `kernel`"),
        (lambda: af.Attention(kernel=2.0), "`kernel` is 2.0; give a kernel such as"),
        (lambda: af.Attention(Gaussian(2.0)), "`beta` is the kernel Gaussian; write Attention"),
        (lambda: af.Attention(kernel=Cosine()), "Cosine, which changes sign, so that Softmax"),
        (lambda: af.Attention(kernel=Polynomial(2), normaliser=af.Sinkhorn()), "changes sign, so that Sinkhorn"),
        (lambda: af.Attention(kernel=Gaussian(1.0), normaliser=af.Unnormalised("USA")), "`clock` is 'USA'"),
        (lambda: af.Attention(kernel=Kinked(), normaliser=af.Hardmax()), "Hardmax cannot tell ties"),
        (lambda: af.Attention(kernel=Gaussian(1.0)).beta, "Gaussian is not Exponential"),
        (lambda: Polynomial(0), "`degree` is 0"),
        (lambda: Polynomial(2, -0.5), "`offset` is -0.5"),
        (lambda: Gaussian(np.nan), "`beta` is nan"),
        (
            lambda: af.observe.energy_rate(af.Attention(kernel=Gaussian(1.0)), af.uniform(af.Sphere(3), n=4)),
            "no `beta`",
        ),
        (lambda: af.solve_long(af.Attention(kernel=Gaussian(1.0)), af.uniform(af.Sphere(3), n=4)), "no log-time form"),
        (lambda: choose(af.uniform(af.Sphere(3), n=4), Gaussian), "`kernel` is the class Gaussian"),
    ],
)
def test_refusals(make, words):
    with pytest.raises(InvalidInput, match=words):
        make()


@pytest.mark.parametrize(
    "kernel",
    [Kinked(), Profile(lambda s, _: -jnp.abs(s)), Profile(steep, number=-9.0)],
    ids=["pair", "kink", "repulsive"],
)
def test_no_series_without_a_good_expansion(kernel):
    """A kink has no fast expansion; where tokens hardly see themselves an absolute error is no use."""
    tokens = af.uniform(af.Sphere(2), n=200, seed=0)
    field = af.Attention(kernel=kernel, sum=Circle(1e-9, 64))
    pair = isinstance(kernel, Kinked)
    words = "needs a kernel with an expansion in degrees" if pair else "needs too many degrees .* or is much larger"
    with pytest.raises(InvalidInput, match=words):
        field.velocity(tokens)
    chosen = choose(tokens, kernel, tol=1e-9)
    assert isinstance(chosen.sum, Tiled | Dense)
    assert next(o for o in chosen.options if o.name == "Circle").why_not
