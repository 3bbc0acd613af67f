"""Means and spreads of overlaps against a common limit, one layer's moments, and the ODE with its fluctuations."""

import dataclasses
import math

import numpy as np
import xarray as xr
from scipy.stats import kstwo

from attnflow import theory
from attnflow.experiments import NUMERICS, Claim, consequence
from attnflow.experiments.kit import LEVEL, Rows, averaged, fit, student
from attnflow_gallery.depth_scalings.simulate import Network, Parameters

DIFFUSIVE = consequence("One clock")
FROZEN = consequence("Frozen networks")
ODE = consequence("The ODE of the mean")
NOISE = consequence("Fluctuations around the ODE")
DRIFT = 1 / 3
"""By how much noise moves the mean overlap at most, over tau: its drift is below 1/4, its curvature brings 0.07."""
FINE = 1 / 25
"""The longest steps for which fluctuations around the ODE are compared with their limit."""
TEST = f"Student's test, level {LEVEL:g} for all"


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
    """Means at tau = 1: means of a network with another tau are moved along the drift of a common overlap."""
    n, b, d = parameters.n, parameters.b, parameters.d
    speed = float(theory.random_layers.simplex_drift(theory.random_layers.simplex_path(n, b, 1.0, d=d), n, b, d=d))
    return np.array([row.mean + (1 - row.tau) * speed for row in rows])


def limit(part: xr.Dataset) -> tuple[float, float, float]:
    """The mean overlap of the diffusion at tau = 1, its standard error, and what halving the steps changed."""
    means, errors = averaged(part["estimate"], axis=1)
    return float(2 * means[1] - means[0]), float(np.hypot(2 * errors[1], errors[0])), float(abs(means[1] - means[0]))


def terms(rows: list[Row]) -> list[np.ndarray]:
    """eta^2/H and eta^2/H^2 of every network."""
    coarse = np.array([row.coarse for row in rows])
    return [coarse, coarse / np.array([row.network[1] for row in rows])]


def diffusive(parameters: Parameters, data: dict[str, xr.Dataset]) -> tuple[list[Row], np.ndarray, np.ndarray]:
    """Networks with tau = 1; b and c of mean = limit + b eta^2/H + c eta^2/H^2; what is left of each mean."""
    rows = rows_of(parameters, data, "diffusive")
    off = at_one(parameters, rows) - limit(data["diffusion"])[0]
    found, _ = fit(terms(rows), off, np.array([row.error for row in rows]))
    return rows, found, off - np.stack(terms(rows), axis=1) @ found


def allowed(rows: list[Row]) -> float:
    """Standard errors that the numbers of these networks may be off."""
    return student(LEVEL, min(row.network[3] for row in rows), len(rows))


def _diffusive(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    (rows, _, left), compared = diffusive(parameters, data), Rows()
    known, error, change = limit(data["diffusion"])
    for row, rest in zip(rows, left, strict=True):
        tolerance = allowed(rows) * math.hypot(row.error, error) + row.coarse**2 + change / parameters.path_steps
        compared.add(0.0, rest, tolerance, row.words)
    free, spread = fit([np.ones(len(rows)), *terms(rows)], at_one(parameters, rows), np.array([r.error for r in rows]))
    detail = f"diffusion {known:.4f} ± {error:.4f}; limit of the networks, fitted {free[0]:.4f} ± {spread[0]:.4f}"
    reason = f"{TEST}; (η²/H)² for the next order, and what steps of the diffusion leave"
    says = "τ = 1: the mean overlap is that of the diffusion plus terms in η²/H; what is left"
    return compared.equal(says, reason, origin=DIFFUSIVE, level=LEVEL, detail=detail)


def one_layer(part: xr.Dataset, d: int, mean_value: float) -> np.ndarray:
    """(level,): the variance of the mean overlap after one layer, over eta^2/H."""
    return np.asarray(part["noise"].values / d + mean_value**2 * part["push"].values)


def growth(parameters: Parameters, data: dict[str, xr.Dataset], number: int) -> tuple[float, float]:
    """Mean and standard error of L H (half the overlap with steps 2 eta less that with eta), the same random numbers.

    Noise of order eta cancels network by network; what is left has the mean of the drift.
    """
    tau = Row.of(parameters.frozen[number], data[f"frozen{number}"]).tau
    found, error = averaged((data[f"longer{number}"]["mean"] / 2 - data[f"frozen{number}"]["mean"]) / tau)
    return float(found), float(error)


def _frozen(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    rows, part = rows_of(parameters, data, "frozen"), data["moments"].sel(level=0.0)
    own, shared, shared_error = (float(part[name]) for name in ("own", "shared", "shared_error"))
    d, n = parameters.d, parameters.n
    rate = float(((d - 2) / d) * shared)  # the drift of orthonormal tokens
    wide = math.sqrt(float(one_layer(data["moments"], d, 0.0)[0]))
    means, spreads = Rows(), Rows()
    for number, row in enumerate(rows):
        tau, root = row.tau, math.sqrt(row.tau)
        found, error = growth(parameters, data, number)
        error = math.hypot(error, (d - 2) / d * shared_error)
        means.add(0.0, found - rate, allowed(rows) * error + 7 * rate * tau, row.words)
        spreads.add(0.0, row.spread / root - wide, allowed(rows) * row.spread_error / root + wide * tau, row.words)
    mean = (
        "η = 1/L: L H (half the mean overlap with steps 2η less that with η) is the drift of orthonormal tokens: error"
    )
    spread = "η = 1/L: the standard deviation of the mean overlap times √(L H) is that of one layer: error"
    detail = f"drift {rate:.4f}; (d - 2)/(d n) = {(1 - 2 / d) / n:.4f}; E|m|² = {own:.3f}"
    return [
        means.equal(mean, f"{TEST}; a share 7/(L H), the next order", origin=FROZEN, level=LEVEL, detail=detail),
        spreads.equal(
            spread,
            f"{TEST}; a share 1/(L H), the next order",
            origin=FROZEN,
            level=LEVEL,
            detail=f"predicted {wide:.4f}",
        ),
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


def noise_drift(parameters: Parameters, rows: list[Row]) -> float:
    """K, by which noise moves the mean overlap at t = 1: mean = layers without noise + K/(L H)."""
    tau, errors = np.array([row.tau for row in rows]), np.array([row.error for row in rows])
    off = np.array([row.mean - euler(parameters.n, row.network[0], row.network[2]) for row in rows])
    return float(fit([tau], off, errors)[0][0])


def _ballistic(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    rows, n = rows_of(parameters, data, "ballistic"), parameters.n
    wide, means, spreads = fluctuation(parameters, data["moments"]), Rows(), Rows()
    moved = noise_drift(parameters, rows)
    fine = [row for row in rows if row.network[0] <= FINE]
    for row in rows:
        tau, (eta, _, layers, _) = row.tau, row.network
        tolerance = allowed(rows) * row.error + 2 * DRIFT * tau * (tau + eta)
        means.add(0.0, row.mean - euler(n, eta, layers) - moved * tau, tolerance, row.words)
    for row in fine:
        root, share = math.sqrt(row.tau), row.tau + row.network[0]
        spreads.add(0.0, row.spread / root - wide, allowed(fine) * row.spread_error / root + wide * share, row.words)
    mean = "E V = I, η = 1/L: the mean overlap is that of layers without noise plus K/(L H): error"
    spread = f"E V = I, η = 1/L ≤ {FINE:g}: the standard deviation of the mean overlap times √(L H): error"
    reason = f"{TEST}; shares 2/(L H) and 2η of the largest K/(L H) for the next orders"
    return [
        means.equal(mean, reason, origin=ODE, level=LEVEL, detail=f"K = {moved:.3f}, fitted; derived |K| ≤ 1/3"),
        _extrapolated(n, *rows[-2:]),
        spreads.equal(
            spread,
            f"{TEST}; shares 1/(L H) and η of the next orders",
            origin=NOISE,
            level=LEVEL,
            detail=f"predicted {wide:.4f}",
        ),
    ]


def _extrapolated(n: int, last: Row, fine: Row) -> Claim:
    """The two finest networks with the most heads: Richardson in eta."""
    ratio = last.network[0] / fine.network[0]
    straight = (ratio * fine.mean - last.mean) / (ratio - 1)
    error = student(LEVEL, fine.network[3]) * math.hypot(ratio * fine.error, last.error) / (ratio - 1)
    drift = (ratio * fine.tau + last.tau) / (ratio - 1) * DRIFT
    says = "E V = I: the mean overlap extrapolated to η = 0 is that of the ODE at t = 1"
    reason = f"Student's level {LEVEL:g}; 1/(3 L H) for the drift of the noise; η² for the next order"
    detail = f"without extrapolation {fine.mean:.4f} at η = {fine.network[0]:g}"
    tolerance = error + drift + last.network[0] ** 2
    return Claim.equal(says, ode(n, 1.0), straight, tolerance, reason, origin=ODE, level=LEVEL, detail=detail)


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
    return found.at_most(says, reason, origin=NUMERICS, level=LEVEL)
