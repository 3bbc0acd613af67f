"""The reference times of four clusters: recomputed by SciPy alone, and those that merge-times is compared with."""

import pytest

from attnflow_gallery.merge_times.compare import FOUR_TIMES
from tests.reference.four_clusters import merge_times


@pytest.mark.parametrize("model", ["USA0", "SA"])
def test_the_stored_times_are_those_of_scipy(model):
    times, pairs = merge_times(model)
    rough, _ = merge_times(model, rtol=1e-10)
    assert rough == pytest.approx(times, rel=2e-8)  # the digits that the module states
    assert list(FOUR_TIMES[model]) == pytest.approx(times, rel=5e-9)
    assert [(round(a, 12), round(b, 12)) for a, b in pairs] == [(0.1, 0.2), (0.3, 0.4), (0.3, 0.7)]
