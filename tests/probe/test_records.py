"""The records of the campaigns about networks: forward passes against transformers, mutated files of weights."""

import json

import numpy as np
import pytest

from attnflow.probe.networks import network
from tests.history import ROOT, in_history
from tests.probe.small import states_of


def newest(name):
    found = sorted((ROOT / "campaigns" / "records").glob(f"{name}-*.json"))
    assert found, f"there is no record of campaigns/{name}.py; run it and keep what it writes into campaigns/records"
    record = json.loads(found[-1].read_text())
    assert in_history(record["commit"])
    return record


def test_forward_passes_agree_with_transformers():
    """In every layer to 1e-5 in float32; in float64 post-norm networks to 1e-11, and Llama, whose angles transformers
    computes in float32, to 1e-5."""
    networks = newest("oracle")["networks"]
    assert set(networks) == {"smollm2", "minilm", "rxnmapper"}
    for name, one in networks.items():
        depth = {"smollm2": 30, "minilm": 6, "rxnmapper": 12}[name]
        assert [row["dtype"] for row in one["texts"]] == ["float32", "float32", "float64", "float64"]
        for row in one["texts"]:
            assert len(row["hidden"]) == depth + 1
            assert len(row["after_attention"]) == depth
            limit = 1e-11 if row["dtype"] == "float64" and name != "smollm2" else 1e-5
            assert max(row["hidden"] + row["after_attention"]) <= limit


def test_adapters_were_tried_on_the_libraries():
    """Streams of small random models, in float32: three layers of width 32 round to less than 1e-5."""
    record = newest("oracle")
    found = record["adapters"]
    assert set(found) == {"transformers", "transformer_lens", "nnsight"}
    assert set(found["transformers"]) >= {"llama", "bert", "gpt2", "without attention"}
    for library in found.values():
        assert library["version"]
        streams = [one for one in library.values() if isinstance(one, dict)]
        assert streams
        assert all(error <= record["limit"] for one in streams for error in one.values())
    assert "center_writing_weights" in found["transformer_lens"]["notes on processed weights"][0]


def test_mutated_files_gave_no_finding():
    record = newest("weights")
    assert record["count"] >= 10_000
    assert sum(record["mutants"].values()) == record["count"]
    assert record["hostile"]["refused"] == record["hostile"]["files"] > 80
    assert record["findings"] == []


@pytest.mark.slow
def test_a_trained_network_is_that_of_transformers(tmp_path, monkeypatch):
    """RXNMapper, fetched from the index: the first coordinates of its states in every layer are those that transformers
    computed when the record was made. 1e-5 of the largest coordinate is what float32 leaves after twelve layers."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    net = network("rxnmapper")
    assert net.facts["package"] == "rxnmapper==0.4.3"
    for row in newest("oracle")["networks"]["rxnmapper"]["texts"][:2]:
        states, theirs = states_of(net, row["ids"]), np.asarray(row["states"])
        found = states.hidden[..., : theirs.shape[-1]]
        assert np.abs(found - theirs).max() < 1e-5 * np.abs(theirs).max()
        assert np.abs(states.attention.sum(axis=-1) - 1).max() < 1e-5
    text = "CC(C)S.CN(C)C=O.Fc1cccnc1F.O=C([O-])[O-].[K+].[K+]>>CC(C)Sc1ncccc1F"
    assert net.encode(text).tolist() == newest("oracle")["networks"]["rxnmapper"]["texts"][0]["ids"]
    assert net.words(net.encode(text))[:5] == ("[CLS]", "C", "C", "(", "C")
