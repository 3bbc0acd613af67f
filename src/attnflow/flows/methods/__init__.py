"""How a system is moved: adaptively, by fixed steps, layer by layer, or by the field's own flow."""

from attnflow.flows.methods.adaptive import Adaptive
from attnflow.flows.methods.alternate import Alternate
from attnflow.flows.methods.base import AbstractMethod, AbstractSystem
from attnflow.flows.methods.exact import Exact
from attnflow.flows.methods.fixed import Fixed
from attnflow.flows.methods.heun import Heun
from attnflow.flows.methods.layer_updates import AbstractUpdate, Project, ProjectRenormalise, Renormalise
from attnflow.flows.methods.layers import Layers
from attnflow.flows.methods.step_rules import AbstractRule, AdamsBashforth, Euler, Rk4, moved_by, rate_until

__all__ = [
    "AbstractMethod",
    "AbstractRule",
    "AbstractSystem",
    "AbstractUpdate",
    "AdamsBashforth",
    "Adaptive",
    "Alternate",
    "Euler",
    "Exact",
    "Fixed",
    "Heun",
    "Layers",
    "Project",
    "ProjectRenormalise",
    "Renormalise",
    "Rk4",
    "moved_by",
    "rate_until",
]
