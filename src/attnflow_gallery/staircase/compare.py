"""Merges against cascades of pairs, the limit staircase and its expansion, and the change of order."""

import functools
import itertools
import math
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import Rows
from attnflow_gallery.staircase.simulate import DECIDED, FOUR, MODELS, WIDTH, Parameters, place

LIMIT = published("geshkovski2024metastability")
CASCADE = consequence("Cascade of pairs")
APPROACH = consequence("Approach to the limit")
ORDER = consequence("Change of order")
NEXT_TERMS = "twice the next terms of the expansion; error of the cascade; reported error"


@functools.cache
def cascade(parameters: Parameters, kind: str, model: str, beta: float) -> theory.merging.PairCascade:
    """The two-body formulas, pair after pair."""
    tokens = place(parameters, kind)
    return theory.merging.pair_cascade(tokens.positions, tokens.masses, beta, model=model, until=WIDTH / beta)


@functools.cache
def limit(
    parameters: Parameters, kind: str, model: str
) -> tuple[theory.merging.LimitStaircase, theory.merging.StaircaseExpansion]:
    """The limit and how it is approached."""
    tokens = place(parameters, kind)
    x, m = np.asarray(tokens.positions), np.asarray(tokens.masses)
    return theory.merging.limit_staircase(x, m, model=model), theory.merging.staircase_expansion(x, m, model=model)


def fit_betas(parameters: Parameters) -> np.ndarray:
    """From `fit_from` on."""
    return np.array([beta for beta in parameters.betas if beta >= parameters.fit_from])


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """The limit, the cascade, the approach to the limit, the change of order."""
    cases = list(itertools.product(parameters.kinds, MODELS))
    return [
        _closest(parameters, data, cases),
        *_cascade(parameters, data, cases),
        _area(parameters, data, cases),
        _expansion(parameters, data, cases),
        *(_fit(parameters, data, model) for model in MODELS),
        _order(parameters, data["order"]),
    ]


def _names(kind: str, model: str, count: int) -> list[str]:
    return [f"{model}, {kind} masses, merge {k + 1}" for k in range(count)]


def _closest(parameters: Parameters, data: dict[str, xr.Dataset], cases: list[tuple[str, str]]) -> Claim:
    beta, rows = max(parameters.betas), Rows()
    for kind, model in cases:
        stairs, last = limit(parameters, kind, model)[0], data[f"{kind}-{model}"].sel(beta=beta)
        same = (last["first"].values == stairs.first) & (last["second"].values == stairs.second)
        rows.add(0, np.sum(~same), 0, f"{model}, {kind} masses")
    return rows.equal(f"β = {beta:g}: merges of another pair than the closest one", "counted", origin=LIMIT)


def _area(parameters: Parameters, data: dict[str, xr.Dataset], cases: list[tuple[str, str]]) -> Claim:
    beta, rows = max(parameters.betas), Rows()
    for kind, model in cases:
        stairs, pairs = limit(parameters, kind, model)[0], cascade(parameters, kind, model, beta)
        found, expected, slack = area(data[f"{kind}-{model}"].sel(beta=beta), stairs, pairs, beta)
        rows.add(expected, found, slack, f"{model}, {kind} masses")
    words = f"β = {beta:g}: area between 2βE0 against (log t)/β and the limit staircase"
    return rows.equal(words, "recorded steps; error of the cascade over β", origin=APPROACH)


def area(
    data: xr.Dataset, stairs: theory.merging.LimitStaircase, pairs: theory.merging.PairCascade, beta: float
) -> tuple[float, float, float]:
    """Area between profile and limit from s = 0 on, that between cascade and limit, and how much they may differ.

    Between recorded steps the level rises from one to the other: half its rise times their distance is not known.
    """
    steps = int(data["stairs"])
    s, level = data["stair_log_time"].values[:steps] / beta, data["stair_level"].values[:steps]
    s, level = np.append(np.maximum(s, 0.0), max(s[-1], stairs.s[-1])), np.append(level, 1.0)
    total = 0.0
    for k in np.flatnonzero(np.diff(s) > 0):
        cuts = np.unique([*stairs.s[(stairs.s > s[k]) & (stairs.s < s[k + 1])], s[k], s[k + 1]])
        middle = (cuts[1:] + cuts[:-1]) / 2
        between = np.interp(middle, s[k : k + 2], level[k : k + 2])
        total += float(np.diff(cuts) @ np.abs(between - stairs.level_at(middle)))
    merges = pairs.log_time / beta
    edges = np.unique([*merges, *stairs.s])
    apart = np.abs(stairs.levels[np.searchsorted(merges, edges, side="right")] - stairs.level_at(edges))
    slack = float(np.sum(np.diff(s) * np.diff(level))) / 2
    loose = float(np.diff(stairs.levels) @ (pairs.disturbance + data["error"].values)) / beta
    return total, float(np.diff(edges) @ apart[:-1]), slack + loose


def _cascade(parameters: Parameters, data: dict[str, xr.Dataset], cases: list[tuple[str, str]]) -> list[Claim]:
    times, places, lengths, others = Rows(), Rows(), Rows(), 0
    for (kind, model), beta in itertools.product(cases, parameters.betas):
        theirs, ours = cascade(parameters, kind, model, beta), data[f"{kind}-{model}"].sel(beta=beta)
        off = theirs.disturbance + ours["error"].values
        same = (theirs.first == ours["first"].values) & (theirs.second == ours["second"].values)
        apart = np.linalg.norm(ours["point"].values - theirs.point, axis=1)
        angles = WIDTH * np.arange(1, len(off) + 1) / 2
        sure = ~(off >= DECIDED)
        others += int(np.sum(sure & ~same))
        names = [f"{model}, {kind} masses, β = {beta:g}, merge {k + 1}" for k in np.flatnonzero(sure)]
        times.add(theirs.log_time[sure], ours["log_time"].values[sure], off[sure], names)
        places.add(0.0, apart[sure], off[sure] / beta, names)
        lengths.add(theirs.arc[sure], ours["arc"].values[sure], (off + angles)[sure] / beta, names)
    pairs, count = "merges of another pair than in the cascade", f"of {len(times.labels)} merges"
    return [
        times.equal(
            "log t of every merge, as in a cascade of pairs",
            "reported error; share of their time that other pairs use up",
            origin=CASCADE,
        ),
        places.equal(
            "distance of every meeting point from that of a pair alone",
            "the bound for log t, divided by β",
            origin=CASCADE,
        ),
        lengths.equal(
            "arc length at every merge, as in a cascade",
            "the bound for log t, divided by β; the angle of merging",
            origin=CASCADE,
        ),
        Claim.equal(pairs, 0, others, 0, "counted", origin=CASCADE, detail=count),
    ]


def _expansion(parameters: Parameters, data: dict[str, xr.Dataset], cases: list[tuple[str, str]]) -> Claim:
    beta, rows = max(parameters.betas), Rows()
    for kind, model in cases:
        form, last = limit(parameters, kind, model)[1], data[f"{kind}-{model}"].sel(beta=beta)
        missed = cascade(parameters, kind, model, beta).disturbance
        off = form.off(beta) + (last["error"].values + missed) / beta
        rows.add(form.at(beta), last["log_time"].values / beta, off, _names(kind, model, len(form.s)))
    words = f"β = {beta:g}: (log t)/β of merges, limit and first corrections"
    return rows.equal(words, NEXT_TERMS, origin=APPROACH)


def _fit(parameters: Parameters, data: dict[str, xr.Dataset], model: str) -> Claim:
    """The coefficient of the term that decays most slowly, least squares over beta."""
    betas, rows = fit_betas(parameters), Rows()
    each = betas[:, None]
    for kind in parameters.kinds:
        _, form = limit(parameters, kind, model)
        late, names = data[f"{kind}-{model}"].sel(beta=betas), _names(kind, model, len(form.s))
        missed = np.array([cascade(parameters, kind, model, float(b)).disturbance for b in betas])
        off = np.array([form.off(b) for b in betas]) + (late["error"].values + missed) / each
        gap = late["log_time"].values / each - form.s
        if model == "SA":
            weights = betas**-0.5 / np.sum(1 / betas)
            rows.add(form.root, weights @ (gap + np.log(form.factor * each) / each), weights @ off, names)
        else:
            x = np.log(betas) - np.log(betas).mean()
            weights = x / np.sum(x**2) * betas
            rows.add(-1.0, weights @ gap, np.abs(weights) @ off, names)
    term = "β^(-1/2)" if model == "SA" else "(log β)/β"
    words = f"{model}, β ≥ {parameters.fit_from:g}: coefficient of {term} in (log t)/β of merges"
    return rows.equal(words, NEXT_TERMS, origin=APPROACH)


def balance(parameters: Parameters, beta: float) -> tuple[float, theory.merging.Balance]:
    """Four clusters, the first two of which have met: their angle to the third, and the angle of balance."""
    begin, middle, third, fourth = parameters.four
    a = third - begin - float(theory.merging.meeting_point(middle - begin, beta, masses=FOUR[:2], model="SA"))
    return a, theory.merging.neighbour_balance(a, fourth - third, (FOUR[0] + FOUR[1], FOUR[2], FOUR[3]), beta=beta)


def change_of_order(parameters: Parameters) -> tuple[float, float]:
    """The beta at which the four clusters change their order of merges, and its tolerance."""
    from scipy.optimize import brentq

    def margin(beta: float) -> float:
        angle, most = balance(parameters, beta)
        return most.angle - angle

    beta = float(brentq(margin, *parameters.order_betas, xtol=1e-10))
    slope = (margin(1.001 * beta) - margin(0.999 * beta)) / (0.002 * beta)
    return beta, balance(parameters, beta)[1].error / slope


def _order(parameters: Parameters, data: xr.Dataset) -> Claim:
    (beta, loose), low, high = change_of_order(parameters), float(data["low"]), float(data["high"])
    words, allowed = "SA, four clusters: β at which the order of merges changes", loose + (high - low) / 2
    reason, detail = "sines of angles while it is decided; half the interval", f"between {low:.6g} and {high:.6g}"
    return Claim.equal(words, beta, (low + high) / 2, allowed, reason, origin=ORDER, detail=detail)


def arcs(parameters: Parameters, kind: str, model: str) -> Any:
    """Arc lengths at the merges in the limit."""
    stairs, form = limit(parameters, kind, model)
    pairs = zip(form.angle, stairs.masses.tolist(), strict=True)
    return np.cumsum([theory.merging.merge_arc_length(a, math.inf, (m[0], m[1]), model=model) for a, m in pairs])
