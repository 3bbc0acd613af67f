"""Thresholds, the kind of the transition, growth on both sides of kappa_c, and fluctuations of tokens."""

from typing import Any

import numpy as np
import xarray as xr
from scipy.special import ive

from attnflow import theory
from attnflow.experiments import NUMERICS, Claim, consequence, published
from attnflow_gallery.noisy_transition.simulate import RELAXED, Parameters, onset_of

JUMP = published("mun2026sphere")
ONSET = published("balasubramanian2025stationary")
THIRD = consequence("The third order decides")
FREE = consequence("Fluctuations without order")
ORDERED = consequence("Tokens in the ordered state")
ERRORS = 4.0
"""Standard errors that are allowed: beyond them lie 6e-5 of the values of a normal distribution."""


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """beta* and kappa_c; the third order; tokens with and without order; the equation."""
    rows = compare(parameters, data)
    return [
        _jump(parameters, data["jump"]), _growth(parameters, data), _kind(parameters, data), _third(parameters, data),
        _with_order(parameters, rows), _without_order(parameters, rows), _equation(rows),
    ]  # fmt: skip


def compare(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[dict[str, Any]]:
    """One row per noise at which tokens were followed: m^2 by theory and by tokens, and its tolerance."""
    rows = []
    for model, beta in parameters.cases:
        part, onset = data[f"flows-{model}-beta{beta:g}"], onset_of(model, beta)
        for k in range(part.sizes["point"]):
            one: dict[str, Any] = {str(n): float(part[n][k]) for n in part.data_vars if n != "squares"}
            seen = part["squares"][k].dropna("seed").values
            row = one | {"model": model, "beta": beta, "onset": onset, "ordered": bool(one["ordered"])}
            row |= {"found": float(seen.mean()), "error": float(seen.std(ddof=1) / np.sqrt(len(seen)))}
            rows.append(row | (ordered if row["ordered"] else free)(parameters, row))
    return rows


def ordered(parameters: Parameters, row: dict[str, Any]) -> dict[str, float]:
    """m^2 of the branch, and the tolerance of tokens in the ordered state."""
    square, n = row["order"] ** 2, parameters.ordered_tokens
    left = np.exp(-parameters.ordered_burn) * abs(row["begin"] ** 2 - square)
    kick = row["kappa"] * parameters.ordered_step  # frames lie half a kick away from the symmetric scheme
    finite = 4 * row["kappa"] / (row["rate"] * n)
    tolerance = ERRORS * row["error"] + abs(row["shifted"] ** 2 - square) + kick * square + left + finite
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
    sampling = ERRORS * np.sqrt(variance / parameters.free_seeds)
    burnt = np.exp(-2 * (kappa - onset) * parameters.free_burn / row["onset"]) * abs(row["begin"] ** 2 / square - 1)
    h = parameters.step / row["onset"]
    stepped = np.expm1(-2 * kappa * h) / (n * ((1 + onset * h) ** 2 * np.exp(-2 * kappa * h) - 1))
    third = 4 * abs(theory.uniform.landau_coefficient(row["beta"], row["model"])) / (kappa - onset) * square
    return {"square": square, "tolerance": square * float(sampling + burnt + abs(stepped / square - 1) + 2 * third)}


def _jump(parameters: Parameters, part: xr.Dataset) -> Claim:
    coarse, fine = part["beta"].values.T
    return Claim.equal(
        "USA0: the transition becomes a jump at the β* with I_{d/2+1}(β*)/I_{d/2}(β*) = 1/d",
        theory.uniform.jump_threshold(parameters.dims), fine, np.abs(fine - coarse),
        "what halving the amplitude changes: the error is of fourth order in it", origin=JUMP,
        labels=[f"d = {d}" for d in parameters.dims],
    )  # fmt: skip


def _growth(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    shares, gains = np.array(parameters.growing), growth_gains(parameters, data)
    mean, error = gains.mean(axis=-1), gains.std(axis=-1, ddof=1) / np.sqrt(gains.shape[-1])
    # Euler's rule changes the rate kappa_c of the drift by a share kappa_c h/2; correlations of tokens by about 4/n
    slack = parameters.step / 2 + 4 / parameters.growth_tokens
    return Claim.equal(
        "tokens on both sides of κ_c: a small m grows at the rate κ_c − κ, in units of κ_c", 1 - shares,
        np.log(mean) / parameters.growth_time, ERRORS * error / mean / parameters.growth_time + slack,
        "4 standard errors over seeds, the step, 4/n", origin=ONSET,
        labels=lambda at: f"{_case(parameters, at[0])}, κ = {shares[at[1]]:g} κ_c",
    )  # fmt: skip


def growth_gains(parameters: Parameters, data: dict[str, xr.Dataset]) -> np.ndarray:
    """m(t)/m(0), (case, noise, seed)."""
    return np.array([data[f"growth-{model}-beta{beta:g}"]["gain"].values for model, beta in parameters.cases])


def _kind(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    words, right = [], True
    for model, beta in parameters.cases:
        part, onset = data[f"{model}-beta{beta:g}"], onset_of(model, beta)
        kappa, unstable = part["kappa"].values, part["unstable"].values
        fold = int(np.argmax(kappa))
        if theory.uniform.landau_coefficient(beta, model) > 0:
            good = onset < kappa[fold] and 0 < fold < len(kappa) - 2
            good = good and (unstable[:fold] == 0).all() and (unstable[fold + 1 : -1] == 1).all()
        else:
            good = (np.diff(kappa) > 0).all() and (unstable == 0).all() and kappa[-1] <= onset * (1 + 1e-9)
        right &= bool(good)
        words.append(f"{model}, β = {beta:g}: largest κ {kappa[fold] / onset:.4f} κ_c, {np.sum(unstable > 0)} unstable")
    return Claim.true(
        "ordered states are stable and end at κ_c if c < 0; if c > 0 they fold above κ_c and return unstable", right,
        "; ".join(words), "eigenvalues of every state on the branch", origin=THIRD,
    )  # fmt: skip


def _third(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    found, change, expected = [], [], []
    for model, beta in parameters.cases:
        part = data[f"near-{model}-beta{beta:g}"]
        order = np.where(part["order"].values > 0, part["order"].values, np.nan)
        quotients = float(part["side"]) * part["delta"].values / (2 * order**2)
        extrapolated = 2 * quotients[1:] - quotients[:-1]  # errors are of first order in delta
        found.append(extrapolated[-1])
        change.append(min(abs(extrapolated[-1] - extrapolated[-2]), 0.01 * abs(extrapolated[-1])))
        expected.append(float(theory.uniform.landau_coefficient(beta, model)) / onset_of(model, beta))
    return Claim.equal(
        "(κ − κ_c)/(2 κ_c m²) of ordered states tends to c/κ_c as m → 0", expected, found, change,
        "the last change of the extrapolated value, at most 1 %", origin=THIRD,
        labels=[_case(parameters, k) for k in range(len(found))],
    )  # fmt: skip


def _with_order(parameters: Parameters, rows: list[dict[str, Any]]) -> Claim:
    some = [row for row in rows if row["ordered"]]
    expected, found, allowed = _columns(some)
    return Claim.equal(
        f"{parameters.ordered_tokens} tokens with order: mean of m² is that of the branch", expected, found, allowed,
        f"4 standard errors of {parameters.ordered_seeds} seeds; the step; 4κ/(rate n); what is left of the start",
        origin=ORDERED, labels=[_where(row) for row in some], detail=_percent(some),
    )  # fmt: skip


def _without_order(parameters: Parameters, rows: list[dict[str, Any]]) -> Claim:
    some = [row for row in rows if not row["ordered"]]
    expected, found, allowed = _columns(some)
    return Claim.equal(
        f"{parameters.free_tokens} tokens without order: mean of m² is κ/((κ − (1 − w)κ_c) n), w the weight to itself",
        expected, found, allowed,
        f"4 standard errors, derived, of {parameters.free_seeds} seeds; the step; twice the third order; the start",
        origin=FREE, labels=[_where(row) for row in some], detail=_percent(some),
    )  # fmt: skip


def _equation(rows: list[dict[str, Any]]) -> Claim:
    return Claim.equal(
        "the equation with noise relaxes to the branch: m", [row["order"] for row in rows],
        [row["equation"] for row in rows], [1e-10 * row["steps"] + 4 * np.exp(-RELAXED) for row in rows],
        "e^(-25) of the start; 1e-10 for every step", origin=NUMERICS, labels=[_where(row) for row in rows],
    )  # fmt: skip


def _columns(rows: list[dict[str, Any]]) -> tuple[list[float], ...]:
    return tuple([row[name] for row in rows] for name in ("square", "found", "tolerance"))


def _percent(rows: list[dict[str, Any]]) -> str:
    return f"tolerances are at most {100 * max(row['tolerance'] / row['square'] for row in rows):.0f} %"


def _case(parameters: Parameters, k: int) -> str:
    model, beta = parameters.cases[k]
    return f"{model}, β = {beta:g}"


def _where(row: dict[str, Any]) -> str:
    return f"{row['model']}, β = {row['beta']:g}, κ = {row['kappa'] / row['onset']:.3g} κ_c"
