"""Axes as people write them."""

import numpy as np
import pytest

from attnflow.errors import InvalidInput
from attnflow.sweeps.ranges import Axis, axes_of, axis_of, points, zipped


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a.b=0:4", [0, 1, 2, 3]),
        ("a.b=-2:1", [-2, -1, 0]),
        ("a.b=1:81:3log", [1.0, 9.0, 81.0]),
        ("a.b=0:1:5", [0.0, 0.25, 0.5, 0.75, 1.0]),
        ("a.b=1,4,9", [1, 4, 9]),
        ("a.b=[1.5, 2]", [1.5, 2]),
        ("a.b=7", [7]),
        ("a.b=softmax,unnormalised", ["softmax", "unnormalised"]),
        ('a.b="x:y"', ["x:y"]),
        ('a.b=[{name = "identity"}]', [{"name": "identity"}]),
    ],
)
def test_texts(text, values):
    axis = axis_of(text)
    assert axis.keys == ("a.b",)
    found = [value for (value,) in axis.values]
    # geomspace multiplies powers: a few units in the last place
    assert found == pytest.approx(values, rel=1e-14) if isinstance(values[0], float) else found == values
    assert [type(one) for one in found] == [type(one) for one in values]


def test_products_and_axes_that_vary_together():
    over = {"x": [1, 2], ("y", "z"): [(3, "p"), (4, "q")], "s": {"log": [1, 100], "num": 3}}
    axes = axes_of(over)
    found = list(points(axes))
    assert len(found) == 2 * 2 * 3
    assert found[:2] == [{"x": 1, "y": 3, "z": "p", "s": 1.0}, {"x": 1, "y": 3, "z": "p", "s": pytest.approx(10.0)}]
    assert zipped([axis_of("y=3,4"), axis_of("z=p,q")]) == axes[1]
    assert axes[1].coordinate("z").tolist() == ["p", "q"]
    assert Axis.from_json(axes[1].to_json()) == axes[1]
    assert axes_of({"k": np.arange(3)})[0] == axis_of("k=0:3")


@pytest.mark.parametrize(
    ("over", "words"),
    [
        ({}, "no axis"),
        ({"a": []}, "no values"),
        ({"a": [1, 2, 1.0]}, "more than once"),
        ({"a": [1], ("a", "b"): [(1, 2)]}, "two axes"),
        ({"a": "1:x:3"}, "write 0:64"),
        ({"a": "5:1"}, "the second larger"),
        ({"a": "0:1:3log"}, "above 0"),
        ({"a": "0:1:0"}, "number of values"),
        ({"a": 3}, "give a list"),
        ({"a": [float("nan")]}, "finite"),
        ({"a": [object()]}, "numbers, texts"),
        ({("a", "b"): [1]}, "one value for each key"),
        ({"a": {"log": [1], "num": 3}}, "two numbers"),
        ({"a": {"steps": 3}}, "write {log"),
        ({"a": "0:100000", "b": "0:1000"}, "100,000,000 points"),
        ([1], "by key"),
    ],
)
def test_refusals(over, words):
    with pytest.raises(InvalidInput, match=words):
        axes_of(over)


def test_axes_of_different_lengths_do_not_vary_together():
    with pytest.raises(InvalidInput, match="y has 2 values, z has 3"):
        zipped([axis_of("y=1,2"), axis_of("z=1,2,3")])
