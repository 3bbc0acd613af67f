"""One measure on its way to four atoms, in motion."""

from attnflow.control import match_measures
from attnflow.experiments.kit import atoms, cloud
from attnflow.flows import Exact, solve
from attnflow.plots import Animation, animate
from attnflow_gallery.measure_to_measure.simulate import SPREAD, Parameters


def motion(parameters: Parameters) -> Animation:
    """One of two measures under a schedule that carries each of them to four atoms of its own."""
    rng = parameters.rng(5)
    inputs = [cloud(rng, 3, 120, SPREAD) for _ in range(2)]
    match = match_measures(inputs, [atoms(rng, 3, 4) for _ in range(2)], seed=parameters.seed(5))
    schedule = match.schedule
    flows = [solve(schedule.field, one, schedule.duration, method=Exact(), save=160) for one in inputs]
    # the measure that is carried last
    late = max(flows, key=lambda flow: float(abs(flow.positions.values[80] - flow.positions.values[-1]).sum()))
    return animate(late, seconds=9, fps=16)
