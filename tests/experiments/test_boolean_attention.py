"""Boolean attention: the quick version holds, the example is as printed, wrong physics is found out."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from attnflow.experiments import Study
from attnflow.experiments.gallery import boolean_attention
from attnflow.fields import Attention

QUICK = boolean_attention.QUICK


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return boolean_attention.run(QUICK, Study(tmp_path_factory.mktemp("boolean")))


def failures(data):
    return [claim.statement for claim in boolean_attention.claims(QUICK, data) if not claim.holds]


def test_the_quick_version_holds(data):
    assert len(boolean_attention.claims(QUICK, data)) == 7
    assert failures(data) == []


def test_the_example(data):
    """Tokens 1, 2 follow the first, 3 to 6 the last; by t = 8 to 1e-6."""
    limit = np.zeros((6, 6))
    limit[:2, 0] = limit[2:, 5] = 1
    np.testing.assert_allclose(data["n6"]["story"].values[-1], limit, atol=1e-6)
    assert data["n6"]["fine"].values[0, 1].tolist() == list(boolean_attention.LINE)


def test_the_exact_solution_solves_its_equation():
    """SciPy, rtol 1e-11: du/dt = 2 V u tanh(QK u)."""
    end = solve_ivp(lambda t, u: 2 * 0.7 * u * np.tanh(2 * u), (0, 1.5), [0.09], rtol=1e-11, atol=1e-13).y[0, -1]
    assert boolean_attention.pair_square(1.5, 0.3, 0.7, 2.0) == pytest.approx(end, rel=1e-8)
    late = boolean_attention.pair_square(12.0, 0.3, 0.7, 2.0)
    assert np.sqrt(late) * np.exp(-0.7 * 12) == pytest.approx(boolean_attention.pair_limit(0.3, 2.0), rel=1e-9)


def test_slightly_wrong_queries_are_found_out(data, tmp_path, monkeypatch):
    """In the field alone: the matrices are those of the right model, at positions that are a little wrong."""

    def wrong(beta, query=None, **rest):
        return Attention(beta, query=query and query.map(lambda values: values * 1.0001), **rest)

    monkeypatch.setattr(boolean_attention, "Attention", wrong)
    assert ["pairs" in words for words in failures(boolean_attention.run(QUICK, Study(tmp_path)))] == [True, True]


def test_rows_that_are_free_or_follow_another_are_found_out(data):
    part = data["n6"].copy(deep=True)
    part["end"][0, 2:4] = 1 / 6  # the rows of two tokens
    assert "not Boolean" in failures({"n6": part})[0]
    part = data["n6"].copy(deep=True)
    part["end"][0, 2] = np.eye(6)[3]
    found = failures({"n6": part})
    assert ["outermost" in found[0], "several leaders" in found[1]] == [True, True]


def test_gaps_that_do_not_freeze_are_found_out(data):
    part = data["n6"].copy(deep=True)
    for name in ("fine", "coarse"):
        part[name][12] *= 1.0001  # t = 6
    (found,) = failures({"n6": part})
    assert "weights on others" in found
