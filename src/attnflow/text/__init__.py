"""Text: what tokens at the end of a flow say about the next word.

Every token has a law over the words of a vocabulary. A read-out says how much each token counts, and the weighted mean
of the laws is the next-token law, with its entropy H, the information I and the number of alternatives exp(I).
"""

from attnflow.lazy import listing
from attnflow.text.laws import NextTokenLaw, alternatives, law_of_logits, next_token_law
from attnflow.text.readouts import AbstractReadOut, KernelSum, LastToken, Mixture

__all__ = [
    "AbstractReadOut",
    "KernelSum",
    "LastToken",
    "Mixture",
    "NextTokenLaw",
    "alternatives",
    "law_of_logits",
    "next_token_law",
]
__dir__ = listing(__all__)
