"""Labels in figures; frames where something happens; counts that flicker; size and style."""

import dataclasses

import numpy as np
import pytest

import attnflow as af
from attnflow import plots
from attnflow.errors import InvalidInput
from tests.plots.flows import FigureData, player_data

WORDS = [f"w{k}" for k in range(12)]
TOKENS = af.tokens.clustered(af.Sphere(3), centres=np.eye(3)[:2], n=12, spread=0.1, seed=0)
FAST = {"method": af.Fixed(0.25)}


def texts(figure):
    return [text.get_text() for axes in figure.axes for text in axes.texts]


@pytest.fixture(scope="module")
def flow():
    labelled = af.Tokens(TOKENS.positions, labels=WORDS)
    return af.solve(af.Attention(9.0), labelled, 30.0, save=af.saving.LogSpaced(30, 0.05), **FAST)


@pytest.mark.slow
def test_clusters_are_named_by_their_words(flow):
    words = texts(af.plot(flow))
    assert "w0, w1, w2, w3 +2" in words
    assert "w6, w7, w8, w9 +2" in words
    assert {"w0", "w11"} & set(texts(af.plot(flow[0])))
    assert player_data(plots.animate(flow, seconds=2.0, fps=5, width=300))["names"] == WORDS
    bare = af.plot(af.Tokens(TOKENS.positions))
    assert not set(texts(bare)) & set(WORDS)


@pytest.fixture(scope="module")
def long():
    """A long flow of three clusters of 2, 3 and 3 words."""
    centres = [[1, 0, 0], [0.6, 0.8, 0], [-0.6, 0.6, np.sqrt(0.28)]]
    many = af.tokens.clustered(af.Sphere(3), centres=centres, n=[2, 3, 3], spread=0.02, seed=0)
    return af.solve_long(af.Attention(40.0), af.Tokens(many.positions, labels=WORDS[:8]))


@pytest.mark.slow
def test_a_name_is_as_long_as_it_may_be(long, faults):
    faults.replace("labelled leaves of a tree", 1)
    words = ["extraordinarily-long", "b", "king", "queen", "princess", "a", "c", "d"]
    named = dataclasses.replace(long, dataset=long.dataset.assign_coords(token_label=("token", words)))
    leaves = [text.get_text() for text in plots.draw_tree(named).axes[0].get_yticklabels()]
    assert sorted(leaves) == ["a, c, d", "extraordinarily… +1", "king, queen +1"]


def test_the_leaves_of_a_tree_are_words(long, faults):
    ticks = [text.get_text() for text in plots.draw_tree(long).axes[0].get_yticklabels()]
    assert sorted(ticks) == WORDS[:8]
    members = long.tree.members(5)
    assert sorted(word for cluster in members for word in cluster) == WORDS[:8]
    assert sorted(map(len, members), reverse=True) == [len(cluster) for cluster in members]
    assert len(members) == 3
    data = FigureData.of(long)
    faults.replace("labelled leaves of a tree", 1)
    assert data.leaves.merges > 0
    joined = [text.get_text() for text in plots.draw_tree(data).axes[0].get_yticklabels()]
    assert len(joined) == 8 - data.leaves.merges
    assert any(", " in text for text in joined)


def test_frames_are_shown_where_tokens_move():
    """A collapse between t = 4 and 5 of 10: the frames between start and end are those of a part of the way."""
    times = np.linspace(0, 10, 201)
    flow = af.solve(af.Attention(1.0), TOKENS, 10.0, save=times, **FAST)
    share = np.clip(times - 4, 0, 1)[:, None, None]
    start = flow.positions.values[0]
    path = (1 - share) * start + share * start[:1]
    path /= np.linalg.norm(path, axis=2, keepdims=True)
    dataset = flow.dataset.assign(positions=(flow.positions.dims, path))
    made = FigureData.of(type(flow)(dataset, flow.field, flow.space, flow.outcome, flow.steps))
    shown = made.flow.time.values[made.moments()]
    assert shown[0] == 0
    assert shown[-1] == 10
    assert len(shown) == 5
    assert ((shown[1:-1] > 4) & (shown[1:-1] <= 5)).all()


def test_gaps_between_condensed_frames_are_bridged():
    """Gaps of at most 5 % of the axis, between condensed frames only; the edges stay open."""
    flags = np.array([False, True, False, True] + [False] * 8 + [True] * 86 + [False, True])
    expected = np.array([False, True, True, True] + [False] * 8 + [True] * 88)
    data = FigureData.of(af.solve(af.Attention(1.0), TOKENS, 99.0, save=99, **FAST))
    clusters = data.clusters.assign(condensed=("time", flags), count=("time", np.full(100, 2)))
    axes = plots.draw_energy_and_count(dataclasses.replace(data, clusters=clusters)).axes[1]
    held = [np.isfinite(line.get_ydata()) for line in axes.lines if line.get_linewidth() == 0.6]
    np.testing.assert_array_equal(held, [expected])
    grey = [patch.get_extents().transformed(axes.transData.inverted()) for patch in axes.patches]
    np.testing.assert_allclose([(box.x0, box.x1) for box in grey], [(0, 1), (4, 12)], atol=1e-9)


def test_principal_components_are_named_with_their_shares():
    """Tokens in a plane of R^5: the two shares make 100 %."""
    angles = np.linspace(0, 1, 8)
    x = np.zeros((8, 5))
    x[:, 1], x[:, 3] = np.cos(angles), np.sin(angles)
    axes = af.plot(af.Tokens(x)).axes[0]
    shares = [int(label.split("(")[1].split(" ")[0]) for label in (axes.get_xlabel(), axes.get_ylabel())]
    assert axes.get_xlabel().startswith("PC 1")
    assert sum(shares) == 100


def test_size_and_style_are_those_of_matplotlib(flow):
    figure = flow.plot(figsize=(9, 5), style={"font.size": 13, "axes.labelsize": 13})
    assert figure.get_size_inches().tolist() == [9, 5]
    assert {axes.xaxis.label.get_size() for axes in figure.axes if axes.get_xlabel()} == {13}
    assert {axes.xaxis.label.get_size() for axes in flow.plot().axes if axes.get_xlabel()} == {8}
    af.plot(TOKENS, style="ggplot")
    for wrong in ("no-such-style", {"no.such": 1}, 3):
        with pytest.raises(InvalidInput, match="`style` is"):
            af.plot(TOKENS, style=wrong)
    for wrong in (3, (1, 2, 3), (0, 4), ("a", "b"), (np.inf, 2)):
        with pytest.raises(InvalidInput, match="`figsize` is"):
            af.plot(TOKENS, figsize=wrong)
