"""Trained networks: fetched, read without running foreign code, and run layer by layer.

| what | where |
|---|---|
| which networks are known, and how they are fetched | `catalogue.py`, `fetching.py` |
| files: safetensors, GGUF, torch pickles, each within its memory | `files/` |
| text and ids | `tokenizers.py` |
| forward passes of the families Llama and BERT/ALBERT | `families/` |
| one network: `run`, `null`, `heads_of`, `field` | `model.py`, `nulls.py`, `as_field.py` |
| networks by name, by path, and random ones | `opening.py`, `own_format.py` |
"""

from typing import TYPE_CHECKING

from attnflow.lazy import loader

if TYPE_CHECKING:
    from attnflow.probe.networks.catalogue import known_networks
    from attnflow.probe.networks.fetching import fetch
    from attnflow.probe.networks.model import Network
    from attnflow.probe.networks.opening import network
    from attnflow.probe.networks.own_format import random_network, save_network

__all__ = ["Network", "fetch", "known_networks", "network", "random_network", "save_network"]
_HOME = {
    "attnflow.probe.networks.catalogue": ["known_networks"],
    "attnflow.probe.networks.fetching": ["fetch"],
    "attnflow.probe.networks.model": ["Network"],
    "attnflow.probe.networks.opening": ["network"],
    "attnflow.probe.networks.own_format": ["random_network", "save_network"],
}
__getattr__, __dir__ = loader(__name__, _HOME)
