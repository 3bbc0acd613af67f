"""Slow motion: against 60 and more digits, the closed form near coincidence, and along a flow of three caps."""

import itertools

import mpmath as mp
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.observe import slow_motion, slow_motion_along
from tests.conftest import rotation

EPS = np.finfo(float).eps
LABELS = np.array([0, 0, 0, 4, 4, 2, 2, 2, 2, 0])


def groups(size, seed=0, centres=((1, 0, 0), (0.3, 0.9, 0.1), (-0.2, 0.1, 1.0))):
    """Ten tokens of random masses about three centres, named 0, 4 and 2."""
    rng = np.random.default_rng(seed)
    x = np.array(centres, float)[LABELS % 3] + size * rng.standard_normal((10, 3))
    return af.from_array(x, masses=rng.uniform(0.5, 2, 10), normalise=True)


def circle(angles):
    return af.Tokens(np.stack([np.cos(angles), np.sin(angles)], axis=1))


def exact(tokens, labels, beta):
    """Distance, gap, gradient and slope from their definitions, all differences taken in many digits."""
    n, d = tokens.positions.shape

    def dot(a, b):
        return mp.fsum(p * q for p, q in zip(a, b, strict=True))

    def unit(a):
        norm = mp.sqrt(dot(a, a))
        return [p / norm for p in a]

    with mp.workdps(
        60 + int(2 * beta)
    ):  # self terms leave 10^-digits after projection, the slope is e^(-2 beta) or more
        b, m = mp.mpf(beta), [mp.mpf(float(v)) for v in tokens.masses]
        x = [unit([mp.mpf(float(p)) for p in row]) for row in tokens.positions]
        centre = {
            g: unit([mp.fsum(m[i] * x[i][k] for i in np.flatnonzero(labels == g)) for k in range(d)])
            for g in set(labels)
        }
        v = [centre[g] for g in labels]

        def energy(y):
            return -mp.fsum(m[i] * m[j] * mp.exp(b * (dot(y[i], y[j]) - 1)) for i in range(n) for j in range(n)) / (
                2 * b
            )

        def gradient(y):
            total = mp.mpf(0)
            for i in range(n):
                weight = [m[j] * mp.exp(b * (dot(y[i], y[j]) - 1)) for j in range(n)]
                drive = [mp.fsum(weight[j] * y[j][k] for j in range(n)) for k in range(d)]
                total += m[i] * (dot(drive, drive) - dot(drive, y[i]) ** 2)
            return mp.sqrt(total)

        square = mp.fsum(m[i] * mp.fsum((p - q) ** 2 for p, q in zip(x[i], v[i], strict=True)) for i in range(n))
        return [float(mp.sqrt(square)), float(energy(x) - energy(v)), float(gradient(x)), float(gradient(v))]


@pytest.mark.parametrize(
    ("beta", "size"), [(1.0, 0.3), (1.0, 1e-8), (5.0, 1e-2), (25.0, 0.3), (25.0, 1e-8), (300.0, 1e-8)]
)
def test_numbers_are_exact_at_every_diameter(beta, size):
    tokens = groups(size)
    found = slow_motion(tokens, LABELS, beta)
    # weights carry the rounding of beta u, sums of 100 pairs theirs; points that are EPS off the sphere change
    # differences of length `size` by (EPS/size)^2, as it is across them. e^(-beta U) with U <= 2 and its first power
    tolerance = 64 * EPS + 4 * EPS * beta + (EPS / size) ** 2
    np.testing.assert_allclose(found[:4], exact(tokens, LABELS, beta), rtol=tolerance)
    assert found.lower == pytest.approx(2 * found.gap / found.distance**2, rel=8 * EPS)
    assert found.upper == pytest.approx(found.gradient**2 / (2 * found.gap), rel=8 * EPS)
    assert found.lightest == pytest.approx(min(tokens.masses[g == LABELS].sum() for g in LABELS), rel=8 * EPS)


def test_one_group_near_coincidence():
    """gap = distance^2/2 and |grad|^2 = distance^2 for the mass 1, off by O(beta diameter^2), and no slope."""
    rng, beta = np.random.default_rng(1), 10.0
    errors = []
    for size in (1e-2, 1e-3, 1e-8):
        x = np.array([1.0, 0, 0, 0]) + size * rng.standard_normal((20, 4))
        tokens = af.from_array(x, masses=rng.random(20), normalise=True)
        found = slow_motion(tokens, np.zeros(20, int), beta)
        assert found.slope == 0
        assert found.lightest == pytest.approx(1, rel=4 * EPS)
        diameter2 = ((tokens.positions[:, None] - tokens.positions) ** 2).sum(axis=-1).max()
        errors.append([found.lower - 1, found.upper - 1])
        # 1 - e^(-z) lies between z (1 - z/2) and z for z = beta |x-y|^2/2; the gradient feels z twice, and is projected
        assert np.all(np.abs(errors[-1]) < 2 * (beta + 1) * diameter2 + 32 * EPS)
    # not better than that either: the error is of second order
    assert np.all(np.abs(errors[0]) > 10 * beta * 1e-6)


@pytest.mark.parametrize("size", [1e-3, 1e-6])
def test_several_groups_near_coincidence(size):
    """Closed forms by groups, and both ratios between the lightest and the heaviest mass."""
    tokens, beta = groups(size, seed=3), 60.0
    x, m = np.asarray(tokens.positions), np.asarray(tokens.masses)
    gap = square = gradient = 0.0
    masses = []
    for g in np.unique(LABELS):
        of = g == LABELS
        total = m[of].sum()
        own = np.einsum("i,j,ijd->", m[of], m[of], (x[of][:, None] - x[of]) ** 2) / (
            2 * total
        )  # |u - v|^2 of the group
        masses, square = [*masses, total], square + own
        gap, gradient = gap + total * own / 2, gradient + total**2 * own
    found = slow_motion(tokens, LABELS, beta)
    # the tide of the other groups, e^(-beta u) beta^2, is below 1e-13 here, and the slope below 1e-15
    tolerance = 2 * (beta + 1) * (8 * size) ** 2 + 1e-12
    np.testing.assert_allclose(
        [found.distance**2, found.gap, found.gradient**2], [square, gap, gradient], rtol=tolerance
    )
    for ratio in (found.lower, found.upper):
        assert min(masses) * (1 - tolerance) < ratio < max(masses) * (1 + tolerance)
    # in the clock USA0 itself the hypotheses fail
    assert found.distance**2 / 2 > found.gap > found.gradient**2 / 2


def test_coincident_groups():
    """At v itself everything but the slope vanishes; two groups have the slope of the two-body force."""
    angle, beta, m = 1.1, 9.0, 0.3
    x = np.array([[1, 0], [1, 0], [np.cos(angle), np.sin(angle)]])
    found = slow_motion(af.Tokens(x, [m / 2, m / 2, 1 - m]), [7, 7, 1], beta)
    assert (found.distance, found.gap) == (0, 0)
    assert np.isnan(found.lower)
    assert np.isnan(found.upper)
    force = np.exp(-beta * (1 - np.cos(angle))) * np.sin(angle)
    expected = force * np.sqrt(m * (1 - m) ** 2 + (1 - m) * m**2)
    assert found.slope == pytest.approx(expected, rel=64 * EPS)
    assert found.gradient == pytest.approx(expected, rel=64 * EPS)
    # slopes far below the root of the smallest number
    far = slow_motion(af.Tokens(x, [m / 2, m / 2, 1 - m]), [7, 7, 1], 1000.0)
    assert np.log(far.slope) == pytest.approx(np.log(expected) - 991 * (1 - np.cos(angle)), rel=1e-14)


def test_rotations_permutations_names_and_blocks(faults):
    tokens, beta = groups(0.2, seed=5), 7.0
    found = slow_motion(tokens, LABELS, beta)
    order = np.random.default_rng(0).permutation(10)
    moved = af.Tokens(np.asarray(tokens.positions)[order] @ rotation(3), np.asarray(tokens.masses)[order])
    np.testing.assert_allclose(slow_motion(moved, -3 * LABELS[order], beta), found, rtol=256 * EPS)
    faults.replace("largest block of slow motion", 60)  # two rows of 10 tokens in 3 dimensions, and six
    np.testing.assert_allclose(slow_motion(tokens, LABELS, beta), found, rtol=64 * EPS)


@pytest.mark.parametrize("size", [0.1, 1e-12])
def test_massless_tokens_are_not_felt(size):
    tokens = groups(size)
    bare = slow_motion(tokens, LABELS, 5.0)
    x = np.vstack([tokens.positions, [[0.0, 0.6, 0.8]]])
    more = slow_motion(af.Tokens(x, np.append(tokens.masses, 0.0)), np.append(LABELS, 4), 5.0)
    np.testing.assert_allclose(more, bare, rtol=64 * EPS)


def test_along_a_flow_of_three_caps():
    beta, labels, c = 25.0, np.repeat(np.arange(3), 10), 0.2
    tokens = af.tokens.caps(af.Sphere(3), centres=np.eye(3), n=30, radius=0.03, masses=[0.5, 0.3, c])
    field, times = af.Attention(beta, normaliser=af.Unnormalised()), np.linspace(0, 200, 6)
    frames = [tokens]
    for start, end in itertools.pairwise(times):
        frames.append(af.advance(field, frames[-1], float(start), float(end), af.Fixed(0.1)))
    x = np.array([frame.positions for frame in frames])
    found = slow_motion_along(x, times, tokens.masses, labels, beta)
    assert found.attrs["lightest"] == pytest.approx(c, rel=8 * EPS)
    resolved = found["resolved"].values
    np.testing.assert_array_equal(resolved, [True] * 4 + [False] * 2)  # .02 e^(-t/5) and 6e-14: until t = 133
    # hypotheses, for the clock slowed down by c: 1 - e^(-z) and the field are off by z = beta |x-y|^2/2 within groups,
    # by sqrt(2) z and its double; e^(-25) beta^2 of tide
    apart = np.where(labels[:, None] == labels, ((x[:, :, None] - x[:, None]) ** 2).sum(axis=-1), 0).max(axis=(1, 2))
    lowest = c * (1 - 2 * (beta + 1) * apart[resolved] - 1e-8)
    assert np.all(found["lower"].values[resolved] >= lowest)
    assert np.all(found["upper"].values[resolved] >= lowest)
    assert found.attrs["rate"] >= lowest.min()
    # without it they fail
    assert np.all(found["lower"].values[resolved] < 1)
    assert found["upper"].values[0] < 1
    # conclusion: below the bound at all times, rounding too; and the bound is of the right rate until its floor
    assert np.all(found["distance"] + np.sqrt(np.maximum(found["gap"], 0)) <= found["bound"])
    fall = -np.diff(np.log(found["distance"].values[resolved])) / np.diff(times[resolved])
    assert fall[-1] == pytest.approx(c, abs=1e-5)  # the lightest group is the last: the next is e^(-16) of it by then
    assert found["bound"].values[1] / found["bound"].values[0] == pytest.approx(
        np.exp(-0.9 * found.attrs["rate"] * times[1]), rel=1e-3
    )
    floor = found["slope"].values.max() / np.sqrt(8 * 0.1 * 0.9 * found.attrs["rate"])
    late = slow_motion_along(x[-2:], [0.0, 1e6], tokens.masses, labels, beta, rate=c)
    assert late["bound"].values[1] == pytest.approx(floor * (1 + np.sqrt(10)), rel=0.05)
    # nothing resolved, no rate to be had
    assert np.isnan(slow_motion_along(x[-1:], [0.0], tokens.masses, labels, beta)["bound"].values).all()


def test_an_equilibrium_has_no_rate_and_no_bound():
    """Four tokens on the axes do not move, by symmetry to the last bit, although their energy is above that of pairs."""
    x = np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1]])
    motion = slow_motion_along([x], [0.0], np.full(4, 0.25), [0, 0, 1, 1], 2.0)
    assert motion["gap"].values[0] > 0.01
    assert motion.attrs["rate"] == 0
    assert np.isnan(motion["bound"].values).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: slow_motion(t, LABELS[:-1], 1.0), "`labels` has shape"),
        (lambda t: slow_motion(t, LABELS / 2, 1.0), "`labels` has shape"),
        (lambda t: slow_motion(circle([0, 0, 0, 2.0]), [0] * 4, 1.0), "`labels` puts token 3"),
        (lambda t: slow_motion(t, LABELS, 0.0), "`beta` is"),
        (lambda t: slow_motion(t, LABELS, np.inf), "`beta` is"),
        (lambda t: slow_motion(af.uniform(af.Sphere(3), n=10, seed=[0, 1]), LABELS, 1.0), "batch dimensions"),
        (lambda t: slow_motion(af.Tokens(np.ones((10, 3)), space=af.Euclidean(3)), LABELS, 1.0), "live on"),
        (
            lambda t: slow_motion(af.Tokens(t.positions, 1.0 * (LABELS != 4)), LABELS, 1.0),
            "token 3 in `labels` has no mass",
        ),
        (lambda t: slow_motion(af.Tokens([[1.0, 0], [-1.0, 0]]), [0, 0], 1.0), "token 0 in `labels` has its mean"),
        (lambda t: slow_motion_along(t.positions, [0.0], t.masses, LABELS, 1.0), "`positions` has shape"),
        (lambda t: slow_motion_along([t.positions] * 2, [0.0, 0.0], t.masses, LABELS, 1.0), "ascending"),
        (lambda t: slow_motion_along([t.positions], [np.nan], t.masses, LABELS, 1.0), "`times` of shape"),
        (lambda t: slow_motion_along([t.positions], [0.0], t.masses, LABELS, 1.0, slack=1.0), "`slack` is"),
        (lambda t: slow_motion_along([t.positions], [0.0], t.masses, LABELS, 1.0, rate=-1.0), "`rate` is"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(InvalidInput, match=message):
        call(groups(0.01))
