"""The flow of the figure's largest sphere, in motion."""

from attnflow.fields import Attention
from attnflow.flows import LongTime, solve_long
from attnflow.plots import Animation, animate
from attnflow.spaces import Sphere
from attnflow.tokens import uniform
from attnflow_gallery.metastability.simulate import WIDTH, Parameters


def motion(parameters: Parameters) -> Animation:
    """Tokens on the sphere from an iid start to consensus under SA, in log t: the smallest beta of the figure."""
    beta = min(parameters.betas)
    tokens = uniform(Sphere(3), n=parameters.n, seed=parameters.seed(1))
    method = LongTime(parameters.tol, WIDTH / beta, frames=4000)
    return animate(solve_long(Attention(beta), tokens, method=method), seconds=7, fps=16)
