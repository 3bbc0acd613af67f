"""Trained networks beside draws of their nulls: a further draw of a null does not pass, and groups change no number."""

import numpy as np
import pytest

from attnflow.experiments.kit import end_over_draws, lower_ends, numbers_of
from attnflow.probe.networks import random_network

SETS, TEXTS = 400, 8


@pytest.mark.slow
@pytest.mark.parametrize(("draws", "another"), [(7, True), (7, False), (4, True)])
def test_a_further_draw_of_the_null_is_found_out(faults, draws, another):
    """Of 400 networks that are one more draw of their null 1 % pass: 4, and 14 or more are chance in 1e-4 (binomial).

    `another=False` is about the mean over draws: a network at the mean of all draws passes in 1 % of cases, one that is
    a draw in far more.
    """
    faults.replace("resamples of texts", 200)
    rng = np.random.default_rng(6)
    networks = rng.standard_normal((SETS, draws + 1, 1)) + 0.01 * rng.standard_normal((SETS, draws + 1, TEXTS))
    own = networks[:, :1] if another else 0.01 * rng.standard_normal((SETS, 1, TEXTS))
    passed = sum(end_over_draws(one, another=another) > 0 for one in own - networks[:, 1:])
    assert passed < 14
    if not another:
        assert sum(end_over_draws(one, another=False) > 0 for one in networks[:, :1] - networks[:, 1:]) > 14


def test_a_network_beyond_all_draws_passes_and_one_draw_has_texts_alone():
    rng = np.random.default_rng(7)
    nulls = 0.1 * rng.standard_normal((7, 1)) + 0.1 * rng.standard_normal((7, TEXTS))
    assert 0.2 < end_over_draws(1 - nulls, another=True) < end_over_draws(1 - nulls, another=False) < 1
    (low,) = lower_ends(1 - nulls[0][:, None])[1]
    assert end_over_draws(1 - nulls[:1], another=True) == pytest.approx(low, rel=1e-12)


def test_texts_in_groups_have_the_numbers_of_each_text(faults):
    """Three texts of two lengths, alone and together: products of other shapes, hence rounding."""
    net = random_network("bert", layers=2, heads=2, width=16)
    streams = [net.run(np.random.default_rng(k).integers(0, 256, n)) for k, n in enumerate((9, 20, 9))]
    together = numbers_of(streams, (0, -1), ("updates",))
    faults.replace("texts measured together", 1)
    alone = numbers_of(streams, (0, -1), ("updates",))
    for name in ("alignment", "effective_time_r2", "beta", "overlap_change_attention"):
        np.testing.assert_allclose(together[name].values, alone[name].values, rtol=1e-9, atol=1e-12)
