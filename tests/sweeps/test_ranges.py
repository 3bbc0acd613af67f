"""Axes as people write them."""

import numpy as np
import pytest

from attnflow import fields, flows, spaces, tokens
from attnflow.errors import InvalidInput
from attnflow.sweeps import Axis, axis_of, open_sweep, sweep
from tests.cli.commands import attnflow
from tests.sweeps.tasks import SPEC


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a.b=range(4)", [0, 1, 2, 3]),
        ("a.b=range(-2, 1)", [-2, -1, 0]),
        ("a.b=range(16,64,16)", [16, 32, 48]),
        ("a.b=logspace(1,81,3)", [1.0, 9.0, 81.0]),
        ("a.b=linspace(0,1,5)", [0.0, 0.25, 0.5, 0.75, 1.0]),
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


def planned(what, over, folder):
    """The plan of a sweep that ends before its first task."""

    def stop(progress):
        if (folder / "sweep.json").exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(what, over, folder, on_progress=stop)
    return open_sweep(folder).plan


def four(x, y, z, s):
    return x


def test_products_and_axes_that_vary_together(tmp_path):
    over = {"x": [1, 2], ("y", "z"): [(3, "p"), (4, "q")], "s": "logspace(1,100,3)"}
    plan = planned(four, over, tmp_path / "product")
    points = [point for unit in plan.units for point in plan.points(unit)]
    assert len(points) == plan.count == 2 * 2 * 3
    assert points[:2] == [{"x": 1, "y": 3, "z": "p", "s": 1.0}, {"x": 1, "y": 3, "z": "p", "s": pytest.approx(10.0)}]
    assert plan.axes[1] == Axis(("y", "z"), ((3, "p"), (4, "q")))
    assert plan.axes[1].coordinate("z").tolist() == ["p", "q"]
    assert Axis.from_json(plan.axes[1].to_json()) == plan.axes[1]
    over = {"x": np.arange(3), "y": [0], "z": [0], "s": [0]}
    assert planned(four, over, tmp_path / "array").axes[0] == axis_of("x=range(0,3)")


def test_axes_that_the_command_line_lets_vary_together(tmp_path):
    """Of two points the second one is refused; the product of both axes would have four."""
    (tmp_path / "small.toml").write_text(SPEC)
    axes = ["--zip", "field.beta=1,2", "--zip", "tokens.n=4,0"]
    said = attnflow("sweep", "small.toml", *axes, cwd=tmp_path, check=2).stderr
    assert said.startswith("2 points: field.beta (2)\n")
    assert "the point field.beta = 2, tokens.n = 0 is refused" in said


@pytest.mark.parametrize(
    ("over", "words"),
    [
        ({}, "no axis"),
        ({"a": []}, "no values"),
        ({"a": [1, 2, 1.0]}, "more than once"),
        ({"a": [1], ("a", "b"): [(1, 2)]}, "two axes"),
        ({"a": "0:64"}, r"write range\(0,64\) for whole numbers, or linspace\(0,64,N\) for N values"),
        ({"a": "16:64:4"}, r"write range\(16,64,4\) for whole numbers, or linspace\(16,64,4\) for 4 values"),
        ({"a": "0.5:64:4"}, r"write linspace\(0.5,64,4\) for 4 values\."),
        ({"a": "1:81:9log"}, r"write logspace\(1,81,9\)\."),
        ({"a": "1:x:3"}, "in quotes"),
        ({"a": "[1,2"}, "write a list 1,4,9 or"),
        ({"a": "1,2]"}, "write a list 1,4,9 or"),
        ({"a": "1,,2"}, "write a list 1,4,9 or"),
        ({"a": "range(0,4),range(8,12)"}, "write a list 1,4,9 or"),
        ({"a": "geomspace(1,81,9)"}, r"or logspace\(1,81,9\)\."),
        ({"a": "range(5,1)"}, "no values"),
        ({"a": "range(0,0.5)"}, r"whole numbers, as in range\(0,64\)"),
        ({"a": "range(0,4,0)"}, "whole numbers"),
        ({"a": "range(0," + "9" * 40 + ")"}, "more than 10,000,000 values"),
        ({"a": "logspace(0,1,3)"}, "above 0"),
        ({"a": "linspace(0,1)"}, "number of values"),
        ({"a": "linspace(0,1,0)"}, "number of values"),
        ({"a": "linspace(0,1,99999999999)"}, "more than 10,000,000 values"),
        ({"a": "linspace(0,1e999,3)"}, "give numbers"),
        ({"a": "linspace(0," + "1" * 5000 + ",3)"}, "give numbers"),
        ({"a": "linspace(-1e308,1e308,3)"}, "finite"),
        ({"a": 3}, "give a list"),
        ({"a": [float("nan")]}, "finite"),
        ({"a": [object()]}, "numbers, texts"),
        ({("a", "b"): [1]}, "one value for each key"),
        ({"a": {"log": [1, 81], "num": 3}}, r"a text such as 'logspace\(1,81,9\)'"),
        ({"a": "range(100000)", "b": "range(1000)"}, "100,000,000 points"),
        ({1}, "by key"),
    ],
)
def test_refusals(over, words, tmp_path):
    with pytest.raises(InvalidInput, match=words):
        sweep(four, over, tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_axes_of_different_lengths_do_not_vary_together(tmp_path):
    (tmp_path / "small.toml").write_text(SPEC)
    axes = ["--zip", "field.beta=1,2", "--zip", "tokens.seed=1,2,3"]
    said = attnflow("sweep", "small.toml", *axes, cwd=tmp_path, check=2).stderr
    assert "field.beta has 2 values, tokens.seed has 3" in said


def count(n: int, scale: float) -> float:
    return n * scale


def test_fields_that_take_integers_get_them(tmp_path):
    """`linspace`, `logspace` and arrays of whole floats serve integer fields of specifications, functions and work."""

    def columns(what, **over):
        """The values of each axis as a sweep of `what` uses them."""
        plan = planned(what, over, tmp_path / str(len(list(tmp_path.iterdir()))))
        return [axis.coordinate(axis.dim).tolist() for axis in plan.axes]

    over = {"tokens.n": "logspace(16,64,3)", "tokens.seed": np.linspace(0, 2, 3), "field.beta": "linspace(1,81,3)"}
    work = flows.Solve(fields.Attention(2.0), tokens.uniform(spaces.Sphere(3), n=4), 1.0)
    for values, integers, floats in (
        (columns("clusters", **over), [[16, 32, 64], [0, 1, 2]], [[1.0, 41.0, 81.0]]),
        (columns(count, n="linspace(2,6,3)", scale="linspace(2,6,3)"), [[2, 4, 6]], [[2.0, 4.0, 6.0]]),
        (columns(work, chunk="linspace(2,6,3)", until=[1.0, 2.0]), [[2, 4, 6]], [[1.0, 2.0]]),
    ):
        assert values == integers + floats
        assert [type(column[0]) for column in values] == [int] * len(integers) + [float] * len(floats)
    with pytest.raises(InvalidInput, match="'tokens.n' has the value 21.3333, and it takes integers"):
        columns("clusters", **{"tokens.n": "linspace(16,32,4)"})
    with pytest.raises(InvalidInput, match="it takes integers"):
        columns(count, n=[0.5], scale=[1])


def test_a_sweep_says_how_many_points_it_has_before_anything_starts(tmp_path):
    notes = []
    sweep(
        count,
        {"n": "range(2)", "scale": "linspace(0,1,3)"},
        tmp_path / "s",
        on_progress=lambda at: notes.append(at.note),
    )
    assert notes[0] == "6 points"
