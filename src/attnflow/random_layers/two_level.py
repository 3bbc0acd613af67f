"""Averages over the noise of the weights: tokens share the heads, and only replicas of the heads are independent."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from attnflow.axes import batches
from attnflow.checks import instance
from attnflow.errors import InvalidInput
from attnflow.fields import AbstractField
from attnflow.flows import Layers, Observable, solve
from attnflow.flows.saving import Save
from attnflow.tokens import Tokens


@dataclasses.dataclass(frozen=True)
class TwoLevel:
    """The mean over replicas of the heads of what was observed, as labelled arrays."""

    mean: Any
    """The mean over replicas; an xarray.DataArray with the dimension `time`."""
    error: Any
    """Its standard error, of independent replicas; what finitely many tokens leave is not in it."""
    values: Any
    """What was observed in every replica."""


def conditional_mean(
    field: AbstractField,
    tokens: Tokens,
    until: float,
    observe: Callable[[Any, Any], Any] | Observable,
    *,
    step: float,
    over: str = "seed",
    save: Save | None = None,
) -> TwoLevel:
    """E F(mu_t) over random heads, by two levels: all `tokens` of a replica share its heads, replicas are independent.

    mu_t is the measure of the tokens at time t, given the heads, and F = `observe` is a function of (t, measure) as for
    `solve`. Tokens of one replica are dependent for ever, however many there are: the standard error is that of the
    replicas alone. Where F is not linear, n tokens leave a bias of O(1/n) that more replicas do not remove: couple
    several n by the same field, whose seed is the head stream (arXiv:2604.01978).

    Arguments:
        tokens: thousands of them stand for a density. With a batch dimension `over` of their own, every replica has its
            own tokens.
        field: one with the batch dimension `over`, such as
            `random_attention(2, 2.0, step=0.1, seed=Along("seed", range(64)))`. Other batch dimensions stay.
        until, step, save: as for `solve` with `Layers(step)`; `save` is 1 interval unless given.
    """
    instance("field", field, AbstractField, "a field such as random_attention(2, 2.0)")
    replicas = next((len(one.values) for one in batches(field) if one.dim == over), 0)
    if replicas < 2:
        raise InvalidInput(
            f"`field` has {replicas} members along {over!r}, the replicas of the heads; give a field with at least "
            f"two, such as random_attention(..., seed=Along({over!r}, range(64)))."
        )
    method, save = Layers(step), 1 if save is None else save
    flow = solve(field, tokens, until, method=method, save=save, observe={"observed": observe}, keep=())
    values = flow.dataset["observed"]
    error = values.std(over, ddof=1) / np.sqrt(replicas)
    return TwoLevel(values.mean(over), error, values)
