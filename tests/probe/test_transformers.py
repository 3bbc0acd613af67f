"""A trained network has the states that transformers computed."""

import json
from pathlib import Path

import numpy as np
import pytest

from attnflow.probe.networks import network
from tests.probe.small import states_of

STATES = Path(__file__).with_name("rxnmapper.json")
"""Two texts as ids, and the first coordinates of their states in every layer (campaigns/oracle.py)."""


@pytest.mark.slow
def test_a_trained_network_is_that_of_transformers(tmp_path, monkeypatch):
    """RXNMapper, fetched from the index: the first coordinates of its states in every layer are those that transformers
    computed. 1e-5 of the largest coordinate is what float32 leaves after twelve layers."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    net = network("rxnmapper")
    assert net.facts["package"] == "rxnmapper==0.4.3"
    rows = json.loads(STATES.read_text(encoding="utf-8"))
    for row in rows:
        states, theirs = states_of(net, row["ids"]), np.asarray(row["states"])
        found = states.hidden[..., : theirs.shape[-1]]
        assert np.abs(found - theirs).max() < 1e-5 * np.abs(theirs).max()
        assert np.abs(states.attention.sum(axis=-1) - 1).max() < 1e-5
    text = "CC(C)S.CN(C)C=O.Fc1cccnc1F.O=C([O-])[O-].[K+].[K+]>>CC(C)Sc1ncccc1F"
    assert net.encode(text).tolist() == rows[0]["ids"]
    assert net.words(net.encode(text))[:5] == ("[CLS]", "C", "C", "(", "C")
