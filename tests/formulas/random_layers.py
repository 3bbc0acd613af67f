"""Oracles of random_layers."""
