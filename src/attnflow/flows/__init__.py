"""Flows: integrating tokens along a field. `solve` for people, `advance` pure and differentiable."""

from attnflow.flows.advance import advance
from attnflow.flows.flowmap import FlowMap, flow_map
from attnflow.flows.longtime import LongTime, Tree, merge_times
from attnflow.flows.methods import (
    AbstractMethod,
    Adaptive,
    Alternate,
    Fixed,
    Heun,
    Layers,
    Project,
    ProjectRenormalise,
    Renormalise,
)
from attnflow.flows.noise import Brownian
from attnflow.flows.outcome import Outcome, Progress
from attnflow.flows.schedules import AbstractSchedule, At, Evenly, EveryLayer, LogSpaced
from attnflow.flows.sink import AbstractSink, Checkpoint, InMemory, Layout
from attnflow.flows.solve import solve
from attnflow.flows.stops import AbstractStop, Consensus, Still, When
from attnflow.flows.trajectory import Trajectory

__all__ = [
    "AbstractMethod",
    "AbstractSchedule",
    "AbstractSink",
    "AbstractStop",
    "Adaptive",
    "Alternate",
    "At",
    "Brownian",
    "Checkpoint",
    "Consensus",
    "Evenly",
    "EveryLayer",
    "Fixed",
    "FlowMap",
    "Heun",
    "InMemory",
    "Layers",
    "Layout",
    "LogSpaced",
    "LongTime",
    "Outcome",
    "Progress",
    "Project",
    "ProjectRenormalise",
    "Renormalise",
    "Still",
    "Trajectory",
    "Tree",
    "When",
    "advance",
    "flow_map",
    "merge_times",
    "solve",
]
