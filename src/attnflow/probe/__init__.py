"""The probe: the instruments of the library on trained networks, with nulls beside every number.

A `Stream` holds the activations of a network; its `tokens()` have a dimension `layer`, so that every observable applies
to them. `measure` gives all numbers of a stream in one dataset, `compare` those of a network beside its nulls.
`network("smollm2")` opens a network; what there is besides is in `probe.networks`.
"""

from typing import TYPE_CHECKING

from attnflow.lazy import loader

if TYPE_CHECKING:
    from attnflow.probe import networks
    from attnflow.probe.adapters import from_nnsight, from_transformer_lens, from_transformers
    from attnflow.probe.comparison import Comparison
    from attnflow.probe.heads import Fit, fit_beta
    from attnflow.probe.measurement import measure
    from attnflow.probe.network_protocol import Heads, NetworkLike
    from attnflow.probe.networks.opening import network
    from attnflow.probe.one_step import Step, effective_step
    from attnflow.probe.sinks import find_sinks
    from attnflow.probe.stored import open_stream
    from attnflow.probe.stream import Stream
    from attnflow.probe.work import Compare, compare

__all__ = [
    "Compare",
    "Comparison",
    "Fit",
    "Heads",
    "NetworkLike",
    "Step",
    "Stream",
    "compare",
    "effective_step",
    "find_sinks",
    "fit_beta",
    "from_nnsight",
    "from_transformer_lens",
    "from_transformers",
    "measure",
    "network",
    "networks",
    "open_stream",
]
_HOME = {
    "attnflow.probe.adapters": ["from_nnsight", "from_transformer_lens", "from_transformers"],
    "attnflow.probe.comparison": ["Comparison"],
    "attnflow.probe.heads": ["Fit", "fit_beta"],
    "attnflow.probe.measurement": ["measure"],
    "attnflow.probe.network_protocol": ["Heads", "NetworkLike"],
    "attnflow.probe.networks.opening": ["network"],
    "attnflow.probe.sinks": ["find_sinks"],
    "attnflow.probe.stored": ["open_stream"],
    "attnflow.probe.one_step": ["Step", "effective_step"],
    "attnflow.probe.stream": ["Stream"],
    "attnflow.probe.work": ["Compare", "compare"],
}
__getattr__, __dir__ = loader(__name__, _HOME, {"networks": "attnflow.probe.networks"})
