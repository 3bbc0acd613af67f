"""Attention with a perceptron block gathers tokens in few atoms, at the critical points of one energy.

Unnormalised attention on the circle (USA0) plus the gradient of U(x) = sum_j w_j s(a_j . x + b_j), s' = relu, climbs
E = (1/2 beta) double integral of e^(beta (<x, y> - 1)) + integral of U. A measure rests where the first variation
Phi = (1/beta) k * mu + U is stationary on its support. A kink of U on the circle forces finitely many atoms, and no
measure has more energy than 1/(2 beta) + max U, the Dirac at the peak of U (arXiv:2601.21366). Without a kink there
are exceptions: for U = u cos the density (1 - (beta u/I_1(beta)) cos)/(2 pi) is critical up to u = I_1(beta)/beta (here
times e^(-beta)). With the sign turned around, tokens repel each other and E is convex in the measure: one minimiser,
which the smallest value of Phi certifies.

Shown: random networks whose units see the whole circle, ends of flows against the equations of critical atoms, solved
from the peaks of U with the masses found; the exception, and what becomes of it one threshold further; repelling tokens
between the minimum and its certificate. That no peak has two atoms, and that repelling tokens come as close to the
minimum as they do (some are caught in a valley), is seen, not proved. Not shown: higher dimensions, networks with flat
parts, where tokens stop for times exponential in beta, and critical measures that are not stable.
"""

import dataclasses
import functools
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.axes import Along
from attnflow.experiments.claim import Claim
from attnflow.experiments.gallery._perceptron_landscape_figure import draw_figure
from attnflow.experiments.study import Study
from attnflow.fields import AbstractField, Attention, Potential, Unnormalised
from attnflow.flows import Fixed, advance
from attnflow.observe import energy
from attnflow.tokens import Tokens, stack

PAPERS = ("arXiv:2601.21366",)

EPS = float(np.finfo(float).eps)
UNITS = 5
LEG = 10
"""Steps per compiled piece."""
SAME = 1e-6
"""Tokens closer than this are one atom; tokens of one atom attract each other at the rate of its mass."""
BIAS = 1.5
"""Units of the exception have their kink off the circle: w ((c + z)^2 - (c - z)^2)/2 = 2 c w z, so that U = u cos."""


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is simulated."""

    beta: float = 9.0
    tokens: int = 60
    networks: int = 16
    until: float = 300.0
    step: float = 0.1
    """Of order 4; rates are of order 1."""
    exception_tokens: int = 64
    shares: tuple[float, ...] = (0.5, 1.0, 2.0)
    """u over its threshold, for the exception."""
    repelling: int = 4
    """Networks whose tokens repel each other."""
    grid: int = 720
    """Angles on which the minimiser of the repulsive energy is sought."""
    gentle: float = 0.03
    """Their weights are smaller by this: repulsion is of size 1/(2 beta), and beyond it tokens stay in valleys of U."""
    seed: int = 0


QUICK = Parameters(networks=4, until=80.0, repelling=1, grid=240, tokens=40, exception_tokens=40)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Ends of all networks, equispaced tokens on the exceptional density, repelling tokens."""
    network = networks(parameters)
    gentle = [*network[:2], parameters.gentle * network[2]]
    few = [part[: parameters.repelling] for part in gentle]
    return {
        "attract": study.part("attract", functools.partial(_follow, parameters, study, network, 1.0, "attracting")),
        "repel": study.part("repel", functools.partial(_follow, parameters, study, gentle, -1.0, "repelling")),
        "exception": study.part("exception", functools.partial(_rest, parameters)),
        "minimum": study.part("minimum", functools.partial(_minimise, parameters, study, few)),
    }


def networks(parameters: Parameters) -> list[np.ndarray]:
    """Directions, biases and weights of every network: one unit per fifth of the turn.

    Unit j is awake where cos(angle to a_j) > -b_j, at least 72.5 degrees to both sides for b_j >= -0.3, and neighbours
    are at most 144 degrees apart: U has no flat part. As |b_j| < 1 its kinks lie on the circle.
    """
    rng = np.random.default_rng(parameters.seed)
    shape = (parameters.networks, UNITS)
    turn = 2 * np.pi * (np.arange(UNITS) + rng.uniform(size=shape)) / UNITS
    return [circle(turn), rng.uniform(-0.3, 0.6, size=shape), rng.standard_normal(shape)]


def circle(angles: np.ndarray) -> np.ndarray:
    """Points of the circle."""
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def flow(beta: float, network: list[np.ndarray], sign: float = 1.0) -> AbstractField:
    """Attention and potential of one network, or of a batch along "network"; sign -1 repels and descends."""
    parts: list[Any] = [network[0], network[1], sign * network[2]]
    if network[0].ndim == 3:
        parts = [Along("network", part) for part in parts]
    return Attention(beta, normaliser=Unnormalised(), value=sign * np.eye(2)) + Potential(*parts)


def _follow(parameters: Parameters, study: Study, network: list[np.ndarray], sign: float, words: str) -> xr.Dataset:
    """Equispaced tokens along the flow of each network, with energies on the way, and a consensus start."""
    count, n = len(network[0]), parameters.tokens
    angles = 2 * np.pi * (np.arange(n) + 0.37) / n
    tokens = stack("network", range(count), [Tokens(circle(angles))] * count)
    field = flow(parameters.beta, network, sign)
    legs = int(np.ceil(parameters.until / (LEG * parameters.step)))
    paths, energies = [np.asarray(tokens.positions)], [_energy(parameters, network, tokens)]
    for leg in range(legs):
        study.progress(f"{count} networks, {words}", (0.7 if sign > 0 else 0.2) * leg / legs + 0.7 * (sign < 0))
        begin = leg * LEG * parameters.step
        tokens = advance(field, tokens, begin, begin + LEG * parameters.step, Fixed(parameters.step))
        paths.append(np.asarray(tokens.positions))
        energies.append(_energy(parameters, network, tokens))
    speed = np.linalg.norm(np.asarray(field.velocity(0.0, None, tokens)), axis=-1)
    made = xr.Dataset(
        {
            "positions": (("time", "network", "token", "dim"), np.stack(paths)),
            "energy": (("time", "network"), np.stack(energies)),
            "speed": (("network", "token"), speed),
            "directions": (("network", "unit", "dim"), network[0]),
            "biases": (("network", "unit"), network[1]),
            "weights": (("network", "unit"), network[2]),
            "time": (("time",), LEG * parameters.step * np.arange(legs + 1)),
        }
    )
    return made if sign > 0 else made.isel(network=slice(parameters.repelling))  # one shape, one program for both


def _energy(parameters: Parameters, network: list[np.ndarray], tokens: Tokens) -> np.ndarray:
    """E of every network: the energy of attention, and U written out."""
    slopes = np.einsum("ktd,kud->ktu", np.asarray(tokens.positions), network[0]) + network[1][:, None]
    heights = np.einsum("ktu,ku->kt", np.maximum(slopes, 0.0) ** 2 / 2, network[2])
    return np.asarray(energy(tokens, parameters.beta)) + 1 / (2 * parameters.beta) + heights.mean(axis=1)


def _rest(parameters: Parameters) -> xr.Dataset:
    """Velocities of equispaced tokens whose masses are the exceptional density; beyond its threshold, cut off at 0."""
    n = parameters.exception_tokens
    angles = 2 * np.pi * np.arange(n) / n
    limit = float(theory.non_atomic_threshold(parameters.beta))
    network = [np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([BIAS, BIAS])]
    speeds, masses = [], []
    for share in parameters.shares:
        mass = np.asarray(theory.non_atomic_density(angles, min(share, 1.0) * limit, parameters.beta))
        masses.append(mass / mass.sum())
        weights = np.array([1.0, -1.0]) * share * limit / (2 * BIAS)
        tokens = Tokens(circle(angles), masses[-1])
        field = flow(parameters.beta, [*network, weights])
        speeds.append(np.linalg.norm(np.asarray(field.velocity(0.0, None, tokens)), axis=-1))
    return xr.Dataset(
        {
            "speed": (("share", "token"), np.array(speeds)),
            "mass": (("share", "token"), np.array(masses)),
            "angle": (("token",), angles),
            "share": (("share",), np.array(parameters.shares)),
        },
        attrs={"limit": limit},
    )


def _minimise(parameters: Parameters, study: Study, network: list[np.ndarray]) -> xr.Dataset:
    """What theory has for the repelling networks: the minimiser and its certificate."""
    grid, rows = 2 * np.pi * np.arange(parameters.grid) / parameters.grid, []
    for k in range(len(network[0])):
        study.progress("minimising", 0.9 + 0.1 * k / len(network[0]))
        height = functools.partial(_height, [part[k] for part in network])
        best = theory.repulsive_minimiser(height, parameters.beta, points=parameters.grid)
        weights = np.zeros(parameters.grid)
        weights[np.round(best.angles / grid[1]).astype(int)] = best.weights
        rows.append((weights, best.constant, best.energy, best.circle_gap))
    weights, constant, least, gap = map(np.array, zip(*rows, strict=True))
    return xr.Dataset(
        {
            "weight": (("network", "angle"), weights),
            "constant": (("network",), constant),
            "energy": (("network",), least),
            "circle_gap": (("network",), gap),
        },
        {"angle": grid},
    )


def _height(network: list[np.ndarray], angles: np.ndarray) -> np.ndarray:
    return theory.Landscape(network[0], network[1], network[2]).potential(circle(angles))


def atoms(positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Angles and masses of the groups of tokens that lie closer than SAME."""
    angles = np.sort(np.mod(np.arctan2(positions[:, 1], positions[:, 0]), 2 * np.pi))
    jumps = np.flatnonzero(np.diff(angles, append=angles[0] + 2 * np.pi) > SAME)
    if not len(jumps):
        return angles[:1], np.ones(1)
    angles = np.roll(angles, -jumps[0] - 1)
    angles[len(angles) - jumps[0] - 1 :] += 2 * np.pi
    groups = np.split(angles, np.flatnonzero(np.diff(angles) > SAME) + 1)
    return np.mod([g.mean() for g in groups], 2 * np.pi), np.array([len(g) / len(angles) for g in groups])


def critical_atoms(start: np.ndarray, masses: np.ndarray, beta: float, network: Any) -> tuple[np.ndarray, float]:
    """Solve sum_j m_j e^(beta (cos(t_j - t_i) - 1)) sin(t_j - t_i) + U'(t_i) = 0 from `start`; also the curvature.

    The curvature is the smallest singular value of the Jacobian at the solution: a residual r moves an atom by at most
    r over it, to first order.
    """
    from scipy.optimize import root

    def pull(angles: np.ndarray) -> np.ndarray:
        gap = angles - angles[:, None]
        slope = network.gradient(circle(angles))
        tangent = np.stack([-np.sin(angles), np.cos(angles)], axis=-1)
        return np.asarray((np.exp(beta * (np.cos(gap) - 1)) * np.sin(gap)) @ masses + (slope * tangent).sum(axis=-1))

    found = root(pull, start, tol=1e-14, method="hybr").x
    h = 1e-6
    jacobian = np.stack([(pull(found + h * e) - pull(found - h * e)) / (2 * h) for e in np.eye(len(found))], axis=1)
    return np.mod(found, 2 * np.pi), float(np.linalg.svd(jacobian, compute_uv=False).min())


def peaks(network: Any, count: int = 4096) -> np.ndarray:
    """Angles at which U is larger than at its neighbours on a grid."""
    grid = 2 * np.pi * np.arange(count) / count
    height = network.potential(circle(grid))
    return np.asarray(grid[(height > np.roll(height, 1)) & (height >= np.roll(height, -1))])


def apart(a: Any, b: Any) -> np.ndarray:
    """Distance on the circle."""
    return np.abs((np.asarray(a) - np.asarray(b) + np.pi) % (2 * np.pi) - np.pi)


def network_of(data: xr.Dataset, k: int) -> theory.Landscape:
    """Network k."""
    return theory.Landscape(*(data[name].values[k] for name in ("directions", "biases", "weights")))


def compare(parameters: Parameters, data: xr.Dataset) -> list[dict[str, Any]]:
    """Per network: atoms found, atoms predicted from the nearest peaks of U, and how far off they may be."""
    rows = []
    for k in range(data.sizes["network"]):
        network = network_of(data, k)
        angles, masses = atoms(data["positions"].values[-1, k])
        tops = peaks(network)
        nearest = tops[np.argmin(apart(angles[:, None], tops), axis=1)]
        predicted, curvature = critical_atoms(nearest, masses, parameters.beta, network)
        off = (float(data["speed"].values[k].max()) + 64 * EPS) / curvature + SAME**2
        rows.append(
            {
                "angles": angles, "masses": masses, "peaks": tops, "predicted": predicted,
                "distance": float(apart(angles, predicted).max()), "tolerance": 2 * off,
                "same_peak": len(np.unique(nearest)) < len(nearest),
            }
        )  # fmt: skip
    return rows


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Atoms, their places, the bound of the energy, the exception, the certificate."""
    up, rows = data["attract"], compare(parameters, data["attract"])
    many = max(len(row["angles"]) - len(row["peaks"]) for row in rows)
    worst = max(rows, key=lambda row: _bad(row["distance"] / row["tolerance"]))
    limits = [float(theory.dirac_bound(parameters.beta, theory.largest_potential(network_of(up, k))[0]))
              for k in range(up.sizes["network"])]  # fmt: skip
    energy, rounding = up["energy"].values, 64 * EPS * (1 + max(limits))
    gathered = [k for k, row in enumerate(rows) if len(row["angles"]) == 1 and len(row["peaks"]) == 1]
    made = [
        Claim.at_most(
            f"most atoms less peaks of U, {len(rows)} networks, {up.sizes['token']} tokens each", 0.0, many, 0.0,
            f"tokens closer than {SAME:g} are one atom",
        ),
        Claim.equal(
            f"place of atoms less critical point next to a peak of U, in {len(rows)} networks (worst)",
            0.0, worst["distance"], worst["tolerance"],
            "twice the speed left at the end over the curvature; width of atoms squared; rounding",
        ),
        Claim.at_least(
            "smallest growth of the energy between frames", 0.0, float(np.diff(energy, axis=0).min()), rounding,
            "rounding of sums over pairs",
        ),
        Claim.at_most(
            "energy over 1/(2β) + max U, largest of all frames", 0.0, float((energy - limits).max()), rounding,
            "rounding of sums over pairs",
        ),
    ]  # fmt: skip
    if gathered:
        below = max(limits[k] - energy[-1, k] for k in gathered)
        made.append(
            Claim.equal(
                f"with one peak the Dirac bound is reached ({len(gathered)} networks): energy below it", 0.0,
                float(below), rounding, "rounding; the distance to the peak enters squared",
            )
        )  # fmt: skip
    return made + _exception(parameters, data["exception"]) + _repelling(parameters, data["repel"], data["minimum"])


def _bad(ratio: float) -> float:
    return float("inf") if np.isnan(ratio) else ratio


def _exception(parameters: Parameters, data: xr.Dataset) -> list[Claim]:
    """The density without atoms rests up to the threshold and moves beyond."""
    fastest = data["speed"].max("token").values
    inside = parameters.shares <= np.array(1.0)
    n, limit = data.sizes["token"], data.attrs["limit"]
    # the trapezoidal rule is exact up to degrees beyond n, whose coefficients e^(-beta) I_(n-1)(beta) are
    from scipy.special import ive

    missed = 4 * float(ive(n - 1, parameters.beta)) + 64 * EPS
    made = [
        Claim.at_most(
            "U = u cos, u up to its threshold: speed of tokens that carry the density without atoms", 0.0,
            float(fastest[inside].max()), missed, "trapezoidal rule: degrees beyond the tokens; rounding",
        )
    ]  # fmt: skip
    for share, speed in zip(np.array(parameters.shares)[~inside], fastest[~inside], strict=True):
        # the density of the threshold cancels one threshold of u, and the rest pulls with (share - 1) limit sin
        step = 2 * np.pi / n
        made.append(
            Claim.equal(
                f"u {share:g} times its threshold: largest speed at the density of the threshold",
                (share - 1) * limit, float(speed), (share - 1) * limit * step**2 / 8 + missed,
                "the largest sine on the grid; trapezoidal rule; rounding",
            )
        )  # fmt: skip
    return made


def certificate(parameters: Parameters, data: xr.Dataset, k: int) -> float:
    """Mean less smallest value of Phi at the end of repelling tokens: they are at most so far above the minimum."""
    ends, network = data["positions"].values[-1, k], network_of(data, k)
    masses = np.full(len(ends), 1 / len(ends))
    rest = (ends, masses, parameters.beta, network)
    fine = circle(2 * np.pi * np.arange(20_000) / 20_000)
    return float(masses @ theory.first_variation(ends, *rest) - theory.first_variation(fine, *rest).min())


def _repelling(parameters: Parameters, data: xr.Dataset, best: xr.Dataset) -> list[Claim]:
    """Energies of repelling tokens: not below the minimum, and above it by no more than two bounds allow."""
    n, count = data.sizes["token"], data.sizes["network"]
    excess = data["energy"].values[-1] - best["energy"].values
    gaps = np.array([certificate(parameters, data, k) for k in range(count)])
    # masses of the minimiser rounded to multiples of 1/n change by less than 1/n at each of its atoms; Phi is the same
    # on all of them, and the kernel at most 1
    rounded = ((best["weight"].values > 0).sum(axis=1) / n) ** 2 / (2 * parameters.beta)
    certified = best["circle_gap"].values + 64 * EPS
    low, sure, near = (int(np.argmax([_bad(x) for x in off])) for off in
                       (-excess / certified, excess / gaps, excess / (rounded + certified)))  # fmt: skip
    return [
        Claim.at_least(
            f"repelling tokens, {count} networks: energy over the minimum (lowest)", 0.0, float(excess[low]),
            float(certified[low]), "the certificate of the minimum; rounding",
        ),
        Claim.at_most(
            "repelling tokens: energy over the minimum (worst), below mean Φ - min Φ", float(gaps[sure]),
            float(excess[sure]), 64 * EPS, "convexity of the energy in the measure; rounding",
        ),
        Claim.at_most(
            f"repelling tokens: energy over the minimum (worst), as for {n} equal masses at its atoms",
            float(rounded[near]), float(excess[near]), float(certified[near]),
            "(atoms/tokens)²/(2β): masses rounded to those of tokens; the certificate of the minimum",
        ),
    ]  # fmt: skip


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Tokens on the circle under attention and a perceptron block, beta as in the parameters.

    (a) Angles of tokens in time for one network, beside its potential U; dashed: critical atoms from theory.
    (b) Energies below their largest values 1/(2 beta) + max U. (c) Where atoms end against where theory has them, all
    networks. (d) The density without atoms that rests for U = u cos (marks: masses of tokens; u in units of its
    threshold, beyond which the density of the threshold is taken), with the largest speed of the tokens. (e) Repelling
    tokens: where they end (marks), and the first variation of the minimiser (line), which is smallest on its atoms
    (dotted) and hardly larger between them, so that tokens there cost little. (f) Their energy over the minimum, in
    time, and the bound that their own first variation at the end gives.
    """
    return draw_figure(parameters, data, compare(parameters, data["attract"]), network_of, certificate)
