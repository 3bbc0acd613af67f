"""Plateaus against the theorem, the two-body formulas and the escape rate; three caps against slow motion."""

import math

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import EPS, Rows
from attnflow_gallery.metastability.simulate import STEP, WIDTH, Parameters

THEOREM = published("geshkovski2024metastability")
SLOW = published("otto2007slow")
PAIR = consequence("Lifetime and escape rate of a plateau")
CAPS = consequence("Constants of slow motion")
ALONE, FREE = 0.1, 1e-3
"""Largest first-order change of log t by other pairs, for claims about lifetimes and about escape rates."""


def compare(data: xr.Dataset) -> xr.Dataset:
    """Plateaus with what theory says of them: dimensions (plateau,).

    life: log of the lifetime; alone: the same of the pair that merges, were it alone; disturbed: what others may change
    of it; off: error of `life` as reported; bound: log T_2, NaN where the theorem makes no statement; leaving: log of
    the escape rate of the pair, NaN where its closing slows down; share: of the closing that its first cluster does.
    """
    beta, model, n = data.attrs["beta"], data.attrs["model"], data.sizes["merge"] + 1
    rows = []
    for k in range(data.sizes["plateau"]):
        one = data.isel(plateau=k)
        x, m = one["centre"].values[one["mass"].values > 0], one["mass"].values[one["mass"].values > 0]
        pairs, (p, q) = (
            theory.merging.pair_lives(x, m, beta, model=model, until=WIDTH / beta),
            (int(i) for i in one["pair"]),
        )
        angle, alone = pairs.pop((p, q))
        span, both = float(one["log_end"] - one["log_start"]), (float(m[p]), float(m[q]))
        share, change = _share(angle, beta, both, model)
        life = float(one["log_end"]) + math.log(-math.expm1(-span))
        row = {"life": life, "alone": alone, "disturbed": theory.merging.pair_disturbance(alone, pairs.values())}
        row["off"] = float(data["error"][int(one["before"])]) / math.tanh(span / 2)
        row["bound"] = float(theory.merging.log_plateau_bound(beta, float(one["angle"]), n))
        row["leaving"] = theory.merging.log_pair_escape_rate(angle, beta, both, model=model)
        weight = math.exp(-2 * beta * math.sin(float(one["then"]) / 2) ** 2)
        rows.append(row | {"share": share, "share_off": 2 * change * weight})
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
    bounded, alone, free, shares = Rows(), Rows(), Rows(), Rows()
    for flow in (compare(one) for name, one in data.items() if name != "caps"):
        where = f"{flow.attrs['model']} on S^{flow.attrs['dim'] - 1}, β = {flow.attrs['beta']:g}"
        rounding = 64 * EPS * (1 + flow.attrs["beta"])
        for k in range(flow.sizes["plateau"]):
            row = {str(name): float(flow[name][k]) for name in flow if flow[name].dims == ("plateau",)}
            label, disturbed, off = f"{where}, {row['clusters']:.0f} clusters", row["disturbed"], row["off"]
            if not math.isnan(row["bound"]):
                bounded.add(row["bound"], row["life"], off, label)
            if not disturbed >= ALONE:
                alone.add(row["alone"], row["life"], disturbed + off, label)
            if not disturbed >= FREE and not math.isnan(row["leaving"]):
                free.add(row["leaving"], row["log_rate"], disturbed + rounding, label)
            if row["clusters"] == 2:
                shares.add(row["share"], row["lean"], row["share_off"] + rounding, f"direction, {label}")
                shares.add(row["share"], row["way"], row["share_off"] + off, f"step, {label}")
    life = "log lifetime of a plateau, two-body formula of the pair that merges"
    rate = "log escape rate of a plateau, formula of the pair that merges"
    two = "two clusters: share of the first in the unstable direction and in the first step"
    others = "share of their time that other pairs use up"
    return [
        bounded.at_least("log lifetime of every plateau, at least log T₂", "reported error", origin=THEOREM),
        _slow_motion(parameters, data["caps"]),
        alone.equal(life, f"reported error; {others}", origin=PAIR),
        free.equal(rate, f"{others}; rounding", origin=PAIR),
        shares.equal(two, "weight e^(-βu) of the pair; rounding; reported error", origin=PAIR),
        *_of_caps(parameters, data["caps"]),
    ]


def _slow_motion(parameters: Parameters, data: xr.Dataset) -> Claim:
    used = ((data["distance"] + np.sqrt(np.maximum(data["gap"], 0.0))) / data["bound"]).values
    says = f"USA0, three caps, β = {parameters.cap_beta:g}: |u-v| + √(E(u)-E(v)) over its bound by slow motion"
    times = [f"t = {t:g}" for t in data["time"].values]
    return Claim.at_most(says, 1.0, used, 0.0, "an inequality", origin=SLOW, labels=times)


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
    label, rows = f"USA0, three caps, β = {beta:g}", Rows()
    for bound in ("lower", "upper"):
        rows.add(light, clear[bound], off, [f"{bound} bound, t = {t:g}" for t in clear["time"].values])
    says = f"{label}: c in c|u-v|²/2 ≤ E(u)-E(v) ≤ |∇E(u)|²/2c, at least the lightest mass"
    rate, reason = f"{label}: rate at which |u-v| falls, the lightest mass", "share of the other groups; β (diameter)²"
    return [
        rows.at_least(says, "β (diameter of a group)²; pull of the others; rounding", origin=CAPS),
        Claim.equal(rate, light, fall, rest, f"{reason}; rounding; step", origin=CAPS),
    ]
