"""Two topics in one causal prompt: as tokens, and as a density with places, for small and for larger leanings."""

import dataclasses
import itertools

import numpy as np
import xarray as xr
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

from attnflow import in_float64
from attnflow.experiments import Salted, Study
from attnflow.fields import Attention
from attnflow.flows import Fixed, advance
from attnflow.masks import Causal
from attnflow.meanfield import CircleBasis, PlacedDensity, Places, evolve_placed, perturbed, placed, quiet

LAST = 0.96
"""The last token stands for the places after this one."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """Prompts that lean towards cos(theta) up to the place `shares` and towards sin(theta) after it, softmax."""

    beta: float = 1.0
    shares: tuple[float, ...] = (0.25, 0.5, 0.1, 0.25)
    slopes: tuple[float, ...] = (0.0, 0.0, 0.0, 2.0)
    """ALiBi slopes per unit of place, one for every share."""
    leanings: tuple[float, ...] = (0.1, 0.1, 0.05, 0.05)
    """eps of the starts 1 + eps cos, 1 + eps sin that are followed as tokens and as densities."""
    untils: tuple[float, ...] = (5.0, 3.5, 7.0, 7.0)
    small: float = 0.01
    """eps of the densities that are compared with linear theory, which are followed with half of it too."""
    frames: int = 28
    tokens: tuple[int, ...] = (256, 1024, 4096, 16384)
    shifts: int = 8
    """Quiet starts of every number of tokens."""
    reads: int = 7
    """Times at which tokens are read; they divide `frames`."""
    degree: int = 32
    nodes: int = 14


QUICK = Parameters(
    shares=(0.25, 0.5, 0.25),
    slopes=(0.0, 0.0, 2.0),
    leanings=(0.1, 0.1, 0.05),
    untils=(5.0, 3.5, 7.0),
    tokens=(256, 1024),
    shifts=2,
    reads=7,
    degree=24,
    nodes=12,
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Densities and tokens of every case."""
    kinds = (("density", densities), ("tokens", prompts))
    cases = itertools.product(range(len(parameters.shares)), kinds)
    return study.parts({f"{name}-{case}": (make, parameters, case) for case, (name, make) in cases})


def attention(beta: float, slope: float) -> Attention:
    """Causal softmax attention of tokens with places in [0, 1]."""
    return Attention(beta, mask=Causal(slope=slope))


def switch(parameters: Parameters, share: float, leaning: float) -> PlacedDensity:
    """1 + eps cos(theta) up to the place `share`, 1 + eps sin(theta) after it."""
    basis = CircleBasis(parameters.degree)
    early, late = (perturbed(basis, 1, leaning, order) for order in (0, -1))
    # after the switch the solution is smooth in log(place): one more break, in its middle
    return placed(Places((0.0, share, np.sqrt(share), 1.0), parameters.nodes), [early, late, late])


def densities(parameters: Parameters, case: int) -> xr.Dataset:
    """(eps, time): amplitudes of both topics at the last places and at the place 1, and the time of the take-over."""
    share, slope, until = (row[case] for row in (parameters.shares, parameters.slopes, parameters.untils))
    field = attention(parameters.beta, slope)
    leanings = [parameters.leanings[case], parameters.small, parameters.small / 2]
    rows: dict[str, list[np.ndarray]] = {"early": [], "late": [], "early_end": [], "late_end": []}
    takeovers, tails = [], []
    for leaning in leanings:
        flow = evolve_placed(field, switch(parameters, share, leaning), until, save=parameters.frames)
        places = flow.densities[0].places
        for name, order in (("early", 0), ("late", -1)):
            profiles = 2 / leaning * np.stack([one.profile(1, order) for one in flow.densities])
            rows[name].append(profiles @ places.average(LAST, 1.0))
            rows[f"{name}_end"].append(profiles @ places.interpolation(1.0))
        takeovers.append(crossing(flow.times, rows["early_end"][-1], rows["late_end"][-1]))
        tails.append(float(flow.dataset["place_tail"].max()))
    found = xr.Dataset({"takeover": ("eps", takeovers), "place_tail": ("eps", tails)}, {"eps": leanings})
    columns = {name: (("eps", "time"), np.array(values)) for name, values in rows.items()}
    return found.assign(columns).assign_coords(time=flow.times)


def crossing(times: np.ndarray, early: np.ndarray, late: np.ndarray) -> float:
    """The time at which the early topic becomes the stronger one; NaN if it does not."""
    lead = CubicSpline(times[1:], np.log(np.maximum(early[1:], 1e-300) / np.maximum(late[1:], 1e-300)))
    if not lead(times[1]) < 0 < lead(times[-1]):
        return float("nan")
    return float(brentq(lead, times[1], times[-1], xtol=1e-13))


def prompts(parameters: Parameters, case: int) -> xr.Dataset:
    """(size, shift, time): amplitudes of both topics over the last places, of quiet tokens."""
    share, slope, leaning = (row[case] for row in (parameters.shares, parameters.slopes, parameters.leanings))
    start, field = switch(parameters, share, leaning), attention(parameters.beta, slope)
    times = np.linspace(0.0, parameters.untils[case], parameters.reads + 1)
    found = np.empty((2, len(parameters.tokens), parameters.shifts, len(times)))
    for i, n in enumerate(parameters.tokens):
        for k, shift in enumerate(parameters.rng(case, i).random(parameters.shifts)):
            found[:, i, k] = followed(field, start, n, float(shift), times) * 2 / leaning
    dims = ("size", "shift", "time")
    return xr.Dataset({"early": (dims, found[0]), "late": (dims, found[1])}, {"time": times})


@in_float64
def followed(field: Attention, start: PlacedDensity, n: int, shift: float, times: np.ndarray) -> np.ndarray:
    """(topic, time): means of cos and sin over the last places."""
    tokens = quiet(start, n, shift=shift)
    last = np.asarray(tokens.place) > LAST
    ready = field.prepare(tokens, 1e-8, flowing=True)
    means = [np.asarray(tokens.positions)[last].mean(axis=0)]
    for begin, end in itertools.pairwise(times):
        # 1.0001: rounding must not make it one step more
        tokens = advance(ready, tokens, float(begin), float(end), Fixed(1.0001 * (times[1] - times[0]) / 4))
        means.append(np.asarray(tokens.positions)[last].mean(axis=0))
    return np.array(means).T
