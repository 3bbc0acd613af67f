"""From uniform tokens to consensus a flow rests on plateaus whose lengths the pair that leaves them determines.

Tokens drawn iid from the uniform distribution gather into clusters in a time of order 1 and then stand almost still:
clusters of masses M_q are left alone for at least T_2 = (size/n) e^((1 - overlap) beta) (theorem of arXiv:2410.06833),
with the energy (sum M_q^2 - 1)/(2 beta) up to e^(-beta u) of the nearest pair at u = 1 - cos(angle). Then that pair
merges, after the time of the two-body formula, and the next plateau begins, down to consensus. A plateau is left along
its unstable direction, in which the pair approaches, after about one over the rate of it.

Shown: flows on the circle and on the sphere, for softmax attention (SA) and once for its gradient-flow variant (USA0),
followed to consensus through times up to e^160; each plateau against the theorem, the two-body formulas and its escape
rate. Besides, the hypotheses under which Otto and Reznikoff prove slow motion (used in arXiv:2410.06833), measured
along the fast phase of USA0 from three caps, with their conclusion beside. Not shown: many seeds (see exit-times), and
the first, fast gathering, for which no formula is at hand.
"""

import dataclasses
import functools
import itertools
import math
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.claim import Claim, worst
from attnflow.experiments.gallery._pairs import WIDTH, disturbance, lives
from attnflow.experiments.study import Study
from attnflow.fields import Attention, Softmax, Unnormalised
from attnflow.flows import Evenly, Fixed, LongFlow, LongTime, solve, solve_long
from attnflow.observe import slow_motion_along
from attnflow.plots.style import PAGE, styled
from attnflow.spaces import Sphere
from attnflow.tokens import caps, uniform

PAPERS = ("arXiv:2410.06833", "arXiv:2312.10794")

MODELS = {"SA": Softmax(), "USA0": Unnormalised()}
DECIDED = 0.1
"""A pair that others disturb by more, in log t, is not alone."""
EPS = float(np.finfo(float).eps)
STEP = 0.1
"""Of RK4, for three caps."""


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is followed."""

    n: int = 64
    """At most 65: then a frame is kept after every merge."""
    betas: tuple[float, ...] = (9.0, 25.0, 81.0)
    dims: tuple[int, ...] = (2, 3)
    seed: int = 1
    sister_beta: float = 25.0
    """The beta of the flow of USA0, in the largest dimension."""
    tol: float = 1e-6
    cap_beta: float = 25.0
    cap_tokens: int = 10
    """In each of three caps about an orthonormal frame."""
    cap_masses: tuple[float, ...] = (0.5, 0.3, 0.2)
    cap_radius: float = 0.03
    cap_until: float = 120.0


QUICK = Parameters(n=8, dims=(3,), cap_tokens=4)


def flows(parameters: Parameters) -> list[tuple[str, int, float]]:
    """Model, dimension and beta of every flow."""
    made = [("SA", dim, beta) for dim, beta in itertools.product(parameters.dims, parameters.betas)]
    return [*made, ("USA0", max(parameters.dims), parameters.sister_beta)]


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Merges, staircase and plateaus of every flow; the frames of three caps."""
    every = flows(parameters)
    data = {}
    for k, (model, dim, beta) in enumerate(every):
        study.progress(f"{model} on S^{dim - 1}, β = {beta:g}", k / (len(every) + 1))
        name = f"{model}-S{dim - 1}-{beta:g}"
        data[name] = study.part(name, functools.partial(_record, model, dim, beta, parameters))
    study.progress("three caps", len(every) / (len(every) + 1))
    return data | {"caps": study.part("caps", functools.partial(_caps, parameters))}


def _record(model: str, dim: int, beta: float, parameters: Parameters) -> xr.Dataset:
    """One flow to consensus."""
    flow = solve_long(
        Attention(beta, normaliser=MODELS[model]),
        uniform(Sphere(dim), n=parameters.n, seed=parameters.seed),
        math.inf,
        method=LongTime(parameters.tol, WIDTH / beta, frames=4000),
    )
    tree, plateaus = flow.tree, flow.tree.plateaus()
    rows = [_plateau(flow, int(merges)) for merges in plateaus["merges"]]
    most = max(len(row["mass"]) for row in rows)
    columns: dict[str, Any] = {f"stair_{name}": tree.staircase[name] for name in ("log_time", "level", "arc")}
    columns |= {name: ("plateau", np.array([row[name] for row in rows])) for name in ("way", "lean", "then")}
    columns["pair"] = (("plateau", "side"), np.array([row["pair"] for row in rows]))
    for name, dims in (("mass", ("plateau", "cluster")), ("centre", ("plateau", "cluster", "dim"))):
        padded = np.zeros((len(rows), most, *rows[0][name].shape[1:]))
        for k, row in enumerate(rows):
            padded[k, : len(row[name])] = row[name]
        columns[name] = (dims, padded)
    keep = ["log_time", "first", "second", "masses", "error", "rounding", "evaluations"]
    found = tree.merges[keep].merge(plateaus.rename(merges="before")).assign(columns)
    return found.assign(linkage=(("merge", "entry"), tree.linkage())).assign_attrs(
        model=model, dim=dim, beta=beta, ending=flow.outcome.ending.value
    )


def _plateau(flow: LongFlow, merges: int) -> dict[str, Any]:
    """Clusters at the beginning of a plateau, and how the pair that leaves it moves in the first step.

    way: the share of the closing that the first cluster does; lean: that in the unstable direction; then: the angle
    after the step.
    """
    escape, table, label = flow.tree.escape(merges), flow.merges, flow.tree.labels(merges)
    pair = [int(table[name][merges]) for name in ("first", "second")]
    start = int(np.searchsorted(flow.log_time, table["log_time"].values[merges - 1])) if merges else 0
    begin, after = flow.positions.values[start : start + 2, pair]
    ways = 2 * np.arcsin(np.linalg.norm(after - begin, axis=1) / 2)
    turns = np.linalg.norm(escape["direction"].values[np.searchsorted(np.unique(label), pair)], axis=1)
    return {
        "mass": escape["mass"].values, "centre": escape["centre"].values, "way": ways[0] / ways.sum(),
        "lean": turns[0] / turns.sum(), "then": 2 * math.asin(min(float(np.linalg.norm(after[0] - after[1])) / 2, 1.0)),
        "pair": np.searchsorted(np.unique(label), pair),
    }  # fmt: skip


def _caps(parameters: Parameters) -> xr.Dataset:
    """Three caps that contract, USA0, with the hypotheses of slow motion along the way."""
    beta, each, labels = parameters.cap_beta, parameters.cap_tokens, np.repeat(np.arange(3), parameters.cap_tokens)
    tokens = caps(
        Sphere(3), centres=np.eye(3), n=each, radius=parameters.cap_radius, masses=parameters.cap_masses,
        seed=parameters.seed,
    )  # fmt: skip
    field = Attention(beta, normaliser=MODELS["USA0"])
    flow = solve(field, tokens, parameters.cap_until, save=Evenly(25), method=Fixed(STEP))
    x, masses = flow.positions.values, np.asarray(tokens.masses)
    found = slow_motion_along(x, flow.time.values, masses, labels, beta)
    groups = x.reshape(len(x), 3, each, 3)
    middle = groups.mean(axis=2, keepdims=True)
    square = np.sum((groups - middle / np.linalg.norm(middle, axis=3, keepdims=True)) ** 2, axis=(2, 3))
    square = square * np.array(parameters.cap_masses) / each
    apart = np.max(np.sum((groups[:, :, :, None] - groups[:, :, None]) ** 2, axis=4), axis=(1, 2, 3))
    light = int(np.argmin(parameters.cap_masses))
    rest = square.sum(axis=1) - square[:, light]
    # tokens of the lightest cap may coincide to the last bit
    others = np.divide(rest, square[:, light], out=np.full_like(rest, np.inf), where=square[:, light] > 0)
    return found.assign(apart=("time", apart), others=("time", others))


def compare(data: xr.Dataset) -> xr.Dataset:
    """Plateaus with what theory says of them: dimensions (plateau,).

    life: log of the lifetime; alone: that of the pair that merges, were it alone; disturbed: what others may change of
    it; off: error of `life` as reported; bound: log T_2, NaN where the theorem makes no statement; leaving: log of the
    escape rate of the pair; share: of the closing that its first cluster does.
    """
    beta, model, n = data.attrs["beta"], data.attrs["model"], data.sizes["merge"] + 1
    rows = []
    for k in range(data.sizes["plateau"]):
        one = data.isel(plateau=k)
        x, m = one["centre"].values[one["mass"].values > 0], one["mass"].values[one["mass"].values > 0]
        pairs, (p, q) = lives(x, m, beta, model), (int(i) for i in one["pair"])
        angle, alone = pairs.pop((p, q))
        span = float(one["log_end"] - one["log_start"])
        error = float(data["error"][int(one["before"])])
        rate, share, change = _closing(angle, beta, (m[p], m[q]), model)
        rows.append({
            "life": float(one["log_end"]) + math.log(-math.expm1(-span)), "alone": alone,
            "disturbed": disturbance(alone, pairs.values()), "off": error / math.tanh(span / 2),
            "bound": float(theory.log_plateau_bound(beta, float(one["angle"]), n)), "leaving": rate, "share": share,
            "nearest": float(np.min([1 - math.cos(a) for a, _ in [*pairs.values(), (angle, alone)]])),
            "share_off": 2 * change * math.exp(-2 * beta * math.sin(float(one["then"]) / 2) ** 2),
        })  # fmt: skip
    return data.assign({name: ("plateau", np.array([row[name] for row in rows])) for name in rows[0]})


def _closing(angle: float, beta: float, masses: tuple[float, float], model: str) -> tuple[float, float, float]:
    """Of a pair alone: log of the rate at which its closing grows, the share of it that cluster 1 does (as q -> 0).

    USA0: angle' = -M q sin with q = e^(-beta u), and the share is m2/(m1 + m2). SA: angle' = -sin (h_1 + h_2) with
    h_1 = m2 q/(m1 + m2 q), h_2 likewise; the share h_1/(h_1 + h_2) is m2^2/(m1^2 + m2^2) and changes with q by the last
    number returned times q, at most (so does that of the unstable direction, whose entries are the slopes of h sin).
    """
    m1, m2 = masses
    steep, cos, u = beta * math.sin(angle) ** 2, math.cos(angle), 2 * math.sin(angle / 2) ** 2
    if model != "SA":
        return math.log((m1 + m2) * (steep - cos)) - beta * u, m2 / (m1 + m2), 0.0
    q, rate = math.exp(-beta * u), 0.0
    for mine, other in ((m1, m2), (m2, m1)):
        total = mine + other * q
        rate += other / total * (steep * mine / total - cos)
    change = abs(m1 / m2 - m2 / m1) / 4 * (1 + steep / abs(steep - cos))
    return math.log(rate) - beta * u, m2**2 / (m1**2 + m2**2), change


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """For models and spheres, over all beta: lifetimes, energies and escapes; what holds of every flow; three caps."""
    made = []
    for model, dim in dict.fromkeys((model, dim) for model, dim, _ in flows(parameters)):
        chosen = [data[f"{m}-S{d - 1}-{beta:g}"] for m, d, beta in flows(parameters) if (m, d) == (model, dim)]
        made += _of_plateaus(f"{model} on S^{dim - 1}", [compare(one) for one in chosen])
    every = [one for name, one in data.items() if name != "caps"]
    return made + _of_flows(parameters, every) + _of_caps(parameters, data["caps"])


def _of_plateaus(label: str, data: list[xr.Dataset]) -> list[Claim]:
    rows: dict[str, list[tuple[float, float, float, str]]] = {name: [] for name in SOURCES}
    for found in data:
        beta = found.attrs["beta"]
        for k in range(found.sizes["plateau"]):
            one = {str(name): found[name].values[k] for name in found if found[name].dims == ("plateau",)}
            where = f"{int(one['clusters'])} clusters, β = {beta:g}"
            level, disturbed, off = one["level"], one["disturbed"], one["off"]
            if not np.isnan(one["bound"]):
                rows["lifetime"].append((one["bound"], one["life"], off, where))
            if not disturbed >= DECIDED:
                name = "last" if one["clusters"] == 2 else "pair"
                rows[name].append((one["alone"], one["life"], disturbed + off, where))
                product, rounding = one["alone"] + one["leaving"], 64 * EPS * (1 + beta)
                rows["rate"].append((product, one["life"] + one["log_rate"], 2 * disturbed + off + rounding, where))
            rest = (1 - level) * math.exp(-beta * one["nearest"]) + 8 * one["clusters"] * EPS
            rows["energy"].append(((level - 1) / (2 * beta), one["energy"], rest / (2 * beta), where))
            if one["clusters"] == 2:
                rows["lean"].append((one["share"], one["lean"], one["share_off"] + 64 * EPS * (1 + beta), where))
                rows["way"].append((one["share"], one["way"], one["share_off"] + off, where))
    made = []
    for name, (words, source) in SOURCES.items():
        if not rows[name]:
            continue
        sign = -1 if name == "lifetime" else None
        used = [(b - a) / c * sign if sign else abs(b - a) / c for a, b, c, _ in rows[name]]
        theirs, ours, tolerance, where = rows[name][worst(used)[0]]
        make = Claim.at_least if name == "lifetime" else Claim.equal
        made.append(make(f"{label}: {words} (worst of {len(used)}: {where})", theirs, ours, tolerance, source))
    return made


SOURCES = {
    "lifetime": ("log lifetime of a plateau, at least log T_2", "reported error"),
    "last": ("log lifetime of two clusters, two-body formula", "reported error"),
    "pair": ("log lifetime of more clusters, formula of the pair that merges", "reported error; pulls of the others"),
    "rate": ("log of lifetime times escape rate, formulas of the pair", "reported error; pulls of the others"),
    "energy": ("energy on a plateau, (ΣM² - 1)/2β", "(1 - ΣM²) e^(-βu)/2β of the nearest pair; rounding of sums"),
    "lean": ("unstable direction of two clusters: share of the first", "weight e^(-βu) of the pair; rounding"),
    "way": ("first step of two clusters: share of the first", "weight e^(-βu) of the pair; reported error"),
}
"""What is claimed of plateaus, and where the tolerance comes from."""


def _of_flows(parameters: Parameters, data: list[xr.Dataset]) -> list[Claim]:
    n, every = parameters.n, f"all {len(data)} flows"
    counts = [n * one["masses"].values for one in data]
    whole = max(float(np.max(np.abs(count - np.rint(count)))) for count in counts)
    pairs = zip(counts, data, strict=True)
    sizes = all(np.array_equal(np.rint(count.sum(axis=1)), one["linkage"].values[:, 3]) for count, one in pairs)
    ended = sum(
        one.attrs["ending"] == "stopped" and one.sizes["merge"] == n - 1 and abs(one["stair_level"][-1] - 1) <= 2 * EPS
        for one in data
    )
    rise = min(float(np.diff(one["stair_level"]).min()) for one in data)
    grown = max(float(one["rounding"].max()) for one in data)
    return [
        Claim.equal("flows that end in consensus, at the level 1", len(data), int(ended), 0, "counted"),
        Claim.equal(f"{every}: distance of n M from whole numbers", 0, whole, 2 * n * EPS, "rounding of n M"),
        Claim.true(f"{every}: masses are the sizes of the merge tree", bool(sizes), "equal", "compared merge by merge"),
        Claim.at_least(
            f"{every}: rise of the level 2βE0 in a step", 0, rise, 2 * parameters.tol,
            "positions are kept to tol/(1 + β), and the level has a slope of at most 2β",
        ),
        Claim.at_most(
            f"{every}: what rounding has grown to", 1e-2, grown, 0, "beyond it a merge counts as undetermined"
        ),
    ]  # fmt: skip


def _of_caps(parameters: Parameters, data: xr.Dataset) -> list[Claim]:
    beta, light = parameters.cap_beta, min(parameters.cap_masses)
    clear = data.isel(time=np.flatnonzero(data["resolved"].values))
    # 1 - e^(-z) and the field are off by z = beta |x - y|^2/2 within groups, by sqrt(2) z and twice that; the tide of
    # the others, a right angle away, is beta^2 e^(-beta); positions are rounded
    off = light * (2 * (beta + 1) * clear["apart"] + beta**2 * math.exp(-beta) + 16 * EPS / clear["distance"]).values
    used = (data["distance"] + np.sqrt(np.maximum(data["gap"], 0.0))) / data["bound"]
    middle = clear.isel(time=np.flatnonzero((clear["distance"] < 1e-5) & (clear["distance"] > 1e-10)))
    first, last = middle.isel(time=0), middle.isel(time=-1)
    span = float(last["time"] - first["time"])
    fall = math.log(float(first["distance"] / last["distance"])) / span
    rest = float(first["others"]) / 2 / span + light * 2 * (beta + 1) * float(first["apart"])
    rest += 256 * EPS / float(last["distance"]) / span + (STEP * light) ** 4 * light / 120
    label = f"USA0, three caps, β = {beta:g}"
    made = []
    for name, words in (("lower", "c in c|u-v|²/2 ≤ E(u)-E(v)"), ("upper", "c in E(u)-E(v) ≤ |∇E(u)|²/2c")):
        worst = int(np.argmin(clear[name].values - light + off))
        where = f"worst of {clear.sizes['time']} frames: t = {float(clear['time'][worst]):g}"
        source = "β (diameter of a group)²; tide of the others; rounding"
        found = float(clear[name][worst])
        made.append(Claim.at_least(f"{label}: {words} ({where})", light, found, off[worst], source))
    return [
        *made,
        Claim.at_most(
            f"{label}: |u-v| + √(E(u)-E(v)) over its bound by slow motion, all frames", 1, float(used.max()), 0,
            "an inequality",
        ),
        Claim.equal(
            f"{label}: rate at which |u-v| falls, the lightest mass", light, fall, rest,
            "share of the other groups; β (diameter)²; rounding; step",
        ),
    ]  # fmt: skip


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Tokens drawn uniformly, followed to consensus.

    (a) The level 2 beta E0, which is the sum of squared masses on plateaus, against (log t)/beta, with
    the numbers of clusters at the largest beta.
    (b) The merge tree of one flow. (c) Lifetimes of all plateaus against the time in which the pair that ends them
    would merge alone, and the theorem's lower bound T_2 where it makes a statement. (d) Three caps that contract: the
    quantity that slow motion is about, its bound from measured constants, and the slope delta of the slow manifold.
    """
    from attnflow.experiments.gallery import _metastability_figure as panels

    every = [compare(one) for name, one in data.items() if name != "caps"]
    shown = [one for one in every if one.attrs["model"] == "SA" and one.attrs["dim"] == max(parameters.dims)]
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 5.0))
        axes = fig.subplots(2, 2)
        panels.draw_staircases(axes[0, 0], shown)
        panels.draw_tree(axes[0, 1], shown[-1])
        panels.draw_lifetimes(axes[1, 0], every)
        panels.draw_caps(axes[1, 1], data["caps"])
        for letter, one in zip("abcd", axes.flat, strict=True):
            one.set_title(f"({letter})", loc="left", fontweight="bold")
        return fig
