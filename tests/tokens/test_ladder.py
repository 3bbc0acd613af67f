"""Systems filled up to shared sizes: the same flow bit by bit, and no program is compiled twice."""

import logging

import jax
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput
from tests.kit import frames
from tests.marks import graded


def test_the_ladder():
    def next_size(n):
        return af.tokens.padded(af.Tokens(np.ones((n, 1)), space=af.Euclidean(1))).n

    expected = {1: 8, 8: 8, 9: 12, 12: 12, 13: 16, 17: 24, 25: 32, 33: 48, 100: 128, 10**6: 1 << 20}
    assert {n: next_size(n) for n in expected} == expected
    sizes = [next_size(n) for n in range(8, 3000)]
    assert all(n <= size <= 1.5 * n for n, size in zip(range(8, 3000), sizes, strict=True))


FIELDS = {
    "causal": af.Attention(4.0, mask=af.Causal(slope=0.1)),
    "unnormalised": af.Attention(1.0, normaliser=af.Unnormalised()),
    "heads": af.Attention(2.0, value=np.stack([np.eye(3), -0.5 * np.eye(3)])),
}


@graded("name", FIELDS)
def test_a_flow_is_the_same(name):
    tokens = af.uniform(af.Sphere(3), n=13, seed=0)
    plain, full = (
        af.solve(FIELDS[name], given, 1.0, save=4, method=af.Fixed(0.125), keep=["positions"])
        for given in (tokens, af.tokens.padded(tokens))
    )
    assert full.dataset.sizes["token"] == 16
    # sums over 16 columns may add 13 numbers in another order than sums over 13: a few roundings per step and token
    np.testing.assert_allclose(full.positions[:, :13], plain.positions, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(full.tokens(-1).member().positions, full.positions[-1, :13])
    for k in range(5):
        assert full.tokens(k).member().n == 13


def test_a_batch_and_places_are_filled_up_too():
    batch = af.uniform(af.Sphere(2), n=5, seed=[0, 1])
    found = af.tokens.padded(batch, 7)
    assert found.positions.shape == (2, 7, 2)
    for k in range(2):
        np.testing.assert_array_equal(found.member(seed=k).positions, batch.member(seed=k).positions)
    again = af.tokens.padded(found, 9)
    assert int(np.sum(again.present)) == 10


@pytest.mark.slow
def test_other_sizes_compile_nothing(caplog):
    def compiled(n):
        caplog.clear()
        with jax.log_compiles(), caplog.at_level(logging.WARNING, logger="jax"):
            tokens = af.tokens.padded(af.uniform(af.Sphere(3), n=n, seed=0))
            af.solve(af.Attention(4.0), tokens, 1.0, save=3, method=af.Fixed(0.25))
        return sum("Finished XLA compilation" in record.getMessage() for record in caplog.records)

    assert compiled(49) > 0
    assert [compiled(n) for n in (50, 57, 63)] == [0, 0, 0]


def test_refusals():
    tokens = af.uniform(af.Sphere(3), n=13, seed=0)
    with pytest.raises(InvalidInput, match="at least 13"):
        af.tokens.padded(tokens, 12)
    with pytest.raises(InvalidInput, match="tokens such as"):
        af.tokens.padded(np.eye(3))


def test_masses_stay_to_the_last_bit():
    for n in range(2, 80):
        tokens = af.uniform(af.Sphere(2), n=n, seed=0)
        np.testing.assert_array_equal(af.tokens.padded(tokens, 100).masses[:n], tokens.masses)


@pytest.mark.slow
def test_noise_goes_on_and_float32_stays():
    tokens = af.tokens.padded(af.uniform(af.Sphere(3), n=9, seed=0))
    options = {"method": af.Fixed(0.25), "noise": af.Brownian(0.1, seed=1), "keep": ["positions"]}
    whole = af.solve(af.Attention(4.0), tokens, 2.0, save=4, **options)
    half = af.solve(af.Attention(4.0), tokens, 1.0, save=2, **options)
    np.testing.assert_array_equal(half.continued(2.0, save=[1.5, 2.0]).positions, whole.positions)
    small = af.tokens.padded(af.uniform(af.Sphere(3), n=9, seed=0).astype(np.float32))
    full, plain = (
        frames(af.Attention(4.0), given, 1.0, save=2, method=af.Fixed(0.25)) for given in (small, small.member())
    )
    assert full.dtype == np.float32
    # a few roundings of float32 in each of four steps
    np.testing.assert_allclose(full[:, :9], plain, atol=20 * np.finfo(np.float32).eps)


def test_long_times_and_traced_code_refuse_absent_rows():
    tokens = af.uniform(af.Sphere(3), n=9, seed=0)
    with pytest.raises(InvalidInput, match="absent rows"):
        af.solve_long(af.Attention(4.0), af.tokens.padded(tokens))
    with pytest.raises(InvalidInput, match="outside of it"):
        jax.jit(lambda x: af.tokens.padded(tokens.moved(x)).positions)(tokens.positions)


def test_systems_of_float32_are_stacked_in_float32():
    small = [af.uniform(af.Sphere(3), n=n, seed=0).astype(np.float32) for n in (4, 9)]
    assert af.stack("n", [4, 9], small).positions.dtype == np.float32
    assert af.stack("n", [4, 9], [small[0], af.uniform(af.Sphere(3), n=9)]).positions.dtype == np.float64
