"""A deep transformer at initialisation: how far its layers mix tokens, and which knob moves that."""

import math
from typing import Any

import numpy as np

from attnflow.errors import InvalidInput
from attnflow.special.formula import Integers, Reals, formula
from attnflow.theory.predictions import Prediction
from attnflow.theory.random_layers.diffusion import Regime, canonical_time, regime
from attnflow.theory.random_layers.exponents import (
    attention_moments,
    critical_logit_scale,
    pair_exponent,
    pair_exponent_spread,
    zero_temperature_exponent,
)
from attnflow.theory.random_layers.simplex import (
    LATEST,
    LOGIT_SCALE,
    STEEPEST,
    TOKENS,
    collapse_time,
    simplex_path,
)

SOURCE = "arXiv:2604.01978"
OURS = f"ours, in the setting of {SOURCE}"
LEVELS = (0.5, 0.9)
WHOLE = Integers(1, 10**9, scalar=True)
NETWORK: dict[str, Any] = {
    "layers": WHOLE,
    "heads": WHOLE,
    "d": Integers(4, 10**4, scalar=True),
    "d_k": WHOLE,
    "context": TOKENS,
    "step": Reals(0.0, 1e9, ends="right", scalar=True),
    "logit_scale": LOGIT_SCALE,
}
KNOBS = ("step", "heads", "context", "logit scale")


@formula(**NETWORK, relative=1e-8, absolute=1e-6)
def predict_layers(
    *, layers: int, heads: int, d: int, d_k: int, context: int, step: float, logit_scale: float = 1.0
) -> list[Prediction]:
    """Predictions for `layers` layers of attention with fresh Gaussian weights in every layer and head.

    A layer is x <- N(x + (step/heads) sum_h V_h m_h(x)), V with entries of variance 1/d; `context` tokens of R^d
    start orthonormal, Q and K have d_k rows, and logits have the deviation `logit_scale`. Every value is a number, a
    list (elasticities), or None where a layer lies beyond the network.

    Arguments:
        layers: number of layers.
        heads: number of heads.
        d: dimension of the tokens, from 4 on; below, overlaps do not tend to 1.
        d_k: number of rows of Q and K.
        context: number of tokens.
        step: size of the update of a layer; step^2 layers/heads is at most 10,000.
        logit_scale: deviation of the logits; inf is hardmax.
    """
    b = logit_scale
    _check_time(layers, heads, step)
    limit = regime(step, layers=layers, heads=heads)
    found = [_time(limit, layers, heads, step)]
    found += _overlaps(limit, layers, d, context, b)
    found.append(_knobs(d, context, b))
    return [*found, *_pairs(d, d_k, b)]


@formula(**NETWORK, count=Integers(2, 10**6, scalar=True), relative=1e-8, absolute="1e-8 / context")
def layer_curve(
    *,
    layers: int,
    heads: int,
    d: int,
    d_k: int,
    context: int,
    step: float,
    logit_scale: float = 1.0,
    count: int = 200,
) -> tuple[np.ndarray, np.ndarray]:
    """(layer, overlap): the mean overlap of tokens that start orthonormal, at up to `count` layers from 0 to the last.

    `simplex_path` at tau = step^2 layer/heads and this d; conditions are those of `predict_layers`. This theory takes
    d_k to be large, so d_k does not enter.

    Arguments:
        layers: number of layers.
        heads: number of heads.
        d: dimension of the tokens, from 4 on.
        d_k: number of rows of Q and K.
        context: number of tokens.
        step: size of the update of a layer; step^2 layers/heads is at most 10,000.
        logit_scale: deviation of the logits; inf is hardmax.
        count: largest number of layers that are returned.
    """
    _check_time(layers, heads, step)
    layer_numbers = np.unique(np.round(np.linspace(0, layers, count)))
    return layer_numbers, simplex_path(
        context, logit_scale, canonical_time(step, layers=layer_numbers, heads=heads), d=d
    )


def _time(limit: Regime, layers: int, heads: int, step: float) -> Prediction:
    return Prediction(
        "layers as time",
        limit.time,
        f"{layers} layers are the time tau = step^2 L/H = {limit.time:.4g}, {limit.regime}: {limit.statement}",
        f"values of mean 0 and variance 1/d, step {step:g}, heads averaged; layers differ from the limit by "
        f"O(step^2/H) = {step * step / heads:.2g}",
        SOURCE,
    )


def _overlaps(limit: Regime, layers: int, d: int, context: int, b: float) -> list[Prediction]:
    start = "tokens that start orthonormal"
    if context > d:
        start = f"tokens of mean overlap 0 ({context} cannot be orthonormal; b^2 much smaller than d = {d})"
    conditions = (
        f"{start}, no perceptron, no mask, fresh Gaussian weights in every layer, d_k large; the mean over networks: "
        f"one network differs by O(d^(-1/2)) = {d**-0.5:.2g}"
    )
    gap = float(simplex_path(context, b, limit.time, d=d, gap=True))
    last = f"1 - {gap:.2g}" if gap < 1e-3 else f"{1 - gap:.4g}"
    statement = f"the mean overlap after the last layer is {last}"
    found = [Prediction("overlap at the end", 1 - gap, statement, conditions, OURS)]
    for level, time in zip(LEVELS, collapse_time(context, b, LEVELS, d=d), strict=True):
        layer = layers * float(time) / limit.time
        statement = f"the overlap passes {level:g} at layer {layer:.4g}"
        if math.isinf(layer):
            statement = f"the overlap stops below {level:g} in the mean"
        elif layer > layers:
            statement += f", beyond the {layers} layers of this network"
        value = layer if layer <= layers else None
        found.append(Prediction(f"overlap {level:g}", value, statement, conditions, OURS))
    return found


def _knobs(d: int, context: int, b: float) -> Prediction:
    """Elasticities of the layer at which the overlap passes 1/2: it is the collapse time times heads/step^2."""
    name = "elasticities of the collapse layer"
    conditions = (
        "d log(layer)/d log(knob) over 5 % to both sides, the other knobs fixed; those of step and heads are exact"
    )
    up, down = 1.05, 1 / 1.05
    sizes = max(context + 1, round(context * up)), max(2, round(context * down))
    scales = (b * up, b * down) if 0 < b < STEEPEST / up else (b, b)
    times = [float(collapse_time(n, b, 0.5, d=d)) for n in sizes]
    times += [float(collapse_time(context, scale, 0.5, d=d)) for scale in scales]
    if not np.isfinite(times).all():
        return Prediction(
            name, None, f"the overlap stops below 1/2 at d = {d}: there is no such layer", conditions, OURS
        )
    by_context = math.log(times[0] / times[1]) / math.log(sizes[0] / sizes[1])
    by_scale = math.log(times[2] / times[3]) / math.log(up / down)
    values = [-2.0, 1.0, by_context, by_scale]
    best = max(range(len(values)), key=lambda i: abs(values[i]))
    listed = ", ".join(f"{knob} {value:+.3f}" for knob, value in zip(KNOBS, values, strict=True))
    return Prediction(
        name,
        values,
        f"the layer at which the overlap passes 1/2 is proportional to these powers: {listed}; {KNOBS[best]} moves it "
        "most",
        conditions,
        OURS,
    )


def _pairs(d: int, d_k: int, b: float) -> list[Prediction]:
    first, second = attention_moments(b, d=d, d_k=d_k)
    cold = b == math.inf
    exponent = zero_temperature_exponent(d, d_k) if cold else float(pair_exponent(first, second, d))
    spread = math.inf if math.isinf(second) else float(pair_exponent_spread(first, second, d))
    critical = critical_logit_scale(d, d_k)
    conditions = "tokens spread uniformly, many more than e^(b sqrt(d)); a collapsed population stays stable"
    reason = f"d_k = {d_k} is at least d - 1 = {d - 1}" if critical is None else f"the threshold is b = {critical:.4f}"
    return [
        Prediction(
            "pair exponent",
            exponent if math.isfinite(exponent) else None,
            f"log(1 - overlap) of nearby tokens drifts by {exponent:.4g} per unit of tau (variance {spread:.4g}): they "
            f"{'separate' if exponent > 0 else 'meet' if exponent < 0 else 'do neither'}",
            conditions,
            OURS,
        ),
        Prediction(
            "critical logit scale",
            critical,
            f"nearby tokens {'meet at every logit scale' if critical is None else 'separate at large logit scales'}: "
            f"{reason}, and here b = {b:g}",
            conditions,
            OURS,
        ),
    ]


def _check_time(layers: int, heads: int, step: float) -> None:
    if step * step * layers / heads > LATEST:
        raise InvalidInput(f"`step` is {step!r}; step^2 layers/heads must be at most {LATEST:g}.")
