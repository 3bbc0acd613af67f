"""Figures of flows of `solve_long`: on the axis of t, and on that of log t where t is no float."""

import dataclasses
import io
import json
import math

import numpy as np
import pytest

import attnflow as af
from attnflow import plots
from attnflow.errors import InvalidInput
from attnflow.plots.style import colours
from tests.plots.flows import FigureData, Scale, is_long, player_data, written

# eight slots at most and one dimension: all flows here share one compiled program
GROUPS = np.array([[1, 0, 0], [0.6, 0.8, 0], [-0.6, 0.6, math.sqrt(0.28)]])


def follow(beta, tokens, until=math.inf):
    return af.solve_long(af.Attention(beta), tokens, until)


@pytest.fixture(scope="module")
def groups():
    """Three groups, at u = 0.4, 0.88 and 1.6, of 2, 3 and 3 tokens."""
    places = np.repeat([0, 1, 2], [2, 3, 3])
    shifts = 0.02 * np.random.default_rng(0).normal(size=(8, 3))
    x = GROUPS[places] + shifts
    return FigureData.of(follow(40.0, af.Tokens(x / np.linalg.norm(x, axis=1, keepdims=True))))


@pytest.fixture(scope="module")
def apart():
    """Eight tokens far apart for their beta: t is beyond float range."""
    return FigureData.of(follow(1e4, af.uniform(af.Sphere(3), n=8, seed=1)))


@pytest.fixture(params=[pytest.param("groups", marks=pytest.mark.slow), "apart"])
def data(request):
    return request.getfixturevalue(request.param)


@pytest.mark.long
@pytest.mark.slow
def test_all_figures_are_drawn(data):
    for draw in (
        plots.plot,
        plots.draw_energy_and_count,
        plots.draw_overlaps,
        plots.draw_attention,
        plots.draw_staircase,
        plots.draw_tree,
    ):
        stream = io.StringIO()
        draw(data).savefig(stream, format="svg")
        assert "<path" in stream.getvalue()


def test_plateaus_are_those_of_the_tree(data):
    table = data.flow.tree.plateaus()
    assert [p.clusters for p in data.plateaus] == table["clusters"].values.tolist()
    assert [p.log_end for p in data.plateaus] == table["log_end"].values.tolist()
    for plateau, level in zip(data.plateaus, table["level"].values, strict=True):
        assert np.sum(data.masses_on(plateau) ** 2) == pytest.approx(level, rel=1e-14)  # eight masses are summed
    summary = json.loads(json.dumps(plots.summarise(data), allow_nan=False))
    assert summary["clusters_at_end"] == 1
    assert summary["log_final_time"] == data.flow.merges["log_time"].values[-1]


def test_the_groups_are_the_colours(groups):
    assert [p.clusters for p in groups.plateaus] == [3, 2]
    assert len(set(groups.labels[:2])) == len(set(groups.labels[2:5])) == len(set(groups.labels[5:])) == 1
    assert groups.labels[0] == 2  # the lightest
    assert groups.colour(np.arange(8) < 5) == colours(groups.labels[2:3])[0]


@pytest.mark.long
def test_the_axis_holds_every_time(groups, apart):
    assert groups.axis.scale is Scale.LOGARITHMIC
    assert groups.axis.at(groups.log_time[-1]) == pytest.approx(float(groups.flow.time[-1]))
    assert groups.axis.title(-np.inf) == apart.axis.title(-np.inf) == "$t = 0$"
    assert apart.axis.scale is Scale.EXPONENT
    assert np.isinf(apart.flow.time.values[-1])
    assert np.isfinite(apart.axis.at(apart.log_time)).all()
    assert apart.axis.title(345.4) == r"$\log t = 345$"
    figure = plots.draw_energy_and_count(apart)
    assert figure.axes[-1].get_xlabel() == r"$\log t$"
    labels = player_data(plots.animate(apart.flow, seconds=3.0, fps=4, width=240))["label"]
    assert labels[0] == "t = 0"
    assert all(label.startswith("log t = ") for label in labels[1:])


def test_times_are_written_as_people_read_them():
    assert written(None) == written(-np.inf) == "0"
    assert written(math.log(250.0)) == "250"
    assert written(183.556495) == "10^79.718"
    assert written(-12345.6) == "10^-5361.6"
    assert is_long([None, 301.0])
    assert is_long([-301.0])
    assert not is_long([None, -np.inf, 299.0])


def test_frames_hold_until_the_next(apart):
    """On a plateau the last frame before is the one to show, however near the next merge is."""
    merges = apart.flow.merges["log_time"].values
    for k, merge in enumerate(merges):
        frame = apart.frame_at(merge - 2.0)  # e^2 before the merge in time: nothing has met
        assert len(np.unique(apart.flow.positions.values[frame].round(6), axis=0)) == 8 - k


def test_the_staircase_has_the_limit_laid_over(data):
    axes = plots.draw_staircase(data).axes[0]
    measured, limit = axes.lines
    stairs = data.flow.tree.staircase
    assert measured.get_ydata()[-1] == pytest.approx(1.0, abs=1e-12)
    assert measured.get_xdata()[-2] == stairs["log_time"].values[-1] / data.beta
    found = data.gathered(int(data.stretches["merges"][0]))
    expected = af.theory.merging.limit_staircase(found.centres, found.masses)
    assert np.array_equal(limit.get_xdata()[1:-1], expected.s)
    assert np.array_equal(limit.get_ydata()[:-1], expected.levels)
    assert f"{len(found.names)} clusters" in limit.get_label()


def lifetimes(data):
    """Log lifetimes of plateaus as the right panel draws them over beta, by the words of its legend."""
    lines = plots.draw_staircase(data).axes[2].lines
    return {line.get_label(): line.get_ydata() * float(data.flow.field.beta) for line in lines}


def test_lifetimes_obey_theory(data):
    table = lifetimes(data)
    assert "so far" not in table
    # at most 28 pairs pull at a time, none harder than the closest
    assert np.abs(table["measured"] - table["two bodies"]).max() < np.log(28)
    bound = table["lower bound $T_2$"]
    assert np.isfinite(bound).any()
    assert not np.any(table["measured"] < bound)


def test_lifetimes_run_on_the_clock_of_the_field(groups):
    field = af.Attention(40.0, normaliser=af.Unnormalised("USA"))
    late = {name: groups.flow.dataset[name] - 40.0 for name in ("log_time", "merge_log_time", "stair_log_time")}
    fast = FigureData.of(dataclasses.replace(groups.flow, field=field, dataset=groups.flow.dataset.assign(late)))
    assert fast.axis.first <= -40
    table, slow = lifetimes(fast), lifetimes(groups)
    # the bound is the same theorem, e^40 faster; logarithms of size 40 are rounded
    bound = "lower bound $T_2$"
    np.testing.assert_allclose(table[bound], slow[bound] - 40, rtol=0, atol=1e-13)
    np.testing.assert_allclose(table["measured"], slow["measured"] - 40, rtol=0, atol=1e-13)


def test_an_unfinished_flow_keeps_its_roots(apart):
    merges = apart.flow.merges["log_time"].values
    cut = FigureData.of(follow(40.0, apart.flow.tokens(0), until=1e5))
    assert cut.count == 8 - cut.flow.merges.sizes["merge"] > 1
    assert cut.axis.last == pytest.approx(math.log(1e5))
    assert apart.axis.last > merges[-1]
    assert plots.plot(cut).axes
    assert [line.get_label() for line in plots.draw_staircase(cut).axes[2].lines][2] == "so far"
    assert len(plots.draw_tree(cut).axes[0].get_yticks()) == 8


def test_the_tree_has_all_merges_and_no_crossings(apart):
    axes = plots.draw_tree(apart).axes[0]
    merges = apart.flow.merges
    joints = [line for line in axes.lines if np.ptp(line.get_xdata()) == 0]
    assert [line.get_xdata()[0] for line in joints] == merges["log_time"].values.tolist()
    assert sorted(text.get_text() for text in axes.get_yticklabels()) == [str(k) for k in range(8)]
    for k, joint in enumerate(joints):  # a branch that crosses a joint would pass it at its time
        low, high = sorted(joint.get_ydata())
        for line in axes.lines:
            (start, end), (height, *_) = line.get_xdata(), line.get_ydata()
            inside = low < height < high and start < joint.get_xdata()[0] < end
            assert not (np.ptp(line.get_ydata()) == 0 and inside), k
    assert axes.get_legend() is None


def test_many_tokens_are_collapsed_into_clusters(groups, faults):
    faults.replace("leaves of a tree", 4)
    axes = plots.draw_tree(groups).axes[0]
    assert sorted(text.get_text() for text in axes.get_yticklabels()) == ["2", "3", "3"]
    assert axes.get_ylabel() == "tokens in cluster"


def test_undetermined_merges_are_dashed(groups):
    doubtful = groups.flow.dataset["merge_undetermined"].copy()
    doubtful[-1] = True
    marked = dataclasses.replace(groups.flow, dataset=groups.flow.dataset.assign(merge_undetermined=doubtful))
    axes = plots.draw_tree(marked).axes[0]
    assert [line.get_linestyle() for line in axes.lines].count("--") == 1
    assert axes.get_legend() is not None


def test_other_flows_have_no_staircase():
    other = FigureData.of(
        af.solve(af.Attention(4.0), af.uniform(af.Sphere(3), n=4, seed=0), 1.0, save=2, method=af.Fixed(0.5))
    )
    assert other.tree is None
    for draw in (plots.draw_staircase, plots.draw_tree):
        with pytest.raises(InvalidInput, match="solve_long"):
            draw(other)
