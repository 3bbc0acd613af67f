"""Decoders: what the last token of a causal prompt keeps of the tokens before it."""

from attnflow.decoders.retrieval import Retrieval, RetrievalProfile, retrieval_profile, uniform_prompts
from attnflow.lazy import listing

__all__ = ["Retrieval", "RetrievalProfile", "retrieval_profile", "uniform_prompts"]
__dir__ = listing(__all__)
