"""The density on the circle, in motion."""

from attnflow.meanfield import evolve
from attnflow.plots import Animation, animate
from attnflow_gallery.continuity_equation.simulate import Parameters, setting


def motion(parameters: Parameters) -> Animation:
    """The density of the figure under SA, as long as the harmonics resolve it."""
    field, density, _, _ = setting("circle", "SA", parameters)
    return animate(evolve(field, density, parameters.circle_until, save=160), seconds=7, fps=16)
