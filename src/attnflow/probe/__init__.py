"""Probe: trained networks, looked at with the instruments of the library."""

from attnflow.lazy import loader

_ROOMS = {"networks": "attnflow.probe.networks"}
__all__ = ["networks"]
__getattr__, __dir__ = loader(__name__, {}, _ROOMS)
