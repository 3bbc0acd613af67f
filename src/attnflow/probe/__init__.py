"""The probe: the instruments of the library on trained networks, with nulls beside every number.

A `Stream` holds the activations of a network; its `tokens()` have a dimension `layer`, so that every observable applies
to them. `measure` gives all numbers of a stream in one dataset, `compare` those of a network beside its nulls.
"""

from attnflow.lazy import listing
from attnflow.probe.adapters import from_nnsight, from_transformer_lens, from_transformers
from attnflow.probe.cases import compare
from attnflow.probe.comparison import Comparison
from attnflow.probe.heads import Fit, fit_beta
from attnflow.probe.measurement import measure
from attnflow.probe.network_protocol import Heads, Network
from attnflow.probe.sinks import find_sinks
from attnflow.probe.stored import open_stream
from attnflow.probe.stream import Stream, as_stream

__all__ = [
    "Comparison",
    "Fit",
    "Heads",
    "Network",
    "Stream",
    "as_stream",
    "compare",
    "find_sinks",
    "fit_beta",
    "from_nnsight",
    "from_transformer_lens",
    "from_transformers",
    "measure",
    "open_stream",
]
__dir__ = listing(__all__)
