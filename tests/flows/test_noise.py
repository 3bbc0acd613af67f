"""Brownian noise: its distribution, its seeds, and what it leaves alone."""

import itertools
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chi2

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.fields import Laws
from attnflow.flows import Heun, InMemory
from tests import kit
from tests.marks import graded

POLE = np.array([0.0, 0.0, 1.0])
CROWD = af.from_array(np.tile(POLE, (4096, 1)))
SEEDS = af.Along("seed", range(8))
TWELVE = af.uniform(af.Sphere(3), n=12, seed=0)


class Pull(af.AbstractField):
    """A constant drive towards the last axis: tokens that do not see each other."""

    strength: Any

    def formula(self, t, query, mu):
        x = jnp.asarray(query.points(mu))
        return jnp.zeros_like(x).at[:, -1].set(jnp.asarray(self.strength, x.dtype))

    def children(self, space):
        return ()

    def check_parameters(self, tokens):
        pass

    @property
    def laws(self):
        return Laws(False, True, True, True)


def end(method, kappa, until, *, strength=0.0, tokens=CROWD, seed=SEEDS, common=False):
    return kit.end(
        Pull(np.asarray(strength)), tokens, until, method=method, noise=af.Brownian(kappa, common, seed)
    )  # fmt: skip


def near(sample, expected, slack=0.0):
    """Within four standard errors of independent samples (one miss in 16,000), and `slack` for the step."""
    error = sample.std() / np.sqrt(sample.size)
    assert abs(sample.mean() - expected) < 4 * error + slack, (sample.mean(), expected, error, slack)


def degree_two(c, d=3):
    return (d * c**2 - 1) / (d - 1)


def multiplier(harmonic, size, d=3):
    """E harmonic(cos angle) of N(x + sqrt(size) P_x xi): a step is a zonal convolution, so such numbers multiply."""
    density = chi2(d - 1).pdf
    return quad(lambda r: harmonic(1 / np.sqrt(1 + size * r)) * density(r), 0, np.inf, epsabs=1e-12)[0]


@pytest.mark.parametrize(("harmonic", "rate"), [(lambda c: c, 2.0), (degree_two, 6.0)])
def test_the_scheme_has_weak_order_one(harmonic, rate):
    """Generator kappa Laplacian: degree l decays at rate l (l + d - 2) kappa. m(h)^(T/h) is off by C h (1 + O(h))."""
    kappa, until = 0.5, 0.5
    errors = [
        multiplier(harmonic, 2 * kappa * h) ** (until / h) - np.exp(-rate * kappa * until)
        for h in (0.01, 0.005, 0.0025)
    ]
    assert errors[0] > 0
    # rate kappa h is at most 0.03 here, and the next term is a few times that
    np.testing.assert_allclose([errors[0] / errors[1], errors[1] / errors[2]], 2.0, atol=0.15)


@graded("method", [af.Layers(0.1, af.layer_updates.ProjectRenormalise()), af.Fixed(0.1)])
def test_steps_have_the_law_they_should(method):
    """A coarse step, at which the scheme differs from Brownian motion by 30 standard errors: it is the scheme exactly."""
    x = end(method, 1.0, 0.4)
    assert x.shape == (8, 4096, 3)
    assert np.abs(np.linalg.norm(x, axis=-1) - 1).max() < 1e-15 * 4
    near(x[..., 2], multiplier(lambda c: c, 0.2) ** 4)
    near(degree_two(x[..., 2]), multiplier(degree_two, 0.2) ** 4)
    assert abs(x[..., 2].mean() - np.exp(-0.8)) > 0.05
    near(x[..., 0], 0.0)
    # members have their own paths: eight means scatter as independent ones do (chi-squared with 7 degrees of freedom)
    means = x[..., 2].mean(axis=1)
    scatter = 7 * means.var(ddof=1) / (x[..., 2].var() / 4096)
    assert chi2(7).ppf(1e-4) < scatter < chi2(7).isf(1e-4)


@pytest.mark.long
def test_heun_is_brownian_motion_along_one_path():
    """The second implementation against closed forms, and strong convergence.

    Steps of T/16, T/32, T/64 ask the tree at its own nodes only, so that all see one W and their differences shrink,
    at order 1/2 (for tokens that are moved by d - 1 > 1 directions of noise that do not commute). Means extrapolate
    from h, h/2, h/4 with the weights 1/3, -2, 8/3, which leaves an error of order (rate h)^3.
    """
    until = 0.4
    h = until / 16
    crowd, seeds = af.from_array(np.tile(POLE, (1024, 1))), af.Along("seed", range(2))
    paths = [end(Heun(h / 2**k), 1.0, until, tokens=crowd, seed=seeds) for k in range(3)]
    assert max(np.abs(np.linalg.norm(x, axis=-1) - 1).max() for x in paths) < 4e-15
    gaps = [np.sqrt(np.mean((a - b) ** 2)) for a, b in itertools.pairwise(paths)]
    assert gaps[1] < 0.85 * gaps[0] < 0.1
    for harmonic, rate in ((lambda c: c, 2.0), (degree_two, 6.0)):
        coarse, middle, fine = (harmonic(x[..., 2]) for x in paths)
        near(coarse / 3 - 2 * middle + 8 * fine / 3, np.exp(-rate * until), (rate * h) ** 3)


@pytest.mark.long
def test_a_pull_against_noise_has_the_von_mises_fisher_law():
    """dX = P c e dt + sqrt(2 kappa) dB: stationary density exp(a <x, e>), a = c / kappa.

    Mean L = coth a - 1/a, second moment 1 - 2 L / a. All rates are at most 2 c here: the distribution is off by O(c h).
    """
    strength, kappa, h, until = 1.0, 0.5, 0.01, 6.0
    method, seeds = af.Layers(h, af.layer_updates.ProjectRenormalise()), af.Along("seed", range(2))
    x = -end(method, kappa, until, strength=-strength, seed=seeds)  # from the pole away from it
    a = strength / kappa
    mean = 1 / np.tanh(a) - 1 / a
    left = 2 * np.exp(-2 * kappa * until)  # of the start: the spectral gap is at least 2 kappa
    near(x[..., 2], mean, strength * h + left)
    near(x[..., 2] ** 2, 1 - 2 * mean / a, strength * h + left)


@graded(("common", "slope"), [(True, 2.0), (False, 0.0)])
def test_common_and_independent_noise(common, slope):
    """For c = <x, y>: dE c/dt = 2 kappa (1-c)(d-2-c) with common noise, -2 kappa (d-1) c with independent noise.

    From c = 0 in d = 3: 2 kappa T, without a term of order T^2; and 0. Steps: (rate kappa)^2 h T, rate = 4.
    """
    kappa, until, h = 0.2, 0.1, 0.01
    tokens = af.from_array(np.eye(3)[[0, 1, 0]])
    x = end(
        af.Layers(h, af.layer_updates.ProjectRenormalise()), kappa, until, tokens=tokens, seed=af.Along("seed", range(15_000)),
        common=common,
    )  # fmt: skip
    near(
        np.sum(x[:, 0] * x[:, 1], axis=-1),
        slope * kappa * until,
        (4 * kappa) ** 2 * h * until + (4 * kappa * until) ** 3,
    )
    near(x[:, 0, 0], np.exp(-2 * kappa * until), (2 * kappa) ** 2 * h * until)
    together = np.linalg.norm(x[:, 0] - x[:, 2], axis=-1)  # tokens 0 and 2 start at one point
    assert (together == 0).all() if common else np.median(together) > 0.1


def test_euclidean_variance_grows_as_two_kappa_t():
    """Exactly, for every step: a sum of Gaussians around x0 + c t e. The variance of a sample variance is 2 / N."""
    start = np.random.default_rng(0).standard_normal((4096, 2))
    tokens = af.from_array(start, space=af.Euclidean(2))
    x = (
        end(af.Layers(0.1, af.layer_updates.ProjectRenormalise()), 0.3, 1.5, strength=2.0, tokens=tokens, seed=0)
        - start
    )
    assert np.abs(x.var(axis=0) / (2 * 0.3 * 1.5) - 1).max() < 4 * np.sqrt(2 / 4096)
    near(x[:, 0], 0.0)
    near(x[:, 1], 3.0)
    assert abs(np.corrcoef(x.T)[0, 1]) < 4 / np.sqrt(4096)


@pytest.mark.slow
@pytest.mark.parametrize("method", [af.Layers(0.1, af.layer_updates.Project()), af.Fixed(0.1)])
def test_no_noise_is_no_noise_bit_by_bit(method):
    plain, still = (
        kit.frames(af.Attention(4.0), TWELVE, 2.0, save=4, method=method, noise=noise)
        for noise in (None, af.Brownian(0.0))
    )
    assert np.array_equal(plain, still)


class Remembering(InMemory):
    """A sink that remembers its checkpoints."""

    def __init__(self):
        super().__init__()
        self.checkpoints = []

    def commit(self, start, rows, checkpoint):
        super().commit(start, rows, checkpoint)
        self.checkpoints.append(checkpoint)


@graded("method", [af.Layers(0.05), af.Fixed(0.03), pytest.param(Heun(0.03), marks=pytest.mark.slow)])
def test_the_seed_fixes_the_path(method):
    """Whatever the chunk, alone or in a batch, in one go or from a checkpoint; another seed is another path."""

    def frames(seed, chunk, sink=None, tokens=TWELVE):
        noise = af.Brownian(0.2, seed=seed)
        return kit.frames(
            Pull(np.asarray(1.0)), tokens, 2.0, save=20, method=method, noise=noise, chunk=chunk, sink=sink
        )  # fmt: skip

    sink = Remembering()
    whole = frames(3, 4, sink)
    assert np.array_equal(whole, frames(3, 4))
    before = sink.end(sink.checkpoints[-1], {}, {}, True)
    assert np.array_equal(whole, frames(3, 4, InMemory(before, sink.checkpoints[1])))
    steps = np.linalg.norm(np.diff(whole, axis=0), axis=-1)
    assert len(np.unique(np.round(steps, 9))) == steps.size  # no step repeats the noise of another
    if isinstance(method, Heun):
        return  # the rest is the same code, and takes long to compile
    assert np.array_equal(whole, frames(3, 16))
    tokens = af.stack("seed", [2, 3], [TWELVE, TWELVE])  # the seeds of tokens and noise are matched
    both = frames(af.Along("seed", [2, 3]), 4, tokens=tokens)
    assert both.shape == (2, *whole.shape)
    np.testing.assert_allclose(both[1], whole, atol=1e-13)  # the same path, to rounding
    gap = np.linalg.norm(both[0, -1] - whole[-1], axis=-1)
    assert np.median(gap) > 0.3


@graded("method", [af.Fixed(0.05), pytest.param(Heun(0.05), marks=pytest.mark.slow)])
def test_float32_stays_float32_on_the_sphere(method):
    x = end(method, 0.2, 0.5, strength=1.0, tokens=TWELVE.astype(np.float32), seed=0)
    assert x.dtype == np.float32
    assert np.abs(np.linalg.norm(x, axis=-1) - 1).max() < 4e-7
    assert np.linalg.norm(x - TWELVE.positions, axis=-1).min() > 1e-3


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: af.Brownian(-1.0), "`kappa` is -1"),
        (lambda: af.Brownian(0.1, seed=0.5), "`seed` is 0.5"),
        (lambda: af.Brownian(0.1, seed=af.Along("seed", [0, 1.5])), "`seed`"),
        (lambda: end(af.Adaptive(), 0.1, 1.0, tokens=TWELVE, seed=0), "Adaptive.*noise.*Layers"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises(InvalidInput, match=words):
        call()


def test_a_seed_in_the_place_of_a_flag_is_refused():
    with pytest.raises(InvalidInput, match="`common` is 3; give True or False"):
        af.Brownian(0.1, 3)
