"""What docs/misreadings.md states and no other test shows."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

import attnflow as af
from attnflow import theory
from tests.marks import graded

DOCS = Path(__file__).parent.parent / "docs"


def test_numbers_of_clusters_are_those_of_the_experiment():
    """Items and pages that print mean numbers of clusters at beta = 100 have those of the page of cluster-count."""
    page = (DOCS / "gallery" / "cluster-count.md").read_text()
    (few, many), *rest = re.findall(
        r"β = 100: a density of 1e\+16 tokens .*? than 400 iid.*?\(means ([\d.]+), ([\d.]+);", page
    )
    assert not rest
    for name in ("misreadings", "choosing"):
        (found,) = re.findall(
            r"the mean is ([\d.]+) for (?:\$n=400\$|400 tokens) and ([\d.]+) for 10¹⁶",
            (DOCS / f"{name}.md").read_text(),
        )
        assert found == (few, many), name


def test_the_largest_rate_at_low_beta_against_larger_beta():
    """(d - 1)/d at beta -> 0 is below 2/e, the limit of large beta, for d = 2 and 3, and above all others for d >= 4."""
    betas, degrees = (1.0, 3.0, 10.0, 30.0, 100.0, 500.0, 2000.0), np.arange(1, 120)  # k_max is below sqrt(2 beta) + 1
    for d in (2, 3, 4, 8, 16):
        rates = [float(np.max(theory.uniform.growth_rates(beta, d, k=degrees))) for beta in betas]
        assert float(np.max(theory.uniform.growth_rates(1e-6, d, k=degrees))) == pytest.approx((d - 1) / d, abs=1e-5)
        assert rates[-1] == pytest.approx(2 / np.e, abs=1e-3)
        assert (max(rates) > (d - 1) / d) == (d < 4)


def turning(angles, masses, beta, clock="USA0"):
    """Angular velocities of tokens on the circle, (..., token), in plain NumPy."""
    apart = angles[..., :, None] - angles[..., None, :]
    weights = masses * np.exp(beta * (np.cos(apart) - 1))
    drive = -(weights * np.sin(apart)).sum(-1)
    return drive / weights.sum(-1) if clock == "SA" else drive


def jacobian(angles, masses, beta, clock="USA0"):
    """Derivatives of `turning`, exact to rounding, by complex steps."""
    steps = angles + 1e-30j * np.eye(len(angles))
    return np.imag(turning(steps, masses, beta, clock)).T / 1e-30


@pytest.mark.parametrize(("beta", "ratio"), [(20.0, 15.5), (40.0, 30.5), (80.0, 60.5)])
def test_the_rate_of_a_ring_has_a_factor_beta(beta, ratio):
    """Three clusters at 120 degrees: (3 beta/4 + 1/2) e^(-3 beta/2) on the clock USA0, three times that for softmax."""
    angles, masses = 2 * np.pi / 3 * np.arange(3), np.full(3, 1 / 3)
    for clock, factor in (("USA0", 1), ("SA", 3)):
        largest = np.linalg.eigvals(jacobian(angles, masses, beta, clock)).real.max() * np.exp(1.5 * beta)
        assert largest == pytest.approx(factor * ratio, rel=1e-8)
        assert theory.landscape.ring_growth_rates(beta, 3, model=clock).max() * np.exp(1.5 * beta) == pytest.approx(
            largest
        )


def isosceles(apex, base, beta):
    """(place of the base clusters, largest growth rate but that of the rotation) of three clusters at 0, +p and -p, of
    `apex`, `base` and `base` tokens: all equilibria of this shape with p > 90 degrees."""
    n = apex + 2 * base

    def force(p):
        return apex * np.exp(beta * np.cos(p)) * np.sin(p) + base * np.exp(beta * np.cos(2 * p)) * np.sin(2 * p)

    grid = np.linspace(np.pi / 2 + 1e-3, np.pi - 1e-3, 2000)
    found = []
    for low, high in itertools.pairwise(grid):
        if force(low) * force(high) < 0:
            p = brentq(force, low, high)
            angles = np.repeat([0.0, p, -p], [apex, base, base])
            rates = np.linalg.eigvals(jacobian(angles, np.full(n, 1 / n), beta)).real
            found.append((p, np.delete(rates, np.argmin(abs(rates))).max()))
    return found


@pytest.mark.parametrize(
    ("apex", "base", "threshold"),
    [(1, 1, -2 / 3), (2, 2, -2 / 3), (2, 1, -2.2124), (1, 2, -1.4429), (1, 3, -1.7169), (34, 33, -0.8986)],
)
def test_stable_triples_on_the_circle_below_a_threshold(apex, base, threshold):
    """n = 3, 6, 4, 5, 7, 100 tokens: below the threshold a stable equilibrium of three clusters, above it none of that shape."""
    assert any(rate < 0 for _, rate in isosceles(apex, base, threshold - 2e-3))
    assert all(rate > 0 for _, rate in isosceles(apex, base, threshold + 2e-3))


@pytest.mark.parametrize(
    ("beta", "starts", "missed"),
    [
        (-0.8, 20, 0),
        (-2.0, 20, 6),
        pytest.param(-0.8, 2000, 0, marks=pytest.mark.slow),
        pytest.param(-2.0, 300, 72, marks=pytest.mark.slow),
    ],
)
def test_five_tokens_miss_consensus_at_strongly_negative_beta(beta, starts, missed):
    """Random starts, softmax: all meet at beta = -0.8, a quarter stays in three clusters at beta = -2."""
    x, masses, h = np.random.default_rng(0).uniform(0, 2 * np.pi, (starts, 5)), np.full(5, 0.2), 0.25
    apart = 0
    for step in range(800):  # Runge-Kutta 4 to t = 200; those at rest are counted and left
        k1 = turning(x, masses, beta, "SA")
        if step % 50 == 0:
            rest = abs(k1).max(axis=-1) < 1e-10
            apart += (abs(np.exp(1j * x[rest]).mean(-1)) < 1 - 1e-9).sum()
            x, k1 = x[~rest], k1[~rest]
        k2 = turning(x + h / 2 * k1, masses, beta, "SA")
        k3 = turning(x + h / 2 * k2, masses, beta, "SA")
        x += h / 6 * (k1 + 2 * k2 + 2 * k3 + turning(x + h * k3, masses, beta, "SA"))
    assert abs(turning(x, masses, beta, "SA")).max(initial=0) < 1e-9
    assert apart + (abs(np.exp(1j * x).mean(-1)) < 1 - 1e-9).sum() == missed


@graded(
    ("value", "n", "seeds", "divided"),
    [
        ("plain", 8, 4, 0),
        ("stretched", 8, 4, 4),
        ("negative", 8, 4, None),
        pytest.param("stretched", 4, 20, 17, marks=pytest.mark.slow),
        pytest.param("stretched", 32, 20, 20, marks=pytest.mark.slow),
        pytest.param("negative", 32, 20, None, marks=pytest.mark.slow),
    ],
    fast=3,
    slow=5,
)
def test_directions_collapse_for_the_identity_and_not_for_every_value_matrix(value, n, seeds, divided):
    """V = I: one cluster; V = diag(1, .7, .7): two antipodal ones at +e_1 and -e_1, mostly; V = -I: the mean vanishes."""
    matrix = {"plain": np.eye(3), "stretched": np.diag([1, 0.7, 0.7]), "negative": -np.eye(3)}[value]
    tokens = af.uniform(af.Sphere(3), n=n, seed=list(range(seeds)))
    beta = 1.0 if value == "plain" else 5.0  # at beta = 5 clusters of V = I meet too late for a test
    x = af.advance(af.Attention(beta, value=matrix), tokens, 0.0, 80.0, af.Fixed(0.1)).positions
    if value == "negative":
        assert (np.linalg.norm(x.mean(1), axis=-1) < 0.01).all()
        return
    along = np.abs((x * x[:, :1]).sum(-1))
    np.testing.assert_allclose(along, 1.0, atol=1e-9)  # on one line through 0
    assert ((x * x[:, :1]).sum(-1).min(1) < 0).sum() == divided
    if value == "stretched":
        np.testing.assert_allclose(np.abs(x[..., 0]), 1.0, atol=1e-9)


def test_independent_layers_of_size_one_over_root_depth_are_a_diffusion():
    """x + L^(-1/2) W x, W of variance 1/d: log |x_L|^2 tends to N(1 - 2/d, 4/d) in distribution, E |x_L|^2 to e.

    E |x_L|^2 = (1 + 1/L)^L exactly. No limit of single networks: the variance of log |x_L|^2 stays 4/d.
    """
    d, members, rng = 4, 4000, np.random.default_rng(1)
    for layers in (16, 64, 256):
        x = np.zeros((members, d))
        x[:, 0] = 1.0
        for _ in range(layers):  # W x is a Gaussian vector of variance |x|^2/d
            x += rng.standard_normal(x.shape) * np.linalg.norm(x, axis=1, keepdims=True) / np.sqrt(d * layers)
        size = (x**2).sum(1)
        error = size.std() / np.sqrt(members)
        assert abs(size.mean() - (1 + 1 / layers) ** layers) < 4 * error
    # cdf given as a function: SciPy 1.18.0 refuses the numbers of "norm" (scipy/scipy#25448)
    distance = stats.kstest(np.log(size), stats.norm(1 - 2 / d, np.sqrt(4 / d)).cdf).statistic
    assert distance < 1.95 / np.sqrt(members) + 1 / layers  # level 1e-3, and the error of L layers
    assert stats.kstest(np.log(size), stats.norm(1.0, 0.1).cdf).statistic > 0.3


def test_the_sum_over_pairs_is_an_energy_only_with_its_factors():
    """F = 1/2 sum e^(-beta |x - y|^2/2): gradient beta n dx/dt of USA0, and largest where all tokens coincide.

    Softmax divides the velocity of token i by Z_i/n, which lies between e^(-2 beta) and 1 on this clock.
    """
    n, beta = 7, 3.0
    tokens = af.uniform(af.Sphere(3), n=n, seed=2)
    x = np.asarray(tokens.positions)

    def total(x):
        return np.exp(-beta / 2 * ((x[:, None] - x[None]) ** 2).sum(-1)).sum() / 2

    slope = np.zeros_like(x)
    for i, k in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[i, k] = 1e-5
        slope[i, k] = (total(x + step) - total(x - step)) / 2e-5
    gradient = slope - (slope * x).sum(-1, keepdims=True) * x
    usa0 = np.asarray(af.Attention(beta, normaliser=af.Unnormalised()).velocity(tokens))
    np.testing.assert_allclose(gradient, beta * n * usa0, atol=1e-7)
    assert total(x) < total(np.tile(x[:1], (n, 1))) == n**2 / 2
    share = np.exp(beta * (x @ x.T - 1)).mean(1)
    softmax = np.asarray(af.Attention(beta).velocity(tokens))
    np.testing.assert_allclose(softmax * share[:, None], usa0, atol=1e-12)
    assert np.ptp(share) > 0.1
