"""Ways to break the simulation."""

from attnflow.experiments import Mutation, scaled
from attnflow_gallery.layer_norms import simulate

MUTATIONS = (
    Mutation("beta 0.1 % larger", simulate, "Attention", scaled("beta", 1.001)),
    Mutation("time steps end 1 % late", simulate, "advance", scaled("t1", 1.01)),
    Mutation("nGPT: alpha 0.01 % larger", simulate, "Ngpt", scaled("alpha", 1.0001)),
    Mutation("Pre-LN: no norm", simulate, "Pre", lambda original: lambda inner: inner),
    Mutation("Peri-LN: no norm", simulate, "Peri", lambda original: lambda inner: inner),
    Mutation("Peri-LN: only the inner norm", simulate, "Peri", lambda original: simulate.Pre),
    Mutation("Mix-LN: switches 1 % late", simulate, "Mix", scaled("switch", 1.01)),
    Mutation("Mix-LN: never switches", simulate, "Mix", scaled("switch", 1e9)),
    Mutation("LN-scaling: no scale", simulate, "Scaled", lambda original: simulate.Pre),
)
