"""Places: printed rates and overlaps."""

import numpy as np
import pytest

from attnflow.errors import InvalidInput
from attnflow.theory import uniform


def test_rates_of_rotary_attention():
    """Eight digits after the point are printed."""
    for beta, known in ((1, [0.5, 0.44638997, 0.16083010, 0.03501939]), (5, [0.5, 0.89338314, 0.96397012, 0.75853148])):
        np.testing.assert_allclose(uniform.rotary_growth_rates(beta, k=[1, 2, 3, 4]), known, atol=5e-9)
    largest = {9: (3, 1.18577003), 20: (5, 1.66070943), 100: (10, 3.32899922), 1000: (32, 9.89358726)}
    for beta, (degree, rate) in largest.items():
        found = uniform.rotary_growth_rates(beta, k=np.arange(1, 60))
        assert np.argmax(found) + 1 == degree
        np.testing.assert_allclose(found.max(), rate, atol=5e-9)
    gaps = [-uniform.rotary_consensus_rates(beta, q=1) for beta in (1, 5, 20)]
    np.testing.assert_allclose(gaps, [0.55361003, 0.10661686, 0.02532949], atol=5e-9)
    assert uniform.rotary_consensus_rates(5.0, q=0) == 0


def test_overlaps_of_words_with_places():
    """Nine digits after the point are printed; an unsorted list of times keeps its order."""
    a, b = uniform.placed_overlaps([3, 1, 6], 4.0, 1.0, words=3, copies=4)
    np.testing.assert_allclose(a, [0.989875173, 0.755361136, 0.999954612], atol=1e-9)
    np.testing.assert_allclose(b, [0.284024754, 0.077614801, 0.897634495], atol=1e-9)
    assert [float(one) for one in uniform.placed_overlaps(0.0, 4.0, 2.0, words=3, copies=4)] == [0.2, 0.0]


def test_times_at_which_copies_gather_and_words_merge():
    """Five or six digits are printed: the overlap there is 0.99, within its slope times half a unit."""
    for size, gathered, merged in ((0.25, 1.02341, 7.54041), (1, 3.24839, 5.88858), (2, 4.67133, 4.97567)):
        a, b = uniform.placed_overlaps([gathered, merged], 4.0, size, words=6, copies=6)
        np.testing.assert_allclose([a[0], b[1]], 0.99, atol=1e-6)


def test_refusals():
    for call in (
        lambda: uniform.rotary_growth_rates([1.0, 2.0], k=1),
        lambda: uniform.rotary_consensus_rates([1.0], q=1),
        lambda: uniform.placed_overlaps(1.0, 4.0, -1.0, words=3, copies=4),
    ):
        with pytest.raises(InvalidInput):
            call()
