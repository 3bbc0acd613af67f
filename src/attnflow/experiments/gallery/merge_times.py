"""Two and three clusters meet when and where closed forms say, at any beta: on plateaus as long as e^19000.

Weighted clusters are followed by `solve_long`, on the coordinate log t. Two of them close up in a time that is a
one-dimensional integral, of the order e^(beta (1 - cos angle)), and meet at the mass mean (USA0) or nearer to the
heavier one (SA). A third cluster delays the first merge by its tide, a share e^(-beta (u_3 - u_1)) of the time with
u = 1 - cos of the angles, and the merged cluster then meets it as a pair again. Three clusters at equal distances close
up on the middle one; there an asymmetry grows like a power of e^(beta u), so that beyond some beta rounding decides,
and `solve_long` has to say so (arXiv:2410.06833, arXiv:2312.10794).

Shown: pairs on S^1, S^2 and S^7 at beta from 1 to 10,000 on the clocks SA, USA0 and USA; triples on the circle; four
clusters on the circle against merge times computed elsewhere. Not shown: clusters of finite size.

The integrals of three clusters are computed here, by Gauss's rule, and share nothing with the simulator. Two clusters
count as met at the chord `chord` (pairs), or sqrt(tol)/beta (triples), and the formulas end at the same angle.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.claim import Claim, worst
from attnflow.experiments.study import Study
from attnflow.fields import Attention, Softmax, Unnormalised
from attnflow.flows import LongFlow, LongTime, solve_long
from attnflow.plots.style import PAGE, styled
from attnflow.tokens import Tokens

PAPERS = ("arXiv:2410.06833", "arXiv:2312.10794")

MODELS = {"SA": Softmax(), "USA0": Unnormalised(), "USA": Unnormalised("USA")}
LARGEST_CLOCK = 700.0
"""Beyond this beta the clock USA, e^beta faster than USA0, leaves the range of floats."""
TRIPLE, TRIPLE_MASSES = 0.8, (0.3, 0.3, 0.4)
"""Angle of the nearer pair of a triple; its clusters have equal masses, so that they move alike."""
SYMMETRIC, SYMMETRIC_MASSES = 1.0, (0.3, 0.4, 0.3)
FOUR, FOUR_MASSES, FOUR_BETA = (0.0, 0.9, 2.3, 3.9), (0.1, 0.2, 0.3, 0.4), 12.0
FOUR_TIMES = {"USA0": (78.8524, 29523.7, 1.09984e9), "SA": (14.4023, 10959.3, 3.8739e8)}
"""Merge times at the angle 1e-3 beta^(-1/2), by an independent code (first merges: LSODA on the angles)."""
EPS = float(np.finfo(float).eps)


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is simulated."""

    betas: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 10000.0)
    angles: tuple[float, ...] = (0.3, 1.0, 2.0, 2.8)
    masses: tuple[float, ...] = (0.5, 0.7, 0.95)
    """Mass of the first of two clusters."""
    dims: tuple[int, ...] = (2, 3, 8)
    chord: float = 1e-3
    """Where two clusters count as one."""
    tol: float = 1e-8
    triple_betas: tuple[float, ...] = (25.0, 100.0, 1000.0, 10000.0)
    gaps: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0)
    """beta (u_3 - u_1): how much farther the third cluster is."""
    symmetric_betas: tuple[float, ...] = (1.0, 4.0, 8.0, 12.0, 16.0, 20.0, 25.0, 30.0, 36.0, 42.0, 100.0)
    seed: int = 0
    """Of the great circles."""


QUICK = Parameters(
    betas=(1.0, 30.0, 10000.0), angles=(1.0, 2.8), masses=(0.5, 0.7), dims=(2,),
    triple_betas=(25.0, 1000.0), gaps=(2.0, 6.0, 12.0), symmetric_betas=(4.0, 12.0, 20.0, 100.0),
)  # fmt: skip


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Merges of pairs, of triples, of symmetric triples and of four clusters."""
    jobs: list[tuple[str, str, Callable[[], list[dict[str, Any]]]]] = []
    for model, dim in itertools.product(MODELS, parameters.dims):
        jobs.append(("pair", f"{model}-S{dim - 1}", functools.partial(_pairs, parameters, model, dim)))
    for model in FOUR_TIMES:
        jobs.append(("triple", model, functools.partial(_triples, parameters, model)))
        jobs.append(("symmetric", model, functools.partial(_symmetric, parameters, model)))
        jobs.append(("four", model, functools.partial(_four, parameters, model)))
    found: dict[str, list[xr.Dataset]] = {}
    for k, (kind, name, rows) in enumerate(jobs):
        study.progress(f"{kind} {name}", k / len(jobs))
        found.setdefault(kind, []).append(study.part(f"{kind}-{name}", functools.partial(_table, kind, rows)))
    return {kind: xr.concat(tables, dim=kind) for kind, tables in found.items()}


def _table(kind: str, make: Callable[[], list[dict[str, Any]]]) -> xr.Dataset:
    rows = make()
    return xr.Dataset({name: (kind, np.array([row[name] for row in rows])) for name in rows[0]})


def follow(model: str, beta: float, positions: np.ndarray, masses: Any, tol: float, chord: float) -> LongFlow:
    """Clusters on their way to consensus."""
    field = Attention(beta, normaliser=MODELS[model])
    return solve_long(field, Tokens(positions, masses), math.inf, method=LongTime(tol, angle=chord))


def _off(flow: LongFlow, tol: float) -> np.ndarray:
    """Error of the log times: that of the steps, and tol for a step that ends just after the meeting.

    The bound on what merging does to later forces is taken out: the formulas are of merged clusters too.
    """
    return (flow.merges["error"] - flow.merges["bound"]).values + tol


def _pairs(parameters: Parameters, model: str, dim: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng([parameters.seed, dim])
    rows = []
    for beta, angle, mass in itertools.product(parameters.betas, parameters.angles, parameters.masses):
        if model == "USA" and beta > LARGEST_CLOCK:
            continue
        circle = np.linalg.qr(rng.standard_normal((dim, 2)))[0].T
        start = np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]]) @ circle
        flow = follow(model, beta, start, [mass, 1 - mass], parameters.tol, parameters.chord)
        point, steps = flow.merges["point"].values[0], int(flow.merges["evaluations"][0]) / 15
        # a step moves a coordinate by tol/(1 + beta) at most. Along the circle the meeting point moves by no more than
        # a cluster does (its derivatives are in [0, 1] and add to 1), across it by 1/sin as much on an obtuse angle
        wide = 1 / np.sin(angle) if angle > np.pi / 2 else 1.0
        steps_off = steps * np.sqrt(dim) * wide * (parameters.tol / (1 + beta) + 4 * EPS)
        # from the chord c on, SA is taken at the mass mean: off by 2 mu beta c^2/2 in the share, mu = m1 m2 |m1 - m2|,
        # and the mean of chords instead of angles by mu c^3/6
        mu = mass * (1 - mass) * abs(2 * mass - 1)
        rows.append(
            {
                "model": model, "dim": dim, "beta": beta, "angle": angle, "mass": mass,
                "log_time": float(flow.merges["log_time"][0]),
                "log_time_tolerance": float(_off(flow, parameters.tol)[0]),
                "way": float(np.arctan2(circle[1] @ point, circle[0] @ point)),
                "way_tolerance": steps_off + mu * (2 * beta + 1) / 6 * parameters.chord**3,
                "aside": float(np.linalg.norm(point - point @ circle.T @ circle)),
                "aside_tolerance": steps_off,
                "evaluations": int(flow.merges["evaluations"][0]),
            }
        )  # fmt: skip
    return rows


def _triples(parameters: Parameters, model: str) -> list[dict[str, Any]]:
    """The third cluster stands beside the second, so much farther that beta (u_3 - u_1) is a gap."""
    rows = []
    for beta, gap in itertools.product(parameters.triple_betas, parameters.gaps):
        far = _far(beta, gap)
        angles = np.array([0.0, TRIPLE, TRIPLE + far])
        rows.append({"model": model, "beta": beta, "gap": gap, "far": far})
        rows[-1] |= _three(parameters, model, beta, angles, TRIPLE_MASSES)
    return rows


def _far(beta: float, gap: float) -> float:
    return math.acos(math.cos(TRIPLE) - gap / beta)


def _symmetric(parameters: Parameters, model: str) -> list[dict[str, Any]]:
    rows = []
    for beta in parameters.symmetric_betas:
        found = _three(parameters, model, beta, np.array([-SYMMETRIC, 0.0, SYMMETRIC]), SYMMETRIC_MASSES)
        rows.append({"model": model, "beta": beta} | found)
    return rows


def _three(parameters: Parameters, model: str, beta: float, angles: np.ndarray, masses: Any) -> dict[str, Any]:
    """Three clusters on the circle: both merges, and the pair that the first one leaves."""
    chord = math.sqrt(parameters.tol) / max(beta, 1.0)
    flow = follow(model, beta, np.stack([np.sin(angles), np.cos(angles)], axis=1), masses, parameters.tol, chord)
    merges, off = flow.merges, _off(flow, parameters.tol)
    after = flow.positions.values[np.searchsorted(flow.log_time.values, merges["log_time"].values[0])]
    last = next(k for k in range(3) if k not in (merges["first"][0], merges["second"][0]))
    merged = merges["point"].values[0]
    found = {
        "first": float(merges["log_time"][0]), "second": float(merges["log_time"][1]),
        "first_tolerance": off[0], "second_tolerance": off[1],
        "pair": int(merges["first"][0]) + 3 * int(merges["second"][0]),
        "left": float(2 * np.arctan2(np.linalg.norm(merged - after[last]), np.linalg.norm(merged + after[last]))),
        "left_mass": masses[last], "chord": chord, "growth": float(merges["growth"].values[-1]),
        "rounding": float(merges["rounding"].values[-1]), "undetermined": bool(merges["undetermined"].values[-1]),
        "end": float(abs(flow.positions.values[-1, 0, 0])), "evaluations": int(merges["evaluations"][-1]),
    }  # fmt: skip
    return found


def _four(parameters: Parameters, model: str) -> list[dict[str, Any]]:
    circle = np.stack([np.cos(FOUR), np.sin(FOUR)], axis=1)
    flow = follow(model, FOUR_BETA, circle, FOUR_MASSES, parameters.tol, 1e-3 / math.sqrt(FOUR_BETA))
    times = np.exp(flow.merges["log_time"].values)
    return [{"model": model, "merge": k + 1, "time": t} for k, t in enumerate(times)]


def log_closing_time(
    place: Callable[[Any], Any], masses: Any, start: float, end: float, beta: float, model: str
) -> float:
    """Log of the time in which clusters 0 and 1 of three on the circle come from the angle `start` to `end`.

    `place(angle)` are the angles of all three when those two are at `angle`. The integral of 1/speed, with e^(beta u)
    taken out, by Gauss's rule with 16 nodes on panels that halve towards both ends.
    """
    edges = np.concatenate([start - (start - end) * 0.5 ** np.arange(48), end * 2.0 ** np.arange(48), [start, end]])
    edges = np.unique(np.clip(edges, end, start))
    nodes, weights = np.polynomial.legendre.leggauss(16)
    half = np.diff(edges)[:, None] / 2
    angle = edges[:-1, None] + half * (1 + nodes)
    u, top = 2 * np.sin(angle / 2) ** 2, 2 * np.sin(start / 2) ** 2
    x = place(angle)
    speed = []
    for q in (0, 1):
        apart = {p: x[p] - x[q] for p in range(3) if p != q}
        pull = sum(masses[p] * np.exp(beta * (u - 2 * np.sin(a / 2) ** 2)) * np.sin(a) for p, a in apart.items())
        if model == "SA":
            others = sum(masses[p] * np.exp(-2 * beta * np.sin(a / 2) ** 2) for p, a in apart.items())
            pull = pull / (masses[q] + others)
        speed.append(pull)
    return float(beta * top + np.log(np.sum(half * weights * np.exp(beta * (u - top)) / (speed[0] - speed[1]))))


def delay(beta: float, far: float, until: float, model: str) -> tuple[float, float]:
    """What the third cluster adds to log T of the first merge, and the error that its own pull makes in that.

    The pair is taken along its way without the third, on which each cluster travels half, and only the speed is that
    of three. The third has by then moved the others, and itself been moved, by at most `shift`; the tide, of which
    log g' is at most beta + 1/sin, changes by that.
    """
    a, m = TRIPLE, TRIPLE_MASSES

    def place(t: Any) -> Any:
        return (a - t) / 2, (a + t) / 2, a + far

    three = log_closing_time(place, m, a, until, beta, model)
    two = log_closing_time(place, (m[0], m[1], 0.0), a, until, beta, model)
    pull = m[2] + m[0] + m[1] if model == "USA0" else m[2] / m[1] + (m[0] + m[1]) / m[2]
    shift = pull * math.exp(three - 2 * beta * math.sin(far / 2) ** 2)
    return three - two, (three - two) * math.expm1((beta + 1 / math.sin(far)) * shift)


def asymmetry(beta: float, model: str) -> float:
    """Log of the growth of an asymmetry of a symmetric triple, from its start to where the pull is largest.

    With g = e^(-beta u) sin, the clusters close up at the speed a g, and a difference of the two distances grows at
    b |g'|, both up to e^(-beta (u(2 angle) - u)): it grows like g^(-b/a). a and b are M0 and M0 + 2 m for USA0, M0/m
    and M0/m + 2 m/M0 for SA.
    """
    m, middle = SYMMETRIC_MASSES[:2]
    power = 1 + 2 * m / middle if model == "USA0" else 1 + 2 * (m / middle) ** 2
    peak = math.acos((math.sqrt(1 + 4 * beta**2) - 1) / (2 * beta))

    def log_g(angle: float) -> float:
        return math.log(math.sin(angle)) - 2 * beta * math.sin(angle / 2) ** 2

    return power * max(log_g(min(peak, SYMMETRIC)) - log_g(SYMMETRIC), 0.0)


def compare(parameters: Parameters, data: dict[str, xr.Dataset]) -> dict[str, xr.Dataset]:
    """Predictions beside the measurements."""
    pairs, three, symmetric = data["pair"], data["triple"], data["symmetric"]
    until = 2 * math.asin(parameters.chord / 2)
    columns: dict[str, list[Any]] = {"log_time": [], "way": [], "aside": []}
    for row in _rows(pairs):
        masses = (row["mass"], 1 - row["mass"])
        columns["log_time"].append(theory.log_merge_time(row["angle"], row["beta"], masses, until, row["model"]))
        columns["way"].append(theory.meeting_point(row["angle"], row["beta"], masses, row["model"]))
        columns["aside"].append(0.0)
    pairs = pairs.assign({f"predicted_{name}": ("pair", np.array(values)) for name, values in columns.items()})
    alone = [
        float(theory.log_merge_time(TRIPLE, r["beta"], TRIPLE_MASSES[:2], 2 * math.asin(r["chord"] / 2), r["model"]))
        for r in _rows(three)
    ]
    tides = [delay(r["beta"], r["far"], 2 * math.asin(r["chord"] / 2), r["model"]) for r in _rows(three)]
    three = three.assign(
        alone=("triple", np.array(alone)),
        delay=("triple", three["first"].values - alone),
        predicted_delay=("triple", np.array([tide for tide, _ in tides])),
        delay_tolerance=("triple", three["first_tolerance"].values + np.array([off for _, off in tides])),
        predicted_second=("triple", np.array([_second(r) for r in _rows(three)])),
    )
    first = [
        log_closing_time(
            lambda t: (-t, 0 * t, t), SYMMETRIC_MASSES, SYMMETRIC, 2 * math.asin(r["chord"] / 2), r["beta"], r["model"]
        )
        for r in _rows(symmetric)
    ]
    symmetric = symmetric.assign(
        predicted_first=("symmetric", np.array(first)),
        predicted_second=("symmetric", np.array([_second(r) for r in _rows(symmetric)])),
        predicted_growth=("symmetric", np.array([asymmetry(r["beta"], r["model"]) for r in _rows(symmetric)])),
    )
    return {"pair": pairs, "triple": three, "symmetric": symmetric, "four": data["four"]}


def _rows(table: xr.Dataset) -> list[dict[str, Any]]:
    (kind,) = table.sizes
    return [{str(name): table[name].values[k].item() for name in table} for k in range(table.sizes[kind])]


def _second(row: dict[str, Any]) -> float:
    """The merged cluster meets the third: a pair, from the first merge on."""
    masses, until = (1 - row["left_mass"], row["left_mass"]), 2 * math.asin(row["chord"] / 2)
    if row["left"] <= until:
        return float(row["first"])
    return float(
        np.logaddexp(row["first"], theory.log_merge_time(row["left"], row["beta"], masses, until, row["model"]))
    )


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Of every group of measurements the one that uses most of its tolerance."""
    found, made = compare(parameters, data), []
    steps = "estimated errors of the steps, and tol"

    def say(table: xr.Dataset, name: str, words: str, source: str) -> None:
        (kind,) = table.sizes
        off, allowed = table[name] - table[f"predicted_{name}"], table[f"{name}_tolerance"]
        used = np.abs(off.values) / allowed.values
        row = table.isel({kind: worst(used)[0]})
        parts = [f"{key} {row[key].item():g}" for key in ("beta", "angle", "mass", "gap") if key in row]
        where = ", ".join(([f"S^{int(row['dim']) - 1}"] if "dim" in row else []) + parts)
        predicted, measured, tolerance = (float(row[key]) for key in (f"predicted_{name}", name, f"{name}_tolerance"))
        words = f"{words} (worst of {table.sizes[kind]}: {where})"
        made.append(Claim.equal(words, predicted, measured, tolerance, source))

    for model in MODELS:
        pairs = _some(found["pair"], model=model)
        for beta in np.unique(pairs["beta"]):
            say(_some(pairs, beta=beta), "log_time", f"{model}, β = {beta:g}: log T of two clusters", steps)
        say(pairs, "way", f"{model}: way of cluster 1 to where they meet",
              "errors of positions of all steps; the mean instead of SA from the merging chord on")  # fmt: skip
        say(pairs, "aside", f"{model}: distance from the great circle", "errors of positions of all steps")
    for model in FOUR_TIMES:
        three = _some(found["triple"], model=model)
        made.append(
            Claim.true(
                f"{model}: of three clusters the nearer two merge first", bool((three["pair"] == 3).all()),
                f"{int((three['pair'] == 3).sum())} of {three.sizes['triple']}", "clusters 0 and 1 by name",
            )
        )  # fmt: skip
        source = f"{steps}; the tide times expm1((β + 1/sin) shift), what the third moves meanwhile"
        say(three, "delay", f"{model}: what a third cluster adds to log T is its tide", source)
        say(three, "second", f"{model}: log T of the second merge of three, a pair again", steps)
        symmetric = _some(found["symmetric"], model=model)
        certain = symmetric.isel(symmetric=~symmetric["undetermined"].values)
        say(certain, "first", f"{model}: log T of a symmetric triple", steps)
        say(certain, "second", f"{model}: log T of its second merge", steps)
        # every evaluation may add a rounding error, which grows like the perturbation does
        slack = float((certain["rounding"] * certain["evaluations"]).max())
        made.append(Claim.at_most(f"{model}: way of the middle cluster of a symmetric triple", 0.0,
                                  float(certain["end"].max()), slack, "rounding × evaluations"))  # fmt: skip
        clear = certain.isel(symmetric=certain["beta"].values >= 12)
        clear = clear.assign(growth_tolerance=0 * clear["growth"] + 3.0)
        say(clear, "growth", f"{model}: log growth of an asymmetry, (b/a) log(g*/g)",
              "of a normal random number |log| exceeds 3 in 4% of draws")  # fmt: skip
        wanted = symmetric["predicted_growth"] + np.log(EPS) > np.log(1e-2) + 3
        made.append(
            Claim.true(
                f"{model}: where rounding decides a symmetric triple, it is reported",
                bool(wanted.any() and symmetric["undetermined"].values[wanted.values].all()),
                f"β = {', '.join(f'{b:g}' for b in symmetric['beta'].values[symmetric['undetermined'].values])}",
                "growth × rounding above 0.01 by a factor of e³",
            )
        )  # fmt: skip
        for row, want in zip(_rows(_some(found["four"], model=model)), FOUR_TIMES[model], strict=True):
            made.append(Claim.equal(f"{model}, β = 12, four clusters: merge {row['merge']}", want, row["time"],
                                    1e-4 * want, "digits of the reference: 1e-4 of it"))  # fmt: skip
    return made


def _some(table: xr.Dataset, **labels: Any) -> xr.Dataset:
    (kind,) = table.sizes
    return table.isel({kind: np.all([table[name].values == value for name, value in labels.items()], axis=0)})


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Clusters followed to their merges (marks: full SA, open USA0) and closed forms (lines: solid SA, dashed USA0).

    (a) Two equal clusters: (log T)/beta, and 1 - cos angle, its limit (dotted). (b) SA: the share of the angle that
    cluster 1 travels, above its limit for beta -> infinity; the lines fall like beta^(-1/2). (c) What log T of pairs
    misses, and what it may miss. (d) What a third cluster adds to log T of the first merge, and its tide (lines, for
    the least beta). (e) Symmetric triples: log growth of an asymmetry; crosses are reported as undetermined. (f) Force
    evaluations of one merge.
    """
    from attnflow.experiments.gallery import _merge_times_figure as panels

    found = compare(parameters, data)
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 4.5))
        axes = fig.subplots(2, 3)
        panels.draw_times(axes[0, 0], found["pair"], parameters.chord)
        panels.draw_places(axes[0, 1], found["pair"])
        panels.draw_errors(axes[0, 2], found["pair"])
        panels.draw_delays(axes[1, 0], found["triple"], lambda b, gap, model: delay(b, _far(b, gap), 1e-5, model)[0])
        panels.draw_growth(axes[1, 1], found["symmetric"], asymmetry)
        panels.draw_work(axes[1, 2], found["pair"])
        for letter, one in zip("abcdef", axes.flat, strict=True):
            one.set_title(f"({letter})", loc="left", fontweight="bold")
        return fig
