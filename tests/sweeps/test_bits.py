"""Flows side by side: the bits of a member at its place depend neither on its neighbours nor on absent members."""

import dataclasses

import numpy as np
import pytest

import attnflow as af
from attnflow.flows import Control, Drive, Solve
from attnflow.flows.stopping import Still
from attnflow.sweeps.grouped import rows_of_works, side_by_side

WIDTH = 4


def flow(beta, seed, until=1.0, n=4):
    tokens = af.uniform(af.Sphere(2), n=n, seed=seed)
    work = Solve(
        af.Attention(beta), tokens, until, save=4, stop=Still(0.3), observe={"order": af.observe.order_parameter}
    )
    return work.checked()


MINE = (7.0, 1)
NEIGHBOURS = [[(90.0, 5), (0.1, 6), (30.0, 8)], [(1.0, 10), (2.0, 11), (1e-3, 12)]]


def bits(row):
    assert row.error == ""
    return {name: array.tobytes() for name, (_, array) in row.variables.items()}


@pytest.mark.slow
def test_bits_do_not_depend_on_neighbours_and_absent_members():
    """Neighbours that are stiff, that stop at once, and copies: all with one program."""
    found = []
    for place in (0, 2):
        for neighbours in NEIGHBOURS:
            some = [flow(*one) for one in neighbours]
            some.insert(place, flow(*MINE))
            found.append(bits(side_by_side(some, WIDTH)[place]))
    found.append(bits(side_by_side([flow(*MINE)], WIDTH)[0]))
    assert all(one == found[0] for one in found)


@pytest.mark.slow
def test_members_are_what_they_are_alone():
    works = [flow(*MINE), *(flow(*one) for one in NEIGHBOURS[0])]
    rows = side_by_side(works, WIDTH)
    for work, row in zip(works, rows, strict=True):
        alone = Drive(work).run(Control()).dataset
        there = alone.sizes["time"]
        assert row.variables["time"][1].tolist() == work.times.tolist()
        for name in ("positions", "speed", "order"):
            # programs that round in another order, along some 100 steps of a flow that parts like e^(beta t)
            together = row.variables[name][1][:there]
            np.testing.assert_allclose(together, alone[name].values, atol=1e-9)
            assert (row.variables[name][1][there:] == together[-1]).all()  # held where it stopped
        stopped = float(alone["stopped_at"])
        assert row.variables["stopped_at"][1] == pytest.approx(stopped, nan_ok=True)
        assert row.variables["outcome"][1] == ("stopped" if np.isfinite(stopped) else "finished")


@pytest.mark.slow
def test_works_of_several_shapes_and_of_none():
    longer, batch = flow(2.0, 3, until=2.0), flow(2.0, 3)
    batch = dataclasses.replace(batch, tokens=af.uniform(af.Sphere(2), n=4, seed=range(2))).checked()
    assert batch.shape() is None
    works = [flow(*MINE), longer, flow(2.0, 3), batch]
    assert works[0].shape() == works[2].shape() != longer.shape()
    rows = rows_of_works(works, WIDTH)
    assert [row.error for row in rows] == [""] * 4
    assert bits(rows[0]) == bits(side_by_side([works[0], works[2]], WIDTH)[0])
    assert rows[3].variables["positions"][0][0] == "seed"


@pytest.mark.slow
def test_a_member_that_fails_does_not_take_others_with_it():
    """The group is done again one by one, each at its place with copies of itself."""
    bad = flow(*MINE)
    field = af.Attention(1.0, value=np.full((2, 2), 1e300))
    good = af.Attention(1.0, value=np.eye(2))
    works = [dataclasses.replace(bad, field=one, stop=()).checked() for one in (good, field, good)]
    works = [dataclasses.replace(work, tokens=af.uniform(af.Sphere(2), n=4, seed=k)) for k, work in enumerate(works)]
    rows = side_by_side(works, WIDTH)
    assert "FlowFailed" in rows[1].error
    assert rows[0].error == rows[2].error == ""
    assert bits(rows[2]) == bits(side_by_side([works[0], works[0], works[2]], WIDTH)[2])
