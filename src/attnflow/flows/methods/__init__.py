"""How a system is moved: adaptively, by fixed steps, or layer by layer."""

from attnflow.flows.methods.adaptive import Adaptive
from attnflow.flows.methods.alternate import Alternate
from attnflow.flows.methods.base import AbstractMethod, AbstractSystem
from attnflow.flows.methods.fixed import Fixed
from attnflow.flows.methods.heun import Heun
from attnflow.flows.methods.layers import (
    AbstractUpdate,
    Layers,
    Project,
    ProjectRenormalise,
    Renormalise,
)

__all__ = [
    "AbstractMethod",
    "AbstractSystem",
    "AbstractUpdate",
    "Adaptive",
    "Alternate",
    "Fixed",
    "Heun",
    "Layers",
    "Project",
    "ProjectRenormalise",
    "Renormalise",
]
