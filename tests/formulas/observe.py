"""Oracles of observe."""
