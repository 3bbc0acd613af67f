"""Rows at the end, the decay of weights, and exact starts."""

import math

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import EPS, Rows
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
    exact = data["exact"]
    return [_rows(parameters, data), _free(parameters, exact), _decay(parameters, data), *_triples(parameters, exact)]


def _rows(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    """Of every row, the sum of all weights but that on the outermost token on its side of 0."""
    rows = Rows()
    for n in parameters.sizes:
        part = data[f"n{n}"]
        for k, (z, matrix) in enumerate(zip(part["z"].values[-1], part["end"].values, strict=True)):
            followed = np.where(z > 0, np.argmax(z), np.argmin(z))
            others = np.sum(np.where(np.arange(n) == followed[:, None], 0.0, matrix), axis=1)
            rows.add(0.0, others, BOOLEAN, [f"n = {n}, start {k}, row {i}" for i in range(n)])
    words = "Random starts: weight of a row on tokens other than the outermost on its side of 0"
    reason = "gaps above 2e-6 are resolved by the time of the end; see the derivation"
    return rows.at_most(words, reason, origin=LIMIT)


def look(part: xr.Dataset, start: int, known: tuple[float, float, float, float]) -> tuple[int, float, float]:
    """The frame at which an exact start is looked at, and u = QK x^2 and the delay there by the exact solution."""
    radius, value, product, mass = known
    frame = int(part["look"][start])
    time = float(part["time"][frame])
    lag = theory.landscape.pair_delay([[value]], [math.sqrt(product) * radius], t=time, middle=mass)
    return frame, product * radius**2 * math.exp(2 * value * (time - lag)), lag


def _free(parameters: Parameters, part: xr.Dataset) -> Claim:
    rows = Rows()
    for k, known in enumerate(exact(parameters)):
        if known[3] > 0:
            frame, u, _ = look(part, k, known)
            label = f"{_label(known)}, t = {part['time'].values[frame]:g}, QK x² = {u:.3g}"
            rows.add(1, np.sum(~boolean_rows(part["matrix"].values[k], BOOLEAN)), 0, label)
    reason = f"counted; Boolean: all weights are 0 or 1 up to {BOOLEAN:g}"
    return rows.equal("Tokens at -a, 0 and a: number of rows that are not Boolean", reason, origin=LIMIT)


def _label(known: tuple[float, float, float, float]) -> str:
    return "a = {:g}, V = {:g}, QK = {:g}, mass at 0 {:g}".format(*known)


def _add_decay(rows: Rows, n: int, parameters: Parameters, part: xr.Dataset) -> None:
    """-log of the weight that rows give to others than their leader, `span` after `look`: measured and predicted.

    The prediction takes positions at `look` and lets the leader grow by e^span and the gaps stay.
    """
    here, factor = part.sel(time=parameters.look, method="nearest"), math.exp(parameters.span)
    for k, matrix in enumerate(part["later"].values):
        x, error = (math.exp(parameters.look) * here[name].values[k] for name in ("z", "error"))
        widest = np.abs(x).max()
        for side in (x > 0, x < 0):
            if side.sum() < 2 or exponents(np.abs(x[side]), 1.0).min() < DECIDED:
                continue
            then = exponents(np.abs(x[side]), factor)
            leader = np.flatnonzero(side)[np.argmax(np.abs(x[side]))]
            left = np.where(np.arange(n) == leader, 0.0, matrix[side]).sum(axis=1)
            keep = ~(then >= SMALLEST) & ~(left <= 0)  # what is not a number is kept, and makes the claim fail
            # errors of positions change gaps by 2 of them, and grown positions by 2 + factor
            moved = (3 * factor + 2) * widest * error
            # a gap moves by at most n e^(-25) max |x| in the time, and logits round by a few eps x^2
            slack = moved + (factor * widest) ** 2 * (n * math.exp(-DECIDED) + 64 * EPS)
            rows.add(then[keep], -np.log(left[keep]), slack, f"n = {n}")


def exponents(size: np.ndarray, factor: float) -> np.ndarray:
    """-log sum_k e^(-x_i D_k) over all but the leader, whose position has grown by `factor` while the gaps D stay."""
    gaps = np.max(size) - size
    grown = factor * np.max(size) - gaps
    rest = np.delete(gaps, np.argmax(size))
    return -np.logaddexp.reduce(-np.multiply.outer(grown, rest), axis=1)


def _decay(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows = Rows()
    for n in parameters.sizes:
        _add_decay(rows, n, parameters, data[f"n{n}"])
    words = f"Random starts: -log of the weights on others, {parameters.span:g} after gaps froze"
    reason = "change by halving the steps; motion of gaps, below e^(-25); rounding of logits"
    return rows.equal(words, reason, origin=DECAY)


def _triples(parameters: Parameters, part: xr.Dataset) -> list[Claim]:
    """-log of the weight of one cluster on the other, z, and the row of the token at 0."""
    weights, places, shares = Rows(), Rows(), Rows()
    for k, known in enumerate(exact(parameters)):
        radius, value, _, mass = known
        frame, u, lag = look(part, k, known)
        z, error, matrix = part["z"].values[frame, k, -1], float(part["error"][frame, k]), part["matrix"].values[k]
        label = f"{_label(known)}, t = {part['time'].values[frame]:g}"
        log_weight = 2 * u + math.log1p(math.exp(-2 * u) + 2 * mass * math.exp(-u))
        measured = -math.log(max(matrix[0, -1], 1e-300))
        weights.add(log_weight, measured, 4 * u * error / abs(z) + 1e-11 * (1 + 4 * u), label)
        places.add(radius * math.exp(-value * lag), z, error + 1e-11, label)
        # rounding errors of a, relative to z, grow at the rate 2 m V u, du/dt = 2 V u, 2 m the share of outer tokens
        slack = 64 * EPS * radius / abs(z) * (1 + u) * math.exp(min(u / (2 + 2 * mass), SMALLEST))
        shares.add(1 / (2 + 2 * mass), matrix[1, 0], slack, label)
    where, steps = "Tokens at -a, 0 and a", "change by halving the steps; error of the integral"
    share = f"{where}: weight of the token at 0 on an outer token, its share in the mass"
    return [
        weights.equal(f"{where}: -log of the weight of one outer token on the other", steps, origin=TRIPLES),
        places.equal(f"{where}: |z| of the outer tokens", steps, origin=TRIPLES),
        shares.equal(share, "growth of rounding errors", origin=TRIPLES),
    ]
