"""N E W_2^2 and N times the bias against N."""

from typing import Any

import numpy as np
import xarray as xr

from attnflow.experiments.kit import panels, powers_of_two
from attnflow.plots.style import COLOURS, GREY
from attnflow_gallery.causal_rate.compare import constants, found, linear
from attnflow_gallery.causal_rate.simulate import Parameters


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Causal prompts on the circle: Monte Carlo (marks, standard errors).

    (a) N E W₂² from the uniform measure; line: linear theory of N tokens, dashed: its limit, dotted: the limit without
    a mask. (b) N times the bias of the mean of cos θ from another start, with the mask and without it.
    """
    with panels(1, 2, 2.9, "distance from the limit", "bias") as page:
        n = np.unique(np.geomspace(parameters.sizes[0], 4 * parameters.sizes[-1], 24).astype(int))
        causal, plain = constants(parameters)
        page[0].plot(n, [linear(parameters, int(one)) for one in n], color=COLOURS[0], lw=0.9)
        page[0].axhline(causal, color=COLOURS[0], ls="--", lw=0.8)
        page[0].axhline(plain, color=GREY, ls=":", lw=1.0)
        mean, error = found(data, "distance", parameters.sizes)
        page[0].errorbar(parameters.sizes, mean, error, fmt="o", ms=4, color=COLOURS[0])
        page[0].set(xscale="log", xlabel="tokens $N$", ylabel=r"$N$ E $W_2^2$")
        for kind, sizes, colour, label in (
            ("bias", parameters.bias_sizes, COLOURS[0], "causal"),
            ("plain", parameters.plain_sizes, COLOURS[4], "no mask"),
        ):
            mean, error = found(data, kind, sizes)
            page[1].errorbar(sizes, mean, error, fmt="o-", ms=4, lw=0.8, color=colour, label=label)
        page[1].set(xscale="log", xlabel="tokens $N$", ylabel=r"$N$ (E mean $-$ limit)", ylim=(None, 0))
        page[1].legend(loc="lower left")
        for axes in page:
            powers_of_two(axes)
    return page.figure
