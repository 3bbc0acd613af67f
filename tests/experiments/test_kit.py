"""The kit of experiments: rows of claims, and lettered panels."""

import numpy as np
import pytest

from attnflow.experiments import NUMERICS, Claim, kit


def test_rows_make_the_claim_of_their_arrays():
    rows = kit.Rows()
    rows.add(1.0, 1.05, 0.1, "first")
    rows.add([2.0, 3.0], [2.0, 3.3], [0.1, 0.2], ["second", "third"])
    rows.add(0.0, np.zeros((2, 2)), 1.0, "square")
    found = rows.equal("numbers", "made up", origin=NUMERICS)
    arrays = [1.0, 2.0, 3.0, 0, 0, 0, 0], [1.05, 2.0, 3.3, 0, 0, 0, 0], [0.1, 0.1, 0.2, 1, 1, 1, 1]
    labels = ["first", "second", "third", *["square"] * 4]
    assert found == Claim.equal("numbers", *arrays, "made up", origin=NUMERICS, labels=labels)
    assert not found.holds
    assert "third" in found.detail
    assert rows.at_least("numbers", "made up").holds
    assert not rows.at_most("numbers", "made up").holds
    with pytest.raises(ValueError, match="2 entries for 3"):
        rows.add(1.0, [1.0, 2.0, 3.0], 0.1, ["one", "two"])


def test_no_rows_are_a_claim_that_fails():
    assert not kit.Rows().equal("nothing", "made up").holds


def test_panels_are_lettered_in_reading_order():
    with kit.panels(2, 2, 3.0, "one", "two", "three", sharex=True) as page:
        page[3].plot([0, 1], [0, 1])
    titles = [axes.get_title(loc="left") for axes in page]
    assert [title.split("(")[1][0] for title in titles] == list("abcd")
    assert [title.partition("$ ")[2] for title in titles] == ["one", "two", "three", ""]
    assert page.figure.axes == list(page)
    assert tuple(page.figure.get_size_inches()) == (7.0, 3.0)


def test_looks_begin_again():
    found = list(kit.looks(range(40)))
    assert [value for value, _, _ in found] == list(range(40))
    assert len({look[1:] for look in found}) > 20
