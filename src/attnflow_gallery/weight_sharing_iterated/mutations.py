"""Ways to break the physics."""

from typing import Any

from attnflow.experiments import Mutation, altered, result
from attnflow_gallery.weight_sharing_iterated import simulate


def without_biases(net: Any) -> Any:
    """The network without its biases, in place of the trained one."""
    return net.null("biases zero", 0)


MUTATIONS = (
    Mutation("the full layer has no biases", simulate, "trained", result(without_biases)),
    Mutation("all ablations leave norms alone", simulate, "ablated", altered("kind", lambda kind: "norms only")),
    Mutation(
        "ablations leave nothing out", simulate, "ablated", lambda original: lambda which, *_: simulate.network(which)
    ),
)
