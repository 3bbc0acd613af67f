"""Ways to break the simulation."""

from attnflow.experiments import Mutation, altered, faster, scaled
from attnflow_gallery.propagation_of_chaos import simulate

MUTATIONS = (
    Mutation("30 % fewer tokens", simulate, "sample", altered("n", lambda n: int(0.7 * n))),
    Mutation("quiet tokens instead of iid tokens", simulate, "sample", lambda original: simulate.quiet),
    Mutation("iid tokens instead of quiet tokens", simulate, "quiet", lambda original: simulate.sample),
    Mutation("beta of tokens on the circle 0.1 % larger", simulate, "moving_field", scaled("beta", 1.001)),
    Mutation("beta of tokens on the circle 5 % larger", simulate, "moving_field", scaled("beta", 1.05)),
    Mutation("tokens on the circle: no normalisation", simulate, "moving_field", altered("model", lambda _: "USA0")),
    Mutation("tokens on the circle end 1 % late", simulate, "moving_field", faster(1.01)),
)
