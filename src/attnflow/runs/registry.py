"""The words of a specification. Strings are resolved here, once, and nowhere else."""

from collections.abc import Callable
from typing import Any

from attnflow import fields, flows, masks, spaces, tokens

REGISTRY: dict[str, dict[str, Callable[..., Any]]] = {
    "space": {"sphere": spaces.Sphere, "euclidean": spaces.Euclidean},
    "tokens": {
        "uniform": tokens.uniform,
        "von-mises-fisher": tokens.von_mises_fisher,
        "ring": tokens.ring,
        "equiangular": tokens.equiangular,
        "simplex": tokens.simplex,
        "orthonormal": tokens.orthonormal,
        "clustered": tokens.clustered,
        "caps": tokens.caps,
        "array": tokens.from_array,
    },
    "field": {"attention": fields.Attention},
    "normaliser": {"softmax": fields.Softmax, "unnormalised": fields.Unnormalised},
    "mask": {"everyone": masks.Everyone, "causal": masks.Causal},
    "method": {"adaptive": flows.Adaptive, "fixed": flows.Fixed, "layers": flows.Layers},
    "update": {
        "renormalise": flows.Renormalise,
        "project-renormalise": flows.ProjectRenormalise,
        "project": flows.Project,
    },
    "save": {
        "evenly": flows.Evenly,
        "log-spaced": flows.LogSpaced,
        "every-layer": flows.EveryLayer,
        "at": flows.At,
    },
    "stop": {"consensus": flows.Consensus, "still": flows.Still},
}
"""part of a specification -> name -> what makes it."""

DEFAULTS: dict[str, dict[str, Any]] = {
    "attention": {"normaliser": {"name": "softmax"}, "mask": {"name": "everyone"}},
    "layers": {"update": {"name": "renormalise"}},
    "solve": {"method": {"name": "adaptive"}, "save": {"name": "evenly"}, "stop": [], "chunk": 16},
}
"""Parts that are filled in when they are left out, by the name they belong to."""

HIDDEN = {"sum", "max_steps"}
"""Arguments that do not belong in a specification: they do not change results."""
