"""Means and spreads of overlaps against a common limit, one layer's moments, and the ODE with its fluctuations."""

import dataclasses
import math

import numpy as np
import xarray as xr
from scipy.stats import kstwo

from attnflow import theory
from attnflow.experiments import NUMERICS, Claim, consequence
from attnflow.experiments.kit import Rows, fit, student
from attnflow_gallery.depth_scalings.simulate import Network, Parameters

DIFFUSIVE = consequence("One clock")
FROZEN = consequence("Frozen networks")
ODE = consequence("The ODE of the mean")
NOISE = consequence("Fluctuations around the ODE")
DRIFT = 1 / 3
"""By how much noise moves the mean overlap at most, over tau: its drift is below 1/4, its curvature brings 0.07."""
LEVEL = 1e-4
"""The probability that a right claim fails by chance."""


@dataclasses.dataclass(frozen=True)
class Row:
    """The mean overlap after the last layer of networks with the same eta, H and L."""

    network: Network
    mean: float
    error: float
    spread: float
    """Standard deviation over networks, and its standard error."""
    spread_error: float

    @classmethod
    def of(cls, network: Network, part: xr.Dataset) -> "Row":
        """Read a part."""
        values = part["mean"].values
        off = values - values.mean()
        spread, count = values.std(ddof=1), len(values)
        fourth = np.mean(off**4) / spread**4
        spread_error = float(spread * math.sqrt((fourth - 1) / count) / 2)
        return cls(network, float(values.mean()), spread / math.sqrt(count), float(spread), spread_error)

    @property
    def tau(self) -> float:
        """eta^2 L/H."""
        return float(
            theory.random_layers.canonical_time(self.network[0], layers=self.network[2], heads=self.network[1])
        )

    @property
    def coarse(self) -> float:
        """eta^2/H, the time of one layer."""
        return self.network[0] ** 2 / self.network[1]

    @property
    def words(self) -> str:
        """Eta, H and L."""
        return f"η = {self.network[0]:.3g}, H = {self.network[1]}, L = {self.network[2]}"


def rows_of(parameters: Parameters, data: dict[str, xr.Dataset], kind: str) -> list[Row]:
    """One for every network of this kind."""
    return [Row.of(network, data[f"{kind}{k}"]) for k, network in enumerate(getattr(parameters, kind))]


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Diffusion, frozen networks, the ODE, and two simulators."""
    networks = [_diffusive(parameters, data), *_frozen(parameters, data), *_ballistic(parameters, data)]
    return [*networks, _simulators(parameters, data)]


def at_one(parameters: Parameters, rows: list[Row]) -> np.ndarray:
    """Means at tau = 1: means of a network with another tau are moved along the drift of the common overlap."""
    speed = theory.random_layers.simplex_drift([row.mean for row in rows], parameters.n, parameters.b, d=parameters.d)
    return np.array([row.mean for row in rows]) + (1 - np.array([row.tau for row in rows])) * speed


def limit(parameters: Parameters, data: dict[str, xr.Dataset]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coefficients and standard errors of mean = a + b eta^2/H + c eta^2/H^2 at tau = 1, and what is left of each."""
    rows = rows_of(parameters, data, "diffusive")
    means, errors = at_one(parameters, rows), np.array([row.error for row in rows])
    coarse, heads = np.array([row.coarse for row in rows]), np.array([row.network[1] for row in rows])
    terms = [np.ones_like(coarse), coarse, coarse / heads]
    found, error = fit(terms, means, errors)
    return found, error, means - np.stack(terms, axis=1) @ found


def allowed(rows: list[Row]) -> float:
    """Standard errors that the numbers of these networks may be off."""
    return student(LEVEL, min(row.network[3] for row in rows), len(rows))


def _diffusive(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    rows, compared = rows_of(parameters, data, "diffusive"), Rows()
    found, error, left = limit(parameters, data)
    for row, rest in zip(rows, left, strict=True):
        compared.add(0.0, rest, allowed(rows) * row.error + row.coarse**2, row.words)
    most = max(abs(row.mean - found[0]) for row in rows)
    detail = f"limit {found[0]:.4f} ± {error[0]:.4f}; without terms in η²/H up to {most:.4f} off"
    reason = f"Student's test, level {LEVEL:g} for all together; (η²/H)² for the next order"
    says = "τ = 1: the mean overlap is one limit plus terms in η²/H"
    return compared.equal(says, reason, origin=DIFFUSIVE, detail=detail)


def one_layer(part: xr.Dataset, d: int, mean_value: float) -> np.ndarray:
    """(level,): the variance of the mean overlap after one layer, over eta^2/H."""
    return np.asarray(part["noise"].values / d + mean_value**2 * part["push"].values)


def _frozen(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    rows, part = rows_of(parameters, data, "frozen"), data["moments"].sel(level=0.0)
    own, shared, shared_error = (float(part[name]) for name in ("own", "shared", "shared_error"))
    rate = float(theory.random_layers.overlap_drift(0.0, shared, own, own, d=parameters.d))
    wide = math.sqrt(float(one_layer(data["moments"], parameters.d, 0.0)[0]))
    means, spreads = Rows(), Rows()
    for row in rows:
        tau, root = row.tau, math.sqrt(row.tau)
        error = math.hypot(row.error, tau * shared_error)
        means.add(rate, row.mean / tau, allowed(rows) * error / tau + rate * tau, row.words)
        spreads.add(wide, row.spread / root, allowed(rows) * row.spread_error / root + wide * tau, row.words)
    reason = f"Student's test, level {LEVEL:g} for all; a share 1/(L H), the next order"
    mean = "η = 1/L: L H times the mean overlap is the drift of orthonormal tokens"
    spread = "η = 1/L: the standard deviation of the mean overlap times √(L H)"
    detail = f"(d - 2)/(d n) = {(1 - 2 / parameters.d) / parameters.n:.4f}"
    return [
        means.equal(mean, reason, origin=FROZEN, detail=detail),
        spreads.equal(spread, reason, origin=FROZEN),
    ]


def euler(n: int, eta: float, layers: int) -> float:
    """The common overlap of orthonormal tokens after layers x <- N(x + eta mean), without noise."""
    gamma = 0.0
    for _ in range(layers):
        push = (2 * eta + eta**2) * (1 + (n - 1) * gamma) / n
        gamma = (gamma + push) / (1 + push)
    return gamma


def ode(n: int, t: float) -> float:
    """The common overlap at time t of x' = P_x mean: u' = 2 u (1 - u) for u = |mean|^2."""
    u = float(theory.random_layers.hot_mean_square(1 / n, 2 * t))
    return (n * u - 1) / (n - 1)


def fluctuation(parameters: Parameters, part: xr.Dataset) -> float:
    """sqrt(L H) times the standard deviation of the mean overlap at t = 1 around the ODE."""
    n, t = parameters.n, np.linspace(0.0, 1.0, 201)
    gamma = np.array([ode(n, one) for one in t])
    speed = 2 * (1 - gamma) * (1 + (n - 1) * gamma) / n
    levels = part["level"].values
    noise = np.polynomial.Polynomial.fit(levels, one_layer(part, parameters.d, 1.0), min(4, len(levels) - 1))(gamma)
    return math.sqrt(float(np.trapezoid((speed[-1] / speed) ** 2 * noise, t)))


def _ballistic(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    rows, n = rows_of(parameters, data, "ballistic"), parameters.n
    wide, means, spreads = fluctuation(parameters, data["moments"]), Rows(), Rows()
    for row in rows:
        tau, root, (eta, _, layers, _) = row.tau, math.sqrt(row.tau), row.network
        means.add(euler(n, eta, layers), row.mean, allowed(rows) * row.error + DRIFT * tau, row.words)
        error = allowed(rows) * row.spread_error / root
        spreads.add(wide, row.spread / root, error + wide * (tau + eta), row.words)
    mean = "E V = I, η = 1/L: the mean overlap is that of layers without noise"
    spread = "E V = I, η = 1/L: the standard deviation of the mean overlap times √(L H)"
    test = f"Student's test, level {LEVEL:g} for all"
    return [
        means.equal(mean, f"{test}; 1/(3 L H) for the drift of the noise", origin=ODE),
        _extrapolated(n, *rows[-2:]),
        spreads.equal(spread, f"{test}; shares 1/(L H) and η of the next orders", origin=NOISE),
    ]


def _extrapolated(n: int, last: Row, fine: Row) -> Claim:
    """The two finest networks with the most heads: Richardson in eta."""
    ratio = last.network[0] / fine.network[0]
    straight = (ratio * fine.mean - last.mean) / (ratio - 1)
    error = student(LEVEL, fine.network[3]) * math.hypot(ratio * fine.error, last.error) / (ratio - 1)
    drift = (ratio * fine.tau + last.tau) / (ratio - 1) * DRIFT
    says = "E V = I: the mean overlap extrapolated to η = 0 is that of the ODE at t = 1"
    reason = "Student's level 1e-4; 1/(3 L H) for the drift of the noise; η² for the next order"
    detail = f"without extrapolation {fine.mean:.4f} at η = {fine.network[0]:g}"
    tolerance = error + drift + last.network[0] ** 2
    return Claim.equal(says, ode(n, 1.0), straight, tolerance, reason, origin=ODE, detail=detail)


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference of two distribution functions."""
    both = np.sort(np.concatenate([one, other]))
    shares = [np.searchsorted(np.sort(values), both, side="right") / len(values) for values in (one, other)]
    return float(np.max(np.abs(shares[0] - shares[1])))


def _simulators(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    found, most = Rows(), float(kstwo.isf(LEVEL / 2, parameters.compared[3] // 2))
    for name, words in (("mean", "mean over pairs"), ("first", "first pair")):
        found.add(most, distance(data["gram"][name].values, data["vectors"][name].values), 0.0, words)
    reason = f"two-sample test of Kolmogorov and Smirnov, level {LEVEL:g} for both overlaps together"
    says = "Gram matrices and vectors: distance of the distributions of overlaps"
    return found.at_most(says, reason, origin=NUMERICS)
