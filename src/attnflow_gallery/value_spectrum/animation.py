"""Tokens that end in two clusters, in motion."""

import numpy as np

from attnflow.fields import Attention
from attnflow.flows import solve
from attnflow.plots import Animation, animate
from attnflow.spaces import Sphere
from attnflow.tokens import uniform
from attnflow_gallery.value_spectrum.simulate import Parameters


def motion(parameters: Parameters) -> Animation:
    """Random tokens under V = diag(1, r, r) at the largest beta: they end in two antipodal clusters, for ever."""
    field = Attention(max(parameters.betas), value=np.diag([1.0, parameters.ratio, parameters.ratio]))
    return animate(solve(field, uniform(Sphere(3), n=120, seed=parameters.seed(0)), 24.0, save=240), seconds=7, fps=16)
