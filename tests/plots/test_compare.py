"""Several flows in one figure: lines for all, names that say what differs, refusals."""

import dataclasses

import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput

RUN = {"until": 9.0, "save": af.saving.LogSpaced(8, 0.05), "method": af.Fixed(0.25)}


def flow(beta):
    tokens = af.tokens.clustered(af.Sphere(2), centres=np.eye(2), n=8, spread=0.1, seed=0)
    return af.solve(af.Attention(beta), tokens, **RUN)


@pytest.fixture(scope="module")
def two():
    return [flow(4.0), flow(9.0)]


def words(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_lines_of_all_flows_are_in_every_panel(two):
    figure = af.plot(two)
    assert words(figure) == ["β = 4", "β = 9"]
    energy, overlap, count = figure.axes
    for axes in (energy, overlap, count):
        assert len(axes.lines) == 2
        assert axes.lines[0].get_color() != axes.lines[1].get_color()
        assert axes.lines[0].get_linestyle() != axes.lines[1].get_linestyle()
    for k, one in enumerate(two):
        assert np.array_equal(energy.lines[k].get_ydata(), one.energy.values)
        x = one.positions.values
        assert np.allclose(overlap.lines[k].get_ydata(), np.einsum("tid,tjd->t", x, x) / 64, atol=1e-14)
    assert count.lines[1].get_ydata()[-1] == 2


def test_names_can_be_given(two):
    assert words(af.plot(dict(zip(("cold", "warm"), two, strict=True)))) == ["cold", "warm"]


def test_names_say_what_differs(two):
    other = dataclasses.replace(two[1], field=af.Attention(9.0, normaliser=af.Unnormalised()))
    assert words(af.plot([two[1], other])) == ["normaliser = Softmax", "normaliser = Unnormalised, clock = USA0"]
    assert words(af.plot([two[0], two[0]])) == ["flow (1)", "flow (2)"]


@pytest.mark.slow
def test_members_of_a_batch_are_lines_of_one_colour(two):
    tokens = af.uniform(af.Sphere(2), n=8, seed=range(9))
    figure = af.plot([two[0], af.solve(af.Attention(4.0), tokens, **RUN)])
    assert "8 of 9 members" in words(figure)[1]
    lines = figure.axes[0].lines
    assert len(lines) == 1 + 8
    assert len({line.get_color() for line in lines[1:]}) == 1


def test_long_and_short_flows_share_an_axis(two):
    long = af.solve_long(af.Attention(9.0), af.uniform(af.Sphere(3), n=8, seed=1))
    figure = af.plot({"long": long, "short": two[1]})
    assert figure.axes[0].get_xscale() == "log"
    assert figure.axes[0].get_xlim()[1] > np.exp(float(long.merges["log_time"][-1]))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda two: [], "holds 0 flows"),
        (lambda two: two * 7, "holds 14 flows"),
        (lambda two: [two[0], 3], "holds a int"),
        (lambda two: [two[0], two[0].energy], "holds a DataArray"),
    ],
)
def test_what_cannot_be_compared_is_refused(two, given, said):
    with pytest.raises(InvalidInput, match=said):
        af.plot(given(two))
