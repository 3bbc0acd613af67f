"""Schedules and plans in figures: gates where they are, elements in their order."""

import numpy as np
import pytest

import attnflow as af
from attnflow.control import Schedule
from attnflow.errors import InvalidInput
from attnflow.fields import Drift, MeanAttention, ReluUnit
from attnflow.plots.schedule import can_show_gates, gates

GATES = [ReluUnit([0.0, 1, 0], [1.0, 0, 0], -0.5), ReluUnit([0.0, 0, 2], [0.0, 2, 0], 0.2)]
SCHEDULE = Schedule(af.Sphere(3), [(GATES[0], 1.0), (MeanAttention(), 0.5), (Drift([0.0, 0, 1]), 0.3), (GATES[1], 2.0)])


def test_gates_are_read_in_their_order():
    number, w, a, b = gates(SCHEDULE)
    assert number.tolist() == [0, 3]
    np.testing.assert_array_equal(w, [[0, 1, 0], [0, 0, 2]])
    np.testing.assert_array_equal(a, [[1, 0, 0], [0, 2, 0]])
    np.testing.assert_array_equal(b, [-0.5, 0.2])
    np.testing.assert_allclose(SCHEDULE.budgets.sum(), SCHEDULE.budget)


def test_the_rim_of_a_gate_is_where_it_begins_to_act():
    """The circle <a, x> + b = 0 of the first gate, x_1 = 0.5, is drawn with x_1 across."""
    figure = SCHEDULE.plot(figsize=(7, 3))
    picture, elements = figure.axes
    rims = [line.get_xdata() for line in picture.lines if len(line.get_xdata()) == 200 and line.get_zorder() == 3]
    np.testing.assert_allclose(np.fmax(rims[0], rims[1]), 0.5, atol=1e-12)
    assert "2 gates" in picture.get_title()
    assert [text.get_text() for text in elements.get_legend().get_texts()] == [
        "gate (2)", "mean attention (1)", "boost (1)",
    ]  # fmt: skip


@pytest.mark.parametrize("dim", [2, 3])
def test_units_of_the_plane_are_lines_and_in_space_elements_alone(dim):
    units = [(ReluUnit(np.eye(dim)[0], np.eye(dim)[1], 0.5), 1.0), (Drift(np.eye(dim)[1]), 0.3)]
    schedule = Schedule(af.Euclidean(dim), units)
    assert can_show_gates(schedule) == (dim == 2)
    figure = af.plot(schedule)
    assert len(figure.axes) == 4 - dim
    if dim == 2:
        assert set(figure.axes[0].lines[0].get_ydata()) == {-0.5}


def test_the_first_elements_of_a_schedule():
    part = SCHEDULE.first(3)
    assert part.durations.tolist() == [1.0, 0.5, 0.3]
    assert [type(part[k][0]) for k in range(3)] == [ReluUnit, MeanAttention, Drift]
    np.testing.assert_array_equal(gates(part)[2], gates(SCHEDULE)[2][:1])
    with pytest.raises(InvalidInput, match="`count` is 5"):
        SCHEDULE.first(5)
