"""Equiangular tokens: the quick version holds, linear response is right, and wrong physics is found out."""

import dataclasses

import numpy as np
import pytest

from attnflow.experiments import Study
from attnflow.experiments.gallery import equiangular
from attnflow.theory import equiangular_overlap
from attnflow.tokens import Tokens

QUICK = equiangular.QUICK


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return equiangular.run(QUICK, Study(tmp_path_factory.mktemp("equiangular") / "parts"))


def failures(parameters, tmp_path):
    data = equiangular.run(parameters, Study(tmp_path / "parts"))
    return [claim.statement for claim in equiangular.claims(parameters, data) if not claim.holds]


def test_orthonormal_tokens_of_softmax_hold_and_a_slightly_wrong_beta_is_found_out(tmp_path, monkeypatch):
    """One part in a million of beta moves an overlap by some 1e-7, a hundred times what is allowed."""
    monkeypatch.setattr(equiangular, "MODELS", {"SA": equiangular.MODELS["SA"]})
    one, attention = dataclasses.replace(QUICK, betas=(2.0,), iid_models=()), equiangular.Attention
    assert failures(one, tmp_path / "right") == []
    monkeypatch.setattr(equiangular, "Attention", lambda beta, **rest: attention(beta * (1 + 1e-6), **rest))
    assert ["|overlap" in words for words in failures(one, tmp_path / "wrong")] == [True]


@pytest.mark.slow
def test_the_quick_version_holds(data):
    claims = equiangular.claims(QUICK, data)
    assert len(claims) == 6
    assert all(claim.holds for claim in claims)
    assert len(equiangular.draw(QUICK, data).axes) == 4


@pytest.mark.slow
def test_the_parts_hold_what_theory_says(data):
    """Without the code of the claims: seven digits of the overlap."""
    for model in ("SA", "USA0"):
        part = data[f"orthonormal-{model}"]
        assert set(part["beta"].values) == {1.0, 4.0}
        predicted = equiangular_overlap(part["time"].values, part["beta"].values, 8, model=model)
        np.testing.assert_allclose(part["overlap"].values, predicted, atol=1e-7)


@pytest.mark.parametrize("model", ["SA", "USA0"])
def test_linear_response_is_the_derivative_of_the_flow_of_the_overlaps(model):
    """Central differences of G_ij' = sum_k A_ik (G_kj - G_ik G_ij) + (i <-> j) along one deviation of each kind."""
    n, beta, gamma, h = 6, 2.3, 0.3, 1e-5

    def flow(gram):
        weights = np.exp(beta * (gram - 1)) / n
        if model == "SA":
            weights = weights / weights.sum(axis=1, keepdims=True)
        pulled = weights @ gram
        half = pulled - np.sum(weights * gram, axis=1)[:, None] * gram
        return half + half.T

    first = np.zeros((n, n))
    u = np.array([1.0, -2.0, 0.5, 0.5, 1.0, -1.0])  # sums to zero
    first[0, 1] = first[2, 3] = 1.0
    first[1, 2] = first[0, 3] = -1.0  # row sums are zero
    kinds = [np.ones((n, n)), u[:, None] + u[None, :], first + first.T]
    start = (1 - gamma) * np.eye(n) + gamma
    speed, rates = equiangular.speeds(np.array(gamma), beta, n, model)
    assert flow(start)[0, 1] == pytest.approx(float(speed), abs=1e-14)
    for kind, rate in zip(kinds, rates, strict=True):
        kind = kind - np.diag(np.diag(kind))
        moved = (flow(start + h * kind) - flow(start - h * kind)) / (2 * h)
        np.testing.assert_allclose(moved - np.diag(np.diag(moved)), rate * kind, atol=1e-8)  # h^2 and eps/h


def test_a_mean_deviation_grows_with_the_speed_of_the_common_overlap():
    """It is a shift along the solution: the factor is gamma'(gamma)/gamma'(0)."""
    for model in ("SA", "USA0"):
        speeds = equiangular.speeds(np.array([0.0, 0.7]), 3.0, 8, model)[0]
        assert equiangular.growth(0.7, 3.0, 8, model)[0] == pytest.approx(speeds[1] / speeds[0], rel=1e-12)


@pytest.mark.slow
def test_sisters_taken_for_each_other_are_found_out(data, tmp_path, monkeypatch):
    swapped = dict(zip(("SA", "USA0"), reversed(equiangular.MODELS.values()), strict=True))
    monkeypatch.setattr(equiangular, "MODELS", swapped)
    fails = failures(dataclasses.replace(QUICK, betas=(1.0,)), tmp_path)
    assert [f.split(":")[0] for f in fails if "|overlap" in f] == ["SA, orthonormal tokens", "USA0, orthonormal tokens"]


@pytest.mark.slow
def test_a_slightly_wrong_beta_is_found_out(data, tmp_path, monkeypatch):
    """One part in a million of beta moves an overlap by some 1e-7, a hundred times what is allowed."""
    attention = equiangular.Attention
    monkeypatch.setattr(equiangular, "Attention", lambda beta, **rest: attention(beta * (1 + 1e-6), **rest))
    fails = failures(dataclasses.replace(QUICK, betas=(2.0,)), tmp_path)
    assert [f.split(",")[0] for f in fails] == ["SA", "USA0"]


@pytest.mark.slow
def test_a_wrong_power_of_d_is_found_out(data, tmp_path, monkeypatch):
    """Overlaps at the start multiplied by d^(1/4)/4: the same at d = 256, another power."""
    right = equiangular.in_span

    def wrong(n, dims, seeds):
        tokens = right(n, dims, seeds)
        gram = np.asarray(tokens.positions) @ np.swapaxes(tokens.positions, -1, -2)
        scale = (np.array(dims) ** 0.25 / 4)[:, None, None, None]
        gram = np.where(np.eye(n, dtype=bool), 1.0, scale * gram)
        return Tokens(np.linalg.cholesky(gram), dims=tokens.dims, coordinates=tokens.coordinates)

    monkeypatch.setattr(equiangular, "in_span", wrong)
    fails = failures(dataclasses.replace(QUICK, betas=(1.0,)), tmp_path)
    assert any("d log rms" in f for f in fails)


@pytest.mark.slow
def test_a_number_that_is_none_fails(data):
    broken = {name: part.copy(deep=True) for name, part in data.items()}
    broken["orthonormal-SA"]["overlap"][3] = np.nan
    broken["iid-SA"]["square"][0, 1, 2] = np.nan
    fails = [claim for claim in equiangular.claims(QUICK, broken) if not claim.holds]
    assert {f.statement.split(":")[0] for f in fails} == {"SA, orthonormal tokens", "SA, iid tokens at γ = 0.5"}
