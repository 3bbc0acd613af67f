"""Oracles of special."""
