"""The lab: a page on which tokens flow, with its engine in the browser; served from this machine, or as one file."""

from attnflow.lab.bundle import single_file
from attnflow.lab.server import Server
from attnflow.lazy import listing

__all__ = ["Server", "single_file"]
__dir__ = listing(__all__)
