"""The words of a specification. Strings are resolved here, once, and nowhere else."""

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attnflow import (
    control,
    decoders,
    fields,
    flows,
    kernels,
    learn,
    masks,
    meanfield,
    observe,
    random_layers,
    spaces,
    tokens,
    transport,
)
from attnflow.flows.methods import AbstractUpdate
from attnflow.flows.methods.solvers import solvers
from attnflow.observe.observable import maker


class Later(Mapping[str, Callable[..., Any]]):
    """Words of another package or of a room above, which is imported when one is looked up."""

    def __init__(self, find: Callable[[], dict[str, Callable[..., Any]]]):
        self.find = functools.cache(find)

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return self.find()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.find())

    def __len__(self) -> int:
        return len(self.find())


def _kinds() -> dict[str, Callable[..., Any]]:
    import attnflow

    return {
        "solve": flows.Solve,
        "solve_long": flows.SolveLong,
        "merge_times": flows.MergeTimes,
        "evolve": meanfield.Evolve,
        "evolve_cells": meanfield.EvolveCells,
        "evolve_placed": meanfield.EvolvePlaced,
        "gram_layers": random_layers.GramLayers,
        "conditional_density": random_layers.CarryDensity,
        "retrieval_profile": decoders.RetrievalProfile,
        "fit": learn.Fit,
        "match_measures": control.MatchMeasures,
        "probe": attnflow.probe.Compare,  # its room lies above this one
    }


REGISTRY: dict[str, Mapping[str, Callable[..., Any]]] = {
    "kind": Later(_kinds),
    "space": {
        "sphere": spaces.Sphere,
        "euclidean": spaces.Euclidean,
        "ellipsoid": spaces.Ellipsoid,
        "centred-sphere": spaces.CentredSphere,
        "torus": spaces.Torus,
        "product": lambda factors: spaces.Product(*(factors if isinstance(factors, list) else [factors])),
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
        "file": tokens.from_file,
    },
    "field": {
        "attention": fields.Attention,
        "affine": fields.Affine,
        "relu": fields.ReluUnit,
        "drift": fields.Drift,
        "mean-attention": fields.MeanAttention,
        "in-turn": fields.InTurn,
        "perceptron": fields.Perceptron,
        "gated-perceptron": fields.GatedPerceptron,
        "potential": fields.Potential,
        "composed": fields.Composed,
        "total": fields.Total,
        "multiple": fields.Multiple,
        "rescaled": fields.Rescaled,
        "pre": fields.Pre,
        "post": fields.Post,
        "peri": fields.Peri,
        "ngpt": fields.Ngpt,
        "mix": fields.Mix,
        "scaled": fields.Scaled,
    },
    "weight": {
        "constant": fields.Constant,
        "per-layer": fields.PerLayer,
        "pieces": fields.Pieces,
        "interpolated": fields.Interpolated,
        "random": fields.Random,
    },
    "map": {"identity": fields.Identity, "biased": fields.Biased},
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
    "kernel": {
        "exponential": kernels.Exponential,
        "gaussian": kernels.Gaussian,
        "polynomial": kernels.Polynomial,
        "cosine": kernels.Cosine,
    },
    "encoding": {"none": fields.NoEncoding, "rotary": fields.Rotary, "sinusoidal": fields.Sinusoidal},
    "norm": {"unit": fields.Unit, "rms": fields.RmsNorm, "layer": fields.LayerNorm},
    "method": {
        "adaptive": flows.Adaptive,
        "fixed": flows.Fixed,
        "exact": flows.Exact,
        "layers": flows.Layers,
        "alternate": flows.Alternate,
        "heun": flows.Heun,
        "long-time": flows.LongTime,
    },
    "solver": Later(solvers),
    "rule": {"rk4": flows.Rk4, "euler": flows.Euler, "adams-bashforth": flows.AdamsBashforth},
    "basis": {"circle": meanfield.CircleBasis, "zonal": meanfield.ZonalBasis, "sphere": meanfield.SphereBasis},
    "density": {
        "uniform": meanfield.uniform,
        "von-mises-fisher": meanfield.von_mises_fisher,
        "watson": meanfield.watson,
        "perturbed": meanfield.perturbed,
        "mixture": meanfield.mixture,
    },
    "placed": {"pieces": meanfield.placed_pieces},
    "cells": {"circle": meanfield.circle_cells, "zonal": meanfield.zonal_cells},
    "classifier": {"residual": learn.residual_classifier},
    "data": {"interleaved": learn.interleaved_classes},
    "update": {
        "renormalise": flows.Renormalise,
        "project-renormalise": flows.ProjectRenormalise,
        "project": flows.Project,
    },
    "noise": {"brownian": flows.Brownian, "random-values": flows.RandomValues},
    "save": {
        "evenly": flows.Evenly,
        "log-spaced": flows.LogSpaced,
        "every-layer": flows.EveryLayer,
        "at": flows.At,
    },
    "stop": {"consensus": flows.Consensus, "still": flows.Still},
    "observable": {
        "order-parameter": maker(observe.order_parameter),
        "effective-rank": maker(observe.effective_rank),
        "spread": maker(observe.spread),
        "clusters": maker(observe.cluster_count),
        "modes": maker(observe.mode_count),
        "overlaps": maker(observe.overlaps),
        "energy": maker(observe.energy),
        "energy0": maker(observe.energy0),
        "log-energy": maker(observe.log_energy),
        "speed": maker(observe.speed),
        "total-energy": maker(observe.total_energy),
        "dissipation": maker(observe.dissipation),
        "interaction-energy": maker(observe.interaction_energy),
        "energy-rate": maker(observe.energy_rate),
        "attention-matrix": maker(observe.attention_matrix),
        "distance": maker(transport.distance),
        "metric-speed": maker(transport.metric_speed),
        "energy-slope": maker(transport.energy_slope),
        "balance-gap": maker(transport.balance_gap),
        "gradient-alignment": maker(transport.gradient_alignment),
    },
}
"""part of a specification -> name -> what makes it."""

NEEDED: dict[str, type] = {
    "space": spaces.AbstractSpace,
    "tokens": tokens.Tokens,
    "field": fields.AbstractField,
    "normaliser": fields.AbstractNormaliser,
    "mask": masks.AbstractMask,
    "encoding": fields.AbstractEncoding,
    "norm": fields.AbstractNorm,
    "method": flows.AbstractMethod,
    "rule": flows.AbstractRule,
    "update": AbstractUpdate,
    "noise": flows.AbstractNoise,
    "save": flows.AbstractTimes,
    "stop": flows.AbstractStop,
    "density": meanfield.Density,
    "placed": meanfield.PlacedDensity,
    "cells": meanfield.Cells,
    "classifier": learn.Classifier,
    "kernel": kernels.AbstractKernel,
    "map": fields.AbstractLinearMap,
}
"""Of which class the parts are; a weight may be an array, an observable is a function, or an `Observable`."""

_WEIGHTS: dict[str, tuple[str, ...]] = dict.fromkeys(("matrix", "vector", "bias", "gain"), ("weight",))
_MAPS: dict[str, tuple[str, ...]] = dict.fromkeys(("query", "key", "value", "output", "gate", "up"), ("weight", "map"))
_BLOCKS: dict[str, tuple[str, ...]] = dict.fromkeys(("inner", "outer"), ("weight", "map", "field"))
_FIELDS: dict[str, tuple[str, ...]] = dict.fromkeys(("field", "attention", "parts"), ("field",))
_OTHERS: dict[str, tuple[str, ...]] = {
    kind: (kind,)
    for kind in (
        "space",
        "kernel",
        "mask",
        "normaliser",
        "encoding",
        "norm",
        "update",
        "method",
        "rule",
        "solver",
        "basis",
    )
}
_OTHERS |= {"densities": ("density",), "factors": ("space",), "nu": ("tokens",)}
ARGUMENTS: dict[str, tuple[str, ...]] = _WEIGHTS | _MAPS | _BLOCKS | _FIELDS | _OTHERS
"""argument -> the parts that a table given for it may name."""

BATCHED = {"beta", "alpha", "kappa", "slope", "switch", "scale", "size", "seed", "factor"}
"""Numbers of a field, a kernel, a mask, a weight or noise for which a list makes a batch, along a dimension of that
name; so do numbers that a class converts by `axes.scalar`."""

DEFAULTS: dict[str, dict[str, Any]] = {
    "attention": {"normaliser": {"name": "softmax"}, "mask": {"name": "everyone"}},
    "fixed": {"rule": {"name": "rk4"}},
    "layers": {"update": {"name": "renormalise"}},
    "pre": {"norm": {"name": "unit"}},
    "peri": {"norm": {"name": "unit"}},
    "mix": {"norm": {"name": "unit"}},
    "scaled": {"norm": {"name": "unit"}},
}
"""Parts that are filled in when they are left out, by the name they belong to."""

HIDDEN = {"sum", "max_steps", "role", "limit"}
"""Arguments that do not belong in a specification: they do not change results."""


def takes_batches(maker: Callable[..., Any], key: str) -> bool:
    """Whether the number `key` of a class may be a batch: its converter is one of `axes.scalar`."""
    field = getattr(maker, "__dataclass_fields__", {}).get(key)
    return field is not None and getattr(field.metadata.get("converter"), "takes_batches", False)
