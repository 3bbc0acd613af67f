"""Decoders: what the last token of a causal prompt keeps of the tokens before it."""

from attnflow.decoders.retrieval import Retrieval, RetrievalProfile, retrieval_profile, uniform_prompts

__all__ = ["Retrieval", "RetrievalProfile", "retrieval_profile", "uniform_prompts"]
