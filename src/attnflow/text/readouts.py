"""Read-outs: how much each token counts in the next-token distribution.

Token j has the distribution p_j(w) = e^(l_jw)/Z_j over the words w, with logits l_jw = beta <x_j, e_w>. Every
read-out is a weighted mean p = sum_j w_j p_j, and differs from the others in the weights w_j alone.
"""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp


class AbstractReadOut(eqx.Module):
    """The weights of tokens in the next-token distribution."""

    @abc.abstractmethod
    def log_weights(self, log_masses: Any, log_partitions: Any, last: Any) -> Any:
        """(n,) logarithms of the weights, up to a common constant.

        Arguments:
            log_masses: (n,) log m_j, -inf for absent rows.
            log_partitions: (n,) log Z_j.
            last: (n,) whether a token is the last one of the prompt.
        """


class Mixture(AbstractReadOut):
    """p = sum_j m_j p_j: pick a token, then a word."""

    def log_weights(self, log_masses: Any, log_partitions: Any, last: Any) -> Any:
        return log_masses


class KernelSum(AbstractReadOut):
    """p(w) proportional to sum_j m_j e^(beta <x_j, e_w>): the partition function of attention, at the words.

    It is the mixture with weights m_j Z_j, and equals `Mixture` where all tokens have the same Z_j.
    """

    def log_weights(self, log_masses: Any, log_partitions: Any, last: Any) -> Any:
        return log_masses + log_partitions


class LastToken(AbstractReadOut):
    """p = p_n, the distribution of the token with the largest place; it means "next" only under a causal mask."""

    def log_weights(self, log_masses: Any, log_partitions: Any, last: Any) -> Any:
        return jnp.where(last, 0.0, -jnp.inf)
