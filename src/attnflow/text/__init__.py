"""Text: what tokens at the end of a flow say about the next word.

Every token has a distribution over the words of a vocabulary. A read-out says how much each token counts, and the
weighted mean of the distributions is the next-token distribution, with its entropy H, the information I and the number
of alternatives exp(I).
"""

from attnflow.lazy import listing
from attnflow.text.distributions import (
    NextTokenDistribution,
    alternatives,
    distribution_of_logits,
    next_token_distribution,
)
from attnflow.text.readouts import AbstractReadOut, KernelSum, LastToken, Mixture

__all__ = [
    "AbstractReadOut",
    "KernelSum",
    "LastToken",
    "Mixture",
    "NextTokenDistribution",
    "alternatives",
    "distribution_of_logits",
    "next_token_distribution",
]
__dir__ = listing(__all__)
