"""Which variants change nothing, and which change the distribution."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, consequence
from attnflow.experiments.kit import EPS, Rows
from attnflow_gallery.prompt_invariances.simulate import FIELDS, Parameters

MEASURE = consequence("A prompt is a measure")
PLACES = consequence("Places")
SEEN = 1e-3
"""A change of p(w) that is no rounding error; the mean of p(w) is 1e-2."""
KEPT = {
    "order": ("plain",),
    "repeated": ("plain",),
    "rotated": ("plain", "causal"),
    "shifted": ("plain", "rotary", "causal"),
    "prefix": ("causal",),
}
LOST = {
    "order": ("sinusoids", "rotary", "causal"),
    "repeated": ("sinusoids", "rotary"),
    "rotated": ("sinusoids", "rotary"),
    "shifted": ("sinusoids",),
    "prefix": ("plain", "sinusoids", "rotary"),
}
WORDS = {
    "order": "another order of the words",
    "repeated": "the prompt repeated",
    "rotated": "the embedding rotated",
    "shifted": "all places shifted",
    "prefix": "words after a prefix, read at its last token",
}


def amplified(parameters: Parameters) -> float:
    """What rounding may become: 100 eps in every step, multiplied by e^((2 beta + 3) t), and by beta_o in p."""
    steps = parameters.until / parameters.step
    return float(100 * EPS * steps * np.exp((2 * parameters.beta + 3) * parameters.until) * parameters.read)


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Kept, for each invariance; lost, for each."""
    allowed, made = amplified(parameters), []
    for name, words in WORDS.items():
        kept, lost = Rows(), Rows()
        for kind in FIELDS:
            if kind in KEPT[name]:
                kept.add(0.0, data[kind][name], allowed, kind)
            if kind in LOST[name]:
                lost.add(SEEN, data[kind][name], 0.0, kind)
        origin = MEASURE if name in ("order", "repeated", "rotated") else PLACES
        reason = "rounding of every step, amplified by e^((2β + 3) t), times β_o"
        fields = ", ".join(kind for kind in KEPT[name] if kind in FIELDS)
        others = ", ".join(LOST[name])
        made += [
            kept.equal(f"{words}: largest change of p(w) ({fields})", reason, origin=origin),
            lost.at_least(f"{words}: least of the largest changes of p(w) ({others})", "a tenth of 1/V", origin=origin),
        ]
    return made
