"""Layer-norm placements: printed overlaps, decay laws, the table of arXiv:2510.22026 in NumPy, layers, rotations, norms."""

import functools

import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.integrate import solve_ivp

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.fields import Laws, PerLayer, breaks
from attnflow.fields.norms import LayerNorm, Mix, Ngpt, Peri, Post, Pre, RmsNorm, Scaled, Unit, direction
from attnflow.spaces import CentredSphere, Ellipsoid
from attnflow.theory.uniform import norm_decay, norm_overlap
from tests.conftest import rotation
from tests.kit import drive
from tests.marks import graded

EPS = np.finfo(float).eps
ALPHA, SWITCH = 0.7, 0.5
BUILD = {
    "post": lambda field: field,
    "pre": Pre,
    "peri": Peri,
    "ngpt": lambda field: Ngpt(field, ALPHA),
    "mix": lambda field: Mix(field, SWITCH),
    "ln-scaling": Scaled,
}
ON_SPHERE = ("post", "ngpt")
TABLE = {
    "post": ([0.089365, 0.230696, 0.659874, 0.998646, 1], 1.0),
    "pre": ([0.077329, 0.168810, 0.375593, 0.803124, 0.989247], 18.6118),
    "peri": ([0.146488, 0.308872, 0.576543, 0.878873, 0.990906], 20.2423),
    "ngpt": ([0.190114, 0.487100, 0.896076, 0.999722, 1], 1.0),
    "mix": ([0.089365, 0.230696, 0.566710, 0.924102, 0.996307], None),
    "ln-scaling": ([0.068829, 0.136023, 0.262872, 0.550999, 0.903508], 6.1397),
}
TIMES = (0.5, 1.0, 2.0, 5.0, 20.0)


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def across(theta, v):
    return v - np.sum(theta * v, axis=-1, keepdims=True) * theta


def softmax_average(x, masses, beta):
    weights = masses * np.exp(beta * (x @ x.T))
    return weights @ x / weights.sum(axis=1, keepdims=True)


def regulation(placement, t, r, theta, a):
    """s and dr/dt of the table, as columns."""
    size, along = np.linalg.norm(a, axis=1, keepdims=True), np.sum(theta * a, axis=1, keepdims=True)
    root = np.sqrt(1 + t)
    return {
        "post": (1.0, 0.0),
        "pre": (r, along),
        "peri": (r * size, along / size),
        "ngpt": (size / ALPHA, 0.0),
        "mix": (1.0, 0.0) if t < SWITCH else (r, along),
        "ln-scaling": (r * root, along / root),
    }[placement]


def table_rate(placement, t, x, masses, beta):
    """dx/dt = r dtheta/dt + dr/dt theta."""
    r, theta = np.linalg.norm(x, axis=1, keepdims=True), unit(x)
    a = softmax_average(theta, masses, beta)
    s, growth = regulation(placement, t, r, theta, a)
    return r * across(theta, a) / s + growth * theta


def table_layer(placement, t, h, x, masses, beta):
    """The layer maps of the table."""
    r, theta = np.linalg.norm(x, axis=1, keepdims=True), unit(x)
    a = softmax_average(theta, masses, beta)
    if placement == "post" or (placement == "mix" and t < SWITCH):
        return r * unit(theta + h * a)
    if placement == "ngpt":
        return unit(theta + h * ALPHA * (unit(a) - theta))
    return x + h * {"peri": unit(a), "ln-scaling": a / np.sqrt(1 + t)}.get(placement, a)


def generic(placement, seed=0):
    """Six tokens of R^3 in a half-space, so that |A| stays well away from 0; any radii where radii are free."""
    rng = np.random.default_rng(seed)
    theta = unit(rng.standard_normal((6, 3)) + np.array([1.5, 0, 0]))
    masses = rng.uniform(0.5, 2.0, 6)
    if placement in ON_SPHERE:
        return af.Tokens(theta, masses)
    return af.Tokens(theta * rng.uniform(0.7, 1.6, (6, 1)), masses, space=af.Euclidean(3))


def layers(field, tokens, step, until):
    """The tokens at the end of a network; one compilation per field, whatever the step and the depth."""
    flow = af.solve(field, tokens, until, save=af.saving.At((until,)), method=af.Layers(step), keep=["positions"])
    return flow.positions.values[-1]


@functools.cache
def orthonormal(placement):
    """Times, overlaps, log gaps and radii from 8 orthonormal tokens at beta = 2; nGPT for several alpha at once."""
    late = {"post": (8.0,), "ngpt": (2.5, 4.0, 8.0, 10.0, 16.0), "ln-scaling": (1e4, 1e5)}.get(placement, (1e3, 1e4))
    times = tuple(sorted(TIMES + late))
    field = af.Attention(2.0)
    if placement == "ngpt":
        field = Ngpt(field, af.Along("alpha", [0.5, 1.0, 2.0]))
    else:
        field = Mix(field) if placement == "mix" else BUILD[placement](field)
    tokens = af.Tokens(np.eye(8), space=af.Sphere(8) if placement in ON_SPHERE else af.Euclidean(8))
    flow = af.solve(
        field, tokens, times[-1], save=af.saving.At(times), method=af.Adaptive(1e-12, 1e-13), keep=["positions"]
    )
    x = flow.positions.values[..., 1:, :, :]
    theta = unit(x)
    gap = np.sum((theta[..., :1, :] - theta[..., 1:, :]) ** 2, axis=-1) / 2  # no cancellation as rho -> 1
    radius = np.linalg.norm(x, axis=-1)
    # eight interchangeable tokens stay so: rtol times some hundred steps
    assert np.ptp(gap, axis=-1).max() < 1e-9
    assert (np.ptp(radius, axis=-1) / radius[..., 0]).max() < 1e-9
    return np.asarray(times), gap[..., 0], radius[..., 0]


@graded("placement", BUILD)
def test_printed_overlaps(placement):
    """Printed to six decimals (radii to four)."""
    times, gap, radius = orthonormal(placement)
    if placement == "ngpt":
        gap, radius = gap[1], radius[1]
    at = np.searchsorted(times, TIMES)
    overlaps, last = TABLE[placement]
    np.testing.assert_allclose(1 - gap[at], overlaps, rtol=0, atol=1e-6)
    if last is not None:
        assert abs(radius[at[-1]] - last) < 6e-5


@pytest.mark.parametrize("placement", BUILD)
def test_theory_agrees_with_the_simulation(placement):
    """Both integrate to 1e-11 or better per step: 1e-9 in log(1 - rho) and log r after some hundred steps."""
    times, gap, radius = orthonormal(placement)
    for k, alpha in enumerate([0.5, 1.0, 2.0] if placement == "ngpt" else [None]):
        found, r = (gap, radius) if alpha is None else (gap[k], radius[k])
        path = norm_overlap(times, 2.0, 8, placement=placement, alpha=1.0 if alpha is None else alpha)
        np.testing.assert_allclose(1 - found, path.overlap, rtol=0, atol=2e-9)
        np.testing.assert_allclose(r, path.radius, rtol=2e-9)
        # positions carry 1e-12 absolutely, so that the distance sqrt(2 gap) of two tokens is good while it is above 1e-4
        seen = found > 1e-8
        np.testing.assert_allclose(np.log(found[seen]), path.log_gap[seen], rtol=0, atol=1e-7)


@pytest.mark.parametrize("placement", BUILD)
def test_decay_laws(placement):
    """Slopes between two late times, to 0.05.

    Algebraic: r = t + O(1) makes the slope -2 (1 + O(1/t)), t >= 1e3; LN-scaling has r = 2 sqrt(t) - 3.5 and so the
    slope -1/(1 - 1.75/sqrt(t)), which is -1.02 at t = 1e4. Exponential: the rate is 2 alpha (1 + O(gap)), from
    a gap below 2e-3.
    """
    times, gap, _ = orthonormal(placement)

    def slope(gap, start, end, clock):
        i, j = np.searchsorted(times, [start, end])
        return np.log(gap[i] / gap[j]) / (clock(end) - clock(start))

    if placement == "ngpt":
        for k, alpha in enumerate([0.5, 1.0, 2.0]):
            kind, rate = norm_decay("ngpt", alpha=alpha)
            assert kind == "exponential"
            assert rate == 2 * alpha
            assert abs(slope(gap[k], 5 / alpha, 8 / alpha, float) - rate) < 0.05
    elif placement == "post":
        assert abs(slope(gap, 5.0, 8.0, float) - 2) < 0.05
    else:
        start, end, power = (1e4, 1e5, 1) if placement == "ln-scaling" else (1e3, 1e4, 2)
        assert norm_decay(placement) == ("algebraic", power)
        assert abs(slope(gap, start, end, np.log) - power) < 0.05


@pytest.mark.parametrize("t", [0.3, 1.7])
@pytest.mark.parametrize("placement", BUILD)
def test_polar_identities(placement, t):
    """Directions and radii of generic tokens; |v| is of order 1 and a few dozen operations make it."""
    tokens = generic(placement)
    x, masses = tokens.positions, tokens.masses
    v = BUILD[placement](af.Attention(2.0)).velocity(tokens, t, at=x)
    r, theta = np.linalg.norm(x, axis=1, keepdims=True), unit(x)
    a = softmax_average(theta, masses, 2.0)
    s, growth = regulation(placement, t, r, theta, a)
    np.testing.assert_allclose(across(theta, v) / r, across(theta, a) / s, rtol=0, atol=1e-14)
    np.testing.assert_allclose(np.sum(theta * v, axis=1), np.broadcast_to(growth, (6, 1))[:, 0], rtol=0, atol=1e-14)


@graded("placement", BUILD, fast=1)
def test_layers_are_those_of_the_table(placement):
    """Three layers of step 0.4, the first two of Mix before its switch at 0.5.

    A layer makes a few eps of error and lets errors grow by 1 + h L, L = 10 (see below): 125 in all.
    """
    tokens = generic(placement)
    x = tokens.positions
    for k in range(3):
        x = table_layer(placement, 0.4 * k, 0.4, x, tokens.masses, 1.0)
    found = layers(BUILD[placement](af.Attention(1.0)), tokens, 0.4, 1.2)
    np.testing.assert_allclose(found, x, rtol=0, atol=4 * 125 * EPS)


@pytest.mark.parametrize("placement", BUILD)
def test_layers_converge_to_the_flow_at_order_one(placement):
    """The ODE of the table by SciPy (error 1e-10) against layers of step h and h/2.

    The errors are c1 h + c2 h^2 and their ratio 2 + (c2/c1) h, where c2/c1 is about the Lipschitz constant L of the
    drive: 1 + 3 beta for the softmax average of unit vectors, 1 for the projection, and twice that where A, |A| > 1/2,
    is normalised. So L = 10 at beta = 1, and the ratio is off by at most 10 h = 0.1.
    """
    tokens = generic(placement)
    masses, field = tokens.masses, BUILD[placement](af.Attention(1.0))

    def leg(x, start, end):
        def rate(t, x):  # the last stage must not look beyond the switch
            return table_rate(placement, min(t, np.nextafter(end, 0)), x.reshape(6, 3), masses, 1.0).ravel()

        return solve_ivp(rate, (start, end), x, "DOP853", rtol=1e-11, atol=1e-12).y[:, -1]

    x = leg(leg(tokens.positions.ravel(), 0.0, SWITCH), SWITCH, 1.0)
    coarse, fine = (np.linalg.norm(layers(field, tokens, h, 1.0).ravel() - x) for h in (0.01, 0.005))
    assert 1e-5 < fine < 0.05
    assert abs(coarse / fine - 2) < 0.1


@given(seed=st.integers(0, 2**31))
@settings(max_examples=5, deadline=None)
@pytest.mark.parametrize("placement", BUILD)
def test_rotations_pass_through_fifty_layers(placement, seed):
    """To T = 1 rounding errors, 20 eps a layer, grow by at most e^(L T), L = 10: 5e-9."""
    field, tokens, r = BUILD[placement](af.Attention(1.0)), generic(placement, seed), rotation(3, seed % 1000)
    assert field.laws == Laws(True, True, True, placement != "mix")
    turned = af.Tokens(tokens.positions @ r, tokens.masses, space=tokens.space)
    end = layers(field, tokens, 0.02, 1.0)
    np.testing.assert_allclose(layers(field, turned, 0.02, 1.0), end @ r, rtol=0, atol=5e-9)
    assert np.abs(end - tokens.positions).max() > 0.05


@pytest.mark.parametrize("t", [0.2, 0.7])
@graded("kind", ["rms", "rms with gain", "layer norm"])
def test_networks_norms_against_numpy(kind, t):
    rng, x = np.random.default_rng(3), generic("pre").positions
    gains, bias = rng.uniform(0.5, 1.5, (2, 3)), rng.standard_normal(3) / 3
    now = gains[0 if t < 0.5 else 1]
    rms = x / np.sqrt(np.mean(x**2, axis=1, keepdims=True))
    centred = (x - x.mean(axis=1, keepdims=True)) / x.std(axis=1, keepdims=True)
    norm, y = {
        "rms": (RmsNorm(), rms),
        "rms with gain": (RmsNorm(PerLayer(gains, 0.5)), now * rms),
        "layer norm": (LayerNorm(PerLayer(gains, 0.5), bias), now * centred + bias),
    }[kind]
    tokens = generic("pre")
    a = softmax_average(y, tokens.masses, 0.5)
    for field, expected in (
        (Pre(af.Attention(0.5), norm), a),
        (Peri(af.Attention(0.5), norm), unit(a)),
        (Scaled(af.Attention(0.5), norm), a / np.sqrt(1 + t)),
        (Mix(af.Attention(0.5), 0.6, norm), a if t > 0.6 else np.linalg.norm(x, axis=1)[:, None] * across(unit(x), a)),
    ):
        np.testing.assert_allclose(drive(field, tokens, x, t, tokens.place), expected, rtol=0, atol=1e-14)
        plain = kind == "rms"
        assert field.laws == Laws(plain, True, True, plain and not isinstance(field, Mix))
        assert np.isin(0.5, breaks(field, 1.0)) != plain


def test_gains_do_break_rotations():
    """What the laws say is so: the drive of the rotated tokens is another one."""
    tokens, r = generic("pre"), rotation(3, 5)
    turned = tokens.moved(tokens.positions @ r)
    for norm in (RmsNorm([0.5, 1.0, 2.0]), LayerNorm()):
        field = Pre(af.Attention(1.0), norm)
        one, two = (field.velocity(mu) for mu in (tokens, turned))
        assert np.abs(two - one @ r).max() > 0.1
    assert not Pre(af.Attention(1.0, value=np.eye(3))).laws.rotation  # nor what the inner field does not promise


def test_masks_and_places_reach_the_inner_field():
    tokens = generic("pre")
    field = Pre(af.Attention(2.0, mask=af.Causal()))
    assert not field.laws.exchangeable
    theta = af.Tokens(unit(tokens.positions), tokens.masses)
    expected = drive(field.field, theta)
    np.testing.assert_allclose(drive(field, tokens), expected, atol=4 * EPS)


def test_batches_of_gains_and_switches():
    gains, tokens = np.array([[1.0, 2.0, 0.5], [1.0, 1.0, 1.0]]), generic("mix")
    both = Pre(af.Attention(1.0), RmsNorm(af.Along("gain", gains))).velocity(tokens)
    for one, gain in zip(both, gains, strict=True):
        expected = Pre(af.Attention(1.0), RmsNorm(gain)).velocity(tokens)
        np.testing.assert_allclose(one, expected, rtol=0, atol=1e-15)
    mixed = Mix(af.Attention(1.0), af.Along("switch", [0.25, 0.75]))
    np.testing.assert_array_equal(breaks(mixed, 1.0), [0.25, 0.75])
    early, late = mixed.velocity(tokens, 0.5)
    np.testing.assert_allclose(early, table_rate("pre", 0.5, tokens.positions, tokens.masses, 1.0), atol=1e-14)
    np.testing.assert_allclose(late, table_rate("mix", 0.0, tokens.positions, tokens.masses, 1.0), atol=1e-14)


@graded("placement", ["pre", "peri", "mix", "ln-scaling"], fast=1)
def test_nothing_has_no_direction_and_finite_derivatives(placement):
    """A token at the origin, and an inner drive of zero (V = 0)."""
    field = BUILD[placement](af.Attention(1.0, value=np.zeros((3, 3))))
    tokens = af.Tokens(np.array([[0.0, 0, 0], [1, 2, 2]]), space=af.Euclidean(3))

    def total(x):
        return jnp.sum(field.drive(tokens.moved(x), 0.1))

    value, gradient = af.in_float64(jax.jit(jax.value_and_grad(total)))(jnp.asarray(tokens.positions))
    assert value == 0
    np.testing.assert_array_equal(gradient, 0)


def test_direction():
    x = np.array([[3.0, 4.0], [0.0, 0.0], [1e-140, 0.0]])
    np.testing.assert_allclose(af.in_float64(direction)(x), [[0.6, 0.8], [0, 0], [1, 0]], rtol=EPS)
    np.testing.assert_array_equal(af.in_float64(Unit())(0.0, x), af.in_float64(direction)(x))


@pytest.mark.slow
@pytest.mark.parametrize("centred", [False, True])
def test_layers_on_the_images_of_norms(centred):
    """Post-LN with a gain, at the radius sqrt(d) of networks: layers against the ODE in the coordinate theta.

    theta' = P_theta C(A/gain)/radius. At beta = 0.3, |x|^2 < 4.4 the Lipschitz constant is about 2 + 3 beta |x|^2 < 6.
    """
    gain = np.array([1.2, 0.8, 1.0])
    space = CentredSphere(3, gain, np.sqrt(3)) if centred else Ellipsoid(gain, np.sqrt(3))
    tokens = af.Tokens(space.sample(np.random.default_rng(1), 6), space=space)
    field = af.Attention(0.3)

    def rate(_, theta):
        theta = theta.reshape(6, 3)
        push = softmax_average(np.sqrt(3) * gain * theta, tokens.masses, 0.3) / gain
        push = push - push.mean(axis=1, keepdims=True) if centred else push
        return (across(theta, push) / np.sqrt(3)).ravel()

    start = tokens.positions / gain / np.sqrt(3)
    end = solve_ivp(rate, (0, 1), start.ravel(), "DOP853", rtol=1e-11, atol=1e-12).y[:, -1].reshape(6, 3)
    exact = np.sqrt(3) * gain * end
    coarse, fine = (np.linalg.norm(layers(field, tokens, h, 1.0) - exact) for h in (0.01, 0.005))
    assert 1e-5 < fine < 0.05
    assert abs(coarse / fine - 2) < 0.06
    flow = af.solve(field, tokens, 1.0, save=af.saving.Evenly(1), method=af.Fixed(0.02), keep=["positions"])
    assert space.defect(flow.positions.values).max() < 8 * EPS
    # RK4 errs by L (L h)^4/120 = 1e-5
    np.testing.assert_allclose(flow.positions.values[-1], exact, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t: Pre(af.Attention(1.0)).check(t), r"space=af\.Euclidean\(3\)"),
        (lambda t: Post(af.Attention(1.0)).check(t), r"Post .* space=af\.Euclidean\(3\)"),
        (lambda t: Post(Mix(af.Attention(1.0))).check(generic("pre")), "layer rule"),
        (lambda t: Peri(af.Attention(1.0)).check(t), r"Peri .* space=af\.Euclidean\(3\)"),
        (lambda t: Mix(af.Attention(1.0)).check(t), r"Mix .* space=af\.Euclidean\(3\)"),
        (lambda t: Scaled(af.Attention(1.0)).check(t), r"Scaled .* space=af\.Euclidean\(3\)"),
        (lambda t: Ngpt(af.Attention(1.0)).check(generic("pre")), r"space=af\.Sphere\(3\)"),
        (lambda t: Ngpt(af.Attention(1.0, query=np.ones((2, 5)))).check(t), "`query` has shape"),
        (lambda t: Pre(af.Attention(1.0, query=np.ones((2, 5)))).check(generic("pre")), "`query` has shape"),
        (lambda t: Pre(af.Attention(1.0), RmsNorm(np.ones(4))).check(generic("pre")), r"`gain` has shape \(4,\)"),
        (lambda t: Pre(af.Attention(1.0), LayerNorm(bias=1.0)).check(generic("pre")), r"`bias` has shape \(\)"),
        (lambda t: Pre(af.Attention(1.0), LayerNorm()).check(af.Tokens([[1.0]], space=af.Euclidean(1))), "dimension 1"),
        (lambda t: Pre(af.Attention(1.0), RmsNorm(bias=np.ones(4))).check(generic("pre")), r"`bias` has shape \(4,\)"),
        (lambda t: Pre(Mix(af.Attention(1.0))).check(generic("pre")), "layer rule"),
        (lambda t: Ngpt(af.Attention(1.0), 0.0), "`alpha` is 0"),
        (lambda t: Mix(af.Attention(1.0), -1.0), "`switch` is -1"),
    ],
)
def test_bad_input_is_refused(call, words, four):
    with pytest.raises(InvalidInput, match=words):
        call(four)


def test_a_norm_on_the_line_leaves_a_sign():
    """In R^1 there is no sphere to lie on: Pre-LN is evaluated at -1, 0 and 1, by sums for R^1."""
    mu = af.Tokens([[2.0], [-0.5], [0.0]], space=af.Euclidean(1))
    field = af.norms.Pre(af.Attention(1.5)).prepare(mu)
    s = np.array([1.0, -1.0, 0.0])
    weights = np.exp(1.5 * s[:, None] * s)
    want = (weights @ s) / weights.sum(axis=1)
    np.testing.assert_allclose(field.velocity(mu)[:, 0], want, atol=1e-15)
