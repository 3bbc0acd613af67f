"""Boolean attention: the core holds, wrong queries and a broken symmetry are found out, the example is as printed."""

import dataclasses

import numpy as np

from attnflow.experiments import Study
from attnflow.experiments.gallery import boolean_attention
from attnflow.experiments.gallery.boolean_attention.simulate import LINE
from attnflow.experiments.mutation import kill_matrix
from tests.experiments.mutants import mutation

SMALL = dataclasses.replace(boolean_attention.QUICK, starts=3, values=(1.0,), until=8.5, legs=34, steps=13)


def test_slightly_wrong_queries_and_a_broken_symmetry_are_found_out():
    """In the flow alone: the matrices are those of the right model, at positions that are a little wrong."""
    names = ("QK 0.01 % larger", "right token heavier by 1e-6")
    found = kill_matrix(boolean_attention, SMALL, [mutation(boolean_attention, name) for name in names])
    queries, tipped = ([key for key, row in zip(found.claims, found.killed, strict=True) if row[k]] for k in (0, 1))
    assert ["-log of the weight of one" in queries[0], "|z|" in queries[1], len(queries)] == [True, True, 2]
    assert ["share in the mass" in tipped[0], len(tipped)] == [True, 1]


def test_the_example(tmp_path):
    """Tokens 1, 2 follow the first, 3 to 6 the last; by t = 8 to 1e-6."""
    part = boolean_attention.run(SMALL, Study(tmp_path / "parts"))["n6"]
    limit = np.zeros((6, 6))
    limit[:2, 0] = limit[2:, 5] = 1
    np.testing.assert_allclose(part["story"].values[-1], limit, atol=1e-6)
    assert part["fine"].values[0, 1].tolist() == list(LINE)
