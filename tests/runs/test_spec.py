import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput, InvalidSpec
from attnflow.runs import execute, load_spec, parse_spec, preset_names, preset_text

BASE = """
name = "small"
[tokens]
name = "uniform"
n = 12
space = { name = "sphere", dim = 3 }
[field]
name = "attention"
beta = 4.0
[solve]
until = 2.0
"""


def test_defaults_are_written_out():
    table = parse_spec(BASE).table
    assert table["tokens"]["seed"] == 0
    assert table["field"]["normaliser"] == {"name": "softmax"}
    assert table["solve"]["method"] == {"name": "adaptive", "rtol": 1e-8, "atol": 1e-10}
    assert table["solve"]["save"] == {"name": "evenly", "count": 200}
    assert table["solve"]["keep"] == ["positions", "speed", "floor", "resolved", "spread", "energy"]
    assert "chunk" not in table["solve"]  # it does not change results


def test_resolved_specs_are_fixed_points():
    spec = parse_spec(BASE)
    again = parse_spec(spec.to_toml())
    assert again == spec
    assert again.hash == spec.hash
    assert parse_spec(BASE, ["field.beta=5.0"]).hash != spec.hash


def test_building_gives_what_the_library_gives():
    made = parse_spec(BASE, ["tokens.seed=[1,2]", "field.beta=[1.0, 2.0]", 'field.normaliser.name="unnormalised"']).work
    assert np.array_equal(made.tokens.positions, af.uniform(af.Sphere(3), n=12, seed=[1, 2]).positions)
    assert made.field.beta.dim == "beta"
    assert isinstance(made.field.normaliser, af.Unnormalised)


def test_changes_without_quotes_and_new_tables():
    spec = parse_spec(BASE, ["solve.method.name=fixed", "solve.method.step=0.05", "precision=float32"])
    assert spec.table["solve"]["method"] == {"name": "fixed", "step": 0.05, "rule": {"name": "rk4"}}
    assert spec.work.tokens.positions.dtype == np.float32


def test_a_new_name_starts_its_part_afresh():
    text = parse_spec(BASE, ["solve.method.rtol=1e-6"]).to_toml()
    spec = parse_spec(text, ["solve.method.step=0.05", "solve.method.name=fixed"])
    assert spec.table["solve"]["method"] == {"name": "fixed", "step": 0.05, "rule": {"name": "rk4"}}


def test_matrices_and_arrays():
    made = parse_spec(BASE, ["field.value=[[1,0,0],[0,-1,0],[0,0,1]]"]).work
    assert made.field.value.weight.shape == (3, 3)
    text = BASE.replace(
        'name = "uniform"\nn = 12\nspace = { name = "sphere", dim = 3 }',
        'name = "array"\npositions = [[1,0,0],[0,1,0]]\nspace = { name = "sphere", dim = 3 }',
    )
    assert parse_spec(text).work.tokens.n == 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["field.bta=9"], r"unknown key 'field.bta'; did you mean 'beta'\?"),
        (["solve.untill=9"], r"'solve.untill'; did you mean 'until'\?"),
        (["tokns.n=9"], r"unknown key 'tokns'.*'tokens'"),
        (["field.name=atention"], "did you mean 'attention'"),
        (["tokens.name=unifrm"], "did you mean 'uniform'"),
        (["solve.method.name=rk45"], "solve.method.name"),
        (["solve.save.name=log"], "did you mean 'log-spaced'"),
        (["field.normaliser=softmax"], "table with a `name`"),
        (["field.beta=nan"], "`beta` is nan"),
        (["field.beta=inf"], "`beta` is inf"),
        (["field.beta=warm"], "`beta` is 'warm'"),
        (["solve.until=-1"], "`solve.until` is -1"),
        (["solve.until=inf"], "`solve.until` is inf"),
        (["solve.stop=consensus"], "list of tables"),
        (["tokens.n=0"], "`n` is 0"),
        (["tokens.n=many"], "`n` is 'many'"),
        (["tokens.space.dim=1"], "`dim` of Sphere is 1"),
        (["precision=float16"], "precision"),
        (["name=a/b"], "no slashes"),
        (["field"], "write part.key=value"),
        (["field.beta.x=1"], "is a value, not a table"),
        (["solve.method.rtol=0"], "`rtol` is 0"),
    ],
)
def test_mistakes_are_named(changes, words):
    with pytest.raises(InvalidInput, match=words) as caught:
        parse_spec(BASE, changes)
    assert "\n" not in str(caught.value)


def test_other_mistakes():
    with pytest.raises(InvalidSpec, match="not valid TOML"):
        parse_spec("name = ")
    with pytest.raises(InvalidSpec, match=r"none of \[solve\], .*; give one of them"):
        parse_spec("name = 'x'")
    with pytest.raises(InvalidSpec, match=r"both \[solve\] and \[solve_long\]"):
        parse_spec(BASE + "[solve_long]\n")
    with pytest.raises(InvalidSpec, match=r"no table \[field\]"):
        parse_spec("[solve]\nuntil = 1\n")
    with pytest.raises(InvalidSpec, match="needs the key 'n'"):
        parse_spec(BASE.replace("n = 12", ""))
    with pytest.raises(InvalidSpec, match="no preset 'metastabilty'; did you mean 'metastability'"):
        load_spec("metastabilty")
    with pytest.raises(InvalidSpec, match="cannot read"):
        load_spec("missing.toml")


@pytest.mark.parametrize("name", preset_names())
def test_presets_are_complete(name):
    assert parse_spec(preset_text(name)).name == name


def test_long_time_has_no_end_unless_one_is_given():
    long = BASE.replace("[solve]\nuntil = 2.0", "[solve_long]")
    spec = parse_spec(long)
    assert "until" not in spec.table["solve_long"]
    assert spec.work.until == np.inf
    assert parse_spec(spec.to_toml()) == spec
    assert parse_spec(long, ["solve_long.until=1e30"]).work.until == 1e30
    with pytest.raises(InvalidSpec, match="solve_long"):
        parse_spec(BASE, ["solve.until=inf"])
    with pytest.raises(InvalidSpec, match="unknown key 'solve_long.save'"):
        parse_spec(long, ["solve_long.save.name=evenly"])


def test_what_cannot_be_carried_out_is_refused_before_anything_is_saved(tmp_path):
    for change, words in (("solve.chunk=0", "`chunk` is 0"), ("solve.keep=['speeds']", "`keep` is"),
                          ("solve.method.name=alternate", "Alternate")):  # fmt: skip
        with pytest.raises(InvalidInput, match=words):
            execute(parse_spec(BASE, [change]), tmp_path / "run")
        assert not (tmp_path / "run").exists()
