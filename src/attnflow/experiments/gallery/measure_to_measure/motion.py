"""One measure on its way to four atoms, in motion."""

from attnflow.control import match_measures
from attnflow.experiments.clouds import atoms, cloud
from attnflow.experiments.gallery.measure_to_measure.simulate import SPREAD, Parameters
from attnflow.flows import Exact, solve
from attnflow.plots import Animation, animate


def motion(parameters: Parameters) -> Animation:
    """One of two measures under a schedule that carries each of them to four atoms of its own."""
    rng = parameters.rng(5)
    inputs = [cloud(rng, 3, 120, SPREAD) for _ in range(2)]
    match = match_measures(inputs, [atoms(rng, 3, 4) for _ in range(2)], seed=parameters.seed(5))
    flow = solve(match.schedule.field, inputs[0], match.schedule.duration, method=Exact(), save=160)
    return animate(flow, seconds=9, fps=16)
