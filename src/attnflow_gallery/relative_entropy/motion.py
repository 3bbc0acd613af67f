"""Tokens on the line that become a sample of the mixture, in motion."""

import numpy as np
from scipy.stats import norm

from attnflow.control import match_density_1d, monotone
from attnflow.flows import Exact, solve
from attnflow.plots import Animation, animate
from attnflow.spaces import Euclidean
from attnflow.tokens import Tokens
from attnflow_gallery.relative_entropy.simulate import SPAN, Parameters, target


def motion(parameters: Parameters) -> Animation:
    """Normal points under 35 ReLU units; only the horizontal coordinate moves. The vertical one tells points apart."""
    match = match_density_1d(target(), 32, span=SPAN)
    schedule = monotone(match.sources, match.nodes, match.slopes, dim=2)
    n = 400
    height = (np.arange(n) * (5**0.5 - 1) / 2) % 1.0
    start = np.stack([norm.ppf((np.arange(n) + 0.5) / n), 4 * height - 2], axis=1)
    flow = solve(schedule.field, Tokens(start, space=Euclidean(2)), schedule.duration, method=Exact(), save=120)
    return animate(flow, seconds=7, fps=16)
