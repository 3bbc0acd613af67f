"""Lost in the middle: derivatives give the means of plain averages; no mask is found out."""

import dataclasses

import numpy as np
import pytest

from attnflow_gallery import lost_in_the_middle
from attnflow_gallery.lost_in_the_middle import compare, simulate
from tests.experiments.mutants import changed, mutation

QUICK = lost_in_the_middle.QUICK


@pytest.mark.parametrize("d", [2, 3, 5])
def test_the_control_has_mean_zero(d):
    """4.5 standard errors of 15 means: level 1e-4."""
    start = simulate.drawn(np.random.default_rng(d), 4000, 6, d)
    rows = simulate.first_order(1.0, start, 1.0)[:, :-1]
    assert np.all(np.abs(rows.mean(axis=0)) <= 4.5 * rows.std(axis=0) / np.sqrt(len(rows)))


def test_bins_hold_every_source_once():
    for n in (32, 64, 128):
        assert sorted(np.concatenate(simulate.groups(n)).tolist()) == list(range(n - 1))


@pytest.mark.slow
@changed(simulate, "binned", lambda rows: rows)
@changed(simulate, "_reduced", lambda value, *controls: value)
def test_derivatives_and_plain_averages_have_the_same_mean():
    """E<x_N, x_j> over the start of token j, the others at rest: even angles integrate what is smooth to rounding."""
    angles, sources = 2 * np.pi * np.arange(64) / 64, (0, 2, 9, 18)
    start = np.tile(simulate.drawn(np.random.default_rng(7), len(sources), 20, 2)[:, None], (1, 64, 1, 1))
    for row, j in zip(start, sources, strict=True):
        row[:, j] = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    start, field = start.reshape(-1, 20, 2), simulate.attention(1.0, 1.0, 20)
    end, _ = simulate.derivatives(field, start, 1.0)
    plain = 20 * np.einsum("pd,pjd->pj", end, start)
    found, _ = simulate.kept(field, start, 1.0, 1.0)
    for k, j in enumerate(sources):
        some = slice(64 * k, 64 * k + 64)
        assert abs(plain[some, j].mean()) > 0.05, "there is something to see"
        assert found[some, j].mean() == pytest.approx(plain[some, j].mean(), abs=1e-9)


def test_a_regression_on_controls_keeps_the_mean_and_takes_their_noise_off():
    """Coefficients come from the other half, so that the mean is kept: 4.5 standard errors of 2 columns, level 1e-5."""
    rng = np.random.default_rng(8)
    one, other, left = rng.standard_normal((3, 4000, 2))
    found = simulate._reduced(1 + 3 * one - 2 * other + 0.1 * left, one, other)
    assert np.all(np.abs(found.mean(axis=0) - 1) <= 4.5 * 0.1 / np.sqrt(4000))
    np.testing.assert_allclose(found.std(axis=0), 0.1, rtol=0.05)


@pytest.mark.long
def test_no_mask_is_found_out():
    """Claims on one number of tokens, with as many prompts as they need; `sizes` asks for two."""
    few = dataclasses.replace(
        QUICK, sizes=(32, 32), slopes=(0.0, 1.0), prompts=(640, 640), ends=(3.0, 8.0, 30.0), end_prompts=256
    )
    some = (compare._closure, compare._falling, compare._middle, compare._soft, compare._turned, compare._ended)

    def holds():
        data = {"profile-32": simulate.profiles(few, 32, 640), "end": simulate.sums(few)}
        return [claim(few, data).holds for claim in some]

    assert holds() == [True] * len(some)
    with mutation(lost_in_the_middle, "no mask").applied():
        closure, falling, _, _, turned, ended = holds()  # the other two need more tokens: campaigns/physics.py
    assert not any((closure, falling, turned, ended))
