"""Attention with random layers: matrices that are drawn afresh in every one."""

from typing import Any

import numpy as np

from attnflow.axes import Batched, Number, finite_array, scalar
from attnflow.checks import shown, whole
from attnflow.errors import InvalidInput
from attnflow.feasible import LARGEST_DIM
from attnflow.fields import Attention
from attnflow.fields.weights import Random
from attnflow.precision import is_concrete
from attnflow.tokens import Measure, Tokens


def random_attention(
    dim: int | Tokens | Measure,
    logit_scale: Batched,
    heads: int = 1,
    d_k: int | None = None,
    *,
    step: Number = 0.1,
    seed: Batched = 0,
    mean_value: Any = 0.0,
) -> Attention:
    """The field of a network with random weights, to be run with `Layers(step)` and the same `step`.

    Layer l with eta = `step` and H = `heads` is

        x_i <- N(x_i + (eta/H) sum_h V_h m_h(x_i)),   m_h(x) = sum_j softmax_j(beta <Q_h x, K_h x_j>) x_j,

    with V_h = v I + entries N(0, 1/d) and Q_h, K_h of shape (d_k, d) with independent Gaussian entries. All of them are
    drawn afresh for every layer and head. The logits of unit tokens have covariance b^2 R_ii' R_jj' for large d_k,
    where b = beta sigma_Q sigma_K sqrt(d_k) is `logit_scale`.

    Time: layer l stands at t = eta l, so L layers need `until = eta L`. The random part moves tokens on the slower
    clock tau = eta^2 L / H = eta t / H: `until = step * round(tau * heads / step**2)` reaches tau. As eta^2/H -> 0 at
    fixed tau the tokens follow an Ito equation with noise that all tokens share (for H = 1 that of
    `RandomValues(Attention(...))`); the error of means is O(eta^2/H). With v > 0 and tau -> 0 they follow the flow of
    Attention at speed v.

    Arguments:
        dim: the dimension d of the tokens, or the tokens themselves.
        logit_scale: b, at least 0; 0 is uniform attention. LeCun initialisation has b = 1.
        d_k: the key dimension, d unless given.
        seed: fixes the matrices of all layers, the head stream; `Along("seed", range(64))` makes 64 networks.
        mean_value: the mean of V: a number v for v I, or a (d, d) matrix.

    Theory: arXiv:2604.01978; a key dimension d_k other than d is ours.
    """
    d = whole("dim", dim.dim if isinstance(dim, Tokens | Measure) else dim, 2, LARGEST_DIM)
    heads, d_k = whole("heads", heads, 1), whole("d_k", d if d_k is None else d_k, 1)
    scalar("logit_scale", low=0.0)(logit_scale)
    mean = finite_array("`mean_value`", mean_value)
    if mean.shape not in ((), (d, d)):
        raise InvalidInput(f"`mean_value` is {shown(mean_value)}; give a number or a matrix of shape ({d}, {d}).")
    if not mean.shape and not (is_concrete(mean) and mean == 0):
        mean = mean * np.eye(d)
    axis = () if heads == 1 else (heads,)

    def drawn(rows: int, scale: float, mean: Any = 0.0) -> Random:
        return Random((*axis, rows, d), seed=seed, step=step, scale=scale, mean=mean)

    return Attention(
        logit_scale,
        query=drawn(d_k, d_k**-0.25),
        key=drawn(d_k, d_k**-0.25),
        value=drawn(d, d**-0.5, mean),
    )
