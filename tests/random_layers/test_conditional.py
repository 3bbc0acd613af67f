"""The density given the heads: labels, log-Jacobians, and tokens that share the heads."""

import functools

import numpy as np
import pytest

import attnflow as af
from attnflow import meanfield
from attnflow.errors import InvalidInput
from attnflow.random_layers import (
    PoissonKernel,
    conditional_density,
    conditional_mean,
    random_attention,
)

BASIS = meanfield.CircleBasis(24)


@functools.cache
def bump():
    return meanfield.von_mises_fisher(BASIS, 1.5)


def setting(h, tau):
    """(step, until) of H = 1: eta = sqrt(h), L = tau/h layers."""
    step = np.sqrt(h)
    return step, step * round(tau / h)


def seeds(count):
    return af.Along("seed", range(count))


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3])
def test_the_standard_error_is_that_of_independent_replicas(count):
    """sqrt(sum (v - mean)^2/(r (r - 1))), for two replicas |v_0 - v_1|/2."""
    field, tokens = random_attention(2, 2.0, step=0.5, seed=seeds(count)), af.uniform(af.Sphere(2), n=3, seed=0)
    found = conditional_mean(field, tokens, 0.5, lambda t, mu: mu.positions[0, 0], step=0.5)
    v = found.values.transpose("seed", "time").values[:, -1]
    assert np.ptp(v) > 0.01
    squares = np.sum((v - v.mean()) ** 2) if count > 2 else (v[0] - v[1]) ** 2 / 2
    assert found.error.values[-1] == pytest.approx(np.sqrt(squares / (count * (count - 1))), rel=1e-12)


@pytest.mark.long
def test_labels_converge_faster_than_every_power():
    """S^1, b = 2, tau = .5: c_1 with 16, 32, 64 labels against 128, rms over 6 head streams.

    (E of the theory has 7.5e-4, 9.2e-5, 6.7e-7 with 32, 64, 128 labels on another path: log errors fall faster and
    faster.) Density values where labels of both stand agree too, and c_0 = 1.
    """
    step, until = setting(0.02, 0.5)
    field = random_attention(2, 2.0, step=step, seed=seeds(6))
    fine = conditional_density(field, bump(), until, step=step, labels=128)
    assert fine.angles.shape == fine.log_density.shape == (6, 2, 128)
    assert fine.dims["seed"].tolist() == list(range(6))
    want, errors = fine.fourier(1)[:, -1, 1], []
    for labels in (16, 32, 64):
        found = conditional_density(field, bump(), until, step=step, labels=labels)
        errors.append(np.sqrt(np.mean(np.abs(found.fourier(1)[:, -1, 1] - want) ** 2)))
    assert errors[0] > 20 * errors[1]  # they are 1.3e-3, 3.0e-5, 2.8e-7
    assert errors[1] > 50 * errors[2]
    assert errors[2] < 1e-6
    np.testing.assert_allclose(found.log_density[:, -1], fine.log_density[:, -1, ::2], atol=1e-4)
    np.testing.assert_allclose(fine.fourier(0)[..., 0], 1, atol=1e-13)
    assert np.abs(fine.fourier(1)[:, -1, 1] - fine.fourier(1)[:, 0, 1]).min() > 0.01


def test_log_densities_are_those_of_the_map_of_labels():
    """rho = rho_0/(d theta/d alpha), the derivative taken from the Fourier series of theta - alpha; and the mass is 1."""
    step, until = setting(0.02, 0.3)
    field = random_attention(2, 2.0, 2, 3, step=step, seed=5)
    found = conditional_density(field, lambda a: 2 + np.cos(a), until, step=step, labels=128, save=3)
    assert found.angles.shape == (4, 128)
    np.testing.assert_allclose(found.times, step * np.arange(0, 16, 5), atol=1e-12)
    for angles, log_density in zip(found.angles, found.log_density, strict=True):
        gaps = np.unwrap(angles - found.labels)
        waves = 1j * np.fft.fftfreq(128, 1 / 128)
        slope = 1 + np.fft.ifft(waves * np.fft.fft(gaps)).real
        np.testing.assert_allclose(log_density, np.log((2 + np.cos(found.labels)) / 2 / slope), atol=1e-8)
        # the integral of rho against the uniform probability, on the grid of the carried labels
        assert abs(np.sum(np.exp(log_density) * slope) / 128 - 1) < 1e-8
    np.testing.assert_allclose(found.masses.sum(), 1, atol=1e-14)


def test_labels_divide_the_circle_and_weigh_what_the_density_says(faults):
    class Began(Exception):
        pass

    def begin(field, axes, mu, *rest):
        raise Began(mu)

    faults.replace("carried labels", begin)
    with pytest.raises(Began) as began:
        conditional_density(random_attention(2, 2.0), PoissonKernel([0.5, 0.0]), 0.1, step=0.1, labels=8)
    mu, alpha = began.value.args[0], np.arange(8) * np.pi / 4
    np.testing.assert_allclose(np.squeeze(mu.positions), np.stack([np.cos(alpha), np.sin(alpha)], axis=1), atol=1e-15)
    rho = 0.75 / (1.25 - np.cos(alpha))
    np.testing.assert_allclose(np.squeeze(mu.masses), rho / rho.sum(), rtol=1e-14)


def test_slices_and_continuations_change_no_bit(faults):
    field = random_attention(2, 2.0, step=0.1, seed=seeds(2))
    given = {"step": 0.1, "labels": 8}
    whole = conditional_density(field, bump(), 1.0, save=[0.3, 0.4, 1.0], **given)
    faults.replace("seconds of a slice of layers", 0.0)  # one layer a slice
    seen = []
    fine = conditional_density(field, bump(), 1.0, save=[0.3, 0.4, 1.0], on_progress=seen.append, **given)
    np.testing.assert_allclose([one.time for one in seen], 0.1 * np.arange(11), atol=1e-15)
    first = conditional_density(field, bump(), 0.4, save=[0.3, 0.4], **given)
    for other in (fine, first.continued(1.0, save=[1.0])):
        assert other.outcome.message == "made 10 layers."
        for name in ("times", "labels", "masses", "angles", "log_density", "folded"):
            np.testing.assert_array_equal(getattr(other, name), getattr(whole, name))
    with pytest.raises(InvalidInput, match="10.5 layers of step 0.1"):
        first.continued(1.05)
    assert "2 seeds" in repr(whole)


@pytest.mark.slow
def test_labels_are_tokens():
    """Positions are those that layers give tokens with these masses: the same heads by the same seed."""
    step, until = setting(0.04, 0.4)
    field = random_attention(2, 2.0, step=step, seed=3)
    found = conditional_density(field, bump(), until, step=step, labels=32)
    start = np.stack([np.cos(found.labels), np.sin(found.labels)], axis=1)
    tokens = af.Tokens(start, found.masses, space=af.Sphere(2))
    want = np.asarray(af.advance(field, tokens, 0.0, until, af.Layers(step)).positions)
    np.testing.assert_allclose(np.arctan2(want[:, 1], want[:, 0]), found.angles[-1], atol=1e-12)


def test_a_uniform_start_stays_antipodal():
    """m(-x) = -m(x): odd modes are 0 to rounding on every path, so that there is no consensus; even ones are not."""
    step, until = setting(0.04, 1.0)
    field = random_attention(2, 4.0, step=step, seed=seeds(8))
    found = conditional_density(field, meanfield.uniform(BASIS), until, step=step, labels=64)
    c = np.abs(found.fourier(6))[:, -1]
    assert c[:, 1::2].max() < 1e-12
    assert c[:, 2].min() > 0.01
    # at this logit scale some layers fold the circle: the measure is still right, the density is not given
    folded = found.folded[:, -1]
    assert 0 < folded.sum() < 8
    assert not found.folded[:, 0].any()
    assert np.isnan(found.log_density[folded, -1]).all()
    whole = found.log_density[~folded, -1]
    np.testing.assert_allclose(whole[:, :32], whole[:, 32:], atol=1e-10)


@pytest.mark.slow
def test_even_modes_of_a_uniform_start_grow_as_the_theory_says():
    """E |c_2|^2 / tau = .1128 for b = 1, d = d_k = 2 (small tau): 4 standard errors, and 10% for tau = .05."""
    step, until = setting(0.01, 0.05)
    found = conditional_density(
        random_attention(2, 1.0, step=step, seed=seeds(2000)), meanfield.uniform(BASIS), until, step=step, labels=32
    )
    sample = np.abs(found.fourier(2)[:, -1, 2]) ** 2 / 0.05
    assert abs(sample.mean() - 0.1128) < 4 * sample.std() / np.sqrt(2000) + 0.1 * 0.1128


@pytest.mark.long
def test_tokens_with_the_same_heads_follow_and_others_do_not():
    """iid tokens: rms |c_1 - c_1(density)| near n^(-1/2) (1.05, 1.15, .94 in the theory) with the same heads alone."""
    step, until = setting(0.04, 0.4)
    field = random_attention(2, 2.0, step=step, seed=7)
    want = conditional_density(field, bump(), until, step=step, labels=64).fourier(1)[-1, 1]
    draws = range(16)

    def ends(n, field):
        tokens = af.stack("draw", list(draws), [meanfield.sample(bump(), n, seed=k) for k in draws])
        x = af.solve(field, tokens, until, method=af.Layers(step), save=1, keep=["positions"]).positions.values[:, -1]
        return x.mean(axis=1) @ [1, 1j]

    scaled = [np.sqrt(n * np.mean(np.abs(ends(n, field) - want) ** 2)) for n in (32, 256)]
    assert all(0.5 < one < 2.0 for one in scaled), scaled
    other = ends(256, random_attention(2, 2.0, step=step, seed=af.Along("draw", range(100, 116), labels=list(draws))))
    assert np.sqrt(np.mean(np.abs(other - want) ** 2)) > 2.5 * scaled[1] / np.sqrt(256)


FIELD = random_attention(2, 1.0, step=0.1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: conditional_density(FIELD, 3, 1.0, step=0.1), "`density` is 3"),
        (lambda: conditional_density(FIELD, PoissonKernel([0.1, 0, 0]), 1.0, step=0.1), r"in R\^3"),
        (
            lambda: conditional_density(FIELD, meanfield.uniform(meanfield.ZonalBasis(2, 3)), 1.0, step=0.1),
            "on a ZonalBasis",
        ),
        (lambda: conditional_density(FIELD, np.cos, 1.0, step=0.1), "values from -1 to 1"),
        (lambda: conditional_density(FIELD, lambda a: a[:3], 1.0, step=0.1), "one finite value for each"),
        (lambda: conditional_density(2.0, bump(), 1.0, step=0.1), "`field` is 2.0"),
        (lambda: conditional_density(FIELD, bump(), 1.0, step=0.3), "whole number"),
        (lambda: conditional_density(FIELD, bump(), 1.0, step=0.1, labels=2), "`labels` is 2"),
        (lambda: conditional_density(random_attention(3, 1.0), bump(), 1.0, step=0.1), "live in dimension 2"),
        (lambda: conditional_mean(FIELD, af.uniform(af.Sphere(2), n=3), 1.0, lambda t, mu: 0.0, step=0.1), "0 members"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        call()
    assert 20 <= len(str(caught.value)) <= 400
    assert str(caught.value).endswith(".")
