"""Oracles of causal."""
