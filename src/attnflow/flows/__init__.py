"""Flows: integrating tokens along a field. `solve` for people, `advance` pure and differentiable."""

from attnflow.flows.advance import advance
from attnflow.flows.driver import Control, Drive
from attnflow.flows.flowmap import FlowMap, flow_map
from attnflow.flows.longtime import LongFlow, LongTime, Merges, MergeTimes, SolveLong, Tree, merge_times, solve_long
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
from attnflow.flows.observables import Observable, Views
from attnflow.flows.outcome import Ending, Outcome, Progress, Reached
from attnflow.flows.result import AbstractResult
from attnflow.flows.saving import AbstractTimes, At, Evenly, EveryLayer, LogSpaced
from attnflow.flows.sink import AbstractSink, Checkpoint, InMemory, Layout, Variable
from attnflow.flows.solve import Solve, solve
from attnflow.flows.stepper import AbstractSingle, AbstractStepper, Rows, Slice
from attnflow.flows.stopping import AbstractStop, Consensus, Frame, Still, When
from attnflow.flows.trajectory import AbstractTrajectory, Trajectory
from attnflow.flows.work import AbstractWork, Driven
from attnflow.lazy import listing

__all__ = [
    "AbstractIto",
    "AbstractMethod",
    "AbstractNoise",
    "AbstractResult",
    "AbstractRule",
    "AbstractSingle",
    "AbstractSink",
    "AbstractStepper",
    "AbstractStop",
    "AbstractStratonovich",
    "AbstractTimes",
    "AbstractTrajectory",
    "AbstractWork",
    "AdamsBashforth",
    "Adaptive",
    "Alternate",
    "At",
    "Brownian",
    "Checkpoint",
    "Consensus",
    "Control",
    "Drive",
    "Driven",
    "Ending",
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
    "MergeTimes",
    "Merges",
    "Observable",
    "Outcome",
    "Progress",
    "Project",
    "ProjectRenormalise",
    "RandomValues",
    "Reached",
    "Renormalise",
    "Rk4",
    "Rows",
    "Slice",
    "Solve",
    "SolveLong",
    "Still",
    "Trajectory",
    "Tree",
    "Variable",
    "Views",
    "When",
    "advance",
    "flow_map",
    "merge_times",
    "moved_by",
    "rate_until",
    "solve",
    "solve_long",
]
__dir__ = listing(__all__)
