"""All pairs at once, as one array: for few tokens, and as the reference that other sums are compared with."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.errors import InvalidInput
from attnflow.kernels import AbstractKernel
from attnflow.sums.base import MEMORY, AbstractSum, Case, Offer, Use
from attnflow.sums.blocks import length
from attnflow.sums.costs import SETUP
from attnflow.sums.weights import Arguments, Charges, KeySide, QuerySide, Sums, Weights
from attnflow.tokens import Measure, Tokens

LIMIT = 1 << 34
"""Bytes of the largest array of weights that is allowed."""


class Dense(AbstractSum):
    """Exact sums through the (query, key) array of all weights; any kernel and mask. Refused above 16 GiB."""

    def __call__(
        self,
        weights: Weights,
        query: QuerySide,
        key: KeySide,
        log_mass: Float[Array, " key"],
        charges: Charges,
    ) -> Sums:
        columns = charges.array(key[0])
        needed = self.bytes(length(query), length(key), columns.dtype)
        if needed > LIMIT:
            raise InvalidInput(
                f"Dense would take {needed / 2**30:.3g} GiB for {length(query)} by {length(key)} pairs; use Tiled(), "
                "which takes 10 MiB, or `prepare`, which chooses."
            )
        if weights.kernel.is_signed:
            top = jnp.max(log_mass)
            return jnp.full(query[0].shape[:1], top), weights.values(query, key) @ (
                jnp.exp(log_mass - top)[:, None] * columns
            )
        logits = weights.log(query, key) + log_mass[None, :]
        low = jnp.finfo(columns.dtype).min / 4
        top = jax.lax.stop_gradient(jnp.max(jnp.maximum(logits, low), axis=1))
        return top, jnp.exp(logits - top[:, None]) @ columns

    def shared(self, copies: int) -> "Dense":
        return self

    def trusted(self, arguments: Arguments, scale: Any, total: Any) -> Any:
        return None

    def error(self, kernel: AbstractKernel, masses: Float[Array, " key"]) -> Any:
        return 0.0

    def refusal(self, use: Use, tokens: Tokens | Measure | None) -> str:
        return ""

    @classmethod
    def offers(cls, case: Case) -> tuple[Offer, ...]:
        needed = cls.bytes(case.n, case.n, case.dtype)
        if needed > MEMORY:
            return (Offer("Dense", None, why_not=f"would take {needed / 2**30:.3g} GiB for the weights of all pairs"),)
        seconds = 1.1 * case.costs.tiles(case.n, case.d, False)
        return (Offer("Dense", cls(), seconds, case.floor, setup=SETUP["Dense"]),)

    @staticmethod
    def bytes(queries: int, keys: int, dtype: Any) -> int:
        """Memory of the logits and the weights of all pairs."""
        return 2 * queries * keys * np.dtype(dtype).itemsize
