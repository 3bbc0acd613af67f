"""Kinds whose fields hold several parts: lists of tables beside the table of the kind, and within it."""

import pytest

import attnflow as af
from attnflow.errors import InvalidSpec
from attnflow.runs import parse_spec

FILE = '''
import dataclasses
from collections.abc import Sequence

import attnflow as af
from attnflow.flows import AbstractWork, Still


@af.register("kind", "several")
@dataclasses.dataclass(frozen=True)
class Several(AbstractWork):
    """A field that is a list of tables, and two keys that may be lists."""

    end = None

    left: Sequence[af.Tokens]
    right: list[af.Tokens] | None = None
    calm: tuple[Still, ...] = (Still(0.5),)
    numbers: Sequence[float] = (1.0, 2.0)
    limits: dict = dataclasses.field(default_factory=lambda: {"low": 0.0})

    def checked(self):
        return self

    def stepper(self):
        raise NotImplementedError

    def result(self, driven):
        raise NotImplementedError
'''
TOKENS = 'name = "uniform"\nspace = { name = "sphere", dim = 3 }\nn = '
TEXT = f"[[left]]\n{TOKENS}2\n[[left]]\n{TOKENS}3\nseed = 4\n[several]\n"


@pytest.fixture
def parse(tmp_path):
    (tmp_path / "several.py").write_text(FILE)
    return lambda text: parse_spec(text, plugins=[tmp_path / "several.py"])


def test_lists_of_tables_are_filled_and_built(parse):
    spec = parse(TEXT + f"[[several.right]]\n{TOKENS}5\n[[several.calm]]\nname = 'still'\nspeed = 0.1\n")
    assert [one["seed"] for one in spec.table["left"]] == [0, 4]
    assert [one.n for one in spec.work.left] == [2, 3]
    assert spec.work.left[1].positions.tolist() == af.uniform(af.Sphere(3), n=3, seed=4).positions.tolist()
    assert [one.n for one in spec.work.right] == [5]
    assert [type(one).__name__ for one in spec.work.calm] == ["Still"]
    assert parse(spec.to_toml()).hash == spec.hash


def test_defaults_of_lists_are_written_out(parse):
    spec = parse(TEXT)
    assert "right" not in spec.table["several"]
    assert spec.table["several"]["calm"] == [{"name": "still", "speed": 0.5}]
    assert spec.table["several"]["numbers"] == [1.0, 2.0]
    assert spec.work.calm[0].speed == 0.5
    assert parse(TEXT + "limits = { high = 1.0 }\n").work.limits == {"low": 0.0, "high": 1.0}
    assert parse("left = []\n[several]\n").work.left == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[several]\n", r"no list of tables \[\[left\]\]"),
        (f"[left]\n{TOKENS}2\n[several]\n", r"must be a list of tables \[\[left\]\]"),
        (TEXT.replace("uniform", "unifrom", 1), r"`left\[0\].name` is 'unifrom'.*did you mean 'uniform'"),
        ("left = [3]\n[several]\n", r"`left\[0\]` is 3; give a table"),
        (
            TEXT + 'numbers = { name = "still" }\n',
            "`several.numbers` is a table; the key 'numbers' of 'several' takes a",
        ),
        (TEXT + "right = [3]\n", r"`several.right\[0\]` is 3; give a table"),
    ],
)
def test_mistakes_in_lists_are_named(parse, text, words):
    with pytest.raises(InvalidSpec, match=words):
        parse(text)
