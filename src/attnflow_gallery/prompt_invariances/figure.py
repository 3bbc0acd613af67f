"""All changes of the distribution in one table of marks."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import MARKS, panels
from attnflow.plots.style import COLOURS, GREY
from attnflow_gallery.prompt_invariances.compare import KEPT, SEEN, WORDS, amplified
from attnflow_gallery.prompt_invariances.simulate import FIELDS, Parameters


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Largest change of p(w) at the end of the flow, for every variant of the prompt and every field, all draws.

    Full marks: the invariance holds; open marks: it is lost. Dashed: what rounding may become; dotted: a tenth of 1/V.
    """
    with panels(1, 1, 2.8) as page:
        axes = page[0]
        for k, kind in enumerate(FIELDS):
            colour = COLOURS[(0, 4, 2, 3)[k]]
            for row, name in enumerate(WORDS):
                values = np.maximum(data[kind][name].values, 1e-17)
                face = colour if kind in KEPT[name] else "white"
                place = np.full(len(values), row + 0.15 * (k - 1.5))
                axes.plot(values, place, MARKS[k], ms=4, mec=colour, mfc=face, mew=0.9)
            axes.plot([], [], MARKS[k], ms=4, color=colour, label=kind)
        axes.axvline(amplified(parameters), color=GREY, ls="--", lw=0.9)
        axes.axvline(SEEN, color=GREY, ls=":", lw=0.9)
        axes.set(xscale="log", xlim=(3e-18, 3), ylim=(len(WORDS) - 0.5, -0.5), xlabel="largest change of $p(w)$")
        axes.set_yticks(range(len(WORDS)), list(WORDS.values()))
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return page.figure
