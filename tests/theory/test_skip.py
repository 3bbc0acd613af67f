"""Layers with a weighted skip connection: printed values, whole numbers of layers, limits, refusals."""

import numpy as np
import pytest

from attnflow.errors import InvalidInput
from attnflow.theory import merging, uniform


def layers_until(step, start, ends):
    """Layers until the number is at most each of the ends."""
    found, value, count = [], start, 0
    for end in ends:
        while value > end:
            value, count = float(step(value)), count + 1
        found.append(count)
    return found


@pytest.mark.parametrize(
    ("beta", "skip", "known"),
    [
        (1, 0, [0.20519014046, 1.9160774547e-4, 1.0994979837e-13, 2.0768414258e-41]),
        (2, 1, [0.89703376620, 0.72736835678, 0.48202703385, 0.22786161548]),
        (4, 3, [0.99154186007, 0.98238194281, 0.97243340277, 0.96159407634]),
    ],
)
def test_deficits_of_eight_tokens(beta, skip, known):
    """Eleven digits are printed."""
    found = [1.0]
    for _ in known:
        found.append(float(uniform.layer_deficit(found[-1], beta, 8, skip=skip)))
    np.testing.assert_allclose(found[1:], known, rtol=5e-11)


@pytest.mark.parametrize(
    ("n", "beta", "table"),
    [
        (8, 1, ["2/3/3", "3/6/10", "6/13/23", "17/37/68", "59/135/249"]),
        (32, 4, ["5/5/6", "6/9/13", "10/17/27", "28/49/80", "98/174/288"]),
        (32, 9, ["179/180/180", "223/226/230", "356/363/373", "889/910/941", "3020/3096/3210"]),
    ],
)
def test_layers_to_consensus(n, beta, table):
    for skip, known in zip((0, 0.25, 1, 4, 16), table, strict=True):
        found = layers_until(lambda e, s=skip: uniform.layer_deficit(e, beta, n, skip=s), 1.0, (1e-2, 1e-6, 1e-12))
        assert "/".join(map(str, found)) == known


def test_limits_near_consensus():
    """The next terms are of relative size (3 beta + 1) delta."""
    ratio = uniform.layer_deficit(1e-7, 3.0, 5, skip=[0.5, 1, 4]) / 1e-7
    np.testing.assert_allclose(ratio, [1 / 9, 1 / 4, 0.64], rtol=2e-6)
    np.testing.assert_allclose(uniform.layer_deficit(1e-7, 3.0, 5, skip=0) / ((3 / 5) ** 2 * 1e-21), 1, rtol=2e-6)


def test_growth_from_the_uniform_measure():
    without = uniform.layer_growth(5.0, 2, k=[1, 2, 3, 4], skip=0)
    np.testing.assert_allclose(without, [1.2, 1.57547247, 1.76414956, 1.67170413], atol=5e-9)
    one = uniform.layer_growth(5.0, 2, k=[1, 2, 3, 4])
    np.testing.assert_allclose(one, [1.09436898, 1.27153374, 1.36056006, 1.31694015], atol=5e-9)
    np.testing.assert_allclose(uniform.layer_growth(5.0, 3, k=3), 1.37350821, atol=5e-9)


def test_two_clusters():
    """Twelve digits after the point are printed; layers are whole numbers."""
    two = [1.5]
    for _ in range(2):
        two.append(float(merging.layer_angle(two[-1], 5.0, skip=0)))
    np.testing.assert_allclose(two[1:], [1.480867830613, 1.459859781098], atol=5e-13)
    one = merging.layer_angle(1.5, 5.0)
    np.testing.assert_allclose([one, merging.layer_angle(one, 5.0)], [1.490476134165, 1.480499294875], atol=5e-13)
    for (beta, start), known in {(10, 1.5): [574, 717, 1147], (5, 1): [5, 6, 11]}.items():
        found = [
            layers_until(lambda a, b=beta, s=s: merging.layer_angle(a, b, skip=s), start, [0.01]) for s in (0, 0.25, 1)
        ]
        assert np.ravel(found).tolist() == known


def test_refusals():
    for call in (
        lambda: uniform.layer_deficit(1.2, 1.0, 8),
        lambda: uniform.layer_deficit(0.5, 1.0, 8, skip=-1),
        lambda: uniform.layer_growth(0.0, 2, k=1, skip=0),
        lambda: merging.layer_angle(4.0, 1.0),
    ):
        with pytest.raises(InvalidInput):
            call()
