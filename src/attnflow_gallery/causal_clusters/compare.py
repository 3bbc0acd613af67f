"""Consensus at the first token, rates near it, numbers of centres, and what is gathered around them."""

import numpy as np
import xarray as xr
from scipy.integrate import quad

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import counted, student
from attnflow_gallery.causal_clusters.simulate import LARGE, TOLERANCE, Parameters

FIRST = published("karagodin2024causal", "convergence to the first token")
GATHERED = published("karagodin2024causal", "Rényi centres")
PAIR = consequence("The second token")
RATES = consequence("Rates near consensus")
COUNTS = consequence("Numbers of centres")
SCALE = consequence("The scale of large beta")
LEVEL = 1e-3
"""Probability that chance alone makes a claim fail, each."""
SMALL = 1e-5
"""Angles below are left out of the time of the second token: their relative rounding exceeds 1e-11."""

STEPS = 300
"""More than a flow needs until the angle of the second token is that small."""


def pair_time(first: float, last: float, beta: float) -> float:
    """The time in which token 2 comes from one angle to another: the integral of (1 + e^{beta (1 - cos)})/sin."""
    # in u = log tan(angle/2), where d angle/sin(angle) = du
    ends = np.log(np.tan(np.array([last, first]) / 2))
    tail = quad(lambda u: np.exp(beta * (1 + np.tanh(u))), *ends, epsabs=1e-13, epsrel=1e-13, limit=200)[0]
    return float(ends[1] - ends[0] + tail)


def pair_times(
    parameters: Parameters, part: xr.Dataset
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, list[str]]:
    """Times by the integral from the angles of token 2, the times of the flow, how far off they may be, angles, labels.

    The speed is at least angle/(2 (1 + e^{2 beta})) on the way, and a step errs by `TOLERANCE`.
    """
    integral, time, off, angles, labels = [], [], [], [], []
    for b, beta in enumerate(parameters.betas):
        for s in range(parameters.starts):
            rows = part["angle"].values[b, :, s, 1]
            for t, row in zip(part["time"].values[1:], rows[1:], strict=True):
                if row > SMALL:
                    integral.append(pair_time(rows[0], row, beta))
                    time.append(t)
                    off.append(STEPS * TOLERANCE * 2 * (1 + np.exp(2 * beta)) / row)
                    angles.append(row)
                    labels.append(f"beta = {beta:g}, t = {t:g}")
    return np.array(integral), np.array(time), np.array(off), np.array(angles), labels


def saturated(parameters: Parameters, angle: np.ndarray) -> np.ndarray:
    """Renyi centres among finitely many tokens: the limit less e^{-2 gamma} (2 pi/angle)^2/n (jamming on a line)."""
    return np.asarray(
        theory.causal.renyi_centres(angle)
        - np.exp(-2 * np.euler_gamma) * (2 * np.pi / angle) ** 2 / parameters.renyi_tokens
    )


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Late times, the linear regime, starts, and large beta."""
    return [
        *_consensus(parameters, data["consensus"]), _rates(parameters, data["near"]),
        _starts(parameters, data["starts"]), *_gathered(parameters, data), *_number(parameters, data),
    ]  # fmt: skip


def _consensus(parameters: Parameters, part: xr.Dataset) -> list[Claim]:
    last = part["angle"].values[:, -1]
    integral, time, off, _, labels = pair_times(parameters, part)
    return [
        Claim.at_most(
            "S²: at the end the angle of every token to the start of the first is", 0.0, np.max(last, axis=(1, 2)),
            1e-7, "from an angle of 1 at half of the time, e^(-t/4) is left of it, and some powers of t; rounding",
            origin=FIRST, labels=[f"beta = {beta:g}" for beta in parameters.betas],
        ),
        Claim.equal(
            "S²: token 2 takes the time of the integral to its angle with the first", integral, time,
            off, f"1e-11 a step, up to {STEPS} steps, over the least speed on the way",
            origin=PAIR, labels=labels,
        ),
    ]  # fmt: skip


def _rates(parameters: Parameters, part: xr.Dataset) -> Claim:
    rows, order, time = part["difference"].values, part["order"].values, part["time"].values
    predicted = rows[:, :1] * np.exp(-time[:, None] * order / (order + 1))[None, :, :, None]
    # p-th differences add 2^p terms; the next order is a cube of the distance, times 1 + beta
    cubic = 4 * 2.0**order * parameters.near**2 * (1 + max(parameters.betas)) + 2.0**order * 1e-15 / parameters.near
    off = np.max(np.abs(rows - predicted), axis=-1)
    return Claim.equal(
        "near consensus the p-th difference at the first token decays at the rate p/(p+1)", 0.0, off,
        np.broadcast_to(cubic, off.shape) + 1e-9,
        "cubes of the distance, 4 (1 + beta) times 2^p of them; 1e-11 a step", origin=RATES,
        labels=lambda at: f"beta = {parameters.betas[at[0]]:g}, t = {time[at[1]]:g}, p = {order[at[2]]}",
    )  # fmt: skip


def start_counts(parameters: Parameters, part: xr.Dataset) -> list[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """For every kind of centre: words, predicted and counted means by angle, and standard errors."""
    angle, n = part["angle"].values, parameters.strong_tokens
    predicted = {
        "strong-2": theory.causal.strong_centres(n, angle, 2),
        "strong-3": theory.causal.strong_centres(n, angle, 3),
        "renyi": saturated(parameters, angle),
    }
    words = {"strong-2": "strong, S¹", "strong-3": "strong, S²", "renyi": "Rényi, S¹"}
    found = []
    for name, row in predicted.items():
        counts = part[name].values
        found.append((words[name], row, counts.mean(axis=1), counts.std(axis=1, ddof=1) / np.sqrt(counts.shape[1])))
    return found


def _starts(parameters: Parameters, part: xr.Dataset) -> Claim:
    found, angles = start_counts(parameters, part), part["angle"].values
    allowed = student(LEVEL, parameters.draws, len(found) * len(angles))
    return Claim.equal(
        "uniform starts have the expected numbers of strong and of Rényi centres",
        np.array([row[1] for row in found]), np.array([row[2] for row in found]),
        allowed * np.array([row[3] for row in found]),
        f"Student's test over draws, level {LEVEL:g} for all", origin=COUNTS,
        labels=lambda at: f"{found[at[0]][0]}, angle {angles[at[1]]:g}",
    )  # fmt: skip


def _gathered(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    parts = [data[f"beta{beta:g}"] for beta in parameters.large_betas]
    moved = np.concatenate([part["moved"].values for part in parts])
    shared = np.concatenate([part["shared"].values for part in parts])
    low, labels = [], [f"beta = {beta:g}" for beta in parameters.large_betas]
    for part in parts:
        rows = part["at_centres"].values
        error = rows.std(ddof=1) / np.sqrt(len(rows))
        low.append(rows.mean() - student(LEVEL, len(rows), len(parts)) * error)
    return [
        Claim.at_most(
            f"large beta: until t = {parameters.until:g} no strong centre moves by more than delta/4, times √beta",
            LARGE / 4, moved, 0.0, "delta/4 is far from where two centres meet", origin=GATHERED,
            detail=f"prompts in which all stay: {counted(moved <= LARGE / 4)}",
        ),
        Claim.at_most(
            "large beta: pairs of strong centres of one prompt that are in one cluster", 0.0, shared, 0.0, "counted",
            origin=GATHERED, detail=f"prompts without one: {counted(shared == 0)}",
        ),
        Claim.at_least(
            "large beta: share of tokens within 0.3 beta^(-1/2) of a Rényi centre, lower bound", 0.9, low, 0.0,
            f"Student's test over prompts, level {LEVEL:g} for all", origin=GATHERED, labels=labels,
        ),
    ]  # fmt: skip


def per_root(parameters: Parameters, data: dict[str, xr.Dataset], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Mean counts over sqrt(beta) by beta, and their standard errors."""
    rows = [data[f"beta{beta:g}"][name].values / np.sqrt(beta) for beta in parameters.large_betas]
    return np.array([row.mean() for row in rows]), np.array([row.std(ddof=1) / np.sqrt(len(row)) for row in rows])


def _number(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    betas = np.array(parameters.large_betas)
    (mean, error), (parked, parked_error) = (per_root(parameters, data, name) for name in ("clusters", "renyi"))
    allowed = student(LEVEL, min(parameters.prompts), len(betas))
    return [
        Claim.equal(
            "large beta: clusters over √beta, at n ∝ √beta, are those of the smallest beta", mean[0], mean[1:],
            allowed * np.hypot(error[0], error[1:]) + mean[0] / betas[0],
            f"Student's test, level {LEVEL:g} for all; curvature, a share 1/beta", origin=SCALE,
            labels=[f"beta = {beta:g}" for beta in betas[1:]],
        ),
        Claim.equal(
            f"large beta: clusters at t = {parameters.until:g} over Rényi centres with delta = {LARGE:g} beta^(-1/2)",
            1.0, mean / parked, 0.1 + allowed * mean / parked * np.hypot(error / mean, parked_error / parked),
            f"a tenth, since {LARGE:g} is a rounded number; Student's test, level {LEVEL:g} for all", origin=GATHERED,
            labels=[f"beta = {beta:g}" for beta in betas],
        ),
    ]  # fmt: skip
