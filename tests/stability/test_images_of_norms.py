"""Linearised flows on ellipsoids and centred spheres: only directions of the space count."""

import numpy as np
import pytest

import attnflow as af
from attnflow import stability
from attnflow.errors import TooLarge
from attnflow.spaces import CentredSphere, Ellipsoid
from tests.marks import graded

GAIN = np.array([0.6, 1.0, 1.7])
BETA = 1.3
MASSES = np.array([0.2, 0.3, 0.5])
FIELDS = {"softmax": af.Softmax(), "unnormalised": af.Unnormalised()}


def numeric(space, normaliser, theta, masses, value, h=1e-5):
    """The Jacobian in charts u -> theta = N(theta_0 + u B) of the round sphere, by central differences in plain NumPy.

    On the centred sphere the rows of B have mean 0, as theta has.
    """
    centred = isinstance(space, CentredSphere)
    ones = np.ones(space.dim) / np.sqrt(space.dim)
    bases = [np.linalg.svd(np.stack([p, ones] if centred else [p]))[2][1 + centred :] for p in theta]
    scale = space.radius * np.asarray(space.gain)

    def rate(u):
        points = np.array([p + a @ b for p, a, b in zip(theta, u, bases, strict=True)])
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        x = scale * points
        weight = masses * np.exp(BETA * (x @ x.T - 1))
        if normaliser == "softmax":
            weight /= weight.sum(axis=1, keepdims=True)
        drive = weight @ x @ value.T / scale
        if centred:
            drive -= drive.mean(axis=1, keepdims=True)
        speed = drive - np.sum(drive * points, axis=1, keepdims=True) * points
        # u = B theta / <theta, theta_0>
        height = np.sum(points * theta, axis=1)[:, None]
        across = np.array([b @ p for b, p in zip(bases, points, strict=True)])
        upward = np.sum(speed * theta, axis=1)[:, None]
        return (np.array([b @ s for b, s in zip(bases, speed, strict=True)]) - across * upward / height) / height

    size = len(theta) * len(bases[0])
    columns = []
    for k in range(size):
        step = np.zeros(size)
        step[k] = h
        step = step.reshape(len(theta), -1)
        columns.append((rate(step) - rate(-step)).ravel() / (2 * h))
    return np.array(columns).T


def ordered(values):
    return np.array(sorted(values, key=lambda z: (round(z.real, 6), z.imag)))


@graded("normaliser", FIELDS)
@pytest.mark.parametrize("name", ["ellipsoid", pytest.param("centred", marks=pytest.mark.slow), "centred with gain"])
def test_spectra_agree_with_differences_in_charts(name, normaliser):
    """At an equilibrium that is no consensus, V a generic matrix; there eigenvalues do not depend on coordinates."""
    space = {
        "ellipsoid": Ellipsoid(GAIN, 1.2),
        "centred": CentredSphere(4, radius=1.5),
        "centred with gain": CentredSphere(4, [0.6, 1.0, 1.7, 0.8], 1.2),
    }[name]
    rng = np.random.default_rng(3)
    value = np.eye(space.dim) + 0.3 * rng.standard_normal((space.dim, space.dim))
    field = af.Attention(BETA, value=value, normaliser=FIELDS[normaliser])
    for _ in range(40):
        start = af.Tokens(space.sample(rng, 3), MASSES, space=space)
        found = stability.find_equilibrium(field, start)
        if found is not None and not found.is_consensus:
            break
    assert found is not None
    assert not found.is_consensus
    assert found.residual < 1e-12
    values = found.spectrum.eigenvalues
    assert values.shape == (3 * space.dimension,)
    assert found.spectrum.vectors.shape == (3 * space.dimension, 3, space.dim)
    theta = np.asarray(found.tokens.positions) / (space.radius * np.asarray(space.gain))
    matrix = numeric(space, normaliser, theta, MASSES, value)
    # differences are off by h^2 = 1e-10 times third derivatives and by eps/h = 2e-11; eigenvalues are well apart
    np.testing.assert_allclose(ordered(values), ordered(np.linalg.eigvals(matrix)), atol=1e-7)
    assert found.spectrum.index == int(np.sum(np.linalg.eigvals(matrix).real > 1e-6))
    assert found.spectrum.nullity == 0  # V and the gains leave no symmetry
    # eigenvectors are tangent
    x = np.asarray(found.tokens.positions)
    for v in found.spectrum.vectors:
        for part in (v.real, v.imag):
            np.testing.assert_allclose(space.tangent(x, part), part, atol=1e-13)


@graded("normaliser", FIELDS)
def test_unit_gains_have_the_spectrum_of_the_sphere(normaliser):
    """At any point: the projection is the same there."""
    sphere = af.Tokens(af.uniform(af.Sphere(3), n=4, seed=1).positions, [1, 2, 3, 4])
    round_ = af.Tokens(sphere.positions, sphere.masses, space=Ellipsoid([1.0, 1.0, 1.0]))
    field = af.Attention(3.0, normaliser=FIELDS[normaliser])
    one, other = stability.spectrum(field, sphere), stability.spectrum(field, round_)
    assert len(one.eigenvalues) == len(other.eigenvalues) == 8
    np.testing.assert_allclose(ordered(other.eigenvalues), ordered(one.eigenvalues), atol=1e-12)
    assert (one.index, one.nullity) == (other.index, other.nullity)


@pytest.mark.slow
@pytest.mark.parametrize("normaliser", FIELDS)
def test_the_centred_sphere_has_the_spectrum_of_a_smaller_sphere(normaliser):
    """Through an isometry of its hyperplane, at any point."""
    basis = np.linalg.qr(np.eye(4) - 1 / 4)[0][:, :3]
    small = af.Tokens(af.uniform(af.Sphere(3), n=4, seed=2).positions, [1, 2, 3, 4])
    large = af.Tokens(small.positions @ basis.T, small.masses, space=CentredSphere(4))
    field = af.Attention(3.0, normaliser=FIELDS[normaliser])
    one, other = stability.spectrum(field, small), stability.spectrum(field, large)
    assert len(one.eigenvalues) == len(other.eigenvalues) == 8
    np.testing.assert_allclose(ordered(other.eigenvalues), ordered(one.eigenvalues), atol=1e-12)
    some = stability.leading_eigenpairs(field, large, count=3)
    np.testing.assert_allclose(some.eigenvalues.real, one.eigenvalues.real[:3], atol=1e-9)


@graded(
    "space",
    [Ellipsoid([0.2, 1.0, 5.0]), Ellipsoid([0.5, 2.0, 1.0, 3.0], 2.0), CentredSphere(3), CentredSphere(5, radius=2.0)],
    fast=1,
)
def test_consensus_on_images_of_norms(space):
    """V = I: the mean is neutral and the rest contracts at rate 1, whatever the gain is; nothing else is there."""
    point = space.sample(np.random.default_rng(0), 1)
    tokens = af.Tokens(np.repeat(point, 3, axis=0), MASSES, space=space)
    found = stability.spectrum(af.Attention(BETA), tokens)
    expected = [-1.0] * (2 * space.dimension) + [0.0] * space.dimension
    np.testing.assert_allclose(np.sort(found.eigenvalues.real), expected, atol=1e-10)
    assert found.nullity == space.dimension
    assert found.index == 0


def test_the_limit_counts_directions_of_the_space():
    """2,000 tokens of dimension 3 are at the limit, 2,001 above it; with R^5 in place of the space 1,201 would be."""
    space = CentredSphere(5)
    tokens = af.Tokens(space.sample(np.random.default_rng(0), 2001), space=space)
    with pytest.raises(TooLarge, match="6003 rows"):
        stability.jacobian(af.Attention(1.0), tokens)
