"""Exponents of nearby, collapsed and antipodal tokens, overlaps of populations, and the martingale of hot pairs."""

import numpy as np
import xarray as xr
from scipy.stats import nct, t

from attnflow import theory
from attnflow.experiments import Claim, consequence, reported
from attnflow.experiments.kit import LEVEL, Effects, Rows, averaged, student
from attnflow_gallery.clustering_mitigated.simulate import Parameters

NEARBY = consequence("Nearby tokens in a uniform population")
COLLAPSED = consequence("Collapsed tokens")
ANTIPODAL = reported("fedorov2026clustering", "abstract and a summary")
SIMPLEX = reported("koubbi2026homogenized", "abstract and a summary")
SLOWER = consequence("Whole populations")
HOT = consequence("Hot pairs on the circle")


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Nearby tokens; collapsed ones; antipodal ones; orthonormal ones; populations with few keys; hot pairs."""
    makers = _exponents, _signs, _collapsed, _antipodal, _turn, _simplex, _slower, _hot
    return [make(parameters, data) for make in makers]


def exponent(d: int, d_k: int, b: float) -> float:
    """Lambda of nearby tokens in a uniform population."""
    return float(theory.random_layers.pair_exponent(*theory.random_layers.attention_moments(b, d=d, d_k=d_k), d))


def measured(part: xr.Dataset) -> tuple[float, float]:
    """Lambda from the mean drift of log(1-R), and its standard error."""
    found, error = averaged(part["drift"].values[-1] / float(part["tau"][-1]))
    return float(found), float(error)


def _exponents(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows, limit = Rows(), student(LEVEL, parameters.pairs, len(parameters.cases))
    for d_k, b in parameters.cases:
        part = data[f"pairs-{d_k}-{b:g}"]
        found, error = measured(part)
        bias = parameters.pair_h / 4 * float(part["weight"].values.mean())
        rows.add(exponent(parameters.d, d_k, b), found, limit * error + bias, f"d_k = {d_k}, b = {b:g}")
    words = f"nearby tokens in a uniform population, d = {parameters.d}: exponent Λ of 1 − R"
    test = f"Student's test of {parameters.pairs} pairs at level {LEVEL:g}"
    return rows.equal(words, f"{test}; second order of a layer, (h/4) E(|m|² + |∂m|²)²", origin=NEARBY, level=LEVEL)


def _signs(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    drifts, listed = Effects(parameters.pairs, parameters.expected_drift), []
    for d_k, b in parameters.cases:
        critical = theory.random_layers.critical_logit_scale(parameters.d, d_k)
        apart = critical is not None and b > critical
        drift, error = measured(data[f"pairs-{d_k}-{b:g}"])
        drifts.add(0.0, drift if apart else -drift, error, f"d_k = {d_k}, b = {b:g}")
        edge = "no b_c" if critical is None else f"b_c = {critical:.4g}"
        listed.append(f"d_k = {d_k} ({edge}), b = {b:g}: {drift:+.4f} ± {error:.4f}")
    words = f"d = {parameters.d} ≥ 4: nearby tokens separate where d_k < d − 1 and b > b_c, and meet elsewhere"
    test = "mean drift of log(1 − R), with the sign that is claimed; Student's test over pairs (± standard error)"
    return drifts.above(words, test, origin=NEARBY, detail="; ".join(listed))


def collapsed_exponent(d: int, h: float) -> float:
    """-(d-1)/d, and what layers of time h add to it in first order."""
    return -(d - 1) / d + h * ((d - 2) * (d - 4) - (d - 3) * (d - 5) / 2) / d**2


def growths(parameters: Parameters, data: dict[str, xr.Dataset], name: str, values: tuple[float, ...]) -> np.ndarray:
    """(2, value) mean growth rates and their standard errors."""
    return np.array([averaged(data[f"{name}-{value:g}"]["growth"].values) for value in values]).T


def _collapsed(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    d, h, draws, labels = parameters.d, parameters.h, parameters.collapsed_replicas, parameters.collapsed_b
    found, error = growths(parameters, data, "collapsed", labels)
    words = f"collapsed tokens, d = {d}, d_k = {parameters.d_k}: exponent −(d−1)/d of 1 − R at every temperature"
    test = f"Student's test of {draws} networks at level {LEVEL:g}"
    reason = f"{test}; first order in h = {h:g} is in the prediction, except 2h/d² of several directions and h²"
    allowed, names = student(LEVEL, draws, len(found)) * error + 2 * h / d**2 + h**2, [f"b = {b:g}" for b in labels]
    return Claim.equal(
        words, collapsed_exponent(d, h), found, allowed, reason, origin=COLLAPSED, level=LEVEL, labels=names
    )


def _antipodal(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    d, h, betas = parameters.d, parameters.h, np.array(parameters.antipodal_beta)
    found, error = growths(parameters, data, "antipodal", parameters.antipodal_beta)
    allowed = student(LEVEL, parameters.replicas, len(betas)) * error + h / 4 * (1 + np.tanh(betas) ** 2) ** 2
    words = f"two nearly antipodal tokens with QᵀK = I, d = {d}: exponent [(d−3) − (d−1)tanh²β]/d of 1 + R"
    test = f"Student's test of {parameters.replicas} networks at level {LEVEL:g}"
    reason, names = f"{test}; second order of a layer, (h/4)(1 + tanh²β)²", [f"β = {beta:g}" for beta in betas]
    predicted = theory.random_layers.antipodal_exponent(betas, d)
    return Claim.equal(words, predicted, found, allowed, reason, origin=ANTIPODAL, level=LEVEL, labels=names)


def _turn(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    d, betas = parameters.d, parameters.antipodal_beta
    exponents = Effects(parameters.replicas, parameters.expected_turn)
    for beta, found, error in zip(betas, *growths(parameters, data, "antipodal", betas), strict=True):
        sign = -1 if np.cosh(2 * beta) > d - 2 else 1
        exponents.add(0.0, sign * found, error, f"β = {beta:g}: {found:+.4f}")
    words = "nearly antipodal tokens become antipodal iff cosh 2β > d − 2: sign times exponent over its error"
    return exponents.above(f"d = {d}: {words}", "Student's test over networks", origin=ANTIPODAL)


def simplex_line(parameters: Parameters, b: float, tau: np.ndarray) -> np.ndarray:
    """The common overlap after layers of time h, which for b = 0 need the time log(1+h) for h."""
    clock = np.log1p(parameters.simplex_h) / parameters.simplex_h
    return np.asarray(theory.random_layers.simplex_path(parameters.simplex_n, b, clock * tau, d=parameters.simplex_d))


def _simplex(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    n, d, draws, rows = parameters.simplex_n, parameters.simplex_d, parameters.simplex_replicas, Rows()
    limit = student(LEVEL, draws, len(parameters.simplex_b) * round(parameters.simplex_tau))
    for b in parameters.simplex_b:
        part = data[f"simplex-{b:g}"].isel(tau=slice(1, None))
        tau, (mean, error) = part["tau"].values, averaged(part["overlap"])
        line = simplex_line(parameters, b, tau)
        late = np.abs(theory.random_layers.simplex_path(n, b, tau, d=d) - line)
        rows.add(line, mean, limit * error + late + 4 / d, [f"b = {b:g}, τ = {t:g}" for t in tau])
    words = f"{n} orthonormal tokens, d = {d}: their mean follows the simplex ODE"
    reason = f"Student's test of {draws} networks at level {LEVEL:g}; the time that layers lose; 4/d"
    half = [
        f"{float(theory.random_layers.collapse_time(n, b, 0.5, d=d)):.3f} (b = {b:g})" for b in parameters.simplex_b
    ]
    return rows.equal(words, reason, origin=SIMPLEX, level=LEVEL, detail="overlap 1/2 at τ = " + ", ".join(half))


def _slower(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    first, *rest = parameters.population_b
    ends = {b: data[f"population-{b:g}"]["overlap"].values[:, -1] for b in parameters.population_b}
    rows, freedom = Rows(), parameters.populations - 1
    for b in rest:
        difference, error = averaged(ends[first] - ends[b])
        rows.add(LEVEL, t.sf(difference / error, freedom) * len(rest), 0.0, f"b = {b:g}")
    missed = len(rest) * float(nct.cdf(t.isf(LEVEL / len(rest), freedom), freedom, parameters.expected_difference))
    where = f"{parameters.population_n} tokens, d = {parameters.d}, d_k = {parameters.d_k}: at τ = "
    lower = f"the mean overlap is lower for large b than for b = {first:g}; p-value of no difference"
    same = f"{parameters.populations} populations with the same heads"
    return rows.at_most(
        f"{where}{parameters.population_tau:g} {lower}",
        f"Student's one-sided test of {same}, at level {LEVEL:g}; {parameters.expected_difference:g} standard errors "
        f"are expected, and chance then fails it with probability {missed:.0e}",
        origin=SLOWER,
        level=missed,
        detail="; ".join(f"b = {b:g}: overlap {v.mean():.3f}, {np.mean(v > 0.9):.0%} > 0.9" for b, v in ends.items()),
    )


def hot_shares(parameters: Parameters, data: dict[str, xr.Dataset], overlap: float) -> tuple[np.ndarray, np.ndarray]:
    """(pair, time) of 1/2 + arcsin(R)/pi, and (pair,) whether the pair is on one side at the end."""
    angle = data[f"hot-{overlap:g}"]["angle"].values[:, 1:]
    return 1 - angle / np.pi, angle[:, -1] < np.pi / 2


def _hot(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows = Rows()
    for r in parameters.hot_overlaps:
        shares, merged = hot_shares(parameters, data, r)
        limit = student(LEVEL, parameters.hot_pairs, len(parameters.hot_overlaps) * (shares.shape[1] + 1))
        mean, error = averaged(np.column_stack([shares, merged]))
        undecided = float(np.mean(np.minimum(shares[:, -1], 1 - shares[:, -1])))
        room = limit * error + np.append(np.zeros(shares.shape[1]), undecided)
        labels = [f"R = {r:g}, mean at τ = {t:g}" for t in data[f"hot-{r:g}"]["tau"].values[1:]]
        labels.append(f"R = {r:g}, share of pairs with R > 0 at the end")
        rows.add(theory.random_layers.hot_pair_collapse_probability(r), mean, room, labels)
    words = "they merge with probability 1/2 + arcsin(R)/π, a martingale"
    test = f"Student's test of {parameters.hot_pairs} pairs at level {LEVEL:g}"
    reason = f"{test}; for the share also what is undecided at the end"
    return rows.equal(f"two tokens on the circle, infinite temperature: {words}", reason, origin=HOT, level=LEVEL)
