"""Consensus, chords, cross-ratios, two antipodal clusters, random starts, energies."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, consequence, published
from attnflow_gallery.value_spectrum.simulate import KINDS, TIGHT, Case, Parameters, cases, of_kind

ENERGY = published("geshkovski2025perspective")
CONSENSUS = consequence("Consensus and small chords")
MOEBIUS = consequence("Uniform attention keeps cross-ratios")
PAIRS = consequence("Two antipodal clusters")
HEADS = consequence("The energy of several heads")
ESCAPE = 12.0
"""Two clusters must have gone where a disturbance of them would have grown by e^12 in the time."""


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Energy of one head; consensus, chords, cross-ratios, two clusters, random starts, energy of two heads."""
    short, known, (one, two) = data["short"], cases(parameters), data["energy"]["rate"].values
    return [
        Claim.at_least(
            "One head, V = QᵀK symmetric: rate of the log of its energy", 0.0, one, 1e-12,
            "rounding, of rates of order 10", origin=ENERGY, labels=lambda at: f"state {at[0]}",
        ),
        *_consensus(known, short),
        _cross_ratios(known, short),
        _two_clusters(known, short),
        _ends(parameters, known, data["long"]),
        Claim.at_least(
            "Two heads, V_h = Q_hᵀK_h symmetric: number of states in which their energy falls", 1,
            int(np.sum(two < -1e-12)), 0, "counted among random states", origin=HEADS,
            detail=f"of {len(two)} states",
        ),
    ]  # fmt: skip


def linear_flow(value: np.ndarray, x: np.ndarray, times: np.ndarray) -> np.ndarray:
    """e^(tV) x at all times."""
    from scipy.linalg import expm

    return np.array([expm(t * value) @ x for t in times])


def _stiffness(case: Case) -> float:
    """(2 beta |B| + 4) |V|: how fast, per size of a cluster, chords deviate from linear growth."""
    logits = np.linalg.norm(np.swapaxes(case.query, 1, 2) @ case.key, 2, axis=(1, 2))
    return float(np.max((2 * case.beta * logits + 4) * np.linalg.norm(case.value, 2, axis=(1, 2))))


def chords(x: np.ndarray) -> np.ndarray:
    """|x_i - x_(i+1)| around the tokens, (..., token)."""
    return np.asarray(np.linalg.norm(x - np.roll(x, 1, axis=-2), axis=-1))


def _consensus(known: list[Case], short: xr.Dataset) -> list[Claim]:
    """-d log|x_i - x_j|/dt is <x, Vx>, up to what attention and the projection make of the size of the cluster."""
    times, chosen = short["time"].values, of_kind(known, *KINDS)
    off, allowed, predicted, measured, slack = [], [], [], [], []
    for k in chosen:
        x, rough = short["fine"].values[:, k], short["coarse"].values[:, k]
        middle = x.mean(axis=1)
        flow = linear_flow(known[k].value.mean(axis=0), middle[0], times)
        size = np.linalg.norm(flow, axis=1, keepdims=True)
        wide = np.linalg.norm(x - middle[:, None], axis=2).max()
        off.append(np.linalg.norm(middle - flow / size, axis=1))
        allowed.append(short["error"].values[:, k] + wide)
        fine, coarse = (np.log(chords(y)[1:] / chords(y)[0]) for y in (x, rough))
        predicted.append(-np.log(size[1:]) + 0 * fine)
        measured.append(fine)
        # the coordinates of tokens round by eps, chords by twice that
        rounding = 4e-16 / chords(x)[1:] * len(times)
        slack.append(np.abs(fine - coarse) + _stiffness(known[k]) * times[-1] * wide + rounding)
    names = [f"{known[k].kind} {j // len(KINDS)}" for j, k in enumerate(chosen)]
    return [
        Claim.at_most(
            "Tight clusters: distance of their middle from e^(tV) x(0), normalised", 0.0, np.array(off),
            np.array(allowed), "change by halving the steps; size of the cluster", origin=CONSENSUS,
            labels=lambda at: f"{names[at[0]]}, t = {times[at[1]]:g}",
        ),
        Claim.equal(
            "Tight clusters: log of the growth of a chord = -log |e^(tV) x(0)|", np.array(predicted),
            np.array(measured), np.array(slack),
            "change by halving the steps; (2β|B| + 4)|V| t times the size of the cluster; rounding", origin=CONSENSUS,
            labels=lambda at: f"{names[at[0]]}, t = {times[1 + at[1]]:g}",
        ),
    ]  # fmt: skip


def _cross_ratios(known: list[Case], short: xr.Dataset) -> Claim:
    chosen = of_kind(known, "beta = 0")

    def ratios(name: str) -> np.ndarray:
        x = short[name].values[:, chosen]
        a, b, c = (np.roll(x, k, axis=2) for k in (1, 2, 3))
        near, far = (np.log(np.linalg.norm(u - v, axis=-1)) for u, v in ((x, a), (x, b)))
        return np.asarray(near + np.log(np.linalg.norm(b - c, axis=-1)) - far - np.log(np.linalg.norm(a - c, axis=-1)))

    fine, coarse = ratios("fine"), ratios("coarse")
    return Claim.equal(
        "β = 0, random heads: change of the log of a cross-ratio of chords", 0.0, (fine - fine[0])[1:],
        np.abs(fine - coarse)[1:] + 1e-12, "change by halving the steps; rounding", origin=MOEBIUS,
        labels=lambda at: f"heads {at[1]}, token {at[2]}, t = {short['time'].values[1 + at[0]]:g}",
    )  # fmt: skip


def pair_rates(case: Case) -> tuple[float, float]:
    """Rates at which two antipodal clusters bend and turn."""
    phi, one = case.frame[:, 0], case.spectra
    tilt = np.tanh(case.beta * np.einsum("i,hji,hjk,k->h", phi, case.query, case.key, phi))
    return float(np.mean(one[:, 1] - one[:, 0] * tilt)), float(np.mean((one[:, 2] - one[:, 0]) * tilt))


def measured_rates(case: Case, x: np.ndarray, time: float) -> np.ndarray:
    """The same from positions at t = 0 and at `time`, (2, token, dim)."""
    both = np.stack([x[:, 0] + x[:, -1], x[:, 0] - x[:, -1]])
    parts = np.einsum("mtd,dm->mt", both, case.frame[:, 1:])
    return np.asarray(np.log(np.abs(parts[:, 1] / parts[:, 0])) / time)


def _two_clusters(known: list[Case], short: xr.Dataset) -> Claim:
    predicted, measured, slack, names = [], [], [], []
    time = float(short["time"][-1])
    for k in of_kind(known, "pair"):
        case, ends = known[k], (0, -1)
        fine, coarse = (measured_rates(case, short[n].values[ends, k], time) for n in ("fine", "coarse"))
        large, small = (TIGHT * np.exp(f([*fine, 0.0]) * time) for f in (np.max, np.min))
        predicted.append(pair_rates(case))
        measured.append(fine)
        slack.append(np.abs(fine - coarse) + _stiffness(case) * large + 64e-16 / small / time)
        names.append(f"β = {case.beta:.3g}")
    return Claim.equal(
        "Two antipodal clusters: rates at which they bend and turn", np.array(predicted), np.array(measured),
        np.array(slack), "change by halving the steps; (2β|B| + 4)|V| times the disturbance; rounding", origin=PAIRS,
        labels=lambda at: f"{names[at[0]]}, {('bending', 'turning')[at[1]]}",
    )  # fmt: skip


def two_ended(parameters: Parameters, part: xr.Dataset) -> np.ndarray:
    """Which random starts have tokens near both phi and -phi in the end, (beta, draw)."""
    along = part["fine"].values[-1, :, :, 0]
    return np.asarray((along.max(axis=1) > 0.9) & (along.min(axis=1) < -0.9)).reshape(len(parameters.betas), -1)


def _ends(parameters: Parameters, known: list[Case], part: xr.Dataset) -> Claim:
    unstable = np.flatnonzero((parameters.ratio - np.tanh(parameters.betas)) * parameters.end > ESCAPE)
    return Claim.equal(
        f"λ₂/λ₁ = {parameters.ratio:g} > tanh β: number of random starts that end in two clusters", 0,
        two_ended(parameters, part)[unstable].sum(axis=1), 0,
        f"counted where a disturbance of two clusters would have grown by e^{ESCAPE:g}", origin=PAIRS,
        labels=[f"β = {parameters.betas[k]:g}" for k in unstable], detail=f"{parameters.draws} starts each",
    )  # fmt: skip
