"""Signs of growth rates, topology of the list of equilibria, and exit times against closed forms."""

import math
from collections.abc import Callable

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import NUMERICS, Claim, consequence, published
from attnflow.experiments.kit import counted
from attnflow_gallery.saddles.simulate import NEUTRAL, SPAN, Parameters, name

ERRORS = 4.0
"""Standard errors that a measured rate may be off."""
LATE = 0.03
"""The share of starts that make up the tail."""
CLOSE = "equilibria are found to 1e-12, so that an eigenvalue is off by less than 1e-8"


def tail_rate(left: np.ndarray) -> tuple[float, float]:
    """Rate of the exponential tail of exit times that are known to one frame, and its standard error.

    Of the last starts, `LATE` of all, the excesses over the last frame before are geometric; the estimate is that of
    largest likelihood.
    """
    begin = float(np.quantile(left, 1 - LATE, method="lower"))
    waits = np.round((left[left > begin] - begin) / SPAN)
    if not len(waits) or not np.isfinite(waits).all():
        return math.nan, math.nan
    rate = -math.log1p(-1 / waits.mean()) / SPAN
    return rate, rate / math.sqrt(len(waits))


def merge(bend: float, beta: float) -> float:
    """Closed form of the time that two groups need from the angle pi - bend to pi/2."""
    return float(theory.merging.merge_time(math.pi - bend, beta, (0.5, 0.5), math.pi / 2, "USA0"))


def known(part: xr.Dataset) -> tuple[np.ndarray, list[str]]:
    """Largest error of an eigenvalue at every equilibrium whose spectrum has a closed form, and what it is."""
    n, d, beta = (part.attrs[key] for key in ("n", "d", "beta"))
    errors, words = [], []
    for k in range(part.sizes["equilibrium"]):
        positions, rates = part["positions"].values[k], part["rates"].values[k]
        gram = positions @ positions.T
        if part["rank"][k] == 1:
            first = int(np.sum(gram[0] > 0))
            errors.append(np.abs(rates - theory.landscape.antipodal_spectrum(n, d, first, beta)).max())
            words.append(f"{_case(part)}, {first} tokens against {n - first}")
        elif np.abs(np.sort(gram, axis=1) - np.sort(np.cos(2 * np.pi * np.arange(n) / n))).max() < 1e-6:
            errors.append(np.abs(rates - theory.landscape.ring_spectrum(n, d, beta)).max())
            words.append(f"{_case(part)}, ring")
    return np.array(errors), words


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Strict saddles and iid starts, then the list of equilibria and exit times."""
    parts = [data[name(n, d, beta)] for n, d in parameters.cases for beta in parameters.betas]
    starts = {d: data[f"starts-S{d - 1}"] for d in parameters.dims}
    made = [_strict(d, [p for p in parts if p.attrs["d"] == d]) for d in sorted({d for _, d in parameters.cases})]
    made += [_all_leave(parameters, d, starts[d]) for d in parameters.dims]
    made += [_tail(parameters, d, starts[d]) for d in parameters.dims]
    return [*made, _exits(parameters, starts), *_spectra(parts), *_topology(parts), _second_half(parameters, parts)]


def _case(part: xr.Dataset) -> str:
    return f"n = {part.attrs['n']} on S^{part.attrs['d'] - 1}, β = {part.attrs['beta']:g}"


def _theorem(d: int) -> str:
    return "polyanskiy2025synchronization" if d == 2 else "criscitiello2024synchronization"


def _strict(d: int, parts: list[xr.Dataset]) -> Claim:
    rates, words = [], []
    for part in parts:
        others = part.isel(equilibrium=part["clusters"].values > 1)
        rates += list(others["rates"].values.max(axis=1))
        words += [f"{_case(part)}, {int(k)} clusters" for k in others["clusters"]]
    return Claim.at_least(
        f"S^{d - 1}: largest growth rate at every equilibrium but consensus is positive",
        2 * NEUTRAL, rates, NEUTRAL, CLOSE, origin=published(_theorem(d)), labels=words,
    )  # fmt: skip


def _all_leave(parameters: Parameters, d: int, part: xr.Dataset) -> Claim:
    left = np.isfinite(part["left"].values)
    return Claim.true(
        f"USA0, β = {parameters.beta:g}, {parameters.n} iid tokens on S^{d - 1}: every start has left the saddles by "
        f"t = {parameters.until:g}", bool(left.all()), counted(left), "counted; exact binomial bound",
        origin=published(_theorem(d)),
    )  # fmt: skip


def _tail(parameters: Parameters, d: int, part: xr.Dataset) -> Claim:
    rate, error = tail_rate(part["left"].values)
    return Claim.equal(
        f"S^{d - 1}: rate at which the share of starts near a saddle falls, (d-1) e^(-2β)",
        (d - 1) * math.exp(-2 * parameters.beta), rate, ERRORS * error,
        f"{ERRORS:g} standard errors, the last {LATE:.0%} of {parameters.draws} starts",
        origin=consequence("How long a start stays near a saddle"),
    )  # fmt: skip


def _exits(parameters: Parameters, parts: dict[int, xr.Dataset]) -> Claim:
    predicted = [merge(bend, parameters.beta) for bend in parameters.bends]
    return Claim.equal(
        "exit time of two groups that are almost antipodal", predicted,
        [part["bent"].values - SPAN / 2 for part in parts.values()], SPAN / 2 * (1 + 1e-6),
        "half the time between frames", origin=consequence("How long a start stays near a saddle"),
        labels=lambda at: f"S^{list(parts)[at[0]] - 1}, angle π - {parameters.bends[at[1]]:.0e}",
    )  # fmt: skip


def _spectra(parts: list[xr.Dataset]) -> list[Claim]:
    found = [known(part) for part in parts]
    speeds = [[float(part["speed"].max()), _unlike(part)] for part in parts]
    return [
        Claim.equal(
            "growth rates at rings, antipodal groups and consensus minus the closed form", 0.0,
            np.concatenate([errors for errors, _ in found]), NEUTRAL, CLOSE,
            origin=consequence("Growth rates at rings and antipodal groups"),
            labels=[word for _, words in found for word in words],
        ),
        Claim.at_most(
            "SA: largest speed at the equilibria of USA0, and number of those with another Morse index", 0.0, speeds,
            [NEUTRAL, 0.0], "eigenvalues and speeds against 1e-8; the number exactly",
            origin=consequence("Softmax attention has the same equilibria and Morse indices"),
            labels=lambda at: f"{_case(parts[at[0]])}, {('speed', 'number')[at[1]]}",
        ),
    ]  # fmt: skip


def _unlike(part: xr.Dataset) -> float:
    return float(np.sum(np.sum(part["rates_SA"].values > NEUTRAL, axis=1) != part["index"].values))


def _topology(parts: list[xr.Dataset]) -> list[Claim]:
    sums, quotients = (
        [_of(theory.landscape.euler_sums, part) for part in parts],
        [_of(theory.landscape.morse_quotient, part) for part in parts],
    )
    count = sum(part.sizes["equilibrium"] for part in parts)
    origin = consequence("Counting equilibria with topology")
    return [
        Claim.equal(
            "equilibria modulo rotations, each with (-1)^index, add up to the Euler characteristic",
            [predicted for predicted, _ in sums], [found for _, found in sums], 0.0, "integers", origin=origin,
            labels=[_case(part) for part in parts], detail=f"{count} equilibria",
        ),
        Claim.true(
            "no equilibrium is degenerate modulo rotations, and Morse's inequalities hold",
            all(rest == 0 and (q >= 0).all() for rest, q in quotients) and all(map(_nondegenerate, parts)),
            f"{sum(len(q) for _, q in quotients)} coefficients of Q in {len(parts)} cases, the smallest "
            f"{min(int(q.min()) for _, q in quotients)}", f"integers; eigenvalues below {NEUTRAL:g} are zero",
            origin=origin,
        ),
    ]  # fmt: skip


def _of(function: Callable, part: xr.Dataset) -> tuple:
    columns = (part[key].values for key in ("index", "labelled"))
    return function(part.attrs["n"], part.attrs["d"], *columns, part["rank"].values == 1)


def _nondegenerate(part: xr.Dataset) -> bool:
    """Whether only rotations have the eigenvalue 0; a collinear configuration keeps the rotations about its line."""
    zeros = np.sum(np.abs(part["rates"].values) <= NEUTRAL, axis=1)
    turns = np.ones_like(zeros) if part.attrs["d"] == 2 else np.minimum(part["rank"].values + 1, 3)
    return bool((zeros == turns).all())


def _second_half(parameters: Parameters, parts: list[xr.Dataset]) -> Claim:
    late = [int(np.sum(part["batch"].values >= parameters.batches // 2)) for part in parts]
    return Claim.at_most(
        "equilibria that only the second half of the starts of Newton's method finds", 0.0, late, 0.0, "counted",
        origin=NUMERICS, labels=[_case(part) for part in parts],
        detail=f"{sum(part.attrs['starts'] for part in parts)} starts in all",
    )  # fmt: skip
