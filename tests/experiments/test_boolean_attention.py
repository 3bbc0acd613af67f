"""Boolean attention: the core holds, wrong queries and a broken symmetry are found out, the example is as printed."""

import dataclasses

import numpy as np
import pytest

from attnflow.experiments import Study
from attnflow_gallery import boolean_attention
from attnflow_gallery.boolean_attention.simulate import LINE
from tests.experiments.mutants import mutation

SMALL = dataclasses.replace(boolean_attention.QUICK, starts=3, values=(1.0,), until=8.5, legs=34, steps=13)


@pytest.fixture(scope="module")
def right(tmp_path_factory):
    """The small version without a mutation."""
    return boolean_attention.run(SMALL, Study(tmp_path_factory.mktemp("boolean") / "parts"))


def failed(data):
    """Keys of the claims that do not hold."""
    return list(dict.fromkeys(claim.key for claim in boolean_attention.claims(SMALL, data) if not claim.holds))


@pytest.mark.long
def test_slightly_wrong_queries_and_a_broken_symmetry_are_found_out(right, tmp_path):
    """In the flow alone: the matrices are those of the right model, at positions that are a little wrong."""
    assert failed(right) == []
    with mutation(boolean_attention, "QK 0.01 % larger").applied():
        queries = failed(boolean_attention.run(SMALL, Study(tmp_path / "queries")))
    with mutation(boolean_attention, "right token heavier by 1e-6").applied():
        tipped = failed(boolean_attention.run(SMALL, Study(tmp_path / "tipped")))
    assert ["-log of the weight of one" in queries[0], "|z|" in queries[1], len(queries)] == [True, True, 2]
    assert any("share in the mass" in key for key in tipped)


@pytest.mark.long
def test_the_example(right):
    """Tokens 1, 2 follow the first, 3 to 6 the last; by t = 8 to 1e-6."""
    part = right["n6"]
    limit = np.zeros((6, 6))
    limit[:2, 0] = limit[2:, 5] = 1
    np.testing.assert_allclose(part["story"].values[-1], limit, atol=1e-6)
    assert part["z"].values[0, 1].tolist() == list(LINE)
