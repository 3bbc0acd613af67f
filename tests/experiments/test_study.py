"""Parts: what is stored is what was made, once."""

import numpy as np
import pytest
import xarray as xr

from attnflow.errors import InvalidInput, RunCorrupted
from attnflow.experiments import Study, open_part
from attnflow.experiments.parts import pack


def example():
    return xr.Dataset(
        {
            "x": (("a", "b"), np.arange(6.0).reshape(2, 3) / 7, {"unit": np.float64(0.1)}),
            "flag": ("a", [True, False]),
            "count": ((), np.int32(4)),
            "single": ("b", np.array([np.nan, -0.0, np.inf], np.float32)),
        },
        {"a": [0.1, 0.2], "model": ("a", np.array(["SA", "USA0"], dtype=object)), "b": ["p", "q", "r"]},
        {"steps": np.arange(3), "words": "β ≤ 1"},
    )


def test_a_part_keeps_values_kinds_and_labels(tmp_path):
    made = Study(tmp_path).part("one", example)
    for name, variable in example().variables.items():
        np.testing.assert_array_equal(made[name].values, variable.values)
        assert made[name].dims == variable.dims
        if variable.dtype != object:
            assert made[name].dtype == variable.dtype
    assert set(made.coords) == {"a", "b", "model"}
    assert made["x"].sel(a=0.2, b="q") == 4.0 / 7
    assert made.attrs == {"steps": [0, 1, 2], "words": "β ≤ 1"}
    assert made["x"].attrs == {"unit": 0.1}
    assert pack(made) == pack(open_part(tmp_path / "one.npz"))


def test_a_part_is_made_once(tmp_path):
    first = Study(tmp_path).part("one", example)

    def never():
        raise AssertionError

    again = Study(tmp_path).part("one", never)
    assert pack(again) == pack(first)


def test_what_cannot_be_kept_is_refused(tmp_path):
    study = Study(tmp_path)
    for name in ("", "a/b", "../a", ".hidden"):
        with pytest.raises(InvalidInput, match="becomes a file"):
            study.part(name, example)
    study.part("one", example)
    with pytest.raises(InvalidInput, match="asked for twice"):
        study.part("one", example)
    with pytest.raises(InvalidInput, match="make an xarray Dataset"):
        study.part("two", lambda: {"x": 1})
    with pytest.raises(InvalidInput, match="holds Python objects"):
        study.part("three", lambda: xr.Dataset({"x": ("a", np.array([1, None], dtype=object))}))
    with pytest.raises(InvalidInput, match="cannot be written as JSON"):
        study.part("four", lambda: xr.Dataset(attrs={"x": {1, 2}}))
    with pytest.raises(InvalidInput, match="is called 'header'"):
        study.part("five", lambda: xr.Dataset({"header": 1.0}))
    assert [file.name for file in tmp_path.iterdir()] == ["one.npz"]


@pytest.mark.parametrize("keep", [0.0, 0.5, 0.98])
def test_a_damaged_part_is_noticed(keep, tmp_path):
    Study(tmp_path).part("one", example)
    content = (tmp_path / "one.npz").read_bytes()
    (tmp_path / "one.npz").write_bytes(content[: int(keep * len(content))])
    with pytest.raises(RunCorrupted, match="remove it and resume"):
        Study(tmp_path).part("one", example)


def test_altered_numbers_are_noticed(tmp_path):
    Study(tmp_path).part("one", example)
    content = bytearray((tmp_path / "one.npz").read_bytes())
    spot = bytes(content).index(np.float64(4.0 / 7).tobytes())
    content[spot] ^= 1
    (tmp_path / "one.npz").write_bytes(content)
    with pytest.raises(RunCorrupted):
        open_part(tmp_path / "one.npz")


def test_progress_is_passed_on(tmp_path):
    seen = []
    study = Study(tmp_path, lambda text, share: seen.append((text, share)))
    study.progress("half", 0.5)
    study.progress("more than all", 1.2)
    assert seen == [("half", 0.5), ("more than all", 1.0)]
