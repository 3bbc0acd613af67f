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
    "attnflow.spaces": ["Euclidean", "Product", "Sphere", "Torus"],
    "attnflow.tokens": ["Measure", "Tokens", "from_array", "stack", "uniform"],
    "attnflow.masks": ["Causal", "Window"],
    "attnflow.fields": [
        "AbstractField", "Attention", "Composed", "Hardmax", "Perceptron", "Potential", "Rescaled", "Sinkhorn",
        "Softmax", "Unnormalised",
    ],
    "attnflow.flows": [
        "Adaptive", "Alternate", "Brownian", "Exact", "Fixed", "Heun", "Layers", "LongTime", "Observable", "advance",
        "flow_map", "merge_times", "solve", "solve_long",
    ],
    "attnflow.plots": ["plot"],
    "attnflow.runs": ["open_run", "register"],
}  # fmt: skip
"""What stands at the top, by where it comes from."""
_ROOMS = {
    "tokens": "attnflow.tokens", "spaces": "attnflow.spaces", "kernels": "attnflow.kernels", "masks": "attnflow.masks",
    "sums": "attnflow.sums", "fields": "attnflow.fields", "weights": "attnflow.fields.weights",
    "norms": "attnflow.fields.norms", "encodings": "attnflow.fields.encodings", "flows": "attnflow.flows",
    "save": "attnflow.flows.save", "stop": "attnflow.flows.stop", "updates": "attnflow.flows.methods.updates",
    "rules": "attnflow.flows.methods.rules", "noises": "attnflow.flows.noises", "observe": "attnflow.observe",
    "meanfield": "attnflow.meanfield", "stability": "attnflow.stability", "learn": "attnflow.learn",
    "theory": "attnflow.theory", "special": "attnflow.special", "runs": "attnflow.runs", "plots": "attnflow.plots",
    "experiments": "attnflow.experiments", "errors": "attnflow.errors",
}  # fmt: skip
"""Where the rest stands: the room, and the module that it is."""
_WHERE = {name: home for home, names in _HOME.items() for name in names}

__all__ = ["__version__", *sorted(_WHERE), *_ROOMS]


def __getattr__(name: str) -> Any:
    """Load rooms when they are first used: plots, xarray and Diffrax cost nothing to those who do not need them.

    (Editors and type checkers read `__init__.pyi` instead, which `python -m tests.stub` writes from the lists above.)
    """
    if name in _WHERE:
        value = getattr(importlib.import_module(_WHERE[name]), name)
    elif name in _ROOMS:
        value = importlib.import_module(_ROOMS[name])
    else:
        raise AttributeError(f"module 'attnflow' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
