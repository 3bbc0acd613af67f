"""Oracles of meanfield."""
