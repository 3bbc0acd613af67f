"""Oracles of layers."""
