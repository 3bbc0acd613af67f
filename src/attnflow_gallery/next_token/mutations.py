"""Ways to break the simulation."""

from attnflow.experiments import Mutation, altered, scaled, with_arguments
from attnflow.text import KernelSum
from attnflow_gallery.next_token import simulate

MUTATIONS = (
    Mutation("beta 0.1 % larger", simulate, "Attention", scaled("beta", 1.001)),
    Mutation("read-out by sums of exponentials", simulate, "distribution_along", with_arguments(readout=KernelSum())),
    Mutation("read-out half as cold", simulate, "distribution_along", scaled("beta", 0.5)),
    Mutation("read-out 100 times as hot", simulate, "distribution_along", scaled("beta", 0.01)),
    Mutation("half the time", simulate, "Solve", scaled("until", 0.5)),
    Mutation("one word six times", simulate, "from_text", altered("text", lambda text: " ".join(["new"] * 6))),
)
