"""Thresholds, the kind of the transition, growth on both sides of kappa_c, and fluctuations of tokens."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import ive

from attnflow import theory
from attnflow.experiments import NUMERICS, Claim, consequence, published
from attnflow.experiments.kit import LEVEL, Rows, averaged, student
from attnflow_gallery.noisy_transition.simulate import RELAXED, Parameters, onset_of

JUMP = published("mun2026sphere")
ONSET = published("balasubramanian2025stationary")
THIRD = consequence("The third order decides")
FREE = consequence("Fluctuations without order")
ORDERED = consequence("Tokens in the ordered state")


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """beta* and kappa_c; the third order; tokens with and without order; the equation."""
    rows = compare(parameters, data)
    return [
        _jump(parameters, data["jump"]),
        _growth(parameters, data),
        _kind(parameters, data),
        _third(parameters, data),
        _with_order(parameters, rows),
        _without_order(parameters, rows),
        _equation(rows),
    ]


def compare(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[dict[str, Any]]:
    """One row per noise at which tokens were followed: m^2 by theory and by tokens, and its tolerance."""
    rows = []
    for model, beta in parameters.cases:
        part, onset = data[f"flows-{model}-beta{beta:g}"], onset_of(model, beta)
        for k in range(part.sizes["point"]):
            one: dict[str, Any] = {
                str(n): float(part[n][k]) for n in part.data_vars if n not in ("squares", "squares_counts")
            }
            row = one | {"model": model, "beta": beta, "onset": onset, "ordered": bool(one["ordered"])}
            row["found"], row["error"] = map(
                float, averaged(part["squares"].values[k, : int(part["squares_counts"][k])])
            )
            rows.append(row | (ordered if row["ordered"] else free)(parameters, row))
    return rows


def _seeds(parameters: Parameters, row: dict[str, Any]) -> int:
    """How many seeds a row has; rows with fewer than others are filled up with NaN."""
    return parameters.ordered_seeds if row["ordered"] else parameters.free_seeds


def _points(parameters: Parameters) -> int:
    """At least as many tests as a claim about m^2 has."""
    return len(parameters.cases) * sum(map(len, (parameters.below, parameters.between, parameters.above)))


def ordered(parameters: Parameters, row: dict[str, Any]) -> dict[str, float]:
    """m^2 of the branch, and the tolerance of tokens in the ordered state."""
    square, n = row["order"] ** 2, parameters.ordered_tokens
    left = np.exp(-parameters.ordered_burn) * abs(row["begin"] ** 2 - square)
    kick = row["kappa"] * parameters.ordered_step  # frames lie half a kick away from the symmetric scheme
    finite = 4 * row["kappa"] / (row["rate"] * n)
    allowed = student(LEVEL, parameters.ordered_seeds, _points(parameters))
    tolerance = allowed * row["error"] + abs(row["shifted"] ** 2 - square) + kick * square + left + finite
    return {"square": square, "tolerance": tolerance}


def free(parameters: Parameters, row: dict[str, Any]) -> dict[str, float]:
    """kappa/((kappa - (1 - w) kappa_c) n), and the tolerance: the variance of m^2 over seeds and frames is known."""
    kappa, n = row["kappa"], parameters.free_tokens
    own = 1 / (n * ive(0, row["beta"])) if row["model"] == "SA" else 0.0  # the weight of a token to itself
    onset = row["onset"] * (1 - own)
    square = kappa / ((kappa - onset) * n)
    count, gap = parameters.frames, parameters.free_window / parameters.frames / row["onset"]
    lags = np.arange(1, count)
    again = np.exp(-2 * (kappa - onset) * gap * lags)  # the correlation of m^2 after so many frames
    variance = (1 + 2 * np.sum((1 - lags / count) * again)) / count
    # the variance is known
    sampling = student(LEVEL, 10**9, _points(parameters)) * np.sqrt(variance / parameters.free_seeds)
    burnt = np.exp(-2 * (kappa - onset) * parameters.free_burn / row["onset"]) * abs(row["begin"] ** 2 / square - 1)
    h = parameters.step / row["onset"]
    stepped = np.expm1(-2 * kappa * h) / (n * ((1 + onset * h) ** 2 * np.exp(-2 * kappa * h) - 1))
    third = 4 * abs(theory.uniform.landau_coefficient(row["beta"], model=row["model"])) / (kappa - onset) * square
    return {"square": square, "tolerance": square * float(sampling + burnt + abs(stepped / square - 1) + 2 * third)}


def _jump(parameters: Parameters, part: xr.Dataset) -> Claim:
    coarse, fine = part["beta"].values.T
    rows = Rows()
    labels = [f"d = {d}" for d in parameters.dims]
    rows.add(theory.uniform.jump_threshold(parameters.dims), fine, np.abs(fine - coarse), labels)
    statement = "USA0: the transition becomes a jump at the β* with I_{d/2+1}(β*)/I_{d/2}(β*) = 1/d"
    reason = "what halving the amplitude changes: the error is of fourth order in it"
    return rows.equal(statement, reason, origin=JUMP)


def _growth(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows = Rows()
    for case in parameters.cases:
        rate, error = growth_rates(parameters, data, case)
        # Euler's rule changes the rate kappa_c of the drift by a share kappa_c h/2; correlations of tokens by about 4/n
        each = student(LEVEL, parameters.growth_seeds, len(parameters.cases) * len(parameters.growing))
        allowed = each * error + parameters.step / 2 + 4 / parameters.growth_tokens
        labels = [f"{_case(*case)}, κ = {share:g} κ_c" for share in parameters.growing]
        rows.add(1 - np.array(parameters.growing), rate, allowed, labels)
    statement = "tokens on both sides of κ_c: a small m grows at the rate κ_c − κ, in units of κ_c"
    return rows.equal(
        statement, f"Student's test over seeds, level {LEVEL:g} for all; the step, 4/n", origin=ONSET, level=LEVEL
    )


def growth_rates(
    parameters: Parameters, data: dict[str, xr.Dataset], case: tuple[str, float]
) -> tuple[np.ndarray, np.ndarray]:
    """The rate at which m(t) grows in units of kappa_c, for every noise, and its standard error."""
    model, beta = case
    mean, error = averaged(data[f"growth-{model}-beta{beta:g}"]["gain"], axis=1)
    return np.log(mean) / parameters.growth_time, error / mean / parameters.growth_time


def _kind(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    words, right = [], True
    for model, beta in parameters.cases:
        part, onset = data[f"{model}-beta{beta:g}"], onset_of(model, beta)
        kappa, unstable = part["kappa"].values, part["unstable"].values
        fold = int(np.argmax(kappa))
        if theory.uniform.landau_coefficient(beta, model=model) > 0:
            good = onset < kappa[fold] and 0 < fold < len(kappa) - 2
            good = good and (unstable[:fold] == 0).all() and (unstable[fold + 1 : -1] == 1).all()
        else:
            good = (np.diff(kappa) > 0).all() and (unstable == 0).all() and kappa[-1] <= onset * (1 + 1e-9)
        right &= bool(good)
        largest = f"largest κ {kappa[fold] / onset:.4f} κ_c, {np.sum(unstable > 0)} unstable"
        words.append(f"{_case(model, beta)}: {largest}")
    statement = "ordered states are stable and end at κ_c if c < 0; if c > 0 they fold above κ_c and return unstable"
    reason = "eigenvalues of every state on the branch"
    return Claim.true(statement, right, "; ".join(words), reason, origin=THIRD)


def _third(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows = Rows()
    for model, beta in parameters.cases:
        part = data[f"near-{model}-beta{beta:g}"]
        order = np.where(part["order"].values > 0, part["order"].values, np.nan)
        quotients = float(part["side"]) * part["delta"].values / (2 * order**2)
        before, last = (2 * quotients[1:] - quotients[:-1])[-2:]  # errors are of first order in delta
        expected = float(theory.uniform.landau_coefficient(beta, model=model)) / onset_of(model, beta)
        rows.add(expected, last, min(abs(last - before), 0.01 * abs(last)), _case(model, beta))
    statement = "(κ − κ_c)/(2 κ_c m²) of ordered states tends to c/κ_c as m → 0"
    return rows.equal(statement, "the last change of the extrapolated value, at most 1 %", origin=THIRD)


def _with_order(parameters: Parameters, rows: list[dict[str, Any]]) -> Claim:
    statement = f"{parameters.ordered_tokens} tokens with order: mean of m² is that of the branch"
    seeds = f"Student's test of {parameters.ordered_seeds} seeds, level {LEVEL:g} for all"
    some, detail = _squares(row for row in rows if row["ordered"])
    reason = f"{seeds}; the step; 4κ/(rate n); what is left of the start"
    return some.equal(statement, reason, origin=ORDERED, level=LEVEL, detail=detail)


def _without_order(parameters: Parameters, rows: list[dict[str, Any]]) -> Claim:
    law = "κ/((κ − (1 − w)κ_c) n), w the weight to itself"
    seeds = f"normal test with the variance of {parameters.free_seeds} seeds, derived, level {LEVEL:g} for all"
    some, detail = _squares(row for row in rows if not row["ordered"])
    return some.equal(
        f"{parameters.free_tokens} tokens without order: mean of m² is {law}",
        f"{seeds}; the step; twice the third order; the start",
        origin=FREE,
        level=LEVEL,
        detail=detail,
    )


def _squares(rows: Iterable[dict[str, Any]]) -> tuple[Rows, str]:
    """Mean squares of m, and how large their tolerances are."""
    found, shares = Rows(), []
    for row in rows:
        found.add(row["square"], row["found"], row["tolerance"], _where(row))
        shares.append(row["tolerance"] / row["square"])
    return found, f"tolerances are at most {100 * max(shares):.0f} %"


def _equation(rows: list[dict[str, Any]]) -> Claim:
    found = Rows()
    for row in rows:
        found.add(0.0, row["equation"] - row["order"], 1e-10 * row["steps"] + 4 * np.exp(-RELAXED), _where(row))
    reason = "e^(-25) of the start; 1e-10 for every step"
    return found.equal(
        "the equation with noise relaxes to the branch: m less that of the branch", reason, origin=NUMERICS
    )


def _case(model: str, beta: float) -> str:
    return f"{model}, β = {beta:g}"


def _where(row: dict[str, Any]) -> str:
    return f"{_case(row['model'], row['beta'])}, κ = {row['kappa'] / row['onset']:.3g} κ_c"
