"""Comparisons: nulls beside every number, intervals over texts, theory that a flow follows."""

import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput, NoSuchItem
from attnflow.intervals import mean_ends
from attnflow.probe.comparison import Cell, Row, differs, is_null
from tests.probe.flow_network import FlowNetwork

RNG = np.random.default_rng(8)
TEXTS = [RNG.integers(0, 30, 24) for _ in range(3)]


@pytest.fixture(scope="module")
def found():
    return af.probe.compare(FlowNetwork(), TEXTS, shuffles=1, resamples=200)


@pytest.mark.long
def test_cases_are_the_network_its_nulls_and_theory(found):
    assert found.cases == (
        "network",
        "shuffled tokens",
        "permuted",
        "init",
        "norms only",
        "iid tokens",
        "equiangular",
    )
    assert dict(found.dataset.sizes) | {"case": 7, "text": 3, "layer": 5, "kept": 2} == dict(found.dataset.sizes)
    network = af.probe.measure(FlowNetwork().run(TEXTS[2]))
    first = found.dataset.sel(case="network").isel(text=2)
    for name in ("overlap", "beta", "alignment", "effective_rank_centred", "clusters"):
        assert first[name].values == pytest.approx(network[name].isel(text=0).values, rel=1e-9, nan_ok=True), name


@pytest.mark.long
def test_shuffles_change_nothing_where_order_does_not_matter(found):
    """A flow without places and mask: shuffled tokens are the same measure, so every number is the same."""
    both = found.dataset.sel(case=["network", "shuffled tokens"])
    for name in ("overlap", "effective_rank", "alignment", "beta"):
        one, other = both[name].values
        assert one == pytest.approx(other, rel=1e-7, abs=1e-9, nan_ok=True), name


def test_what_only_the_attractive_network_has(found):
    """Its beta is 4 and its updates are the velocity; with random Q, K and V neither holds."""
    rows = {row.quantity: row.cells for row in found.rows}
    for name, value in (("β, median head over layers", 4.0), ("alignment of attention over layers", 1.0)):
        assert rows[name]["network"].mean == pytest.approx(value, rel=1e-6)
        assert max(rows[name][case].mean for case in ("init", "permuted")) < 0.9 * value
        assert rows[name]["init"].apart is False  # three texts can show nothing
        assert rows[name]["network"].apart is None
        assert rows[name]["shuffled tokens"].mean == pytest.approx(value, rel=1e-6)


def test_theory_stands_beside_the_numbers(found):
    overlap = found.dataset["overlap"].sel(kept="without sinks", view="raw")
    network, theory, iid = (overlap.sel(case=case).values for case in ("network", "equiangular", "iid tokens"))
    assert theory[:, 0] == pytest.approx(network[:, 0], rel=1e-12)
    # Overlaps of these tokens scatter by 0.3 around their mean, and the rate depends on them by a factor e^(beta 0.3):
    # the equiangular curve gives the order of the rise and not its digits.
    gain, predicted = network[:, -1] - network[:, 0], theory[:, -1] - theory[:, 0]
    assert (predicted > 0.1 * gain).all()
    assert (predicted < 3 * gain).all()
    pairs = 24 * 23 / 2
    assert np.abs(iid[:, 0]).max() < 5 / np.sqrt(12 * pairs)  # five standard deviations of a mean of iid overlaps
    assert np.array_equal(iid[:, 0], iid[:, -1])


def test_figures_show_every_case(found):
    figures = found.figures()
    assert list(figures) == ["overlap", "beta", "alignment", "sinks", "clusters"]
    shown = {
        name: [text.get_text() for text in figure.legends[0].get_texts()]
        for name, figure in figures.items()
        if figure.legends
    }
    assert shown["overlap"] == list(found.cases)
    assert shown["alignment"] == [
        case for case in found.cases if case not in ("iid tokens", "equiangular", "norms only")
    ] + ["norms only"]
    line = figures["overlap"].axes[0].lines[0]
    wanted = found.dataset["overlap"].sel(case="network", kept="without sinks", view="raw").mean("text")
    assert line.get_ydata() == pytest.approx(wanted.values)
    assert {line.get_linewidth() for line in figures["overlap"].axes[0].lines} == {2.0, 1.0}  # the network stands out
    assert figures["overlap"].axes[0].get_title(loc="left").startswith(r"$\bf{(a)}$ ")
    alone = af.plots.draw_states(af.probe.measure(FlowNetwork().run(TEXTS[0]), families=["overlaps"]))
    assert [text.get_text() for text in alone.legends[0].get_texts()] == ["network"]


def test_no_number_without_its_null(found):
    assert all(any(np.isfinite(cell.mean) for case, cell in row.cells.items() if is_null(case)) for row in found.rows)
    with pytest.raises(InvalidInput, match="'r' has no null"):
        Row("r", {"network": Cell(1.0, 0.9, 1.1, None), "iid tokens": Cell(0.0, 0.0, 0.0, True)})
    text = str(found)
    assert text.splitlines()[0].split("  ")[-1].strip() == "equiangular"
    assert "Means over 3 texts, without sinks" in text
    assert "Fewer than 6 texts can show no difference." in text
    assert "One draw of permuted and of init: another seed" in text
    page = found._repr_html_()
    assert page.count("<tr>") == 1 + len(found.rows)
    with pytest.raises(InvalidInput, match="a number needs a null"):
        af.probe.compare(FlowNetwork(), TEXTS, nulls=(), shuffles=0)


def test_intervals_are_those_of_a_bootstrap_over_texts(found):
    """Of the mean of three values, for the network; shuffled tokens are the same tokens, hence no difference."""
    cells = next(row for row in found.rows if row.quantity == "overlap at state 4").cells
    values = found.dataset["overlap"].sel(case="network", kept="without sinks", view="raw").isel(layer=4).values
    cell = cells["network"]
    assert cell.mean == pytest.approx(values.mean(), rel=1e-12)
    ends = mean_ends(values, (0.025, 0.975), resamples=found.work.resamples, seed=[found.work.seed, 1])
    assert [cell.low, cell.high] == pytest.approx(ends.tolist(), rel=1e-9)
    assert cells["shuffled tokens"].apart is False


@pytest.mark.slow
@pytest.mark.parametrize("count", [6, 13])
def test_stars_have_their_level(count):
    """Of 2000 sets of symmetric differences at most 5 % get a star; 139 or more would be chance in 1e-4 (binomial)."""
    rng = np.random.default_rng(9)
    stars = sum(differs(row) for row in rng.standard_t(3, (2000, count)))
    assert 40 < stars < 139  # 2^-5 of six texts are all of one sign: 62 are expected, 40 is three deviations below
    assert differs(np.full(count, 0.3))
    assert not differs(np.full(5, 0.3))
    assert not differs(np.zeros(count))


def test_one_text_has_no_interval():
    one = af.probe.compare(FlowNetwork(), TEXTS[:1], nulls="init", shuffles=1, families=["overlaps"])
    assert np.isnan(one.rows[0].cells["network"].low)
    assert "One text has no interval" in str(one)
    assert one.cases == ("network", "shuffled tokens", "init", "iid tokens")


def test_refusals():
    network = FlowNetwork()
    with pytest.raises(InvalidInput, match="`nulls` has 'biases zero'; flow offers 'permuted', 'init', 'norms only'"):
        af.probe.compare(network, TEXTS[:1], nulls="biases zero", shuffles=0, families=["norms"])
    with pytest.raises(InvalidInput, match="`network` is"):
        af.probe.compare(TEXTS, TEXTS)
    with pytest.raises(InvalidInput, match=r"texts\[0\] is"):
        af.probe.compare(network, ["a text"])
    for given, words in (
        ({"kept": "sinks"}, "`kept` is 'sinks'"),
        ({"nulls": 3}, "`nulls` is 3; give a list of kinds"),
        ({"special": (0, 99)}, r"`special` has 99, but texts\[0\] has 24 tokens"),
        ({"special": "x"}, "`special` has 'x'; give places of tokens"),
        ({"special": 0}, "`special` is 0; give places of tokens"),
        ({"families": []}, "`families` is empty"),
        ({"lnk": 0.9}, "no argument `lnk`; besides its own, compare takes beta, bins, bootstrap"),
    ):
        with pytest.raises(InvalidInput, match=words):
            af.probe.compare(network, TEXTS, **given)


def test_families_without_numbers_of_states():
    """Random tokens of theory have none of them; a null that is named twice is one null."""
    one = af.probe.compare(FlowNetwork(), TEXTS[:1], nulls=["init", "init"], shuffles=0, families="norms")
    assert one.cases == ("network", "init", "iid tokens")
    shown = one.dataset["norm_median"].sel(kept="all").values
    assert "The table shows none of the numbers that were measured" in str(one)
    with pytest.raises(NoSuchItem, match="`text` is 1; there are 1, numbered from 0"):
        one.words(1)
    with pytest.raises(NoSuchItem, match="`state` is 9; there are 5"):
        one.clusters(0, 9)
    assert np.isfinite(shown[:2]).all()
    assert np.isnan(shown[2]).all()
