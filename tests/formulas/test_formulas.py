"""Every public formula is right to what it states over all that it accepts, or refuses."""

import pytest

from tests.formulas.oracle import error, table
from tests.formulas.rooms import FORMULAS, ROOMS, functions, oracles, procedures

NAMES = sorted(FORMULAS)


@pytest.mark.parametrize("room", ROOMS)
def test_every_public_function_declares_its_domain_and_has_an_oracle(room):
    declared = {name.split(".")[1] for name in NAMES if name.startswith(f"{room}.")}
    assert functions(room) - declared == set(procedures(room))
    assert {name.split(".")[1] for name in oracles(room)} == declared


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_formula_agrees_with_the_table_of_its_oracle(name):
    room = name.split(".")[0]
    oracle, rows = oracles(room)[name], table(room)[name]
    assert [point for point, _ in rows] == oracle.points(FORMULAS[name]), f"write it: -m tests.formulas.write {name}"
    for point, exact in rows[: oracle.quick]:
        error(oracle, FORMULAS[name], point, exact)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_a_formula_agrees_with_its_oracle_at_other_points(name):
    room = name.split(".")[0]
    oracle = oracles(room)[name]
    for point, exact in table(room)[name][oracle.quick :]:
        error(oracle, FORMULAS[name], point, exact)
    for point in oracle.points(FORMULAS[name], seed=1, count=oracle.fresh):
        error(oracle, FORMULAS[name], point, oracle.exact(point))
