"""Spectra at saddles against finite differences, and counts of equilibria by hand."""

import numpy as np
import pytest

from attnflow import theory


def force(x, beta):
    """Velocity of USA0, equal masses."""
    pull = np.exp(beta * (x @ x.T - 1)) @ x / len(x)
    return pull - np.sum(pull * x, axis=1, keepdims=True) * x


def spectrum(x, beta, h=1e-5):
    """Eigenvalues of the linearised flow by central differences along an orthonormal frame of every tangent space."""
    n = len(x)
    frames = [np.linalg.svd(one[None])[2][1:] for one in x]
    columns = []
    for i in range(n):
        for direction in frames[i]:
            both = []
            for sign in (1, -1):
                moved = x.copy()
                moved[i] = np.cos(h) * x[i] + sign * np.sin(h) * direction
                both.append(force(moved, beta))
            change = (both[0] - both[1]) / (2 * h)
            columns.append(np.concatenate([frames[j] @ change[j] for j in range(n)]))
    return np.sort(np.linalg.eigvals(np.array(columns).T).real)[::-1]


@pytest.mark.parametrize(("n", "d", "first"), [(4, 2, 2), (5, 3, 2), (5, 3, 4), (3, 3, 3)])
def test_antipodal_groups_against_finite_differences(n, d, first):
    x = np.zeros((n, d))
    x[:, 0] = np.where(np.arange(n) < first, 1.0, -1.0)
    np.testing.assert_allclose(
        spectrum(x, 0.7), theory.landscape.antipodal_spectrum(n=n, d=d, first=first, beta=0.7), atol=1e-8
    )


@pytest.mark.parametrize(("n", "d"), [(3, 2), (5, 3), (4, 4)])
def test_rings_against_finite_differences(n, d):
    angles = 2 * np.pi * np.arange(n) / n
    x = np.zeros((n, d))
    x[:, 0], x[:, 1] = np.cos(angles), np.sin(angles)
    np.testing.assert_allclose(spectrum(x, 1.3), theory.landscape.ring_spectrum(n=n, d=d, beta=1.3), atol=1e-8)


def test_the_three_tokens_on_the_circle_by_hand():
    """Consensus, three ways to split off one, two orientations of the triangle: 1 - 3 + 2 = 0 on the torus T^2."""
    index, count, line = [2, 1, 0], [2, 3, 1], [False, True, True]
    assert theory.landscape.euler_sums(n=3, d=2, index=index, count=count, collinear=line) == (0, 0)
    rest, quotient = theory.landscape.morse_quotient(n=3, d=2, index=index, count=count, collinear=line)
    assert (rest, quotient.tolist()) == (0, [0, 1])  # 1 + 3t + 2t^2 - (1 + t)^2 = t (1 + t)
    assert theory.landscape.euler_sums(n=3, d=2, index=index[1:], count=count[1:], collinear=line[1:]) == (0, -2)
    assert theory.landscape.morse_quotient(n=3, d=2, index=index[1:], count=count[1:], collinear=line[1:])[0] != 0


def test_the_four_tokens_on_the_sphere_by_hand():
    """Tetrahedron, square, triangle with a double corner, two and two, one and three, consensus."""
    index, count = np.array([5, 4, 3, 2, 2, 0]), np.array([2, 3, 6, 3, 4, 1])
    line = np.arange(6) > 2
    assert theory.landscape.euler_sums(n=4, d=3, index=index, count=count, collinear=line) == (7 - 12, 3 - 6 - 2)
    # (1 + t)(4 t^2 + 2 t^3 + 2 t^4) = 6 t^3 + 3 t^4 + 2 t^5 + (1 + 7 t^2 - (1 + t^2)^3)/(1 - t^2)
    rest, quotient = theory.landscape.morse_quotient(n=4, d=3, index=index, count=count, collinear=line)
    assert (rest, quotient.tolist()) == (0, [0, 0, 4, 2, 2])
    for k in range(6):  # Morse's inequalities notice every equilibrium that is left out
        left = (np.delete(column, k) for column in (index, count, line))
        left = dict(zip(("index", "count", "collinear"), left, strict=True))
        rest, quotient = theory.landscape.morse_quotient(n=4, d=3, **left)
        assert rest != 0 or (quotient < 0).any()


def test_labelled_configurations():
    angles = 2 * np.pi * np.arange(5) / 5
    ring = np.cos(angles[:, None] - angles)
    assert theory.landscape.labelled_configurations(ring, spans=True) == 24  # 5!/10 with reflections, times 2
    assert theory.landscape.labelled_configurations(ring, spans=False) == 12
    assert theory.landscape.labelled_configurations(np.where(np.eye(4), 1.0, -1 / 3), spans=True) == 2
    assert theory.landscape.labelled_configurations(np.ones((6, 6)), spans=False) == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: theory.landscape.antipodal_spectrum(n=4, d=2, first=5, beta=1.0), "`first` is 5"),
        (lambda: theory.landscape.euler_sums(n=3, d=4, index=[0], count=[1], collinear=[True]), "`d` is 4"),
        (lambda: theory.landscape.morse_quotient(n=3, d=2, index=[9], count=[1], collinear=[True]), "`index` is"),
        (lambda: theory.landscape.euler_sums(n=3, d=2, index=[0, 1], count=[1], collinear=[True]), "`index` is"),
    ],
)
def test_bad_arguments_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
