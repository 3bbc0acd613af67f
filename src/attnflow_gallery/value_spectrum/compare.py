"""Consensus, chords, cross-ratios, two antipodal clusters, random starts, energies."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import EPS, Rows
from attnflow_gallery.value_spectrum.simulate import KINDS, TIGHT, Case, Parameters, cases, of_kind

ENERGY = published("geshkovski2025perspective")
CONSENSUS = consequence("Consensus and small chords")
MOEBIUS = consequence("Uniform attention keeps cross-ratios")
PAIRS = consequence("Two antipodal clusters")
HEADS = consequence("The energy of several heads")
HALVED = 15
"""How much halving the steps changes a number, over its error."""
ESCAPE = 12.0
"""Two clusters must have gone where a disturbance of them would have grown by e^12 in the time."""


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Energy of one head; consensus, chords, cross-ratios, two clusters, random starts, energy of two heads."""
    short, known, (one, two) = data["short"], cases(parameters), data["energy"]["rate"].values
    states, falls = [f"state {k}" for k in range(len(one))], np.sum(two < -1e-12)
    single = "One head, V = QᵀK symmetric: rate of the log of its energy"
    double = "Two heads, V_h = Q_hᵀK_h symmetric: number of states in which their energy falls"
    reason, detail = "counted among random states", f"of {len(two)} states"
    return [
        Claim.at_least(single, 0.0, one, 1e-12, "rounding, of rates of order 10", origin=ENERGY, labels=states),
        *_consensus(known, short),
        _cross_ratios(known, short),
        _two_clusters(known, short),
        _ends(parameters, data["long"]),
        Claim.at_least(double, 1, falls, 0, reason, origin=HEADS, detail=detail),
    ]


def linear_flow(value: np.ndarray, x: np.ndarray, times: np.ndarray) -> np.ndarray:
    """e^(tV) x at all times."""
    from scipy.linalg import expm

    return np.array([expm(t * value) @ x for t in times])


def _stiffness(case: Case) -> float:
    """(2 beta |B| + 4) |V|: how fast, per size of a cluster, chords deviate from linear growth."""
    logits = np.linalg.norm(np.swapaxes(case.query, 1, 2) @ case.key, 2, axis=(1, 2))
    return float(np.max((2 * case.beta * logits + 4) * np.linalg.norm(case.value, 2, axis=(1, 2))))


def _consensus(known: list[Case], short: xr.Dataset) -> list[Claim]:
    """-d log|x_i - x_j|/dt is <x, Vx>, up to what attention and the projection make of the size of the cluster."""
    middles, growth, times = Rows(), Rows(), short["time"].values
    for j, k in enumerate(of_kind(known, *KINDS)):
        part, name = short.isel(case=k), f"{known[k].kind} {j // len(KINDS)}"
        x, chord = part["positions"].values, part["chords"].values[:, 0]
        centre = x.mean(axis=1)
        flow = linear_flow(known[k].value.mean(axis=0), centre[0], times)
        size = np.linalg.norm(flow, axis=1, keepdims=True)
        wide = np.linalg.norm(x - centre[:, None], axis=2).max()
        moved = HALVED * np.linalg.norm(part["positions_error"], axis=2).max(axis=1) + 64 * EPS
        off = np.linalg.norm(centre - flow / size, axis=1)
        middles.add(0.0, off, moved + wide, [f"{name}, t = {t:g}" for t in times])
        # the coordinates of tokens round by eps, chords by twice that
        changed = HALVED * part["chords_error"].values[1:, 0] + 4e-16 * len(times)
        slack = changed / chord[1:] + _stiffness(known[k]) * times[-1] * wide
        labels = [f"{name}, t = {t:g}" for t in times[1:] for _ in chord[0]]
        growth.add(-np.log(size[1:]), np.log(chord[1:] / chord[0]), slack, labels)
    steps = "change by halving the steps"
    middle = "Tight clusters: distance of their middle from e^(tV) x(0), normalised"
    log_chord = "Tight clusters: log of the growth of a chord = -log |e^(tV) x(0)|"
    reason = f"{steps}; (2β|B| + 4)|V| t times the size of the cluster; rounding"
    return [
        middles.at_most(middle, f"{steps}; size of the cluster", origin=CONSENSUS),
        growth.equal(log_chord, reason, origin=CONSENSUS),
    ]


def _cross_ratios(known: list[Case], short: xr.Dataset) -> Claim:
    """|x_i - x_(i-1)| |x_(i-2) - x_(i-3)| / (|x_i - x_(i-2)| |x_(i-1) - x_(i-3)|)."""
    rows, times = Rows(), short["time"].values

    def added(near: np.ndarray, far: np.ndarray) -> np.ndarray:
        return np.asarray(near + np.roll(near, 2, axis=1) + far + np.roll(far, 1, axis=1))

    for k, case in enumerate(of_kind(known, "beta = 0")):
        near, far = short["chords"].values[case].swapaxes(0, 1)
        changes = HALVED * short["chords_error"].values[case].swapaxes(0, 1)
        log, slack = added(np.log(near), -np.log(far)), added(changes[0] / near, changes[1] / far) + 1e-12
        labels = [f"heads {k}, token {i}, t = {t:g}" for t in times[1:] for i in range(log.shape[1])]
        rows.add(0.0, (log - log[0])[1:], slack[1:], labels)
    words = "β = 0, random heads: change of the log of a cross-ratio of chords"
    return rows.equal(words, "change by halving the steps; rounding", origin=MOEBIUS)


def pair_rates(case: Case) -> tuple[float, float]:
    """Rates at which two antipodal clusters bend and turn."""
    phi, one = case.frame[:, 0], case.spectra
    tilt = np.tanh(case.beta * np.einsum("i,hji,hjk,k->h", phi, case.query, case.key, phi))
    return float(np.mean(one[:, 1] - one[:, 0] * tilt)), float(np.mean((one[:, 2] - one[:, 0]) * tilt))


def measured_rates(case: Case, part: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """The same from the sum and the difference of two opposite tokens; how much halving the steps changes them."""
    time, across = float(part["time"][-1]), case.frame[:, 1:]
    begin, end = (np.einsum("md,dm->m", part["pair"].values[at], across) for at in (0, -1))
    change = HALVED * np.einsum("md,dm->m", part["pair_error"].values[-1], np.abs(across))
    return np.log(np.abs(end / begin)) / time, change / np.abs(end) / time


def _two_clusters(known: list[Case], short: xr.Dataset) -> Claim:
    rows, time = Rows(), float(short["time"][-1])
    for k in of_kind(known, "pair"):
        case = known[k]
        found, change = measured_rates(case, short.isel(case=k))
        large, small = (TIGHT * np.exp(f([*found, 0.0]) * time) for f in (np.max, np.min))
        slack = change + _stiffness(case) * large + 64e-16 / small / time
        rows.add(pair_rates(case), found, slack, [f"β = {case.beta:.3g}, {word}" for word in ("bending", "turning")])
    reason = "change by halving the steps; (2β|B| + 4)|V| times the disturbance; rounding"
    return rows.equal("Two antipodal clusters: rates at which they bend and turn", reason, origin=PAIRS)


def two_ended(parameters: Parameters, part: xr.Dataset) -> np.ndarray:
    """Which random starts have tokens near both phi and -phi in the end, (beta, draw)."""
    along = part["positions"].values[:, -1, :, 0]
    ends = (along.max(axis=1) > 0.9) & (along.min(axis=1) < -0.9)
    return ends.reshape(len(parameters.betas), -1)


def _ends(parameters: Parameters, part: xr.Dataset) -> Claim:
    unstable = np.flatnonzero((parameters.ratio - np.tanh(parameters.betas)) * parameters.end > ESCAPE)
    found = two_ended(parameters, part)[unstable].sum(axis=1)
    words = f"λ₂/λ₁ = {parameters.ratio:g} > tanh β: number of random starts that end in two clusters"
    reason = f"counted where a disturbance of two clusters would have grown by e^{ESCAPE:g}"
    labels, detail = [f"β = {parameters.betas[k]:g}" for k in unstable], f"{parameters.draws} starts each"
    return Claim.equal(words, 0, found, 0, reason, origin=PAIRS, labels=labels, detail=detail)
