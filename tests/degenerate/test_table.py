"""Every row of the table."""

import mpmath as mp
import numpy as np

from tests.degenerate.row import DIGITS
from tests.degenerate.table import ROWS
from tests.marks import graded


@graded("row", ROWS, ids=str)
def test_a_formula_on_and_near_a_family_where_it_degenerates(row):
    for distance in row.at:
        with mp.workdps(DIGITS), np.errstate(all="ignore"):
            exact = np.array(row.exact(distance), dtype=object).astype(float)
            found = np.asarray(row.found(distance), dtype=float)
        np.testing.assert_allclose(found, exact, rtol=row.rtol, atol=row.atol, err_msg=f"at the distance {distance:g}")
