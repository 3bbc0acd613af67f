"""Flows: integrating tokens along a field. `solve` for people, `advance` pure and differentiable."""

from attnflow.flows.advance import advance
from attnflow.flows.flowmap import FlowMap, flow_map
from attnflow.flows.longtime import LongFlow, LongTime, Tree, merge_times, solve_long
from attnflow.flows.methods import (
    AbstractMethod,
    AbstractRule,
    AdamsBashforth,
    Adaptive,
    Alternate,
    Euler,
    Exact,
    Fixed,
    Heun,
    Layers,
    Project,
    ProjectRenormalise,
    Renormalise,
    Rk4,
    moved_by,
    rate_until,
)
from attnflow.flows.noises import AbstractIto, AbstractNoise, AbstractStratonovich, Brownian, RandomValues
from attnflow.flows.observables import Observable
from attnflow.flows.outcome import Outcome, Progress
from attnflow.flows.save import AbstractTimes, At, Evenly, EveryLayer, LogSpaced
from attnflow.flows.sink import AbstractSink, Checkpoint, InMemory, Layout
from attnflow.flows.solve import solve
from attnflow.flows.stop import AbstractStop, Consensus, Frame, Still, When
from attnflow.flows.trajectory import AbstractTrajectory, Trajectory

__all__ = [
    "AbstractIto",
    "AbstractMethod",
    "AbstractNoise",
    "AbstractRule",
    "AbstractSink",
    "AbstractStop",
    "AbstractStratonovich",
    "AbstractTimes",
    "AbstractTrajectory",
    "AdamsBashforth",
    "Adaptive",
    "Alternate",
    "At",
    "Brownian",
    "Checkpoint",
    "Consensus",
    "Euler",
    "Evenly",
    "EveryLayer",
    "Exact",
    "Fixed",
    "FlowMap",
    "Frame",
    "Heun",
    "InMemory",
    "Layers",
    "Layout",
    "LogSpaced",
    "LongFlow",
    "LongTime",
    "Observable",
    "Outcome",
    "Progress",
    "Project",
    "ProjectRenormalise",
    "RandomValues",
    "Renormalise",
    "Rk4",
    "Still",
    "Trajectory",
    "Tree",
    "When",
    "advance",
    "flow_map",
    "merge_times",
    "moved_by",
    "rate_until",
    "solve",
    "solve_long",
]
