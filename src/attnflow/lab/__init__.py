"""The lab: a page on which tokens flow, computed in the browser or by Python; from this machine, or as one file."""

from typing import TYPE_CHECKING

from attnflow.lazy import loader

if TYPE_CHECKING:
    from attnflow.lab.address import spec_of_address
    from attnflow.lab.bundle import single_file
    from attnflow.lab.server import Server

__all__ = ["Server", "single_file", "spec_of_address"]
_HOME = {
    "attnflow.lab.address": ["spec_of_address"],
    "attnflow.lab.bundle": ["single_file"],
    "attnflow.lab.server": ["Server"],
}
__getattr__, __dir__ = loader(__name__, _HOME)
