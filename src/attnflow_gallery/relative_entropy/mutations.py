"""Ways to break the simulation."""

import dataclasses
from typing import Any

import numpy as np
from scipy.stats import t

from attnflow.control import monotone
from attnflow.experiments import Mutation, altered, result
from attnflow_gallery.relative_entropy import simulate


def moved(match: Any) -> Any:
    """Every second node goes a tenth of a cell too far."""
    nodes = match.nodes.copy()
    nodes[1:-1:2] += 0.1 * np.diff(nodes)[1::2][: len(nodes[1:-1:2])]
    return dataclasses.replace(match, schedule=monotone(match.sources, nodes, match.slopes))


def no_log_det(original: Any) -> Any:
    """The density is read off without the log-determinant."""
    return lambda schedule, x: simulate.log_base(schedule.inverse().push(x.reshape(-1, 1))[0]).reshape(x.shape)


def heavy_base(original: Any) -> Any:
    """The base has the tails of a Student density."""
    return lambda x: t(1.5).logpdf(x[:, 0])


MUTATIONS = (
    Mutation("nodes a tenth of a cell off", simulate, "match_density_1d", result(moved)),
    Mutation("no log-determinant", simulate, "reached", no_log_det),
    Mutation("base with heavy tails", simulate, "log_base", heavy_base),
    Mutation("equal cells for all", simulate, "match_density_1d", altered("mesh", lambda mesh: "uniform")),
)
