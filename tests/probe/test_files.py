"""Files of weights: every format gives the same numbers; hostile and mutated ones one sentence, and nothing runs."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from attnflow.errors import InvalidInput, MissingExtra
from attnflow.probe.networks import network, save_network
from tests.probe import hostile, small
from tests.probe.hostile import open_weights

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What a process with a limit of memory says about hostile files, 200 mutants and the whole files they come from."""
    folder = tmp_path_factory.mktemp("hostile")
    wholes = small.wholes(folder)
    files = {f"whole-{name}": content for name, content in wholes.items()}
    files |= {name.replace(" ", "_"): content for name, content in hostile.hostile().items()}
    files |= dict(hostile.mutants(wholes, seed=20261118, count=200))
    for name, content in files.items():
        (folder / name).write_bytes(content)
    command = [sys.executable, "-m", "tests.probe.hostile", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = {row["file"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert set(files) <= set(found)
    assert not list(folder.glob("HACKED*"))
    return found


@pytest.mark.long
def test_bad_files_give_one_sentence_and_run_nothing(answers):
    for name, row in answers.items():
        assert row["events"] == [], name
        if row["said"] != "read":
            assert row["said"].endswith("."), f"{name}: {row['said']}"
            assert "\n" not in row["said"], f"{name}: {row['said']}"
            assert len(row["said"]) < 500, f"{name}: {row['said']}"
    assert {name for name in answers if name.startswith("whole")} == {
        name for name, row in answers.items() if row["said"] == "read" and not name[0].isdigit() and "own" not in name
    }
    mutants = [row["said"] for name, row in answers.items() if name[0].isdigit()]
    refused = sum(said != "read" for said in mutants)
    assert 0 < refused < len(mutants) == 200  # the mutations reach the headers, and not every one is fatal


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("torch_zip_system", "refused: posix.system"),
        ("torch_legacy_system", "refused: posix.system"),
        ("torch_zip_eval", "refused: builtins.eval"),
        ("torch_zip_gaps", "gaps or repetitions"),
        ("gguf_bytes", "more than 1048576 elements"),
        ("gguf_overlap", "overlap"),
        ("safetensors_20_MB", "header of"),
        ("torch_directory", "table of contents"),
        ("text", "neither GGUF nor torch nor safetensors"),
    ],
)
def test_the_sentence_says_what_is_wrong(answers, name, words):
    assert words in answers[name]["said"]


def test_quantised_numbers_are_those_of_the_library(tmp_path):
    from gguf import GGMLQuantizationType as Kind
    from gguf.quants import dequantize, quantize

    values = np.random.default_rng(2).standard_normal((7, 64)).astype(np.float32)
    arrays = {kind.name: (values, kind) for kind in (Kind.F32, Kind.F16, Kind.BF16, Kind.Q8_0, Kind.Q4_1)}
    file = tmp_path / "a.gguf"
    file.write_bytes(hostile.gguf_file({"general.alignment": 64}, {}))
    file.write_bytes(hostile.gguf_file({"general.name": "a"}, arrays))
    weights = open_weights(file)
    for name, (_, kind) in arrays.items():
        expected = dequantize(quantize(values, kind), kind)
        assert (weights.array(name) == expected).all()
        place = np.zeros((2, 7, 64), np.float32)
        weights.array(name, place[1])
        assert (place[1] == expected).all()
        assert (place[0] == 0).all()
    with pytest.raises(ValueError, match="place of shape"):
        weights.array("F32", np.zeros((7, 63), np.float32))


def test_half_precision_of_safetensors_and_torch(tmp_path):
    import ml_dtypes
    from safetensors.numpy import save_file

    values = np.arange(12, dtype=np.float32).reshape(3, 4) / 7
    brief = {name: values.astype(dtype) for name, dtype in (("half", np.float16), ("brain", ml_dtypes.bfloat16))}
    save_file(brief, tmp_path / "a.safetensors")
    for file in (tmp_path / "a.safetensors",):
        weights = open_weights(file)
        for name, expected in brief.items():
            assert weights.array(name).dtype == np.float32
            assert (weights.array(name) == expected.astype(np.float32)).all()


@pytest.mark.parametrize("legacy", [False, True])
def test_tied_tensors_of_torch_lie_in_one_place(tmp_path, legacy):
    values = np.arange(6, dtype=np.float32)
    entries = {
        "a": hostile.tensor("0", 6, [2, 3], legacy=legacy),
        "tied": hostile.tensor("0", 6, [2, 3], legacy=legacy),
        "row": hostile.tensor("1", 6, [3], offset=3, legacy=legacy),
    }
    make = hostile.torch_legacy if legacy else hostile.torch_zip
    file = tmp_path / "a.bin"
    file.write_bytes(make(hostile.table(entries), {"0": values, "1": values}))
    weights = open_weights(file)
    assert weights.array("a").tolist() == weights.array("tied").tolist() == [[0, 1, 2], [3, 4, 5]]
    assert weights.array("row").tolist() == [3, 4, 5]


def test_what_is_no_file_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(InvalidInput, match="cannot read"):
            open_weights(path)
    with pytest.raises(InvalidInput, match=r"neither a file nor one of the networks smollm2, minilm"):
        network(tmp_path / "none")
    with pytest.raises(InvalidInput, match="holds none of model.gguf"):
        network(tmp_path)


@pytest.mark.parametrize(("module", "name"), [("gguf.constants", "gguf"), ("safetensors", "safetensors")])
def test_a_reader_that_is_not_installed_is_named(tmp_path, faults, module, name):
    file = tmp_path / "a"
    file.write_bytes(small.wholes(tmp_path)[name])
    faults.module(module)
    with pytest.raises(MissingExtra, match=r"install `attnflow\[probe\]`"):
        open_weights(file)
    net = network("random-llama")
    faults.module("safetensors.numpy")
    with pytest.raises(MissingExtra, match=r"install `attnflow\[probe\]`"):
        save_network(net, tmp_path / "b")


def test_a_tokenizer_that_is_not_installed_is_named(tmp_path, faults):
    net = network(small.folder(tmp_path / "net", "llama", "gguf"))
    faults.module("tokenizers")
    with pytest.raises(MissingExtra, match=r"install `attnflow\[probe\]`, or give ids"):
        net.encode("ab")
    assert small.states_of(net, [1, 2]).labels.tolist() == ["<1>", "<2>"]  # ids need no tokenizer
