"""Sweeps: one specification or function at all points of named axes, in a folder in which nothing is done twice.

`sweep(what, over={...}, folder=...)` carries one out, resumes it or extends it, in this process or on a Dask cluster;
`open_sweep(folder)` reads it. `Axis` and `axis_of` are axes as the command line writes them.
"""

from typing import TYPE_CHECKING

from attnflow.lazy import loader

if TYPE_CHECKING:
    from attnflow.sweeps.execution import Progress, sweep
    from attnflow.sweeps.opened import Status, Sweep, open_sweep
    from attnflow.sweeps.ranges import Axis, axis_of

__all__ = ["Axis", "Progress", "Status", "Sweep", "axis_of", "open_sweep", "sweep"]
_HOME = {
    "attnflow.sweeps.execution": ["Progress", "sweep"],
    "attnflow.sweeps.opened": ["Status", "Sweep", "open_sweep"],
    "attnflow.sweeps.ranges": ["Axis", "axis_of"],
}
__getattr__, __dir__ = loader(__name__, _HOME)
