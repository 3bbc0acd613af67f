"""attnflow: transformers as flows of measures.

Depth is time, tokens are particles on the sphere, attention is their interaction. See `solve` to follow tokens,
`Attention` for the field, `theory` for what closed forms predict.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "attnflow.axes": ["Along"],
    "attnflow.precision": ["double"],
    "attnflow.spaces": ["CentredSphere", "Ellipsoid", "Euclidean", "Sphere"],
    "attnflow.masks": ["Causal", "Everyone", "Table", "Window"],
    "attnflow.tokens": [
        "Measure", "Tokens", "caps", "clustered", "equiangular", "from_array", "orthonormal", "ring", "simplex",
        "stack", "uniform", "von_mises_fisher",
    ],
    "attnflow.sums": ["Circle", "Cutoff", "Dense", "FastSphere", "Fused", "Harmonics", "Tiled", "choose"],
    "attnflow.fields": [
        "AbstractField", "Attention", "Composed", "Function", "Hardmax", "Interpolated", "LayerNorm", "Mix",
        "Ngpt", "PerLayer", "Perceptron", "Peri", "Potential", "Pre", "Random", "Rescaled", "RmsNorm",
        "Rotary", "Scaled", "Sinkhorn", "Sinusoidal", "Softmax", "Total", "Unnormalised", "sinusoids",
    ],
    "attnflow.observe": [
        "attention_matrix", "boolean_rows", "cluster_scale", "clusters", "convex_hull", "dissipation", "distance",
        "distinct", "effective_rank", "energy", "energy0", "energy_rate", "exit_distribution", "hyperplane_coordinates",
        "interaction_energy", "leaders", "log_energy", "modes", "order_parameter", "overlap_histogram", "overlaps",
        "plateaus", "slow_motion", "slow_motion_along", "speed", "spread", "total_energy",
    ],
    "attnflow.flows": [
        "Adaptive", "Alternate", "At", "Brownian", "Consensus", "Evenly", "EveryLayer", "Fixed", "FlowMap", "Heun",
        "Layers", "LogSpaced", "LongFlow", "LongTime", "Observable", "Outcome", "Progress", "Project",
        "ProjectRenormalise", "Renormalise", "Still", "Trajectory", "Tree", "When", "advance", "flow_map",
        "merge_times", "solve", "solve_long",
    ],
    "attnflow.plots": ["plot"],
    "attnflow.runs": ["open_run", "register"],
    "attnflow.experiments": ["Claim", "Study"],
}  # fmt: skip
_ROOMS = [
    "theory", "stability", "learn", "meanfield", "sums",
    "observe", "flows", "fields", "runs", "plots", "experiments", "errors", "special",
]  # fmt: skip
_WHERE = {name: home for home, names in _HOME.items() for name in names}

__all__ = ["__version__", *sorted(_WHERE), *_ROOMS]


def __getattr__(name: str) -> Any:
    """Load rooms when they are first used: plots, xarray and Diffrax cost nothing to those who do not need them.

    (Editors and type checkers read `__init__.pyi` instead, which `python -m tests.stub` writes from the lists above.)
    """
    if name in _WHERE:
        value = getattr(importlib.import_module(_WHERE[name]), name)
    elif name in _ROOMS:
        value = importlib.import_module(f"attnflow.{name}")
    else:
        raise AttributeError(f"module 'attnflow' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
