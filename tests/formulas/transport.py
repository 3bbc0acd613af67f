"""Oracles of transport."""
