"""Every row of the table, and that the table has every public name of `theory`."""

import mpmath as mp
import numpy as np
import pytest

from attnflow import theory
from tests.degenerate.row import DIGITS
from tests.degenerate.table import ROWS, WITHOUT


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_formula_on_and_near_a_family_where_it_degenerates(row):
    for distance in row.at:
        with mp.workdps(DIGITS), np.errstate(all="ignore"):
            exact = np.array(row.exact(distance), dtype=object).astype(float)
            found = np.asarray(row.found(distance), dtype=float)
        np.testing.assert_allclose(found, exact, rtol=row.rtol, atol=row.atol, err_msg=f"at the distance {distance:g}")


@pytest.mark.parametrize("room", sorted(WITHOUT))
def test_every_public_name_is_in_the_table(room):
    """A name has rows, or a reason why it has none, and not both; and nothing else is listed."""
    rows = {row.formula.removeprefix(f"{room}.") for row in ROWS if row.formula.startswith(f"{room}.")}
    names = set(getattr(theory, room).__all__)
    assert rows | set(WITHOUT[room]) == names
    assert not rows & set(WITHOUT[room])
    assert all(reason for reason in WITHOUT[room].values())
