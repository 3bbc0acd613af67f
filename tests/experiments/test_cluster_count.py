"""Cluster counts: the quick version holds; a wrong spectrum, a broken start or the k_max story is found out."""

import numpy as np
import pytest

from attnflow.experiments import Study
from attnflow.experiments.gallery import cluster_count
from attnflow.fields import Attention

QUICK = cluster_count.QUICK


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    return cluster_count.run(QUICK, Study(tmp_path_factory.mktemp("count") / "parts"))


def failures(data):
    return [claim.statement for claim in cluster_count.claims(QUICK, data) if not claim.holds]


def test_the_quick_version_holds(quick):
    assert failures(quick) == []
    assert len(cluster_count.claims(QUICK, quick)) == 6
    assert len(cluster_count.draw(QUICK, quick).axes) == 4


def test_a_density_has_the_fluctuations_of_its_tokens():
    """Fourier coefficients of variance 1/n in every degree, and nothing where the ring cannot carry it."""
    size, ring = 1e6, 96
    angles = []
    for seed in range(200):
        x = np.asarray(cluster_count.many(size, ring, seed).positions)
        angles.append(np.arctan2(x[:, 1], x[:, 0]))
    for k in (1, 7, 30):
        power = np.abs(np.mean(np.exp(1j * k * np.array(angles)), axis=1)) ** 2 * size
        # exponential of mean 1: the mean of 200 has standard error 1/sqrt(200)
        assert power.mean() == pytest.approx(1, abs=4 / np.sqrt(200))


@pytest.mark.slow
def test_without_attention_there_is_nothing_to_count(quick, tmp_path, monkeypatch):
    """Tokens that hardly interact (beta a thousandth) do not condense, and their modes are not M(t)."""
    monkeypatch.setattr(cluster_count, "Attention", lambda beta: Attention(beta / 1000))
    fails = failures(cluster_count.run(QUICK, Study(tmp_path / "parts")))
    assert any("M(t) modes" in words for words in fails)
    assert any("t = 0" in words for words in fails)
    assert any("as many clusters" in words for words in fails)


def test_a_spectrum_without_the_square_of_the_degree_is_found_out(quick, monkeypatch):
    """With I_k/beta for k^2 I_k/beta the low modes would win, and M(t) would fall."""

    def wrong(t, beta, model="SA"):
        k = np.arange(1, 80)
        rates = cluster_count.theory.growth_rates(beta, 2, k) / k**2
        weights = (k * beta * rates) ** 2 * np.exp(2 * rates * t)
        return np.sqrt(np.sum(k**2 * weights) / np.sum(weights))

    assert wrong(0.0, 25.0) == pytest.approx(float(cluster_count.theory.linear_modes(0.0, 25.0)))
    monkeypatch.setattr(cluster_count.theory, "linear_modes", wrong)
    assert any("M(t) modes" in words for words in failures(quick))


def test_the_story_of_the_fastest_mode_is_found_out(quick):
    """Had iid tokens given k_max clusters, the claims would say so."""
    broken = quick.copy(deep=True)
    broken["clusters"][0] = cluster_count.theory.dominant_degree(25.0, 2)
    assert any("fall short of k_max" in words for words in failures(broken))
