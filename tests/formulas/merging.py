"""Oracles of merging."""
