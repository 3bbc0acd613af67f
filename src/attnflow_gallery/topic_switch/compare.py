"""Densities against linear theory, the depth of the take-over, and errors of tokens for the figure."""

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence
from attnflow.experiments.kit import Rows
from attnflow_gallery.topic_switch.simulate import LAST, Parameters

LINEAR = consequence("The signal of each topic")
DEPTH = consequence("The depth of the take-over")
ROUND = 2e-7
"""Steps of the density err by 1e-10 of f, here divided by eps/2 = 0.0025; polynomials in the place by `place_tail`."""


def rate(parameters: Parameters) -> float:
    """a_1 of softmax on the circle."""
    return float(theory.causal.rates(1, parameters.beta, 2, model="SA"))


def cases(parameters: Parameters) -> list[str]:
    """Names of the cases."""
    pairs = zip(parameters.shares, parameters.slopes, strict=True)
    return [f"share {share:g}, slope {slope:g}" for share, slope in pairs]


def signals(parameters: Parameters, case: int, times: np.ndarray) -> np.ndarray:
    """(topic, time): closed forms, averaged over the last places."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    places = (1 + LAST) / 2 + (1 - LAST) / 2 * nodes
    share, slope, depth = parameters.shares[case], parameters.slopes[case], rate(parameters) * times[:, None]
    both = (
        signal(depth, share, slope=slope, place=places)
        for signal in (theory.causal.early_signal, theory.causal.late_signal)
    )
    return np.array([one @ weights / 2 for one in both])


def measured(part: xr.Dataset) -> np.ndarray:
    """(topic, ...): both topics."""
    return np.stack([part["early"].values, part["late"].values])


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Linear theory; the depth of the take-over; the order of what linear theory misses."""
    return [_linear(parameters, data), _depth(parameters, data), _second(parameters, data)]


def _labels(name: str, times: np.ndarray) -> list[str]:
    return [f"{name}, {topic}, t = {t:g}" for topic in ("early", "late") for t in times]


def _linear(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    """Extrapolated from eps and eps/2, since the first term left out is of order eps^2."""
    rows = Rows()
    for case, name in enumerate(cases(parameters)):
        part = data[f"density-{case}"].isel(time=slice(1, None))
        times, tail = part["time"].values, float(part["place_tail"].values.max())
        wide, small = np.moveaxis(measured(part)[:, 1:], 1, 0)
        exact, second = signals(parameters, case, times), (wide - small) * 4 / 3
        room = 2 * (second / exact) ** 2 + ROUND / exact + 10 * tail / exact
        rows.add(0.0, (small - (wide - small) / 3) / exact - 1, room, _labels(name, times))
    terms = "twice the square of the share of order eps², steps, and the last polynomials in the place"
    return rows.equal(
        "density: amplitudes of both topics at the last 4 % of places over e^c P(N_c > N_y) and e^c P(N_c ≤ N_y)",
        f"extrapolated to eps = 0 from two eps: {terms}",
        origin=LINEAR,
    )


def depths(parameters: Parameters, data: dict[str, xr.Dataset]) -> tuple[np.ndarray, np.ndarray]:
    """Depths of the take-over at the place 1, extrapolated to eps = 0, and how much that changed them."""
    times = np.array([data[f"density-{case}"]["takeover"].values[1:] for case in range(len(parameters.shares))])
    return rate(parameters) * (times[:, 1] + (times[:, 1] - times[:, 0]) / 3), np.abs(times[:, 1] - times[:, 0])


def _depth(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    (found, moved), rows = depths(parameters, data), Rows()
    exact = theory.causal.takeover_time(np.array(parameters.shares), slope=np.array(parameters.slopes))
    rows.add(exact, found, moved**2 + 2e-5, cases(parameters))
    flat = np.array(parameters.slopes) == 0
    more = ", ".join(f"{one:.4f}" for one in (found + np.log(parameters.shares))[flat])
    return rows.equal(
        "density: depth a t at which the early topic takes the place 1 over: the root of P(N_c > N_y) = 1/2",
        "the square of what eps² moves; 2e-5 for cubic splines through the frames",
        origin=DEPTH,
        detail=f"without a slope log(1/share) and {more} more; 1/2 for a small share, log 2 for a share near 1",
    )


def _second(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows = Rows()
    for case, name in enumerate(cases(parameters)):
        part = data[f"density-{case}"].isel(time=-1)
        wide, small = np.moveaxis(measured(part)[:, 1:], 1, 0)
        exact = signals(parameters, case, np.atleast_1d(part["time"].values))[:, 0]
        power = np.log2(np.abs((wide / exact - 1) / (small / exact - 1)))
        # relative amplitude squared: what the fourth order does to the power
        size = (parameters.small * np.abs(wide)) ** 2
        rows.add(2.0, power, 4 * size + 0.01, [f"{name}, {topic}" for topic in ("early", "late")])
    reason = "the next order, four times the square of the amplitude; 0.01 for steps"
    return rows.equal("density: what linear theory misses is of order eps²: power of eps", reason, origin=LINEAR)


def misses(parameters: Parameters, data: dict[str, xr.Dataset], case: int) -> np.ndarray:
    """(topic, size, shift, time): tokens less density, over the whole signal of the density."""
    tokens, density = data[f"tokens-{case}"], data[f"density-{case}"]
    every = parameters.frames // parameters.reads
    exact = measured(density)[:, 0, ::every]
    return np.asarray((measured(tokens) - exact[:, None, None]) / np.sum(exact, axis=0))[..., 1:]


def errors(parameters: Parameters, data: dict[str, xr.Dataset]) -> np.ndarray:
    """(case, size): root mean square of `misses` over topics, shifts and times."""
    rows = [misses(parameters, data, case) for case in range(len(parameters.shares))]
    return np.array([np.sqrt(np.mean(one**2, axis=(0, 2, 3))) for one in rows])
