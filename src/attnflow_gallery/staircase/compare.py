"""Merges against cascades of pairs, the limit staircase and its expansion, and the change of order."""

import functools
import itertools
import math
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, Origin, consequence, published
from attnflow_gallery.staircase.simulate import DECIDED, FOUR, MODELS, WIDTH, Parameters, place

LIMIT = published("geshkovski2024metastability")
CASCADE = consequence("Cascade of pairs")
APPROACH = consequence("Approach to the limit")
ORDER = consequence("Change of order")


@functools.cache
def cascade(parameters: Parameters, kind: str, model: str, beta: float) -> theory.merging.PairCascade:
    """The two-body formulas, pair after pair."""
    tokens = place(parameters, kind)
    return theory.merging.pair_cascade(tokens.positions, tokens.masses, beta, model, WIDTH / beta)


@functools.cache
def limit(
    parameters: Parameters, kind: str, model: str
) -> tuple[theory.merging.LimitStaircase, theory.merging.StaircaseExpansion]:
    """The limit and how it is approached."""
    tokens = place(parameters, kind)
    x, m = np.asarray(tokens.positions), np.asarray(tokens.masses)
    return theory.merging.limit_staircase(x, m, model), theory.merging.staircase_expansion(x, m, model)


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


def _closest(parameters: Parameters, data: dict[str, xr.Dataset], cases: list[tuple[str, str]]) -> Claim:
    beta, others = max(parameters.betas), []
    for kind, model in cases:
        stairs, last = limit(parameters, kind, model)[0], data[f"{kind}-{model}"].sel(beta=beta)
        same = (last["first"].values == stairs.first) & (last["second"].values == stairs.second)
        others.append(int(np.sum(~same)))
    return Claim.equal(
        f"β = {beta:g}: merges of another pair than the closest one", 0, others, 0, "counted", origin=LIMIT,
        labels=[f"{m}, {k} masses" for k, m in cases],
    )  # fmt: skip


def _area(parameters: Parameters, data: dict[str, xr.Dataset], cases: list[tuple[str, str]]) -> Claim:
    beta = max(parameters.betas)
    found, expected, slack = zip(
        *(
            area(data[f"{k}-{m}"].sel(beta=beta), limit(parameters, k, m)[0], cascade(parameters, k, m, beta), beta)
            for k, m in cases
        ),
        strict=True,
    )
    return Claim.equal(
        f"β = {beta:g}: area between 2βE0 against (log t)/β and the limit staircase", expected, found, slack,
        "recorded steps; error of the cascade over β", origin=APPROACH, labels=[f"{m}, {k} masses" for k, m in cases],
    )  # fmt: skip


def area(
    data: xr.Dataset, stairs: theory.merging.LimitStaircase, pairs: theory.merging.PairCascade, beta: float
) -> tuple[float, float, float]:
    """Area between profile and limit from s = 0 on, that between cascade and limit, and how much they may differ.

    Between recorded steps the level rises from one to the other: half its rise times their distance is not known.
    """
    known = np.isfinite(data["stair_level"].values)
    s, level = data["stair_log_time"].values[known] / beta, data["stair_level"].values[known]
    s, level = np.append(np.maximum(s, 0.0), max(s[-1], stairs.s[-1])), np.append(level, 1.0)
    total = 0.0
    for k in np.flatnonzero(np.diff(s) > 0):
        cuts = np.unique([*stairs.s[(stairs.s > s[k]) & (stairs.s < s[k + 1])], s[k], s[k + 1]])
        middle = (cuts[1:] + cuts[:-1]) / 2
        total += float(
            np.diff(cuts) @ np.abs(np.interp(middle, s[k : k + 2], level[k : k + 2]) - stairs.level_at(middle))
        )
    merges = pairs.log_time / beta
    edges = np.unique([*merges, *stairs.s])
    apart = np.abs(stairs.levels[np.searchsorted(merges, edges, side="right")] - stairs.level_at(edges))
    slack = float(np.sum(np.diff(s) * np.diff(level))) / 2
    loose = float(np.diff(stairs.levels) @ (pairs.disturbance + data["error"].values)) / beta
    return total, float(np.diff(edges) @ apart[:-1]), slack + loose


def _cascade(parameters: Parameters, data: dict[str, xr.Dataset], cases: list[tuple[str, str]]) -> list[Claim]:
    words = {
        "log t of every merge, as in a cascade of pairs": "reported error; share of their time that other pairs use up",
        "distance of every meeting point from that of a pair alone": "the bound for log t, divided by β",
        "arc length at every merge, as in a cascade": "the bound for log t, divided by β; the angle of merging",
    }
    rows: dict[str, list[tuple[float, float, float]]] = {name: [] for name in words}
    labels, others = [], 0
    for (kind, model), beta in itertools.product(cases, parameters.betas):
        theirs, ours = cascade(parameters, kind, model, beta), data[f"{kind}-{model}"].sel(beta=beta)
        off = theirs.disturbance + ours["error"].values
        same = (theirs.first == ours["first"].values) & (theirs.second == ours["second"].values)
        apart = np.linalg.norm(ours["point"].values - theirs.point, axis=1)
        for k in np.flatnonzero(~(off >= DECIDED)):
            others += int(not same[k])
            labels.append(f"{model}, {kind} masses, β = {beta:g}, merge {k + 1}")
            entries = (
                (theirs.log_time[k], float(ours["log_time"][k]), off[k]),
                (0.0, apart[k], off[k] / beta),
                (theirs.arc[k], float(ours["arc"][k]), (off[k] + WIDTH * (k + 1) / 2) / beta),
            )
            for name, entry in zip(words, entries, strict=True):
                rows[name].append(entry)
    made = [_claim(name, rows[name], source, CASCADE, labels) for name, source in words.items()]
    return [
        *made,
        Claim.equal("merges of another pair than in the cascade", 0, others, 0, "counted", origin=CASCADE,
                    detail=f"of {len(labels)} merges"),
    ]  # fmt: skip


def _expansion(parameters: Parameters, data: dict[str, xr.Dataset], cases: list[tuple[str, str]]) -> Claim:
    beta, rows, labels = max(parameters.betas), [], []
    for kind, model in cases:
        _, form = limit(parameters, kind, model)
        last = data[f"{kind}-{model}"].sel(beta=beta)
        for k in range(len(form.s)):
            missed = cascade(parameters, kind, model, beta).disturbance[k]
            off = form.off(beta)[k] + (float(last["error"][k]) + missed) / beta
            rows.append((form.at(beta)[k], float(last["log_time"][k]) / beta, off))
            labels.append(f"{model}, {kind} masses, merge {k + 1}")
    words = f"β = {beta:g}: (log t)/β of merges, limit and first corrections"
    return _claim(
        words, rows, "twice the next terms of the expansion; error of the cascade; reported error", APPROACH, labels
    )


def _fit(parameters: Parameters, data: dict[str, xr.Dataset], model: str) -> Claim:
    """The coefficient of the term that decays most slowly, least squares over beta."""
    betas, rows, labels = fit_betas(parameters), [], []
    for kind in parameters.kinds:
        _, form = limit(parameters, kind, model)
        late = data[f"{kind}-{model}"].sel(beta=betas)
        missed = np.array([cascade(parameters, kind, model, float(b)).disturbance for b in betas])
        off = np.array([form.off(b) for b in betas]) + (late["error"].values + missed) / betas[:, None]
        gap = late["log_time"].values / betas[:, None] - form.s
        for k in range(len(form.s)):
            labels.append(f"{kind} masses, merge {k + 1}")
            if model == "SA":
                weights = betas**-0.5 / np.sum(1 / betas)
                found = weights @ (gap[:, k] + np.log(form.factor[k] * betas) / betas)
                rows.append((form.root[k], found, weights @ off[:, k]))
            else:
                x = np.log(betas) - np.log(betas).mean()
                weights = x / np.sum(x**2) * betas
                rows.append((-1.0, weights @ gap[:, k], np.abs(weights) @ off[:, k]))
    term = "β^(-1/2)" if model == "SA" else "(log β)/β"
    words = f"{model}, β ≥ {parameters.fit_from:g}: coefficient of {term} in (log t)/β of merges"
    return _claim(
        words, rows, "twice the next terms of the expansion; error of the cascade; reported error", APPROACH, labels
    )


def _claim(words: str, rows: list[tuple[float, float, float]], source: str, origin: Origin, labels: list[str]) -> Claim:
    """Rows are predicted, measured, tolerance."""
    predicted, measured, tolerance = np.array(rows).T
    return Claim.equal(words, predicted, measured, tolerance, source, origin=origin, labels=labels)


def balance(parameters: Parameters, beta: float) -> tuple[float, theory.merging.Balance]:
    """Four clusters, the first two of which have met: their angle to the third, and the angle of balance."""
    begin, middle, third, fourth = parameters.four
    a = third - begin - float(theory.merging.meeting_point(middle - begin, beta, FOUR[:2], "SA"))
    return a, theory.merging.neighbour_balance(a, fourth - third, (FOUR[0] + FOUR[1], FOUR[2], FOUR[3]), beta)


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
    beta, loose = change_of_order(parameters)
    low, high = float(data["low"]), float(data["high"])
    return Claim.equal(
        "SA, four clusters: β at which the order of merges changes", beta, (low + high) / 2, loose + (high - low) / 2,
        "sines of angles while it is decided; half the interval", origin=ORDER,
        detail=f"between {low:.6g} and {high:.6g}",
    )  # fmt: skip


def arcs(parameters: Parameters, kind: str, model: str) -> Any:
    """Arc lengths at the merges in the limit."""
    stairs, form = limit(parameters, kind, model)
    pairs = zip(form.angle, stairs.masses.tolist(), strict=True)
    return np.cumsum([theory.merging.merge_arc_length(a, math.inf, (m[0], m[1]), model) for a, m in pairs])
