"""Consensus at the first token, rates near it, numbers of centres, and what is gathered around them."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import xarray as xr
from scipy.integrate import quad

from attnflow import theory
from attnflow.experiments import Claim, consequence, observed, reported
from attnflow.experiments.kit import LEVEL, Effects, Rows, averaged, counted, student
from attnflow_gallery.causal_clusters.simulate import LARGE, TOLERANCE, Parameters

FIRST = reported("karagodin2024causal", "Theorem 4.1 by the abstract: convergence to the first token")
STRONG = reported("karagodin2024causal", "Lemma 5.1 by a review: strong Rényi centres stay")
SEEN = observed("Seen, not derived")
PAIR = consequence("The second token")
RATES = consequence("Rates near consensus")
COUNTS = consequence("Numbers of centres")
SCALE = consequence("The scale of large beta")
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


def allowed_time(beta: Any, angle: Any) -> Any:
    """What the time of token 2 may be off: errors of steps over the speed, at least angle/(2 (1 + e^{2 beta}))."""
    return STEPS * TOLERANCE * 2 * (1 + np.exp(2 * beta)) / angle


def pair_times(parameters: Parameters, part: xr.Dataset) -> np.ndarray:
    """(4, row): beta, time of the flow, angle of token 2, and the time that the integral gives for this angle."""
    rows = []
    for beta, angles in zip(parameters.betas, part["angle"].values[..., 1], strict=True):
        for t, row in zip(part["time"].values[1:], angles[1:], strict=True):
            both = zip(angles[0], row, strict=True)
            rows += [(beta, t, last, pair_time(first, last, beta)) for first, last in both if last > SMALL]
    return np.reshape(rows, (-1, 4)).T


def saturated(parameters: Parameters, angle: np.ndarray) -> np.ndarray:
    """Renyi centres among finitely many tokens: the limit less e^{-2 gamma} (2 pi/angle)^2/n (jamming on a line)."""
    share = (2 * np.pi / angle) ** 2 / parameters.renyi_tokens
    return np.asarray(theory.causal.renyi_centres(angle) - np.exp(-2 * np.euler_gamma) * share)


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Late times, the linear regime, starts, and large beta."""
    return [
        *_consensus(parameters, data["consensus"], data["keys"]),
        _rates(parameters, data["near"]),
        _starts(parameters, data["starts"]),
        *_gathered(parameters, data),
        *_number(parameters, data),
    ]


def _betas(values: Iterable[float]) -> list[str]:
    return [f"beta = {beta:g}" for beta in values]


def _consensus(parameters: Parameters, part: xr.Dataset, keys: xr.Dataset) -> list[Claim]:
    ends, pairs = Rows(), Rows()
    ends.add(0.0, part["angle"].values[:, -1].max(axis=(1, 2)), 1e-7, _betas(parameters.betas))
    random = [f"{beta}, random Q and K" for beta in _betas(parameters.betas)]
    ends.add(0.0, keys["angle"].values.max(axis=(1, 2, 3)), 1e-7, random)
    beta, time, angle, integral = pair_times(parameters, part)
    off = allowed_time(beta, angle)
    pairs.add(integral, time, off, [f"beta = {b:g}, t = {t:g}" for b, t in zip(beta, time, strict=True)])
    late = "token 2 needs the time (1 + e^(2 beta)) log(1/e) from the angle π − e, and then falls as e^(-t/2); rounding"
    steps = f"1e-11 a step, up to {STEPS} steps, over the least speed on the way"
    return [
        ends.at_most(
            "S²: at the end the angle of every token to the start of the first is, also with random Q and K",
            late,
            origin=FIRST,
        ),
        pairs.equal("S²: token 2 takes the time of the integral to its angle with the first", steps, origin=PAIR),
    ]


def _rates(parameters: Parameters, part: xr.Dataset) -> Claim:
    found, order, time = part["difference"].values, part["order"].values, part["time"].values
    predicted = found[:, :1] * np.exp(-time[:, None] * order / (order + 1))[None, :, :, None]
    # p-th differences add 2^p terms; the next order is a cube of the distance, times 1 + beta
    cubic = 4 * 2.0**order * parameters.near**2 * (1 + max(parameters.betas)) + 2.0**order * 1e-15 / parameters.near
    rows = Rows()
    labels = [f"{beta}, t = {t:g}, p = {p}" for beta in _betas(parameters.betas) for t in time for p in order]
    rows.add(0.0, np.max(np.abs(found - predicted), axis=-1), cubic + 1e-9, labels)
    statement = "near consensus the p-th difference at the first token decays at the rate p/(p+1)"
    return rows.equal(statement, "cubes of the distance, 4 (1 + beta) times 2^p of them; 1e-11 a step", origin=RATES)


def start_counts(parameters: Parameters, part: xr.Dataset) -> list[tuple[str, np.ndarray, np.ndarray, np.ndarray]]:
    """For every kind of centre: words, predicted and counted means by angle, and standard errors."""
    angle, n = part["angle"].values, parameters.strong_tokens
    kinds = {
        "strong-2": ("strong, S¹", theory.causal.strong_centres(n=n, angle=angle, d=2)),
        "strong-3": ("strong, S²", theory.causal.strong_centres(n=n, angle=angle, d=3)),
        "renyi": ("Rényi, S¹", saturated(parameters, angle)),
    }
    return [(words, predicted, *averaged(part[name], axis=1)) for name, (words, predicted) in kinds.items()]


def _starts(parameters: Parameters, part: xr.Dataset) -> Claim:
    found, angles, rows = start_counts(parameters, part), part["angle"].values, Rows()
    allowed = student(LEVEL, parameters.draws, len(found) * len(angles))
    for words, predicted, mean, error in found:
        rows.add(predicted, mean, allowed * error, [f"{words}, angle {angle:g}" for angle in angles])
    statement = "uniform starts have the expected numbers of strong and of Rényi centres"
    return rows.equal(statement, f"Student's test over draws, level {LEVEL:g} for all", origin=COUNTS, level=LEVEL)


def _gathered(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    parts = [data[f"beta{beta:g}"] for beta in parameters.large_betas]
    moved, shared = (np.concatenate([part[name].values for part in parts]) for name in ("moved", "shared"))
    centres, pairs, words = Rows(), Rows(), []
    closer = Effects(min(parameters.prompts), parameters.expected_share)
    for part, label in zip(parts, _betas(parameters.large_betas), strict=True):
        centres.add(LARGE / 4, part["moved"], 0.0, label)
        pairs.add(0.0, part["shared"], 0.0, label)
        closer.add(0.0, *averaged(part["at_centres"].values - part["at_random"].values), label)
        words.append(f"{float(part['at_centres'].mean()):.3f} against {float(part['at_random'].mean()):.3f}")
    return [
        centres.at_most(
            f"large beta: until t = {parameters.until:g} no strong centre moves by more than delta/4, times √beta",
            "delta/4 is far from where two centres meet",
            origin=STRONG,
            level=LEVEL,
            detail=f"prompts in which all stay: {counted(moved <= LARGE / 4)}",
        ),
        pairs.at_most(
            "large beta: pairs of strong centres of one prompt that are in one cluster",
            "counted",
            origin=STRONG,
            level=LEVEL,
            detail=f"prompts without one: {counted(shared == 0)}",
        ),
        closer.above(
            f"large beta: share of tokens in the final clusters of Rényi centres, delta = {LARGE:g} beta^(-1/2), less "
            "that for as many random tokens: lower bound",
            "Student's test over prompts; the mean over random tokens is exact",
            origin=SEEN,
            detail=", ".join(words),
        ),
    ]


def per_root(parameters: Parameters, data: dict[str, xr.Dataset], name: str) -> np.ndarray:
    """(2, beta): mean counts over sqrt(beta), and their standard errors."""
    parts = [data[f"beta{beta:g}"][name] / np.sqrt(beta) for beta in parameters.large_betas]
    return np.transpose([averaged(part) for part in parts])


def _number(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    betas, same, parked = np.array(parameters.large_betas), Rows(), Rows()
    (mean, error), (renyi, renyi_error) = (per_root(parameters, data, name) for name in ("clusters", "renyi"))
    allowed, ratio = student(LEVEL, min(parameters.prompts), len(betas)), mean / renyi
    same.add(mean[0], mean[1:], allowed * np.hypot(error[0], error[1:]) + mean[0] / betas[0], _betas(betas[1:]))
    parked.add(1.0, ratio, 0.1 + allowed * ratio * np.hypot(error / mean, renyi_error / renyi), _betas(betas))
    test = f"Student's test, level {LEVEL:g} for all"
    return [
        same.equal(
            "large beta: clusters over √beta, at n ∝ √beta, are those of the smallest beta",
            f"{test}; curvature, a share 1/beta",
            origin=SCALE,
            level=LEVEL,
        ),
        parked.equal(
            f"large beta: clusters at t = {parameters.until:g} over Rényi centres with delta = {LARGE:g} beta^(-1/2)",
            f"a tenth, since {LARGE:g} is a rounded number; {test}",
            origin=SEEN,
            level=LEVEL,
        ),
    ]
