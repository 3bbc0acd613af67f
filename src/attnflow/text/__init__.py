"""Text: from a sentence to tokens on the sphere, and from the end of a flow to the next word.

`from_text` gives tokens that carry their words as labels; an `Embedding` has a unit vector for every word. At any depth
every token has a distribution over the words. A read-out says how much each token counts, and the weighted mean of the
distributions is the next-token distribution, with its entropy H, the information I and the number of alternatives
exp(I).
"""

from attnflow.lazy import listing
from attnflow.text.cooccurrence import ppmi_embedding
from attnflow.text.distributions import (
    NextTokenDistribution,
    alternatives,
    distribution_of_logits,
    next_token_distribution,
)
from attnflow.text.embeddings import Embedding, embedding_of, random_embedding
from attnflow.text.readouts import AbstractReadOut, KernelSum, LastToken, Mixture
from attnflow.text.sentences import distribution_along, from_text
from attnflow.text.tokenizers import AbstractTokenizer, Bytes, split_words

__all__ = [
    "AbstractReadOut",
    "AbstractTokenizer",
    "Bytes",
    "Embedding",
    "KernelSum",
    "LastToken",
    "Mixture",
    "NextTokenDistribution",
    "alternatives",
    "distribution_along",
    "distribution_of_logits",
    "embedding_of",
    "from_text",
    "next_token_distribution",
    "ppmi_embedding",
    "random_embedding",
    "split_words",
]
__dir__ = listing(__all__)
