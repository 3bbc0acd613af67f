"""Oracles of uniform."""
