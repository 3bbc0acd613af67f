"""Every line of the checker on which soundness rests: some change of it confirms an adversary, which it rejects."""

import ast
from functools import cache

import pytest

from tests.certify.adversaries import ADVERSARIES
from tests.certify.mutants import MUTANTS, Replacement
from tests.certify.mutated import SOURCES, Checker


@cache
def rejects(coarse: tuple[Replacement, ...], name: str) -> bool:
    """Whether the checker, made coarser or not, rejects an adversary."""
    return not Checker(coarse).check(ADVERSARIES[name]).confirmed


def test_the_checker_confirms_no_adversary():
    assert {mutant.adversary for mutant in MUTANTS} == set(ADVERSARIES)
    assert [name for name in ADVERSARIES if not rejects((), name)] == []
    assert [(mutant.coarse, mutant.adversary) for mutant in MUTANTS if not rejects(mutant.coarse, mutant.adversary)] == []


def test_every_mutant_confirms_an_adversary():
    survivors = []
    for mutant in MUTANTS:
        verdict = Checker([*mutant.coarse, mutant[:3]]).check(ADVERSARIES[mutant.adversary])
        if not verdict.confirmed:
            survivors.append((mutant.file, mutant.old, mutant.new, mutant.adversary, verdict.reason))
    assert survivors == []
