"""Tokens in the plane that end at the vertices of a polygon, in motion."""

from attnflow.fields import Attention, Rescaled
from attnflow.flows import solve
from attnflow.plots import Animation, animate
from attnflow.spaces import Euclidean
from attnflow.tokens import Tokens
from attnflow_gallery.vertices.simulate import Parameters


def motion(parameters: Parameters) -> Animation:
    """Rescaled Gaussian tokens in the plane, Q = K = V = I."""
    tokens = Tokens(parameters.rng(4).standard_normal((80, 2)), space=Euclidean(2))
    return animate(solve(Rescaled(Attention(1.0)), tokens, 8.0, save=200), seconds=7, fps=16)
