"""Networks of finite steps against exact means and first errors."""

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence
from attnflow.experiments.kit import LEVEL, Effects, Rows, student
from attnflow_gallery.homogenisation_rate.simulate import BLOCK, EIGENVALUES, PAIRS, Parameters

ONE = consequence("One token")
TWO = consequence("Two tokens with a mean of V")
CONSENSUS = consequence("The consensus under a mean of V")
APART = 2
"""From d = 4: at d = 3 the error is 4 to 20 times smaller than at d = 2, too small for its sign to be seen."""


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """One token, the sign of its error, two tokens, the consensus."""
    return [*_one(parameters, data), _two(parameters, data), _consensus(parameters, data["consensus"])]


def _one(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    exact, steps = Rows(), np.array(parameters.steps)
    sign = Effects(BLOCK, parameters.expected_error)
    allowed = student(LEVEL, BLOCK, len(parameters.dims) * len(steps))
    for d in parameters.dims:
        mean, error = data[f"one-{d}"]["mean"].values, data[f"one-{d}"]["error"].values
        labels = [f"d = {d}, η² = {step:g}" for step in steps]
        exact.add(theory.random_layers.single_token_overlap(steps, parameters.time, d=d), mean, allowed * error, labels)
        limit, slope = theory.random_layers.single_token_limit(parameters.time, d=d)
        if abs(d - 4) >= APART:
            off = np.sign(float(slope)) * (mean - float(limit))
            sign.add(0.0, off[0], error[0], labels[0])
    test = f"Student's test over networks, level {LEVEL:g}"
    return [
        exact.equal(
            f"one token at τ = {parameters.time:g}: E⟨x_L, x_0⟩, a power of the mean cosine of a layer",
            f"{test} for all dimensions and steps",
            origin=ONE,
            level=LEVEL,
        ),
        sign.above(
            f"one token, η² = {steps[0]:g}, |d − 4| ≥ {APART}: the error of the limit has the sign of d − 4, its size",
            "Student's test over networks",
            origin=ONE,
        ),
    ]


def _two(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows, step = Rows(), parameters.pair_step
    allowed = student(LEVEL, BLOCK, len(parameters.pairs))
    for k in parameters.pairs:
        one, part = PAIRS[k], data[f"pair-{k}"]
        slopes = theory.random_layers.pair_layer_error(one.time, one.overlap, one.v, d=one.d)
        ode = np.tanh(np.arctanh(one.overlap) + one.v * one.time)
        expected = float(slopes.euler + slopes.noise / one.heads)
        found, error = (float(part["mean"]) - ode) / step, float(part["error"]) / step
        label = f"d = {one.d}, H = {one.heads}, v = {one.v:g}, T = {one.time:g}, R(0) = {one.overlap:g}"
        rows.add(expected, found, allowed * error + 0.3 * step, label)
    return rows.equal(
        f"two tokens, E V = vI, η = {step:g}: (E R − R of the ODE)/η",
        f"Student's test over networks, level {LEVEL:g}; the next order, 0.3 η (three times that of an exact chain)",
        origin=TWO,
        level=LEVEL,
    )


def _consensus(parameters: Parameters, part: xr.Dataset) -> Claim:
    step, rows = parameters.consensus_step, Rows()
    expected = theory.random_layers.consensus_fluctuation(EIGENVALUES, step)
    allowed = student(LEVEL, BLOCK, len(expected)) * part["error"].values
    # what is left of the start decays by 2 (l_1 - l_k) over all layers
    rest = np.exp(-2 * (EIGENVALUES[0] - np.array(EIGENVALUES[1:])) * step * parameters.consensus_layers)
    rows.add(expected, part["mean"], allowed + (step + rest) * expected, ["along e_2", "along e_3"])
    return rows.equal(
        f"E V = diag(1, 1/2, 0), η = {step:g}: variance of the consensus around e_1",
        f"Student's test over networks, level {LEVEL:g}; the next order of η, and what is left of the start",
        origin=CONSENSUS,
        level=LEVEL,
    )
