"""Builders in R^d: densities on the line, triangular maps, splittings, permutations of cells."""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import beta, laplace, norm, t

from attnflow import control
from attnflow.control import Mixture, match_density_1d, permute_cells, polar, shear, split, three_cycle, triangular
from attnflow.errors import InvalidInput
from tests.marks import graded


class Normal:
    """A normal distribution that answers at once; SciPy's looks at its arguments for most of the time."""

    def __init__(self, mean, width):
        self.mean, self.width = mean, width

    def pdf(self, x):
        return np.exp(self.logpdf(x))

    def logpdf(self, x):
        return -0.5 * ((x - self.mean) / self.width) ** 2 - np.log(np.sqrt(2 * np.pi) * self.width)

    def cdf(self, x):
        return ndtr((x - self.mean) / self.width)

    def sf(self, x):
        return ndtr((self.mean - x) / self.width)

    def ppf(self, p):
        return self.mean + self.width * ndtri(p)

    def isf(self, p):
        return self.mean - self.width * ndtri(p)

    def rvs(self, size, random_state):
        return self.mean + self.width * random_state.standard_normal(size)


MIXTURE = Mixture([0.3, 0.5, 0.2], [Normal(-2.5, 0.5), Normal(0.5, 0.8), Normal(3, 0.3)])
SPAN = (-5.2, 4.6)


def test_mixture():
    p = np.array([1e-200, 1e-9, 0.2, 0.5, 0.8])
    np.testing.assert_allclose(MIXTURE.cdf(MIXTURE.ppf(p)), p, rtol=1e-9)
    np.testing.assert_allclose(MIXTURE.sf(MIXTURE.isf(p)), p, rtol=1e-9)
    x = np.linspace(-4, 4, 9)
    np.testing.assert_allclose(np.exp(MIXTURE.logpdf(x)), MIXTURE.pdf(x), rtol=1e-13)
    assert MIXTURE.rvs(5, np.random.default_rng(0)).shape == (5,)


@graded(
    ("cells", "uniform", "quantile", "optimal"),
    [(4, 4.01e-1, 6.28e-1, 3.33e-1), (16, 3.42e-2, 2.49e-2, 1.33e-2), (64, 2.27e-3, 2.29e-3, 7.16e-4)],
)
def test_reference_divergences(cells, uniform, quantile, optimal):
    """The table of theory/control.md, section 2."""
    for mesh, wanted in (("uniform", uniform), ("quantile", quantile), ("optimal", optimal)):
        match = match_density_1d(MIXTURE, cells, mesh=mesh, span=SPAN)
        np.testing.assert_allclose(match.kl, wanted, rtol=5e-3)
        assert len(match.schedule) == cells + 3
        assert match.mass_error < 1e-14
        end, _ = match.schedule.push(match.sources[:, None])
        np.testing.assert_allclose(end[:, 0], match.nodes, atol=1e-13)


def test_the_predicted_constant():
    """KL K^2 within 1 % of the leading term at K = 2048, in both directions; the mass to 1e-14."""
    for mesh, constant in (("uniform", 9.3362), ("optimal", 2.709)):
        match = match_density_1d(MIXTURE, 2048, mesh=mesh, span=SPAN)
        assert match.mass_error < 1e-14
        np.testing.assert_allclose(match.predicted * 2048**2, constant, rtol=2e-4)
        np.testing.assert_allclose([match.kl, match.reverse_kl], match.predicted, rtol=1e-2)


def test_density_of_the_schedule():
    """The log-density that the schedule gives, integrated by another rule, has the stated divergence."""
    match = match_density_1d(MIXTURE, 48, span=SPAN)
    edges = np.concatenate([[-12.0], match.nodes, [9.0]])
    x, w = np.polynomial.legendre.leggauss(40)
    at = (edges[1:] + edges[:-1])[:, None] / 2 + np.diff(edges)[:, None] / 2 * x
    made = match.schedule.log_density(at.reshape(-1, 1), lambda x: norm.logpdf(x[:, 0])).reshape(at.shape)
    weights = np.diff(edges)[:, None] / 2 * w
    np.testing.assert_allclose(np.sum(weights * np.exp(made)), 1.0, atol=1e-9)
    kl = np.sum(weights * MIXTURE.pdf(at) * (MIXTURE.logpdf(at) - made))
    np.testing.assert_allclose(kl, match.kl, rtol=1e-4)


def test_tails():
    """Finite iff the target has a second moment (normal base); the other direction is finite for all Student targets."""
    for nu in (1.2, 1.5, 2.0):
        with pytest.raises(InvalidInput, match="no finite second moment"):
            match_density_1d(t(nu), 64)
        flagged = match_density_1d(t(nu), 64, allow_infinite=True)
        assert flagged.kl == np.inf
        assert np.isfinite(flagged.reverse_kl)
    for nu in (2.2, 2.5, 4.0):
        match = match_density_1d(t(nu), 64)
        assert 0 < match.kl < 1e-2
        assert 0 < match.reverse_kl < 1e-2
    heavier = match_density_1d(t(1.5), 64, base=t(1.5))  # a base with the same tails
    assert heavier.kl < 1e-10
    bounded = match_density_1d(beta(2, 3), 64)
    assert bounded.reverse_kl == np.inf
    assert 0 < bounded.kl < 1e-3
    assert match_density_1d(norm(1, 2), 8).kl < 1e-8
    assert match_density_1d(norm(), 64, base=laplace()).kl < 1e-3


class Broken:
    """A cdf that decreases."""

    def __getattr__(self, name):
        if name == "cdf":
            return lambda x: norm.cdf(x) - 0.2 * np.exp(-8 * np.asarray(x) ** 2)
        return getattr(norm(), name)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: match_density_1d(Broken(), 200), "do not increase"),
        (lambda: match_density_1d(3.0, 8), "has no pdf"),
        (lambda: match_density_1d(norm(), 8, mesh="best"), "`mesh` is 'best'"),
        (lambda: match_density_1d(norm(), 0), "`cells` is 0"),
        (lambda: match_density_1d(norm(), 8, span=(2, 1)), "the smaller one first"),
        (lambda: match_density_1d(beta(2, 3), 8, span=(-1, 1)), "no density at|do not increase"),
        (lambda: control.monotone([0, 1], [1, 0], (1, 1)), "do not increase"),
        (lambda: Mixture([1.0], [norm(), norm()]), "a positive one for each"),
        (lambda: shear(np.sin, 8, (-1, 1), along=1), "both 1"),
        (
            lambda: triangular([norm(), None, lambda x, y: norm(y)], slabs=4, cells=8, given=2),
            r"`edges` is left out, and conditionals\[1\] is None",
        ),
        (lambda: split(np.ones((3, 2)), np.ones((3, 2)), np.ones(2), 8), "give \\(n, d\\)"),
        (lambda: split(np.ones((3, 2)), np.ones((3, 2)), np.ones(3), 8, order="random"), "`order`"),
        (lambda: permute_cells([0, 0, 1, 2]), "no permutation"),
        (lambda: permute_cells([0, 1, 2, 3]), "the identity"),
        (lambda: three_cycle((1, 1), 0, 1), "no cycle"),
        (lambda: polar(lambda x: x, lambda x: -np.ones(len(x)), 2, 2), "positive Jacobian"),
    ],
)
def test_refusals(make, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_shears():
    """The banana of theory/control.md: errors of the map fall by 4 when cells double, and the volume is kept exactly."""
    x = np.random.default_rng(0).standard_normal((20_000, 2))
    errors = []
    for cells in (4, 8, 16, 32, 64):
        schedule = shear(lambda x: 0.7 * (x**2 - 1), cells, (-4.5, 4.5))
        end, log_det = schedule.push(x)
        assert (log_det == 0).all()
        assert len(schedule) == cells + 2
        assert np.array_equal(end[:, 0], x[:, 0])
        errors.append(np.sqrt(np.mean((end[:, 1] - x[:, 1] - 0.7 * (x[:, 0] ** 2 - 1)) ** 2)))
    np.testing.assert_allclose(errors, [0.64, 0.162, 0.040, 0.0101, 0.0025], rtol=0.05)


FIRST = Mixture([0.5, 0.5], [Normal(-1.5, 0.6), Normal(1.5, 0.6)])


def second(x):
    """The distribution of x_2 given x_1."""
    return Mixture([0.5, 0.5], [Normal(np.sin(x) + 1, 0.35 + 0.025 * x**2), Normal(np.sin(x) - 1.2, 0.4)])


@pytest.mark.slow
def test_conveyor():
    """Marginals and conditionals converge: KL under samples of the target falls like 1/elements; a conditional sampler."""
    rng = np.random.default_rng(2)
    x1 = FIRST.rvs(6000, rng)
    upper = rng.random(6000) < 0.5
    noise = rng.standard_normal(6000)
    x2 = np.where(upper, np.sin(x1) + 1 + (0.35 + 0.025 * x1**2) * noise, np.sin(x1) - 1.2 + 0.4 * noise)
    log = FIRST.logpdf(x1) + np.logaddexp(
        norm.logpdf(x2, np.sin(x1) + 1, 0.35 + 0.025 * x1**2), norm.logpdf(x2, np.sin(x1) - 1.2, 0.4)
    ) + np.log(0.5)  # fmt: skip
    sizes, divergences = [], []
    for slabs, cells in ((8, 8), (32, 18)):
        schedule = triangular([FIRST, second], slabs=slabs, cells=cells)
        r = log - schedule.log_density(np.stack([x1, x2], axis=1), lambda x: norm.logpdf(x).sum(axis=1))
        sizes.append(len(schedule))
        divergences.append(np.mean(np.expm1(-r) + r))
    slope = np.log(divergences[1] / divergences[0]) / np.log(sizes[1] / sizes[0])
    assert slope < -1
    assert divergences[1] < 0.02
    sampler = triangular([None, second], slabs=32, cells=20, given=1, edges=[np.linspace(-3, 3, 31)])
    z = np.stack([np.full(4000, 0.73), norm.ppf((np.arange(4000) + 0.5) / 4000)], axis=1)
    end, _ = sampler.push(z)
    assert np.array_equal(end[:, 0], z[:, 0])
    # the cell of 0.73 is 0.2 wide
    wanted = second(0.73).ppf((np.arange(4000) + 0.5) / 4000)
    assert np.abs(np.sort(end[:, 1]) - wanted)[200:-200].mean() < 0.1


@pytest.mark.slow
def test_three_coordinates():
    """A Gaussian with correlations, cells that the builder finds: the moments of the push of a normal sample.

    The standard error of an entry is at most sqrt(2/10,000) = 0.014; a cell is at most 0.4 wide in the bulk and takes
    0.4^2/12 = 0.013 off a variance.
    """
    laws = [norm(), lambda x: Normal(0.8 * x, 0.6), lambda x, y: Normal(0.5 * x - 0.5 * y, 0.7)]
    end, _ = triangular(laws, slabs=16, cells=4).push(np.random.default_rng(3).standard_normal((10_000, 3)))
    exact = np.array([[1, 0.8, 0.1], [0.8, 1, -0.1], [0.1, -0.1, 0]])
    exact[2, 2] = 0.49 + 0.25 + 0.25 - 0.5 * 0.8
    np.testing.assert_allclose(np.cov(end.T), exact, atol=0.05)


@pytest.mark.slow
def test_splittings():
    """Orders 1/2, 1, 3/2 and 2 of the map (+- .15), for time-dependent weights too."""
    rng = np.random.default_rng(4)
    n, d = 24, 3
    w, a, b = rng.standard_normal((n, d)), rng.standard_normal((n, d)), rng.standard_normal(n)
    w *= 3 / np.sum(np.linalg.norm(w, axis=1) * np.linalg.norm(a, axis=1))
    x = rng.standard_normal((300, d))
    exact = split(w, a, b, 2**15).push(x)[0]
    counts = np.array([192, 768, 3072])
    for order, slope in (("trotter", -1), ("reshuffled", -1.5), ("strang", -2)):
        errors = []
        for count in counts:
            runs = [
                split(w, a, b, int(count), order=order, seed=s).push(x)[0] for s in range(4 if slope == -1.5 else 1)
            ]
            errors.append(np.sqrt(np.mean([np.sum((end - exact) ** 2) for end in runs])))
        assert abs(np.polyfit(np.log(counts), np.log(errors), 1)[0] - slope) < 0.15
    maurey = [
        np.sqrt(np.mean([np.sum((split(w, a, b, int(k), order="maurey", seed=s).push(x)[0] - exact) ** 2) for s in range(24)]))
        for k in (64, 1024)
    ]  # fmt: skip
    assert abs(np.log(maurey[1] / maurey[0]) / np.log(16) + 0.5) < 0.15
    slabs = np.stack([w, -w])
    np.testing.assert_allclose(split(slabs, a, b, 2**14).push(x)[0], x, atol=1e-5)  # there and back


def test_three_cycles():
    """Cores go to their places to 1e-12, the volume is kept exactly, other cells stay except for the crossing of rims."""
    side, inside = 0.25, np.random.default_rng(5).uniform(0.02, 0.98, (200, 2))
    for columns, rows in ((2, 1), (-1, 2), (1, -3)):
        schedule = three_cycle((2, 2), columns, rows, side=side, ramp=0.02)
        assert len(schedule) == 16
        cycle = [(2 - columns, 2), (2, 2), (2, 2 - rows)]
        for k, cell in enumerate(cycle):
            x = (np.array(cell) + inside) * side
            end, log_det = schedule.push(x)
            goal = (np.array(cycle[(k + 1) % 3]) + inside) * side
            np.testing.assert_allclose(end, goal, atol=1e-12)
            assert (log_det == 0).all()
        for cell in ((3, 3), (5, 2), (2, 5), (0, 0)):
            if cell not in cycle:
                x = (np.array(cell) + inside) * side
                np.testing.assert_allclose(schedule.push(x)[0], x, atol=1e-12)


@pytest.mark.parametrize("n", [2, 3, 6])
def test_permutations(n):
    rng = np.random.default_rng(n)
    centres = (np.stack(np.meshgrid(np.arange(n), np.arange(n)), axis=-1).reshape(-1, 2) + 0.5) / n
    for goal in [rng.permutation(n * n) for _ in range(4)] + [np.roll(np.arange(n * n), 1)]:
        if np.array_equal(goal, np.arange(n * n)):
            continue
        schedule = permute_cells(goal, ramp=0.02)
        end, log_det = schedule.push(centres)
        np.testing.assert_allclose(end, centres[goal], atol=1e-11)
        assert (log_det == 0).all()
        assert len(schedule) <= 16 * n * n
        np.testing.assert_allclose(schedule.inverse().push(end)[0], centres, atol=1e-11)


@pytest.mark.slow
def test_polar():
    """The map and its Jacobian together: the first rows of the table of theory/control.md, section 3.5."""

    def phi(x):
        return np.stack([x[:, 0] + 0.25 * np.sin(np.pi * x[:, 1]), x[:, 1] * (0.6 + 0.8 * x[:, 0])], axis=1)

    def jacobian(x):
        return 0.6 + 0.8 * x[:, 0] - 0.2 * np.pi * np.cos(np.pi * x[:, 1]) * x[:, 1]

    x = np.random.default_rng(6).random((20_000, 2))
    for n, m, error, density in ((2, 3, 0.0785, 0.189), (3, 3, 0.0540, 0.139)):
        match = polar(phi, jacobian, n, m)
        end, log_det = match.schedule.push(x)
        np.testing.assert_allclose(np.sqrt(np.mean(np.sum((end - phi(x)) ** 2, axis=1))), error, rtol=0.08)
        np.testing.assert_allclose(np.sqrt(np.mean((log_det - np.log(jacobian(x))) ** 2)), density, rtol=0.05)
        assert len(match.schedule) == sum(match.elements)
