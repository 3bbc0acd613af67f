"""Plateaus against the theorem, the two-body formulas and the escape rate; three caps against slow motion."""

import math
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow_gallery.metastability.simulate import STEP, WIDTH, Parameters

THEOREM = published("geshkovski2024metastability")
SLOW = published("otto2007slow")
PAIR = consequence("Lifetime and escape rate of a plateau")
CAPS = consequence("Constants of slow motion")
ALONE, FREE = 0.1, 1e-3
"""Largest first-order change of log t by other pairs, for claims about lifetimes and about escape rates."""
EPS = float(np.finfo(float).eps)


def compare(data: xr.Dataset) -> xr.Dataset:
    """Plateaus with what theory says of them: dimensions (plateau,).

    life: log of the lifetime; alone: that of the pair that merges, were it alone; disturbed: what others may change of
    it; off: error of `life` as reported; bound: log T_2, NaN where the theorem makes no statement; leaving: log of the
    escape rate of the pair, NaN where its closing slows down; share: of the closing that its first cluster does.
    """
    beta, model, n = data.attrs["beta"], data.attrs["model"], data.sizes["merge"] + 1
    rows = []
    for k in range(data.sizes["plateau"]):
        one = data.isel(plateau=k)
        x, m = one["centre"].values[one["mass"].values > 0], one["mass"].values[one["mass"].values > 0]
        pairs, (p, q) = theory.merging.pair_lives(x, m, beta, model, WIDTH / beta), (int(i) for i in one["pair"])
        angle, alone = pairs.pop((p, q))
        span, both = float(one["log_end"] - one["log_start"]), (float(m[p]), float(m[q]))
        share, change = _share(angle, beta, both, model)
        rows.append({
            "life": float(one["log_end"]) + math.log(-math.expm1(-span)), "alone": alone,
            "disturbed": theory.merging.pair_disturbance(alone, pairs.values()),
            "off": float(data["error"][int(one["before"])]) / math.tanh(span / 2),
            "bound": float(theory.merging.log_plateau_bound(beta, float(one["angle"]), n)), "share": share,
            "leaving": theory.merging.log_pair_escape_rate(angle, beta, both, model),
            "share_off": 2 * change * math.exp(-2 * beta * math.sin(float(one["then"]) / 2) ** 2),
        })  # fmt: skip
    return data.assign({name: ("plateau", np.array([row[name] for row in rows])) for name in rows[0]})


def _share(angle: float, beta: float, masses: tuple[float, float], model: str) -> tuple[float, float]:
    """Share of the closing that cluster 1 does as q = e^(-beta u) -> 0, and its largest change over q.

    USA0: m2/(m1 + m2). SA: h_1/(h_1 + h_2) with h_1 = m2 q/(m1 + m2 q), h_2 likewise: m2^2/(m1^2 + m2^2), and the
    unstable direction has the shares of the slopes of h sin.
    """
    m1, m2 = masses
    if model != "SA":
        return m2 / (m1 + m2), 0.0
    steep, cos = beta * math.sin(angle) ** 2, math.cos(angle)
    return m2**2 / (m1**2 + m2**2), abs(m1 / m2 - m2 / m1) / 4 * (1 + steep / abs(steep - cos))


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """The theorem and slow motion, then lifetimes, escape rates and directions, then the constants of slow motion."""
    flows = [compare(one) for name, one in data.items() if name != "caps"]
    rows = [_row(flow, k) for flow in flows for k in range(flow.sizes["plateau"])]
    bounded = [row for row in rows if not np.isnan(row["bound"])]
    alone = [row for row in rows if not row["disturbed"] >= ALONE]
    free = [row for row in rows if not row["disturbed"] >= FREE and not np.isnan(row["leaving"])]
    last = [row for row in rows if row["clusters"] == 2]
    shares, leans, ways, offs, share_offs, rounding = (
        np.array([row[name] for row in last]) for name in ("share", "lean", "way", "off", "share_off", "rounding")
    )
    return [
        Claim.at_least(
            "log lifetime of every plateau, at least log T₂", _column(bounded, "bound"), _column(bounded, "life"),
            _column(bounded, "off"), "reported error", origin=THEOREM, labels=_labels(bounded),
        ),
        _slow_motion(parameters, data["caps"]),
        Claim.equal(
            "log lifetime of a plateau, two-body formula of the pair that merges", _column(alone, "alone"),
            _column(alone, "life"), _column(alone, "disturbed") + _column(alone, "off"),
            "reported error; share of their time that other pairs use up", origin=PAIR, labels=_labels(alone),
        ),
        Claim.equal(
            "log escape rate of a plateau, formula of the pair that merges", _column(free, "leaving"),
            _column(free, "log_rate"), _column(free, "disturbed") + _column(free, "rounding"),
            "share of their time that other pairs use up; rounding", origin=PAIR, labels=_labels(free),
        ),
        Claim.equal(
            "two clusters: share of the first in the unstable direction and in the first step", shares, [leans, ways],
            [share_offs + rounding, share_offs + offs], "weight e^(-βu) of the pair; rounding; reported error",
            origin=PAIR, labels=lambda at: f"{('direction', 'step')[at[0]]}, {_labels(last)[at[1]]}",
        ),
        *_of_caps(parameters, data["caps"]),
    ]  # fmt: skip


def _row(flow: xr.Dataset, k: int) -> dict[str, Any]:
    found = {str(name): flow[name].values[k] for name in flow if flow[name].dims == ("plateau",)}
    where = f"{flow.attrs['model']} on S^{flow.attrs['dim'] - 1}, β = {flow.attrs['beta']:g}"
    return found | {
        "label": f"{where}, {int(found['clusters'])} clusters", "rounding": 64 * EPS * (1 + flow.attrs["beta"]),
    }  # fmt: skip


def _column(rows: list[dict[str, Any]], name: str) -> np.ndarray:
    return np.array([row[name] for row in rows], dtype=float)


def _labels(rows: list[dict[str, Any]]) -> list[str]:
    return [row["label"] for row in rows]


def _slow_motion(parameters: Parameters, data: xr.Dataset) -> Claim:
    used = (data["distance"] + np.sqrt(np.maximum(data["gap"], 0.0))) / data["bound"]
    return Claim.at_most(
        f"USA0, three caps, β = {parameters.cap_beta:g}: |u-v| + √(E(u)-E(v)) over its bound by slow motion", 1.0,
        used.values, 0.0, "an inequality", origin=SLOW, labels=[f"t = {t:g}" for t in data["time"].values],
    )  # fmt: skip


def _of_caps(parameters: Parameters, data: xr.Dataset) -> list[Claim]:
    beta, light = parameters.cap_beta, min(parameters.cap_masses)
    clear = data.isel(time=np.flatnonzero(data["resolved"].values))
    # 1 - e^(-z) and the field are off by z = beta |x - y|^2/2 within groups, by sqrt(2) z and twice that; the pull of
    # the others, a right angle away, is beta^2 e^(-beta); positions are rounded
    off = light * (2 * (beta + 1) * clear["apart"] + beta**2 * math.exp(-beta) + 16 * EPS / clear["distance"]).values
    # where the heavier groups are below 1e-3 of the square, and the difference is still above rounding
    middle = clear.isel(time=np.flatnonzero((clear["distance"] < 1e-5) & (clear["distance"] > 1e-10)))
    first, last = middle.isel(time=0), middle.isel(time=-1)
    span = float(last["time"] - first["time"])
    fall = math.log(float(first["distance"] / last["distance"])) / span
    rest = float(first["others"]) / 2 / span + light * 2 * (beta + 1) * float(first["apart"])
    rest += 256 * EPS / float(last["distance"]) / span + (STEP * light) ** 4 * light / 120
    label = f"USA0, three caps, β = {beta:g}"
    times = [f"t = {t:g}" for t in clear["time"].values]
    return [
        Claim.at_least(
            f"{label}: c in c|u-v|²/2 ≤ E(u)-E(v) ≤ |∇E(u)|²/2c, at least the lightest mass", light,
            [clear["lower"].values, clear["upper"].values], off,
            "β (diameter of a group)²; pull of the others; rounding",
            origin=CAPS, labels=lambda at: f"{('lower', 'upper')[at[0]]} bound, {times[at[1]]}",
        ),
        Claim.equal(
            f"{label}: rate at which |u-v| falls, the lightest mass", light, fall, rest,
            "share of the other groups; β (diameter)²; rounding; step", origin=CAPS,
        ),
    ]  # fmt: skip
