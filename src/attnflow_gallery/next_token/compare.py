"""Information against cluster masses, the rest of the entropy against its dense limit, and closed forms."""

import functools

import numpy as np
import xarray as xr
from scipy.special import entr, logsumexp

from attnflow import theory
from attnflow.experiments import Claim, consequence, observed
from attnflow.experiments.kit import LEVEL, Rows
from attnflow_gallery.next_token.simulate import PROMPT, Parameters, evenly

STAIRCASE = consequence("Alternatives of clusters")
DENSE = consequence("Words that cover the sphere")
ORTHONORMAL = consequence("Orthonormal words")
SEEN = observed("Random words")
DIGITS = 5e-4
"""Three digits."""
APART = 0.5
"""Radians between clusters on plateaus of which three digits are claimed."""
ROUND = 1e-10
"""Logits of 400 are rounded at 1e-13, entropies are sums of 600 terms."""
SHARE, RISE, LEFT = 0.8, 1.0, 3.0
"""Of random prompts at least this share has H larger by a nat and fewer than 3 of 6 alternatives at the end."""


def overlap(masses: np.ndarray, centres: np.ndarray, words: np.ndarray, beta: float) -> float:
    """2 sum_{a<b} (M_a M_b)^(1/2) sum_w (p_a(w) p_b(w))^(1/2), which bounds H(M) - I."""
    logits = beta * centres @ words.T
    halves = np.exp((logits - logsumexp(logits, axis=1, keepdims=True)) / 2)
    both = np.sqrt(np.outer(masses, masses)) * (halves @ halves.T)
    return float(both.sum() - np.trace(both))


def plateaus(parameters: Parameters, part: xr.Dataset, read: int) -> list[tuple[int, float, float, float, float]]:
    """(number of clusters, H(M), I, largest H(M) - I, least angle of two clusters) of every plateau."""
    words, found = evenly(parameters.words), []
    for k in range(part.sizes["plateau"]):
        masses, at = part["mass"].values[k], int(part["frame"][k])
        there = masses > 0
        information = float(part["entropy"][read, at] - part["conditional_entropy"][read, at])
        centres = part["centre"].values[k, there]
        room = overlap(masses[there], centres, words, parameters.read[read])
        gram = centres @ centres.T - 3 * np.eye(len(centres))
        near = float(np.arccos(np.clip(gram.max(), -1, 1)))
        found.append((int(there.sum()), float(entr(masses[there]).sum()), information, room, near))
    return found


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """The staircase, the rest of the entropy, orthonormal words, random words."""
    return [
        *_staircase(parameters, data),
        _dense(parameters, data),
        *_orthonormal(parameters, data),
        _random(parameters, data),
    ]


def _staircase(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    bounds, digits = Rows(), Rows()
    for start in range(parameters.starts):
        for read, beta in enumerate(parameters.read):
            for count, masses, information, room, near in plateaus(parameters, data[f"stairs-{start}"], read):
                name = f"start {start}, β_o = {beta:g}, {count} clusters"
                bounds.add(masses - room / 2, information, room / 2 + ROUND, name)
                if not read and near >= APART:
                    digits.add(0.0, np.exp(information - masses) - 1, DIGITS, name)
    return [
        bounds.equal(
            "I on every plateau: from H(M) less the overlap of the clusters' distributions to H(M)",
            "half the overlap, to either side of the middle; rounding",
            origin=STAIRCASE,
        ),
        digits.equal(
            f"read-out at β_o = {parameters.read[0]:g}: exp(I) over exp H(M), less 1, on plateaus with clusters "
            f"{APART:g} or more apart",
            "three digits",
            origin=STAIRCASE,
        ),
    ]


def divergence(beta: float) -> float:
    """log V less the entropy of one token, for words that cover S^2: KL of the von Mises-Fisher distribution."""
    return float(beta / np.tanh(beta) - 1 - (beta + np.log(-np.expm1(-2 * beta)) - np.log(2 * beta)))


@functools.cache
def uneven(count: int, beta: float) -> float:
    """Largest error of `divergence` for `count` words on a spiral, over 20,000 places."""
    words, worst = evenly(count), 0.0
    for some in np.array_split(evenly(20_011), 20):
        logits = beta * some @ words.T
        logs = logits - logsumexp(logits, axis=1, keepdims=True)
        worst = max(worst, float(np.abs(-np.sum(np.exp(logs) * logs, axis=1) - np.log(count) + divergence(beta)).max()))
    return worst


def _dense(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows, beta = Rows(), parameters.read[-1]
    for start in range(parameters.starts):
        found = data[f"stairs-{start}"]["conditional_entropy"].values[-1]
        allowed = 1.01 * uneven(parameters.words, beta)
        rows.add(np.log(parameters.words) - divergence(beta), found, allowed, f"start {start}")
    return rows.equal(
        f"read-out at β_o = {beta:g}: H - I at all times is log V less the divergence of one token from uniform words",
        "how uneven the words are: largest error over 20,000 places, and 1 % for places between them",
        origin=DENSE,
    )


def closed_form(parameters: Parameters, gamma: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """H and exp(I) of n orthonormal words of V that have the common overlap gamma."""
    n, beta, count = len(PROMPT.split()), parameters.prompt_read, parameters.orthonormal
    along = np.sqrt((1 + (n - 1) * gamma) / n)
    across = np.sqrt(1 - along**2)
    own, other = along / np.sqrt(n) + across * np.sqrt(1 - 1 / n), (along - across / np.sqrt(n - 1)) / np.sqrt(n)
    weights = np.exp(beta * np.stack([own, other, 0 * own]))
    p, q, r = weights / (weights[0] + (n - 1) * weights[1] + (count - n) * weights[2])
    known = entr(p) + (n - 1) * entr(q) + (count - n) * entr(r)
    mean = (p + (n - 1) * q) / n
    entropy = n * entr(mean) + (count - n) * entr(r)
    return entropy, np.exp(entropy - known)


def predicted(parameters: Parameters, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """H and exp(I) of the closed form against time."""
    n = len(PROMPT.split())
    gamma = theory.uniform.equiangular_overlap(times, parameters.prompt_beta, n, model="SA")
    return closed_form(parameters, np.minimum(np.asarray(gamma), 1.0))


def _orthonormal(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    part, rows = data["orthonormal"], Rows()
    times = part["time"].values
    for name, expected in zip(("entropy", "alternatives"), predicted(parameters, times), strict=True):
        labels = [f"{name}, t = {t:.3g}" for t in times]
        rows.add(expected, part[name], 2 * part[f"{name}_error"].values.max() + ROUND, labels)
    value, start = part["entropy"].values, float(part["entropy"][0])
    rise = float(closed_form(parameters, np.ones(1))[0][0] - closed_form(parameters, np.zeros(1))[0][0])
    return [
        rows.equal(
            "orthonormal words: H and exp(I) against time, closed forms of the common overlap",
            "twice the error of order 4, from halving the step; rounding",
            origin=ORTHONORMAL,
        ),
        Claim.at_least(
            "orthonormal words: H at the end less H at the start, 99 % of the closed form at consensus",
            0.99 * rise,
            float(value[-1]) - start,
            0.0,
            "the end is near consensus",
            origin=ORTHONORMAL,
        ),
    ]


def _random(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    part = data["random"]
    rises = part["entropy"].values[:, -1] - part["entropy"].values[:, 0] >= RISE
    falls = part["alternatives"].values[:, -1] <= LEFT
    hits = int(np.sum(rises & falls))
    return Claim.at_least(
        f"random words: share of prompts whose H rises by {RISE:g} or more while exp(I) falls to {LEFT:g} or less",
        SHARE,
        hits / parameters.draws,
        0.0,
        f"counted in {parameters.draws} prompts; it fails by chance at the level {LEVEL:g} if the true share is 0.99",
        origin=SEEN,
        level=LEVEL,
        detail=f"{hits} of {parameters.draws}",
    )
