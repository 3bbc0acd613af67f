"""The transition of iid tokens: the quick version holds, and a wrong beta or a wrong distribution of the starts is found out."""

import numpy as np
import pytest

from attnflow.experiments import Study
from attnflow.experiments.gallery import phase_diagram
from attnflow.theory import equiangular_overlap, equiangular_time
from attnflow.tokens import Tokens

QUICK = phase_diagram.QUICK


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return phase_diagram.run(QUICK, Study(tmp_path_factory.mktemp("phase") / "parts"))


def failures(tmp_path):
    data = {"times": phase_diagram._times(QUICK, Study(tmp_path / "parts"))}  # the claims need no maps
    return [claim.statement for claim in phase_diagram.claims(QUICK, data) if not claim.holds]


def test_the_quick_version_holds(data):
    claims = phase_diagram.claims(QUICK, data)
    assert len(claims) == 4
    assert all(claim.holds for claim in claims)
    assert len(phase_diagram.draw(QUICK, data).axes) == 6  # three maps, their bar, two panels


def test_the_parts_hold_what_theory_says(data):
    """Without the code of the claims: started at the measured mean, theory is off by some 3/d."""
    part = data["times"].sel(d=4096)
    for beta in part["beta"].values:
        here = part.sel(beta=beta)
        predicted = equiangular_time(0.5, beta, 8, here["start"].values)
        np.testing.assert_allclose(here["time"].values, predicted, atol=10 / 4096)


@pytest.mark.parametrize("beta", [0.0, 3.0])
def test_crossings_are_found_between_frames(beta):
    """Exact curves: cubic interpolation is off by the fourth power of the span (at beta = 0, where it is linear, not)."""
    times = np.arange(41) * QUICK.span
    frames = equiangular_overlap(times[:, None], beta, QUICK.n, np.array([-0.01, 0.0, 0.02]))
    found = phase_diagram.crossing(frames, QUICK)
    expected = equiangular_time(0.5, beta, QUICK.n, np.array([-0.01, 0.0, 0.02]))
    np.testing.assert_allclose(found, expected, atol=1e-12 if beta == 0 else 2e-4)
    assert np.isnan(phase_diagram.crossing(np.full((41, 1), 0.1), QUICK)).all()


def test_a_wrong_beta_is_found_out(data, tmp_path, monkeypatch):
    """Two percent more: what is left after the first order no longer falls with d."""
    along = phase_diagram.Along
    monkeypatch.setattr(
        phase_diagram, "Along", lambda name, values: along(name, 1.02 * np.array(values), labels=values)
    )
    assert any("started at the measured mean" in f for f in failures(tmp_path))


@pytest.mark.slow
def test_starts_that_lean_to_one_side_are_found_out(data, tmp_path, monkeypatch):
    """A common overlap of 0.05 at the start, whatever d is."""
    right = phase_diagram.in_span

    def leaning(n, dims, seeds):
        tokens = right(n, dims, seeds)
        gram = np.asarray(tokens.positions) @ np.swapaxes(tokens.positions, -1, -2)
        rank = np.linalg.cholesky(0.95 * gram + 0.05 + 1e-9 * np.eye(n))
        rank = rank / np.linalg.norm(rank, axis=-1, keepdims=True)
        return Tokens(rank, dims=tokens.dims, coordinates=tokens.coordinates)

    monkeypatch.setattr(phase_diagram, "in_span", leaning)
    fails = failures(tmp_path)
    assert any("farthest from the curve" in f for f in fails)
    assert any("deviation from the curve" in f for f in fails)


def test_a_number_that_is_none_fails(data):
    broken = {name: part.copy(deep=True) for name, part in data.items()}
    broken["times"]["time"][1, -1, 3] = np.nan
    assert not any(claim.holds for claim in phase_diagram.claims(QUICK, broken))
