"""Flows, noise, flow maps, stability, clusters and runs on every space, against plain NumPy in intrinsic coordinates.

All compact spaces here are x = scale H y, with y in a product of round spheres (`blocks`) and H orthonormal columns.
"""

import functools

import jax
import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.integrate import quad, solve_ivp
from scipy.spatial.distance import squareform
from scipy.stats import norm

import attnflow as af
from attnflow import stability
from attnflow.errors import InvalidInput
from attnflow.flows.noises import Brownian
from attnflow.spaces import CentredSphere, Ellipsoid, Euclidean, Product, Sphere, Torus
from tests.marks import graded
from tests.observe.test_clusters import Links, by_cells

GAIN = np.array([0.7, 1.3, 1.0, 1.1])
HYPERPLANE = np.linalg.svd(np.ones((1, 4)))[2][1:].T
ROUND = {  # space, scale, H, sizes of the blocks
    "torus": (Torus(2), np.ones(4), np.eye(4), (2, 2)),
    "product": (Product(Sphere(3), Torus(1)), np.ones(5), np.eye(5), (3, 2)),
    "ellipsoid": (Ellipsoid(GAIN[:3], 1.2), 1.2 * GAIN[:3], np.eye(3), (3,)),
    "centred": (CentredSphere(4, GAIN), GAIN, HYPERPLANE, (3,)),
}
BETA = 1.5


def blockwise(y, blocks, function):
    return np.concatenate([function(part) for part in np.split(y, np.cumsum(blocks)[:-1], axis=-1)], axis=-1)


def unit(y):
    return y / np.linalg.norm(y, axis=-1, keepdims=True)


class Plain:
    """Softmax attention on a space of `ROUND`, in NumPy."""

    def __init__(self, name):
        self.space, self.scale, self.h, self.blocks = ROUND[name]

    def lift(self, y):
        return self.scale * (y @ self.h.T)

    def lower(self, x):
        return (x / self.scale) @ self.h

    def retract(self, y):
        return blockwise(y, self.blocks, unit)

    def drive(self, y, tokens):
        x, mu = self.lift(y), self.lift(tokens)
        weights = np.exp(BETA * (x @ mu.T))
        return self.lower(weights / weights.sum(axis=1, keepdims=True) @ mu)

    def velocity(self, y, tokens):
        v, inside = self.drive(y, tokens), np.zeros_like(y)
        for end, size in zip(np.cumsum(self.blocks), self.blocks, strict=True):
            part = slice(end - size, end)
            inside[:, part] = np.sum(v[:, part] * y[:, part], axis=1, keepdims=True) * y[:, part]
        return v - inside

    def flow(self, y, tokens, until, steps):
        """RK4 of points and tokens."""
        n, h, both = len(y), until / steps, np.concatenate([y, tokens])

        def rate(z):
            return self.velocity(z, z[n:])

        for _ in range(steps):
            a = rate(both)
            b = rate(both + h / 2 * a)
            c = rate(both + h / 2 * b)
            both = self.retract(both + h / 6 * (a + 2 * b + 2 * c + rate(both + h * c)))
        return both[:n]

    def layers(self, y, tokens, until, steps):
        n, both = len(y), np.concatenate([y, tokens])
        for _ in range(steps):
            both = self.retract(both + until / steps * self.drive(both, both[n:]))
        return both[:n]

    def chart(self, y):
        """Coordinates of constant density: angles of circles, (height, longitude) of spheres."""
        return blockwise(y, self.blocks, lambda p: np.stack(
            [*([p[..., 2]] if p.shape[-1] == 3 else []), np.arctan2(p[..., 1], p[..., 0])], axis=-1))  # fmt: skip

    def point(self, u):
        parts, at = [], 0
        for size in self.blocks:
            angle = u[..., at + size - 2]
            circle = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
            z = u[..., at, None]
            parts.append(circle if size == 2 else np.concatenate([np.sqrt(1 - z**2) * circle, z], axis=-1))
            at += size - 1
        return np.concatenate(parts, axis=-1)


def start(name, n=9, points=4):
    plain, rng = Plain(name), np.random.default_rng(5)
    raw = rng.standard_normal((n + points, sum(plain.blocks)))
    if plain.blocks[0] == 3:
        raw[n:, 2] *= 0.3  # away from the poles of the chart
    y = plain.retract(raw)
    return plain, y[:n], y[n:]


@graded("name", ROUND, slow=1)
@pytest.mark.parametrize("method", [af.Fixed(0.02), af.Layers(0.25)], ids=["fixed", "layers"])
def test_flow_maps_have_the_determinants_of_intrinsic_coordinates(name, method):
    """Against central differences of a flow in plain NumPy, in coordinates in which the reference measure is flat."""
    plain, tokens, points = start(name)
    phi = af.flow_map(af.Attention(BETA), af.Tokens(plain.lift(tokens), space=plain.space), 1.0, method=method)
    end, logdet = phi.push(plain.lift(points))
    move, steps = (plain.layers, 4) if isinstance(method, af.Layers) else (plain.flow, 100)
    np.testing.assert_allclose(plain.lower(end), move(points, tokens, 1.0, steps), atol=1e-8)  # RK4: h^4 = 1.6e-7, /120
    u, h = plain.chart(points), 1e-5
    columns = []
    for k in range(u.shape[1]):
        ends = [plain.chart(move(plain.point(u + s * h * np.eye(u.shape[1])[k]), tokens, 1.0, steps)) for s in (1, -1)]
        columns.append((np.mod(ends[0] - ends[1] + 1, 2 * np.pi) - 1) / (2 * h))
    numeric = np.linalg.slogdet(np.stack(columns, axis=-1))[1]
    # h^2 = 1e-10 times third derivatives, 1e4 near the poles of the chart; rounding 1e-15/h = 1e-10
    np.testing.assert_allclose(logdet, numeric, atol=2e-6)
    assert np.abs(logdet).max() > 0.1


@pytest.mark.parametrize(
    "name", [name if name == "product" else pytest.param(name, marks=pytest.mark.slow) for name in ROUND]
)
def test_inverse_maps(name):
    plain, tokens, points = start(name)
    method = af.Fixed(0.02)  # as above: the programs are the same
    phi = af.flow_map(af.Attention(BETA), af.Tokens(plain.lift(tokens), space=plain.space), 1.0, method=method)
    end, logdet = phi.push(plain.lift(points))
    back, undone = phi.inverse().push(end)
    # RK4 there and back: (0.02)^4 e^1
    np.testing.assert_allclose(back, plain.lift(points), atol=4e-7)
    np.testing.assert_allclose(undone, -logdet, atol=2e-6)


@pytest.mark.slow
def test_a_torus_flow_is_that_of_its_angles():
    """a_i' = sum_j A_ij sin(b_j - a_i) on every circle, A from e^(beta sum cos): solved by SciPy. Masses, float32, batch."""
    torus, rng = Torus(2), np.random.default_rng(0)
    angles, masses = rng.uniform(-np.pi, np.pi, (10, 2)), rng.random(10) + 0.2

    def rate(t, a, beta):
        a = a.reshape(10, 2)
        apart = a[None] - a[:, None]
        weights = masses * np.exp(beta * np.cos(apart).sum(-1))
        weights /= weights.sum(axis=1, keepdims=True)
        return np.einsum("ij,ijk->ik", weights, np.sin(apart)).ravel()

    tokens = af.Tokens(torus.at(angles), masses, space=torus)
    betas = [1.0, 4.0]
    flow = af.solve(
        af.Attention(af.Along("beta", betas)), tokens, 3.0, save=af.saving.At([1.0, 3.0]), keep=["positions"]
    )
    for k, beta in enumerate(betas):
        exact = solve_ivp(rate, (0, 3), angles.ravel(), args=(beta,), rtol=1e-11, atol=1e-12, t_eval=[1.0, 3.0])
        found = flow.positions.values[k, 1:] if flow.dataset.sizes["time"] == 3 else flow.positions.values[k]
        np.testing.assert_allclose(found, torus.at(exact.y.T.reshape(2, 10, 2)), atol=1e-6)  # rtol 1e-8, e^(4)
    assert torus.defect(flow.positions.values).max() < 8e-16
    single = af.solve(
        af.Attention(4.0), tokens.astype(np.float32), 3.0, save=[1.0, 3.0], method=af.Fixed(0.05), keep=["positions"]
    )
    assert single.positions.dtype == np.float32
    np.testing.assert_allclose(single.positions.values[-1], flow.positions.values[1, -1], atol=1e-4)


def test_a_torus_run_goes_on_where_it_ended():
    tokens, times = af.uniform(Torus(2), n=8, seed=0), np.linspace(0.5, 4.0, 8)
    noise = Brownian(0.1, seed=3)
    settings = {"method": af.Layers(0.125, af.layer_updates.ProjectRenormalise()), "noise": noise}
    whole = af.solve(af.Attention(3.0), tokens, 4.0, save=af.saving.At(times), **settings)
    part = af.solve(af.Attention(3.0), tokens, 2.0, save=af.saving.At(times[:4]), **settings)
    rest = part.continued(4.0, save=af.saving.At(times[4:]))
    np.testing.assert_array_equal(rest.positions.values, whole.positions.values)


@pytest.mark.parametrize("space", [Torus(2), Product(Euclidean(2), Torus(1))], ids=str)
def test_spectra_have_one_eigenvalue_for_each_direction(space):
    """Against differences of the velocity in flat coordinates: angles, and those of R^2."""
    rng, n, beta = np.random.default_rng(2), 5, 1.3
    angular = space.dim - (space.dim - space.dimension) * 2  # how many coordinates are not angles
    u = rng.uniform(-1.0, 1.0, (n, space.dimension))

    def point(u):
        angles = u[:, angular:]
        circles = np.stack([np.cos(angles), np.sin(angles)], axis=-1).reshape(n, -1)
        return np.concatenate([u[:, :angular], circles], axis=1)

    def rate(u):
        u = u.reshape(n, -1)
        x = point(u)
        weights = np.exp(beta * x @ x.T)
        drive = weights / weights.sum(axis=1, keepdims=True) @ x
        pairs, along = x[:, angular:].reshape(n, -1, 2), drive[:, angular:].reshape(n, -1, 2)
        turns = pairs[..., 0] * along[..., 1] - pairs[..., 1] * along[..., 0]
        return np.concatenate([drive[:, :angular], turns], axis=1).ravel()

    h, size = 1e-5, u.size
    matrix = np.stack([(rate(u.ravel() + h * e) - rate(u.ravel() - h * e)) / (2 * h) for e in np.eye(size)], axis=1)
    found = stability.spectrum(af.Attention(beta), af.Tokens(point(u), space=space))
    assert found.eigenvalues.shape == (n * space.dimension,)
    assert found.vectors.shape == (size, n, space.dim)
    expected = np.linalg.eigvals(matrix)
    gaps = np.abs(np.sort_complex(found.eigenvalues) - np.sort_complex(expected))
    assert gaps.max() < 1e-7  # h^2 = 1e-10 times third derivatives, times the condition of the eigenvectors


def test_consensus_on_a_torus_is_stable_and_turning_it_is_neutral():
    consensus = stability.spectrum(
        af.Attention(3.0), af.Tokens(np.tile(Torus(2).at([0.3, -2.0]), (4, 1)), space=Torus(2))
    )
    # every token is drawn to the mean of the others: -1 for what differs from it, 0 for the mean, on each circle
    np.testing.assert_allclose(np.sort(consensus.eigenvalues.real), [-1.0] * 6 + [0.0] * 2, atol=1e-12)
    assert (consensus.index, consensus.nullity) == (0, 2)


def multiplier(degree, size):
    """E cos(degree angle) of a step on the circle: the angle is atan(sqrt(size) z)."""
    return quad(lambda z: np.cos(degree * np.arctan(np.sqrt(size) * z)) * norm.pdf(z), -12, 12, epsabs=1e-13)[0]


def sphere_multiplier(legendre, size):
    """E P_l(cos angle) of a step on S^2: |sqrt(size) xi|^2 / size is exponential with mean 2."""
    return quad(lambda r: legendre(1 / np.sqrt(1 + size * r)) * np.exp(-r / 2) / 2, 0, 200, epsabs=1e-13)[0]


def rest(dim):
    return af.Perceptron(np.zeros((1, dim)), np.zeros(1), np.zeros((dim, 1)), activation="tanh")


LEVEL = 4.0
"""Standard errors that a mean may be off: one miss in 16,000."""


def near(values, expected, slack):
    error = values.std() / np.sqrt(values.size)
    assert abs(values.mean() - expected) < LEVEL * error + slack, (values.mean(), expected, error, slack)


@graded("name", ["torus", "product"])
def test_brownian_motion(name):
    """Harmonics decay at their eigenvalues: e^(-kappa k^2 t) on a circle, e^(-kappa k (k+1) t) on S^2; factors are independent.

    A step multiplies a harmonic by a known number, so the error of the scheme is known: it is the slack.
    """
    kappa, until, steps = 0.7, 0.4, 40
    space = ROUND[name][0]
    first = Torus(2).at([0.0, 0.0]) if name == "torus" else np.array([0.0, 0, 1, 1, 0])
    tokens = af.Tokens(np.tile(first, (2048, 1)), space=space)
    noise, method = (
        Brownian(kappa, seed=af.Along("seed", range(6))),
        af.Layers(until / steps, af.layer_updates.ProjectRenormalise()),
    )
    flow = af.solve(
        rest(space.dim), tokens, until, save=af.saving.Evenly(1), method=method, noise=noise, keep=("positions",)
    )
    x = flow.positions.values[:, -1]
    assert space.defect(x).max() < 1e-15 * 4
    size = 2 * kappa * until / steps
    if name == "torus":
        one = {k: np.cos(k * Torus(2).angles(x)[..., 0]) for k in (1, 2)}
        rates, factors = {1: 1.0, 2: 4.0}, {k: multiplier(k, size) ** steps for k in (1, 2)}
    else:
        legendre = {1: lambda z: z, 2: lambda z: (3 * z**2 - 1) / 2}
        one = {k: legendre[k](x[..., 2]) for k in (1, 2)}
        rates, factors = {1: 2.0, 2: 6.0}, {k: sphere_multiplier(legendre[k], size) ** steps for k in (1, 2)}
    other, circle = x[..., -2], multiplier(1, size) ** steps
    near(other, np.exp(-kappa * until), abs(circle - np.exp(-kappa * until)))
    near(x[..., -1], 0.0, 0.0)
    for k in (1, 2):
        exact = np.exp(-kappa * rates[k] * until)
        slack = abs(factors[k] - exact)
        assert slack < 0.02
        near(one[k], exact, slack)
        near(one[k] * other, exact * np.exp(-kappa * until), slack + abs(circle - np.exp(-kappa * until)))


def test_noise_is_refused_where_it_is_not_brownian():
    space = Product(Torus(1), Ellipsoid(GAIN))
    with pytest.raises(InvalidInput, match="orthogonal projection"):
        af.solve(af.Attention(1.0), af.uniform(space, n=4), 1.0, noise=Brownian(0.1))


CLUSTERED = [Torus(2), Product(Sphere(2), Torus(1)), Ellipsoid((0.5, 2.0, 1.0)), Torus(4)]


@functools.cache
def linked(which):
    """(positions, links) of all tokens and of every second one: 600 around 8 centres on both sides of the seam."""
    space, rng = CLUSTERED[which], np.random.default_rng(1)
    centres = space.sample(rng, 8)
    centres[0] = np.asarray(space.retract(np.tile([-1.0, 1e-3], space.dim)[: space.dim]))
    x = np.asarray(af.tokens.clustered(space, centres=centres, n=600, spread=0.1, seed=2).positions)
    matrix = af.in_float64(jax.jit(lambda x: space.distance(x[:, None], x[None])))(x)
    matrix = (matrix + matrix.T) / 2 * (1 - np.eye(len(x)))
    return [(x[::k], linkage(squareform(matrix[::k, ::k]), "single")) for k in (1, 2)]


@graded("which", range(len(CLUSTERED)), ids=[str(space) for space in CLUSTERED])
@pytest.mark.parametrize("scale", [0.02, 0.15, 0.6, 3.5])
def test_clusters_are_those_of_single_linkage(which, scale):
    """By the distance of the space, in both searches: cells for more than 512 tokens in low dimension, else all pairs."""
    for x, links in linked(which):
        want = fcluster(links, scale, "distance")
        found = af.observe.clusters(af.Tokens(x, space=CLUSTERED[which]), scale=scale)
        pairs = set(zip(found.labels.tolist(), want.tolist(), strict=True))
        assert len(pairs) == found.count == len(set(want.tolist()))


def test_a_cluster_across_the_seam():
    torus = Torus(2)
    offsets = np.random.default_rng(0).uniform(-0.1, 0.1, (20, 2))
    found = af.observe.clusters(af.Tokens(torus.at([np.pi, -np.pi] + offsets), space=torus), scale=0.2)
    assert found.count == 1
    assert found.condensed
    assert np.abs(np.abs(torus.angles(found.centres[0])) - np.pi).max() < 0.1
    assert found.radii[0] == pytest.approx(torus.distance(torus.at([np.pi, np.pi] + offsets), found.centres[0]).max())
    # opposite points of one circle have no mean there: the centre is a member's, finite and on the torus
    pair = af.observe.clusters(af.Tokens(torus.at([[0.0, 1.0], [np.pi, 1.0]]), space=torus), scale=4.0)
    assert pair.count == 1
    np.testing.assert_allclose(torus.distance(torus.at([0.0, 1.0]), pair.centres[0]), 0.0, atol=1e-3)


def test_cells_ask_the_space_about_doubtful_pairs():
    """Two loose groups whose nearest points are at a chord between sure and possible: only the distance decides."""
    torus, rng = Torus(2), np.random.default_rng(3)
    gap = np.array([1.0, 0.5])  # distance 1.1180, chord 1.0789, between 1.0609 and 1.0896
    x = torus.at(np.concatenate([np.zeros((300, 2)), np.tile(gap, (300, 1))]) + 1e-9 * rng.standard_normal((600, 2)))
    apart = float(np.min(torus.distance(x[:300, None], x[None, 300:])))
    for scale, count in ((apart * (1 + 1e-6), 1), (apart * (1 - 1e-6), 2)):
        sure, possible = torus.chords(scale)
        assert sure < np.linalg.norm(x[0] - x[300]) < possible
        links = Links(sure, possible, lambda a, b, s=scale: np.asarray(torus.distance(a, b)) <= s)
        assert len(set(by_cells(x, links).tolist())) == count
        assert af.observe.clusters(af.Tokens(x, space=torus), scale=scale).count == count


@pytest.mark.long
def test_the_scale_of_clusters_is_that_of_the_kernel():
    """e^(beta (<x, y> - |x|^2)) = e^(-beta |x - y|^2 / 2) wherever |x| is constant."""
    for space in (Torus(2), Product(Sphere(3), Torus(1)), CentredSphere(4)):
        flow = af.solve(af.Attention(16.0), af.uniform(space, n=4), 0.1, save=af.saving.Evenly(1), keep=["positions"])
        assert flow.scale() == 0.25
    tokens = af.uniform(Product(Euclidean(1), Torus(1)), n=4)
    flow = af.solve(af.Attention(16.0), tokens, 0.1, save=af.saving.Evenly(1), keep=["positions"])
    with pytest.raises(InvalidInput, match="`scale` is not given"):
        flow.scale()


@pytest.mark.parametrize("space", [Torus(2), Product(Euclidean(2), Torus(1)), Euclidean(2)], ids=str)
def test_starts(space):
    tokens = af.tokens.clustered(
        space, centres=space.sample(np.random.default_rng(0), 2), n=[30, 20], spread=0.01, seed=1
    )
    assert af.observe.clusters(tokens, scale=0.1).count == 2
    assert af.uniform(space, n=5, seed=[0, 1]).positions.shape == (2, 5, space.dim)
    for make in (af.tokens.caps, af.tokens.ring, af.tokens.simplex):
        with pytest.raises(InvalidInput, match=r"defined on `Sphere\(d\)` only"):
            make(space, n=3, **({"centres": np.eye(space.dim)[:1], "radius": 0.1} if make is af.tokens.caps else {}))


def test_refusals_name_the_space():
    """What holds on the unit sphere only: energies, fast sums, long times."""
    tokens = af.uniform(Torus(2), n=6, seed=0)
    for call, words in (
        (lambda: af.observe.energy(tokens, 1.0), "defined on a sphere"),
        (lambda: af.solve_long(af.Attention(4.0), tokens), "Torus"),
        (lambda: stability.energy_hessian(tokens, 1.0), r"Torus\(circles=2\)"),
    ):
        with pytest.raises(InvalidInput, match=words):
            call()
    for made in (af.sums.Tiled(bounded=True), af.sums.Cutoff(1e-6), af.sums.Harmonics(1e-3, 16, 4)):
        with pytest.raises(InvalidInput, match=r"on Torus\(circles=2\)"):
            af.Attention(2.0, sum=made).check(tokens)
    # weights beyond e^(beta (d - 1)) = e^(1000): tiles divide by the largest
    large = af.Attention(500.0).velocity(af.uniform(Torus(3), n=6, seed=0))
    assert np.isfinite(large).all()


def test_transport_on_a_circle_by_either_name():
    mu, nu = (af.uniform(Sphere(2), n=20, seed=seed) for seed in (0, 1))
    other = [af.Tokens(tokens.positions, space=Torus(1)) for tokens in (mu, nu)]
    assert af.transport.distance(*other) == pytest.approx(af.transport.distance(mu, nu), rel=1e-14)


@pytest.mark.slow
def test_every_pair_of_factors_flows():
    """Every factor first and second: attention on a product is attention of the joint vectors: velocities against plain NumPy."""
    factors = [Sphere(3), Torus(2), Euclidean(2), Ellipsoid(GAIN[:3]), CentredSphere(4)]
    for one, other in zip(factors, factors[1:] + factors[:1], strict=True):
        space = Product(one, other)
        tokens = af.uniform(space, n=7, seed=4)
        x = np.asarray(tokens.positions)
        weights = np.exp(BETA * x @ x.T)
        drive = weights / weights.sum(axis=1, keepdims=True) @ x
        cut = one.dim
        want = np.concatenate(
            [one.tangent(x[:, :cut], drive[:, :cut]), other.tangent(x[:, cut:], drive[:, cut:])], axis=1
        )
        np.testing.assert_allclose(af.Attention(BETA).velocity(tokens), want, atol=1e-14)
