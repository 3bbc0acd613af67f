"""Signs of growth rates, topology of the list of equilibria, and exit times against closed forms."""

import math
from collections.abc import Callable

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import NUMERICS, Claim, consequence, published
from attnflow.experiments.kit import EPS, LEVEL, Rows, counted, student
from attnflow_gallery.saddles.simulate import NEUTRAL, SPAN, Parameters, name

STEPS = 1e-5
"""Relative error of a time by Runge-Kutta: rates are below 1, and (1/4)^4/120 is 3e-5 at the rate 1, 1e-6 at 0.4."""
LATE = 0.03
"""The share of starts that make up the tail."""
STAY = consequence("How long a start stays near a saddle")
SPECTRA = consequence("Growth rates at rings and antipodal groups")
SOFTMAX = consequence("Softmax attention has the same equilibria and Morse indices")
TOPOLOGY = consequence("Counting equilibria with topology")
CLOSE = "equilibria are found to 1e-12, so that an eigenvalue is off by less than 1e-8"


def tail_rate(left: np.ndarray) -> tuple[float, float]:
    """Rate of the exponential tail of exit times that are known to one frame, and its standard error.

    Of the last starts, `LATE` of all, the excesses over the last frame before are geometric; the estimate is that of
    largest likelihood.
    """
    begin = float(np.quantile(left, 1 - LATE, method="lower"))
    waits = np.round((left[left > begin] - begin) / SPAN)
    if not len(waits) or not (waits < np.inf).all():
        return math.nan, math.nan
    rate = -math.log1p(-1 / waits.mean()) / SPAN
    return rate, rate / math.sqrt(len(waits))


def merge(bend: float, beta: float) -> float:
    """Closed form of the time that two groups need from the angle pi - bend to pi/2."""
    return float(theory.merging.merge_time(math.pi - bend, beta, masses=(0.5, 0.5), until=math.pi / 2, model="USA0"))


def _add_known(rows: Rows, part: xr.Dataset) -> None:
    """Errors of all eigenvalues at every equilibrium whose spectrum has a closed form."""
    n, d, beta = (part.attrs[key] for key in ("n", "d", "beta"))
    for positions, rates, rank in zip(*(part[key].values for key in ("positions", "rates", "rank")), strict=True):
        gram = positions @ positions.T
        if rank == 1:
            first = int(np.sum(gram[0] > 0))
            words, expected = (
                f"{first} tokens against {n - first}",
                theory.landscape.antipodal_spectrum(n=n, d=d, first=first, beta=beta),
            )
        elif np.abs(np.sort(gram, axis=1) - np.sort(np.cos(2 * np.pi * np.arange(n) / n))).max() < 1e-6:
            words, expected = "ring", theory.landscape.ring_spectrum(n=n, d=d, beta=beta)
        else:
            continue
        rows.add(0.0, np.abs(rates - expected).max(), NEUTRAL, f"{_case(part)}, {words}")


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Strict saddles and iid starts, then the list of equilibria and exit times."""
    parts = [data[name(n, d, beta)] for n, d in parameters.cases for beta in parameters.betas]
    starts = {d: data[f"starts-S{d - 1}"] for d in parameters.dims}
    made = [_strict(d, [p for p in parts if p.attrs["d"] == d]) for d in sorted({d for _, d in parameters.cases})]
    made += [_all_leave(parameters, d, starts[d]) for d in parameters.dims]
    made += [_tail(parameters, d, starts[d]) for d in parameters.dims]
    made += [_exits(parameters, starts), *_spectra(parts), *_topology(parts), _second_half(parameters, parts)]
    return [*made, _proved(parts)]


def _case(part: xr.Dataset) -> str:
    return f"n = {part.attrs['n']} on S^{part.attrs['d'] - 1}, β = {part.attrs['beta']:g}"


def _theorem(d: int) -> str:
    return "polyanskiy2025synchronization" if d == 2 else "criscitiello2024synchronization"


def _strict(d: int, parts: list[xr.Dataset]) -> Claim:
    rows = Rows()
    for part in parts:
        others = part.isel(equilibrium=part["clusters"].values > 1)
        labels = [f"{_case(part)}, {int(k)} clusters" for k in others["clusters"]]
        rows.add(2 * NEUTRAL, others["rates"].values.max(axis=1), NEUTRAL, labels)
    words = f"S^{d - 1}: largest growth rate at every equilibrium but consensus is positive"
    return rows.at_least(words, CLOSE, origin=published(_theorem(d)))


def _all_leave(parameters: Parameters, d: int, part: xr.Dataset) -> Claim:
    left, reason = part["left"].values < np.inf, "counted; exact binomial bound"
    where = f"USA0, β = {parameters.beta:g}, {parameters.n} iid tokens on S^{d - 1}"
    words = f"{where}: every start has left the saddles by t = {parameters.until:g}"
    return Claim.true(words, bool(left.all()), counted(left), reason, origin=published(_theorem(d)))


def _tail(parameters: Parameters, d: int, part: xr.Dataset) -> Claim:
    found, error = tail_rate(part["left"].values)
    words = f"S^{d - 1}: rate at which the share of starts near a saddle falls, (d-1) e^(-2β)"
    allowed = student(LEVEL, round(LATE * parameters.draws))
    reason = f"Student's test, level {LEVEL:g}, the last {LATE:.0%} of {parameters.draws} starts"
    predicted = (d - 1) * math.exp(-2 * parameters.beta)
    return Claim.equal(words, predicted, found, allowed * error, reason, origin=STAY, level=LEVEL)


def _exits(parameters: Parameters, parts: dict[int, xr.Dataset]) -> Claim:
    rows, predicted = Rows(), [merge(bend, parameters.beta) for bend in parameters.bends]
    for d, part in parts.items():
        labels = [f"S^{d - 1}, angle π - {bend:.0e}" for bend in parameters.bends]
        # a relative rounding error of the angle, eps/angle, is one of the time by the same number over the rate
        rounding = 8 * EPS / np.array(parameters.bends) * math.exp(2 * parameters.beta)
        rows.add(predicted, part["bent"], part["bent_error"] + STEPS * part["bent"] + rounding, labels)
    words = "exit time of two groups that are almost antipodal"
    reason = f"what splines through half of the frames change, 15 times the error; {STEPS:g} t for steps; rounding"
    return rows.equal(words, reason, origin=STAY)


def _spectra(parts: list[xr.Dataset]) -> list[Claim]:
    known, same = Rows(), Rows()
    for part in parts:
        _add_known(known, part)
        same.add(0.0, float(part["speed"].values.max()), NEUTRAL, f"{_case(part)}, speed")
        same.add(0.0, _unlike(part), 0.0, f"{_case(part)}, number")
    closed = "growth rates at rings, antipodal groups and consensus minus the closed form"
    softmax = "SA: largest speed at the equilibria of USA0, and number of those with another Morse index"
    reason = "eigenvalues and speeds against 1e-8; the number exactly"
    return [known.equal(closed, CLOSE, origin=SPECTRA), same.at_most(softmax, reason, origin=SOFTMAX)]


def _unlike(part: xr.Dataset) -> float:
    rates = part["rates_SA"].values
    return float(np.sum(np.sum(rates > NEUTRAL, axis=1) != part["index"].values))


def _topology(parts: list[xr.Dataset]) -> list[Claim]:
    rows, quotients = Rows(), [_of(theory.landscape.morse_quotient, part) for part in parts]
    for part in parts:
        predicted, summed = _of(theory.landscape.euler_sums, part)
        rows.add(predicted, summed, 0.0, _case(part))
    euler = "equilibria modulo rotations, each with (-1)^index, add up to the Euler characteristic"
    morse = "no equilibrium is degenerate modulo rotations, and Morse's inequalities hold"
    holds = all(rest == 0 and (q >= 0).all() for rest, q in quotients) and all(map(_nondegenerate, parts))
    count, least = sum(len(q) for _, q in quotients), min(int(q.min()) for _, q in quotients)
    found = f"{count} coefficients of Q in {len(parts)} cases, the smallest {least}"
    number = f"{sum(part.sizes['equilibrium'] for part in parts)} equilibria"
    return [
        rows.equal(euler, "integers", origin=TOPOLOGY, detail=number),
        Claim.true(morse, holds, found, f"integers; eigenvalues below {NEUTRAL:g} are zero", origin=TOPOLOGY),
    ]


def _of(function: Callable, part: xr.Dataset) -> tuple:
    sizes = {key: part.attrs[key] for key in ("n", "d")}
    line = part["rank"].values == 1
    return function(**sizes, index=part["index"].values, count=part["labelled"].values, collinear=line)


def _nondegenerate(part: xr.Dataset) -> bool:
    """Whether only rotations have the eigenvalue 0; a collinear configuration keeps the rotations about its line."""
    zeros = np.sum(np.abs(part["rates"].values) <= NEUTRAL, axis=1)
    turns = np.ones_like(zeros) if part.attrs["d"] == 2 else np.minimum(part["rank"].values + 1, 3)
    return bool((zeros == turns).all())


def _proved(parts: list[xr.Dataset]) -> Claim:
    """Each equilibrium has a certificate of its own: exactly one orbit near the tokens, with so many directions."""
    wrong = [int(np.sum(part["proved_index"].values != part["index"].values)) for part in parts]
    words = "equilibria whose index `attnflow.certify.equilibrium(tokens, beta)` does not prove"
    labels, number = [_case(part) for part in parts], sum(part.sizes["equilibrium"] for part in parts)
    detail = f"{number - sum(wrong)} certificates of {number} equilibria"
    return Claim.at_most(words, 0.0, wrong, 0.0, "counted", origin=NUMERICS, labels=labels, detail=detail)


def _second_half(parameters: Parameters, parts: list[xr.Dataset]) -> Claim:
    late = [int(np.sum(part["batch"].values >= parameters.batches // 2)) for part in parts]
    words = "equilibria that only the second half of the starts of Newton's method finds"
    labels, detail = [_case(part) for part in parts], f"{sum(part.attrs['starts'] for part in parts)} starts in all"
    return Claim.at_most(words, 0.0, late, 0.0, "counted", origin=NUMERICS, labels=labels, detail=detail)
