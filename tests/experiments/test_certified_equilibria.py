"""Certified equilibria: a small version holds; a lost class and a wrong index are found out; arrangements by hand."""

import dataclasses

import numpy as np
import pytest

from attnflow_gallery import certified_equilibria
from attnflow_gallery.certified_equilibria import compare, simulate
from tests.experiments.mutants import noticed, only

FEW = dataclasses.replace(certified_equilibria.QUICK, lists=((5, 0.15),), newton=())


@pytest.mark.long
def test_a_lost_class_and_a_wrong_index_are_found_out():
    """Without Newton's method, whose program takes as long to compile as all the rest."""
    few = only(certified_equilibria, lambda *given: [c for c in compare.claims(*given) if "Newton" not in c.statement])
    lost, index = noticed(few, FEW, ("the second class is lost", "index of the last class one less"), "3-*")
    checker = "every list is proved, and the checker confirms what it is asked"
    assert {"arrangements of cluster sizes without a class, and classes beyond them", checker} <= lost
    assert {"classes whose index is not the number of clusters - #", checker} <= index


def test_arrangements_of_positions():
    def at(*angles):
        return np.column_stack([np.cos(angles), np.sin(angles)])

    assert simulate.arrangement(at(0.1, 0.1, 2, 4)) == "2+1+1"
    assert simulate.arrangement(at(0, 1, 1, 3, 4, 4)) == "2+1+2+1"
    assert simulate.arrangement(at(-1e-5, 1e-5, 2 * np.pi)) == "3"
    assert compare.arrangements(4) == {"4", "3+1", "2+2", "2+1+1", "1+1+1+1"}
