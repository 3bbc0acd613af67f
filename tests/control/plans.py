"""Parts of planners that no result shows alone, in one place: how clouds are divided, cut, spread and carried."""

from attnflow.control.division import merged, same_measure, subset
from attnflow.control.planner import caps_beside, carry, cut, divide
from attnflow.control.sphere import SpherePlanner, amplification, clouds_apart, disentangle, expansion, spread
from attnflow.control.stage import NoPlan, Stage

__all__ = [
    "NoPlan", "SpherePlanner", "Stage", "amplification", "caps_beside", "carry", "clouds_apart", "cut", "disentangle",
    "divide", "expansion", "merged", "same_measure", "spread", "subset",
]  # fmt: skip
