"""Rows at the end, the decay of weights, and exact starts."""

import math

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import EPS
from attnflow.observe import boolean_rows
from attnflow_gallery.boolean_attention.simulate import Parameters, exact

LIMIT = published("geshkovski2023emergence")
DECAY = consequence("Weights on others vanish doubly exponentially")
TRIPLES = consequence("Two clusters and a token at 0")
BOOLEAN = 1e-6
"""Up to which a weight counts as 0 or 1."""
DECIDED = 25.0
"""Gaps count as frozen where all weights but the leader's are below e^(-25)."""
SMALLEST = 650.0
"""Weights below e^(-650) are close to the smallest floating-point numbers."""


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Rows at the end of random and of symmetric starts, the decay of weights, and exact solutions."""
    return [_rows(parameters, data), _free(parameters, data["exact"]), _decay(parameters, data),
            *_triples(parameters, data["exact"])]  # fmt: skip


def _rows(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    """Of every row, the sum of all weights but that on the outermost token on its side of 0."""
    rows, names = [], []
    for n in parameters.sizes:
        part = data[f"n{n}"]
        for k, (z, matrix) in enumerate(zip(part["fine"].values[-1], part["end"].values, strict=True)):
            followed = np.where(z > 0, np.argmax(z), np.argmin(z))
            rows += list(np.sum(np.where(np.arange(n) == followed[:, None], 0.0, matrix), axis=1))
            names += [f"n = {n}, start {k}, row {i}" for i in range(n)]
    return Claim.at_most(
        "Random starts: weight of a row on tokens other than the outermost on its side of 0", 0.0, np.array(rows),
        BOOLEAN, "gaps above 2e-6 are resolved by the time of the end; see the derivation", origin=LIMIT, labels=names,
    )  # fmt: skip


def look(part: xr.Dataset, start: int, known: tuple[float, float, float, float]) -> tuple[int, float, float]:
    """The frame at which an exact start is looked at, and u = QK x^2 and the delay there by the exact solution."""
    radius, value, product, mass = known
    frame = int(part["look"][start])
    time = float(part["time"][frame])
    lag = theory.landscape.pair_delay([[value]], [math.sqrt(product) * radius], time, middle=mass)
    return frame, product * radius**2 * math.exp(2 * value * (time - lag)), lag


def _free(parameters: Parameters, part: xr.Dataset) -> Claim:
    found, names = [], []
    for k, known in enumerate(exact(parameters)):
        if known[3] > 0:
            frame, u, _ = look(part, k, known)
            found.append(int(np.sum(~boolean_rows(part["matrix"].values[k], BOOLEAN))))
            names.append(f"{_label(known)}, t = {part['time'].values[frame]:g}, QK x² = {u:.3g}")
    return Claim.equal(
        "Tokens at -a, 0 and a: number of rows that are not Boolean", 1, np.array(found), 0,
        f"counted; Boolean: all weights are 0 or 1 up to {BOOLEAN:g}", origin=LIMIT, labels=names,
    )  # fmt: skip


def _label(known: tuple[float, float, float, float]) -> str:
    return "a = {:g}, V = {:g}, QK = {:g}, mass at 0 {:g}".format(*known)


def decay(n: int, parameters: Parameters, part: xr.Dataset) -> xr.Dataset:
    """-log of the weight that rows give to others than their leader, `span` after `look`: measured and predicted.

    The prediction takes positions at `look` and lets the leader grow by e^span and the gaps stay.
    """
    frame, factor = int(np.argmin(np.abs(part["time"].values - parameters.look))), math.exp(parameters.span)
    found: dict[str, list[float]] = {"measured": [], "predicted": [], "tolerance": []}
    for k, matrix in enumerate(part["later"].values):
        x, rough = (np.exp(parameters.look) * part[name].values[frame, k] for name in ("fine", "coarse"))
        for side in (x > 0, x < 0):
            if side.sum() < 2:
                continue
            now, then, other = (exponents(np.abs(p[side]), f) for p, f in ((x, 1.0), (x, factor), (rough, factor)))
            if now.min() < DECIDED:
                continue
            leader = np.flatnonzero(side)[np.argmax(np.abs(x[side]))]
            left = np.where(np.arange(n) == leader, 0.0, matrix[side]).sum(axis=1)
            keep = (then < SMALLEST) & (left > 0)
            # a gap moves by at most n e^(-25) max |x| in the time, and logits round by a few eps x^2
            slack = np.abs(other - then) + (factor * np.abs(x).max()) ** 2 * (n * math.exp(-DECIDED) + 64 * EPS)
            measured = -np.log(np.where(keep, left, 1.0))
            for name, row in zip(found, (measured, then, slack), strict=True):
                found[name] += list(row[keep])
    return xr.Dataset({name: ("row", np.array(values)) for name, values in found.items()})


def exponents(size: np.ndarray, factor: float) -> np.ndarray:
    """-log sum_k e^(-x_i D_k) over all but the leader, whose position has grown by `factor` while the gaps D stay."""
    gaps = np.max(size) - size
    grown = factor * np.max(size) - gaps
    rest = np.delete(gaps, np.argmax(size))
    return -np.logaddexp.reduce(-np.multiply.outer(grown, rest), axis=1)


def _decay(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows = [decay(n, parameters, data[f"n{n}"]) for n in parameters.sizes]
    names = [f"n = {n}" for n, one in zip(parameters.sizes, rows, strict=True) for _ in range(one.sizes["row"])]
    predicted, measured, tolerance = (
        np.concatenate([one[name].values for one in rows]) for name in ("predicted", "measured", "tolerance")
    )
    return Claim.equal(
        f"Random starts: -log of the weights on others, {parameters.span:g} after gaps froze", predicted, measured,
        tolerance, "change by halving the steps; motion of gaps, below e^(-25); rounding of logits",
        origin=DECAY, labels=names,
    )  # fmt: skip


def _triples(parameters: Parameters, part: xr.Dataset) -> list[Claim]:
    """-log of the weight of one cluster on the other, z, and the row of the token at 0."""
    weights, places, rows = [], [], []
    for k, known in enumerate(exact(parameters)):
        radius, _, _, mass = known
        frame, u, lag = look(part, k, known)
        z, error = part["fine"].values[frame, k, -1], float(part["error"][frame, k])
        place = radius * math.exp(-known[1] * lag)
        label = f"{_label(known)}, t = {part['time'].values[frame]:g}"
        log_weight = 2 * u + math.log1p(math.exp(-2 * u) + 2 * mass * math.exp(-u))
        measured = -math.log(max(part["matrix"].values[k, 0, -1], 1e-300))
        weights.append((log_weight, measured, 4 * u * error / abs(z) + 1e-11 * (1 + 4 * u), label))
        places.append((place, z, error + 1e-11, label))
        # rounding errors of a, relative to z, grow at the rate 2 m V u, du/dt = 2 V u, 2 m the share of outer tokens
        slack = 64 * EPS * radius / abs(z) * (1 + u) * math.exp(min(u / (2 + 2 * mass), SMALLEST))
        rows.append((1 / (2 + 2 * mass), part["matrix"].values[k, 1, 0], slack, label))
    steps = "change by halving the steps; error of the integral"
    return [
        _of_triples("Tokens at -a, 0 and a: -log of the weight of one outer token on the other", weights, steps),
        _of_triples("Tokens at -a, 0 and a: |z| of the outer tokens", places, steps),
        _of_triples(
            "Tokens at -a, 0 and a: weight of the token at 0 on an outer token, its share in the mass", rows,
            "growth of rounding errors",
        ),
    ]  # fmt: skip


def _of_triples(words: str, rows: list[tuple[float, float, float, str]], reason: str) -> Claim:
    predicted, measured, slack = np.array([row[:3] for row in rows]).T
    names = [row[3] for row in rows]
    return Claim.equal(words, predicted, measured, slack, reason, origin=TRIPLES, labels=names)
