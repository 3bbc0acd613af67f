"""A normal density on its way to the mixture, unit by unit."""

import numpy as np
from scipy.stats import norm

from attnflow.control import Schedule, match_density_1d
from attnflow.experiments.kit import Film, panels
from attnflow.plots.style import COLOURS, GREY, INK
from attnflow_gallery.relative_entropy.simulate import OUTSIDE, SPAN, Parameters, divergences, gauss, reached, target

CELLS, BETWEEN, STAND = 24, 2, 24
"""Cells of the mesh; pictures of every unit; pictures of the end."""


def motion(parameters: Parameters) -> Film:
    """The density under 27 ReLU units, one after the other: each stretches or squeezes all that lies beyond its kink.

    Left: the density (blue) and the target (grey). Right: KL(target | density) after every unit.
    """
    schedule = match_density_1d(target(), CELLS, span=SPAN).schedule
    parts = [(schedule[k][0], schedule[k][1]) for k in range(len(schedule))]
    x = np.linspace(-8, 8, 1200)
    at, weights = gauss(np.linspace(*OUTSIDE, 150))

    def until(count: float) -> Schedule:
        """The first units, the last of them in part."""
        whole, rest = int(count), count - int(count)
        taken = parts[:whole] + ([(parts[whole][0], rest * parts[whole][1])] if rest > 0 else [])
        return Schedule(schedule.space, taken or [(parts[0][0], 1e-9)])

    counts = np.append(np.arange(len(parts) * BETWEEN) / BETWEEN, [len(parts)] * STAND)
    made = {count: until(float(count)) for count in np.unique(counts)}
    curves = {count: np.exp(reached(one, x)) for count, one in made.items()}
    wanted = target().logpdf(at)
    left = {count: divergences(wanted, reached(one, at), weights)[0] for count, one in made.items()}
    with panels(1, 2, 2.6, "density", "KL(target | density)", width_ratios=(1.6, 1)) as page:
        page[0].fill_between(x, target().pdf(x), color=GREY, alpha=0.35, lw=0, label="target")
        page[0].plot(x, norm.pdf(x), color=INK, lw=0.8, ls=":", label="base")
        (line,) = page[0].plot(x, curves[0.0], color=COLOURS[0], lw=1.3, label="density")
        page[0].set(xlabel="$x$", xlim=(-8, 8), ylim=(0, 0.6))
        page[0].legend(loc="upper left")
        (path,) = page[1].semilogy([], [], color=COLOURS[0], lw=1.3)
        (dot,) = page[1].semilogy([], [], "o", ms=5, color=COLOURS[0])
        values = list(left.values())
        page[1].set(xlabel="units", xlim=(0, len(parts)), ylim=(0.5 * min(values), 2 * max(values)))

    def show(k: int) -> None:
        line.set_ydata(curves[counts[k]])
        seen = [count for count in left if count <= counts[k]]
        path.set_data(seen, [left[count] for count in seen])
        dot.set_data([counts[k]], [left[counts[k]]])

    return Film(page.figure, show, len(counts), fps=12)
