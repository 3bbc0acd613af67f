"""As beta grows, 2 beta E0 against (log t)/beta becomes a staircase that geometry alone determines.

Clusters on the sphere merge one pair at a time, the pair at u = 1 - cos(angle) after a time e^(beta u) up to powers of
beta: in the clock s = (log t)/beta the k-th merge comes at s_k, the largest of the smallest u so far, and the level
2 beta E0 = sum M^2 jumps by 2 M_p M_q. USA0 gets there like log(beta)/beta. SA clusters of unequal masses meet where
beta tells them to, so that from the second merge on SA gets there like beta^(-1/2) only, and may even change the order
of merges on the way: four clusters do so at a beta that a balance of two pulls gives (arXiv:2410.06833).

Shown: flows from beta = 12 to 10,000 and times up to e^18,000 against a cascade of pairs. In a cascade every pair is
alone: it merges in the time, and at the point, of the two-body formulas, and the next pair starts from there. Other
pairs use up the share T/T' of their own time T' meanwhile, and that, to first order, is what the cascade misses; where
it is no small number (beta below 100 or so) nothing is claimed. Against arc length the limit is a staircase too.
Not shown: pairs that are equally close in the limit, and many clusters.
"""

import dataclasses
import functools
import itertools
import math
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.claim import Claim, share_used, worst
from attnflow.experiments.gallery import _pairs
from attnflow.experiments.gallery._pairs import WIDTH, Cascade, Expansion
from attnflow.experiments.study import Study
from attnflow.fields import Attention, Softmax, Unnormalised
from attnflow.flows import LongFlow, LongTime, solve_long
from attnflow.plots.style import PAGE, styled
from attnflow.tokens import Tokens

PAPERS = ("arXiv:2410.06833", "arXiv:2312.10794")

MODELS = {"SA": Softmax(), "USA0": Unnormalised()}
DECIDED = 0.1
"""A cascade whose pairs disturb each other by more, in log t, makes no statement."""
EPS = float(np.finfo(float).eps)


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is followed."""

    betas: tuple[float, ...] = (12.0, 25.0, 50.0, 100.0, 200.0, 400.0, 700.0, 1400.0, 2500.0, 5000.0, 10000.0)
    kinds: tuple[str, ...] = ("equal", "unequal")
    """Masses of the clusters."""
    clusters: int = 8
    seed: int = 5
    tol: float = 1e-6
    fit_from: float = 400.0
    """Smallest beta of the fits."""
    four: tuple[float, ...] = (0.0, 0.9, 2.3, 3.9)
    """Angles of the four clusters of masses .1, .2, .3, .4 whose order of merges changes."""
    order_betas: tuple[float, float] = (40.0, 400.0)
    """On either side of the change."""
    halvings: int = 14
    """Of this interval, in search of the change."""


QUICK = Parameters(betas=(400.0, 2000.0, 10000.0), kinds=("unequal",), halvings=8)

FOUR = np.array([0.1, 0.2, 0.3, 0.4])


def place(parameters: Parameters, kind: str) -> Tokens:
    """The clusters, the same for all beta."""
    rng = np.random.default_rng(parameters.seed)
    x = rng.standard_normal((parameters.clusters, 3))
    masses = rng.uniform(0.5, 2.0, parameters.clusters)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return Tokens(x, masses if kind == "unequal" else None)


def place_four(parameters: Parameters) -> Tokens:
    """The four clusters, on a great circle of the sphere."""
    angles = np.array(parameters.four)
    return Tokens(np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1), FOUR)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """The merges and the staircase of every flow, and the search for the change of order."""
    cases = list(itertools.product(parameters.kinds, MODELS))

    def make(index: int, kind: str, model: str) -> xr.Dataset:
        tokens, flows = place(parameters, kind), []
        for k, beta in enumerate(parameters.betas):
            share = (index + k / len(parameters.betas)) / (len(cases) + 1)
            study.progress(f"{model}, {kind} masses, β = {beta:g}", share)
            flows.append(_record(follow(model, beta, tokens, parameters)))
        return xr.concat(flows, dim="beta", join="outer").assign_coords(beta=list(parameters.betas))

    def search() -> xr.Dataset:
        tokens, (low, high) = place_four(parameters), parameters.order_betas
        ends = [_record(follow("SA", beta, tokens, parameters)) for beta in (low, high)]
        tried = []
        for k in range(parameters.halvings):
            study.progress("order of four clusters", (len(cases) + k / parameters.halvings) / (len(cases) + 1))
            beta = math.sqrt(low * high)
            second = int(follow("SA", beta, tokens, parameters).merges["first"][1])
            tried.append((beta, second))
            low, high = (beta, high) if second == int(ends[0]["first"][1]) else (low, beta)
        made = xr.concat(ends, dim="beta", join="outer").assign_coords(beta=list(parameters.order_betas))
        betas, firsts = zip(*tried, strict=True)
        return made.assign(tried=("try", np.array(betas)), tried_first=("try", np.array(firsts)), low=low, high=high)

    data = {
        f"{kind}-{model}": study.part(f"{kind}-{model}", functools.partial(make, k, kind, model))
        for k, (kind, model) in enumerate(cases)
    }
    return data | {"order": study.part("order", search)}


def follow(model: str, beta: float, tokens: Tokens, parameters: Parameters) -> LongFlow:
    """One flow to consensus."""
    method = LongTime(parameters.tol, WIDTH / beta)
    return solve_long(Attention(beta, normaliser=MODELS[model]), tokens, math.inf, method=method)


def _record(flow: LongFlow) -> xr.Dataset:
    """Merges, with the level and the arc after them, and all steps."""
    names = ["log_time", "first", "second", "point", "error", "evaluations", "undetermined"]
    stairs = flow.tree.staircase
    row = np.searchsorted(stairs["log_time"], flow.merges["log_time"], side="right") - 1
    columns: dict[str, Any] = {f"stair_{name}": stairs[name] for name in ("log_time", "level", "arc")}
    columns |= {name: ("merge", stairs[name].values[row]) for name in ("level", "arc")}
    return flow.merges[names].assign(columns).assign_coords(step=np.arange(stairs.sizes["step"]))


@functools.cache
def cascade(parameters: Parameters, kind: str, model: str, beta: float) -> Cascade:
    """The two-body formulas, pair after pair."""
    tokens = place(parameters, kind)
    return _pairs.cascade(tokens.positions, tokens.masses, beta, model)


@functools.cache
def limit(parameters: Parameters, kind: str, model: str) -> tuple[theory.LimitStaircase, Expansion]:
    """The limit and how it is approached."""
    tokens = place(parameters, kind)
    x, m = np.asarray(tokens.positions), np.asarray(tokens.masses)
    return theory.limit_staircase(x, m, model), _pairs.expansion(x, m, model)


def rivals(parameters: Parameters, beta: float) -> tuple[float, float, float]:
    """The angle of the merged pair and the third of four clusters, the largest at which they merge, its uncertainty.

    The first two have met, at the angle a from the third (mass m), which is at b from the fourth. With A and B the
    masses beside it and y = e^(-beta u), SA gives a' = -(A/m + m/A) y_a sin a + (B/m) y_b sin b, and b' likewise. So
    y_a and y_b are rivals with quadratic equations while sin a and sin b keep, and neither wins where
    y_a/y_b = (sin^2 b (B/m + m/B) + sin a sin b B/m)/(sin^2 a (A/m + m/A) + sin a sin b A/m). While that is decided
    angles change by about 1/(beta sin), the sines by |cot| of it, and twice that is the uncertainty.
    """
    one, two, m, other = FOUR
    begin, middle, third, fourth = parameters.four
    a = third - begin - float(theory.meeting_point(middle - begin, beta, (one, two), "SA"))
    b, both = fourth - third, one + two
    cross = math.sin(a) * math.sin(b) / m
    ratio = math.sin(b) ** 2 * (other / m + m / other) + cross * other
    ratio /= math.sin(a) ** 2 * (both / m + m / both) + cross * both
    slant = abs(math.cos(a)) / math.sin(a) ** 2 + abs(math.cos(b)) / math.sin(b) ** 2
    return a, math.acos(math.cos(b) + math.log(ratio) / beta), 2 * slant / (beta**2 * math.sin(b))


def change_of_order(parameters: Parameters) -> tuple[float, float]:
    """The beta at which the four clusters change their order of merges, and its tolerance."""
    from scipy.optimize import brentq

    def margin(beta: float) -> float:
        angle, most, _ = rivals(parameters, beta)
        return most - angle

    beta = float(brentq(margin, *parameters.order_betas, xtol=1e-10))
    slope = (margin(1.001 * beta) - margin(0.999 * beta)) / (0.002 * beta)
    return beta, rivals(parameters, beta)[2] / slope


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """For masses and models: cascade, levels, approach to the limit, arc, work; then the change of order."""
    made = []
    for kind, model in itertools.product(parameters.kinds, MODELS):
        found = data[f"{kind}-{model}"]
        made += _of_cascade(parameters, kind, model, found)
        made += _of_limit(parameters, kind, model, found)
    return made + _of_order(parameters, data["order"])


def _of_cascade(parameters: Parameters, kind: str, model: str, data: xr.Dataset) -> list[Claim]:
    words = {
        "log t of a merge": "reported error; share of their time that other pairs use up",
        "distance from the point where a pair alone meets": "the bound for log t, divided by β",
        "arc length at a merge": "the bound for log t, divided by β; the angle at which clusters are one",
    }
    rows: dict[str, list[tuple[float, float, float, str]]] = {name: [] for name in words}
    others = 0
    for beta in parameters.betas:
        theirs, ours = cascade(parameters, kind, model, beta), data.sel(beta=beta)
        off = theirs.loose + ours["error"].values
        same = (theirs.first == ours["first"].values) & (theirs.second == ours["second"].values)
        apart = np.linalg.norm(ours["point"].values - theirs.point, axis=1)
        others += int(np.sum(~same & (off < DECIDED)))
        for k in np.flatnonzero(~(off >= DECIDED)):
            where, thick = f"merge {k + 1}, β = {beta:g}", WIDTH * (k + 1) / 2
            entries = (
                (theirs.log_time[k], float(ours["log_time"][k]), off[k], where),
                (0.0, apart[k], off[k] / beta, where),
                (theirs.arc[k], float(ours["arc"][k]), (off[k] + thick) / beta, where),
            )
            for name, entry in zip(words, entries, strict=True):
                rows[name].append(entry)
    label, made = f"{model}, {kind} masses", []
    for name, source in words.items():
        if not rows[name]:
            continue
        predicted, measured, tolerance, where = max(rows[name], key=lambda row: share_used(row[1], row[0], row[2]))
        statement = f"{label}: {name} (worst of {len(rows[name])}: {where})"
        made.append(Claim.equal(statement, predicted, measured, tolerance, source))
    most = int(np.diff(data["evaluations"].values, axis=1, prepend=0).max())
    return [
        *made,
        Claim.equal(f"{label}: merges of another pair than in the cascade", 0, others, 0, "counted"),
        Claim.at_most(f"{label}: evaluations of forces per merge", 1000, most, 0, "work that no β may exceed"),
    ]


def _of_limit(parameters: Parameters, kind: str, model: str, data: xr.Dataset) -> list[Claim]:
    """At the largest beta, and from `fit_from` on."""
    beta = max(parameters.betas)
    stairs, form = limit(parameters, kind, model)
    last, label = data.sel(beta=beta), f"{model}, {kind} masses, β = {beta:g}"
    same = np.array_equal(last["first"], stairs.first) and np.array_equal(last["second"], stairs.second)
    # u of the nearest pair at a plateau's beginning is that of its merge; half of it, for u at this beta differs
    rest = np.append((1 - stairs.levels[1:-1]) * np.exp(-beta * stairs.s[1:] / 2), 0.0) + 8 * EPS
    high = worst(np.abs(last["level"].values - stairs.levels[1:]), rest)[0]
    off = form.off(beta) + last["error"].values / beta
    far = worst(np.abs(last["log_time"].values / beta - form.at(beta)), off)[0]
    area, expected, slack = _area(last, stairs, cascade(parameters, kind, model, beta), beta)
    fit, predicted, loose, what = _fit(parameters, form, data)
    terms, count = "twice the next terms of the expansion; reported error", len(stairs.s)
    return [
        Claim.true(f"{label}: the pairs are those of the limit", bool(same), f"{count} merges", "compared in order"),
        Claim.equal(
            f"{label}: level 2βE0 after a merge (worst of {count}: merge {high + 1})", stairs.levels[high + 1],
            float(last["level"][high]), rest[high], "e^(-βu/2) of the next pair; rounding of sums",
        ),
        Claim.equal(
            f"{label}: s of a merge, limit and first corrections (worst of {count}: merge {far + 1})",
            form.at(beta)[far], float(last["log_time"][far]) / beta, off[far], terms,
        ),
        Claim.equal(
            f"{label}: area between profile and limit", expected, area, slack, "recorded steps; bound for log t over β"
        ),
        Claim.equal(f"{model}, {kind} masses, β ≥ {parameters.fit_from:g}: {what}", predicted, fit, loose, terms),
    ]  # fmt: skip


def _fit(parameters: Parameters, form: Expansion, data: xr.Dataset) -> tuple[float, float, float, str]:
    """Fitted and predicted coefficient of the term that decays most slowly, its tolerance, and what it is."""
    betas = np.array([b for b in parameters.betas if b >= parameters.fit_from])
    late = data.sel(beta=betas)
    off = np.array([form.off(b) for b in betas]) + late["error"].values / betas[:, None]
    gap = late["log_time"].values / betas[:, None] - form.s
    if np.any(form.root != 0):
        k, x = int(np.argmax(np.abs(form.root))), betas**-0.5
        row = x / np.sum(x * x)
        found = row @ (gap[:, k] + np.log(form.factor[k] * betas) / betas)
        return float(found), form.root[k], float(row @ off[:, k]), f"coefficient of β^(-1/2) in s, merge {k + 1}"
    x = np.log(betas)
    row = (x - x.mean()) / np.sum((x - x.mean()) ** 2) * betas
    slopes, allowed = row @ gap, np.abs(row) @ off
    k = worst(np.abs(slopes + 1), allowed)[0]
    return float(slopes[k]), -1.0, float(allowed[k]), f"coefficient of (log β)/β in s (worst: merge {k + 1})"


def _area(data: xr.Dataset, stairs: Any, pairs: Cascade, beta: float) -> tuple[float, float, float]:
    """Area between profile and limit from s = 0 on, that between cascade and limit, and how much they may differ.

    Between recorded steps the level rises from one to the other: half its rise times their distance is not known.
    """
    known = np.isfinite(data["stair_level"].values)
    s, level = data["stair_log_time"].values[known] / beta, data["stair_level"].values[known]
    s, level = np.append(np.maximum(s, 0.0), max(s[-1], stairs.s[-1])), np.append(level, 1.0)
    area = 0.0
    for k in np.flatnonzero(np.diff(s) > 0):
        cuts = np.unique([*stairs.s[(stairs.s > s[k]) & (stairs.s < s[k + 1])], s[k], s[k + 1]])
        middle = (cuts[1:] + cuts[:-1]) / 2
        area += float(
            np.diff(cuts) @ np.abs(np.interp(middle, s[k : k + 2], level[k : k + 2]) - stairs.level_at(middle))
        )
    merges = pairs.log_time / beta
    edges = np.unique([*merges, *stairs.s])
    apart = np.abs(stairs.levels[np.searchsorted(merges, edges, side="right")] - stairs.level_at(edges))
    slack = float(np.sum(np.diff(s) * np.diff(level))) / 2
    return (
        area,
        float(np.diff(edges) @ apart[:-1]),
        slack + float(np.diff(stairs.levels) @ (pairs.loose + data["error"].values)) / beta,
    )


def _of_order(parameters: Parameters, data: xr.Dataset) -> list[Claim]:
    one, two, three, four = FOUR
    first = float(np.sum(FOUR**2)) + 2 * one * two
    made = []
    for beta, jump in zip(parameters.order_betas, (2 * three * four, 2 * (one + two) * three), strict=True):
        levels = np.array([first, first + jump, 1.0])
        off = float(np.max(np.abs(data["level"].sel(beta=beta).values - levels)))
        words = ", ".join(f"{level:g}" for level in levels)
        tolerance = math.exp(-beta) + 8 * EPS
        source = "e^(-β), as all that is left is a right angle apart; rounding of sums"
        made.append(
            Claim.equal(f"SA, four clusters, β = {beta:g}: distance of levels from {words}", 0, off, tolerance, source)
        )
    beta, loose = change_of_order(parameters)
    low, high = float(data["low"]), float(data["high"])
    return [
        *made,
        Claim.equal(
            f"SA, four clusters: β of the change of order (in {low:.6g} to {high:.6g})", beta, (low + high) / 2,
            loose + (high - low) / 2, "sines of angles while it is decided; half the interval",
        ),
    ]  # fmt: skip


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Clusters that merge one pair at a time, at several inverse temperatures, and the limit of large ones.

    (a) The level 2 beta E0 against (log t)/beta; dotted, the limit. (b) The same against the length of the path.
    (c) The largest distance of a merge from its place in the limit: flows (marks) and the expansion (solid SA, dashed
    USA0). (d) Four clusters at 0, 0.9, 2.3, 3.9 on a circle, softmax attention: which pair merges second (marks) and
    the angle at which the pulls on the third cluster balance.
    """
    from attnflow.experiments.gallery import _staircase_figure as panels

    kind, model = parameters.kinds[-1], "SA"
    stairs, form = limit(parameters, kind, model)
    shown = data[f"{kind}-{model}"]
    arcs = np.cumsum(
        [_pairs.length(a, math.inf, tuple(m), model) for a, m in zip(form.angle, stairs.masses, strict=True)]
    )
    betas = np.geomspace(0.75 * parameters.order_betas[0], 1.3 * parameters.order_betas[1], 200)
    angles, needed, _ = np.array([rivals(parameters, float(beta)) for beta in betas]).T
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 4.8))
        axes = fig.subplots(2, 2)
        panels.draw_profiles(axes[0, 0], shown, stairs, f"{model}, {kind} masses")
        panels.draw_arcs(axes[0, 1], shown, stairs.levels, arcs, f"{model}, {kind} masses")
        cases = {(k, m): (data[f"{k}-{m}"], limit(parameters, k, m)[1]) for k in parameters.kinds for m in MODELS}
        panels.draw_approach(axes[1, 0], cases, parameters.fit_from / 4)
        panels.draw_order(axes[1, 1], data["order"], betas, angles, needed)
        for letter, one in zip("abcd", axes.flat, strict=True):
            one.set_title(f"({letter})", loc="left", fontweight="bold")
        return fig
