"""The words of a specification. Strings are resolved here, once, and nowhere else."""

from collections.abc import Callable
from typing import Any

from attnflow import fields, flows, learn, masks, meanfield, spaces, tokens
from attnflow.observe import watch

REGISTRY: dict[str, dict[str, Callable[..., Any]]] = {
    "space": {
        "sphere": spaces.Sphere,
        "euclidean": spaces.Euclidean,
        "ellipsoid": spaces.Ellipsoid,
        "centred-sphere": spaces.CentredSphere,
    },
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
    "field": {
        "attention": fields.Attention,
        "multi-head": fields.MultiHead,
        "perceptron": fields.Perceptron,
        "potential": fields.Potential,
        "composed": fields.Composed,
        "total": fields.Total,
        "multiple": fields.Multiple,
        "rescaled": fields.Rescaled,
        "pre": fields.Pre,
        "peri": fields.Peri,
        "ngpt": fields.Ngpt,
        "mix": fields.Mix,
        "scaled": fields.Scaled,
    },
    "weight": {
        "constant": fields.Constant,
        "per-layer": fields.PerLayer,
        "interpolated": fields.Interpolated,
        "random": fields.Random,
    },
    "normaliser": {
        "softmax": fields.Softmax,
        "unnormalised": fields.Unnormalised,
        "hardmax": fields.Hardmax,
        "sinkhorn": fields.Sinkhorn,
    },
    "mask": {
        "everyone": masks.Everyone,
        "causal": masks.Causal,
        "window": masks.Window,
        "table": masks.Table,
    },
    "encoding": {"none": fields.NoEncoding, "rotary": fields.Rotary, "sinusoidal": fields.Sinusoidal},
    "norm": {"unit": fields.Unit, "rms": fields.RmsNorm, "layer": fields.LayerNorm},
    "method": {
        "adaptive": flows.Adaptive,
        "fixed": flows.Fixed,
        "layers": flows.Layers,
        "alternate": flows.Alternate,
        "heun": flows.Heun,
        "long-time": flows.LongTime,
    },
    "basis": {"circle": meanfield.CircleBasis, "zonal": meanfield.ZonalBasis, "sphere": meanfield.SphereBasis},
    "density": {
        "uniform": meanfield.uniform,
        "von-mises-fisher": meanfield.von_mises_fisher,
        "watson": meanfield.watson,
        "perturbed": meanfield.perturbed,
        "mixture": meanfield.mixture,
    },
    "cells": {"circle": meanfield.circle_cells, "zonal": meanfield.zonal_cells},
    "classifier": {"residual": learn.residual_classifier},
    "data": {"interleaved": learn.interleaved_classes},
    "update": {
        "renormalise": flows.Renormalise,
        "project-renormalise": flows.ProjectRenormalise,
        "project": flows.Project,
    },
    "noise": {"brownian": flows.Brownian},
    "save": {
        "evenly": flows.Evenly,
        "log-spaced": flows.LogSpaced,
        "every-layer": flows.EveryLayer,
        "at": flows.At,
    },
    "stop": {"consensus": flows.Consensus, "still": flows.Still},
    "observable": {
        "order-parameter": lambda: watch.order_parameter,
        "effective-rank": lambda: watch.effective_rank,
        "spread": lambda: watch.spread,
        "clusters": watch.ClusterCount,
    },
}
"""part of a specification -> name -> what makes it."""

_WEIGHTS: dict[str, tuple[str, ...]] = dict.fromkeys(("query", "key", "value", "output", "bias", "gain"), ("weight",))
_BLOCKS: dict[str, tuple[str, ...]] = dict.fromkeys(("inner", "outer"), ("weight", "field"))
_FIELDS: dict[str, tuple[str, ...]] = dict.fromkeys(("field", "attention", "parts"), ("field",))
_OTHERS: dict[str, tuple[str, ...]] = {
    kind: (kind,) for kind in ("space", "mask", "normaliser", "encoding", "norm", "update", "method", "basis")
}
_OTHERS["densities"] = ("density",)
ARGUMENTS: dict[str, tuple[str, ...]] = _WEIGHTS | _BLOCKS | _FIELDS | _OTHERS
"""argument -> the parts that a table given for it may name."""

BATCHED = {"beta", "alpha", "kappa", "slope", "switch", "scale", "size", "seed", "factor"}
"""Numbers of a field, a mask, a weight or noise for which a list makes a batch, along a dimension of that name."""

DEFAULTS: dict[str, dict[str, Any]] = {
    "attention": {"normaliser": {"name": "softmax"}, "mask": {"name": "everyone"}},
    "multi-head": {"normaliser": {"name": "softmax"}, "mask": {"name": "everyone"}},
    "layers": {"update": {"name": "renormalise"}},
    "pre": {"norm": {"name": "unit"}},
    "peri": {"norm": {"name": "unit"}},
    "mix": {"norm": {"name": "unit"}},
    "scaled": {"norm": {"name": "unit"}},
}
"""Parts that are filled in when they are left out, by the name they belong to."""

HIDDEN = {"sum", "max_steps", "role"}
"""Arguments that do not belong in a specification: they do not change results."""
