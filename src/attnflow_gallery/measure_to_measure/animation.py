"""Two measures on their way to four atoms each, in motion."""

import numpy as np

from attnflow.control import match_measures
from attnflow.experiments.kit import Film, atoms, cloud, panels
from attnflow.flows import Exact, solve
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow.transport import distance
from attnflow_gallery.measure_to_measure.simulate import SPREAD, Parameters

EACH, STAND = 6, 24
"""Pictures of every element; pictures of the end."""


def motion(parameters: Parameters) -> Film:
    """Two measures (blue, orange), each followed alone under one schedule that carries it to four atoms (crosses).

    Every element of the schedule takes the same time on the screen. Right: W₂ of both from their targets. Pale tokens
    and crosses are on the far side.
    """
    rng = parameters.rng(5)
    inputs = [cloud(rng, 3, 60, SPREAD) for _ in range(2)]
    targets = [atoms(rng, 3, 4) for _ in range(2)]
    schedule = match_measures(inputs, targets, seed=parameters.seed(5)).schedule
    switches = np.concatenate([[0.0], np.cumsum(schedule.durations)])
    at = np.linspace(0, len(schedule), len(schedule) * EACH + 1)
    times = np.interp(at, np.arange(len(switches)), switches)
    flows = [solve(schedule.field, one, times[-1], method=Exact(), save=list(times)) for one in inputs]
    paths = [flow.positions.values for flow in flows]
    w2 = [
        [distance(one.moved(x), goal, order=2) for x in path]
        for one, goal, path in zip(inputs, targets, paths, strict=True)
    ]
    with panels(1, 2, 3.4, "", "$W_2$ from the target") as page:
        turn = np.linspace(0, 2 * np.pi, 200)
        page[0].plot(np.cos(turn), np.sin(turn), color=GREY, lw=0.7)
        page[0].set_axis_off()
        page[0].set(aspect="equal", xlim=(-1.1, 1.1), ylim=(-1.1, 1.1))
        dots, lines = [], []
        for i in range(2):
            goal = np.asarray(targets[i].positions)
            for near, alpha in ((True, 1.0), (False, 0.35)):
                side = (goal[:, 2] >= 0) == near
                page[0].plot(*goal[side, :2].T, "x", ms=9, mew=2, color=COLOURS[i], alpha=alpha)
                dots.append((i, near, page[0].plot([], [], "o", ms=3.2, mew=0, color=COLOURS[i], alpha=alpha)[0]))
            lines.append(page[1].plot([], [], color=COLOURS[i], lw=1.3)[0])
        mark = page[1].axvline(0, color=INK, lw=0.7)
        page[1].set(xlabel="element", xlim=(0, len(schedule)), ylim=(0, 1.1 * np.max(w2)))

    def show(k: int) -> None:
        k = min(k, len(at) - 1)
        for i, near, dot in dots:
            x = paths[i][k]
            dot.set_data(*x[(x[:, 2] >= 0) == near, :2].T)
        for line, values in zip(lines, w2, strict=True):
            line.set_data(at[: k + 1], values[: k + 1])
        mark.set_xdata([at[k], at[k]])

    return Film(page.figure, show, len(at) + STAND)
