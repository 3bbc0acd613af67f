"""attnflow: transformers as flows of measures.

Depth is time, tokens are particles on the sphere, attention is their interaction. See `solve` to follow tokens,
`Attention` for the field, `theory` for what closed forms predict.
"""

from attnflow.lazy import loader

__version__ = "0.1.0"

_HOME = {
    "attnflow.axes": ["Along"],
    "attnflow.compilations": ["cache_compilations"],
    "attnflow.precision": ["in_float64"],
    "attnflow.spaces": ["Euclidean", "Product", "Sphere", "Torus"],
    "attnflow.tokens": ["Measure", "Tokens", "from_array", "from_file", "stack", "uniform"],
    "attnflow.masks": ["Causal", "Window"],
    "attnflow.fields": [
        "AbstractField", "Attention", "Composed", "Hardmax", "Perceptron", "Potential", "Rescaled", "Sinkhorn",
        "Softmax", "Unnormalised",
    ],
    "attnflow.flows": [
        "Adaptive", "Alternate", "Brownian", "Exact", "Fixed", "Heun", "Layers", "LongTime", "Observable", "advance",
        "flow_map", "merge_times", "solve", "solve_long",
    ],
    "attnflow.text": ["from_text"],
    "attnflow.plots": ["animate", "plot"],
    "attnflow.runs": ["open_run", "register"],
    "attnflow.sweeps": ["open_sweep", "sweep"],
}  # fmt: skip
"""What stands at the top, by where it comes from."""
_ROOMS = {
    "axes": "attnflow.axes", "tokens": "attnflow.tokens", "spaces": "attnflow.spaces", "kernels": "attnflow.kernels",
    "masks": "attnflow.masks", "sums": "attnflow.sums", "fields": "attnflow.fields",
    "weights": "attnflow.fields.weights", "norms": "attnflow.fields.norms", "encodings": "attnflow.fields.encodings",
    "flows": "attnflow.flows", "saving": "attnflow.flows.saving", "stopping": "attnflow.flows.stopping",
    "layer_updates": "attnflow.flows.methods.layer_updates", "step_rules": "attnflow.flows.methods.step_rules",
    "noises": "attnflow.flows.noises", "observe": "attnflow.observe", "transport": "attnflow.transport",
    "meanfield": "attnflow.meanfield",
    "decoders": "attnflow.decoders", "stability": "attnflow.stability", "certify": "attnflow.certify",
    "learn": "attnflow.learn",
    "theory": "attnflow.theory", "special": "attnflow.special", "runs": "attnflow.runs", "plots": "attnflow.plots",
    "style": "attnflow.plots.style", "experiments": "attnflow.experiments", "kit": "attnflow.experiments.kit",
    "sweeps": "attnflow.sweeps",
    "references": "attnflow.references", "text": "attnflow.text", "probe": "attnflow.probe",
    "random_layers": "attnflow.random_layers", "control": "attnflow.control", "errors": "attnflow.errors",
}  # fmt: skip
"""Where the rest stands: the room, and the module that it is."""

__all__ = ["__version__", *sorted(name for names in _HOME.values() for name in names), *_ROOMS]
__getattr__ = loader(__name__, _HOME, _ROOMS)[0]  # editors read `__init__.pyi` instead (`python -m tests.stub`)


def __dir__() -> list[str]:
    return __all__
