"""Atoms and where they are, energies, the density at rest, the minimiser at rest."""

import functools
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import EPS, Rows
from attnflow.theory.landscape import circle_points
from attnflow_gallery.perceptron_landscape.simulate import ARC, Parameters

SAME = 1e-6
"""Tokens closer than this are one atom; tokens of one atom attract each other at the rate of its mass."""
PAPER = published("alvarez2026perceptrons")


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
        slope = network.gradient(circle_points(angles))
        tangent = np.stack([-np.sin(angles), np.cos(angles)], axis=-1)
        return np.asarray((np.exp(beta * (np.cos(gap) - 1)) * np.sin(gap)) @ masses + (slope * tangent).sum(axis=-1))

    found = root(pull, start, tol=1e-14, method="hybr").x
    h = 1e-6
    jacobian = np.stack([(pull(found + h * e) - pull(found - h * e)) / (2 * h) for e in np.eye(len(found))], axis=1)
    return np.mod(found, 2 * np.pi), float(np.linalg.svd(jacobian, compute_uv=False).min())


def peaks(network: Any, count: int = 4096) -> np.ndarray:
    """Angles at which U is larger than at its neighbours on a grid."""
    grid = 2 * np.pi * np.arange(count) / count
    height = network.potential(circle_points(grid))
    return np.asarray(grid[(height > np.roll(height, 1)) & (height >= np.roll(height, -1))])


def apart(a: Any, b: Any) -> np.ndarray:
    """Distance on the circle."""
    return np.abs((np.asarray(a) - np.asarray(b) + np.pi) % (2 * np.pi) - np.pi)


def network_of(data: xr.Dataset, k: int) -> theory.landscape.Landscape:
    """Network k."""
    return theory.landscape.Landscape(*(data[name].values[k] for name in ("directions", "biases", "weights")))


def compare(parameters: Parameters, data: xr.Dataset) -> list[dict[str, Any]]:
    """Per network: atoms found, atoms predicted from the nearest peaks of U, and how far off they may be."""
    rows: list[dict[str, Any]] = []
    for k in range(data.sizes["network"]):
        network = network_of(data, k)
        angles, masses = atoms(data["positions"].values[-1, k])
        tops = peaks(network)
        nearest = tops[np.argmin(apart(angles[:, None], tops), axis=1)]
        predicted, curvature = critical_atoms(nearest, masses, parameters.beta, network)
        off = (float(data["speed"].values[k].max()) + 64 * EPS) / curvature + SAME**2
        rows.append({"angles": angles, "masses": masses, "peaks": tops, "predicted": predicted})
        rows[-1] |= {"distance": float(apart(angles, predicted).max()), "tolerance": 2 * off}
    return rows


def bounds(parameters: Parameters, data: xr.Dataset) -> np.ndarray:
    """1/(2 beta) + max U of every network."""
    tops = [theory.landscape.largest_potential(network_of(data, k))[0] for k in range(data.sizes["network"])]
    return theory.landscape.dirac_bound(parameters.beta, np.array(tops))


def certificate(parameters: Parameters, data: xr.Dataset, k: int) -> float:
    """Mean less smallest value of Phi at the end of repelling tokens: they are at most so far above the minimum."""
    ends, network = data["positions"].values[-1, k], network_of(data, k)
    masses = np.full(len(ends), 1 / len(ends))
    phi = functools.partial(theory.landscape.first_variation, beta=parameters.beta, landscape=network)
    fine = circle_points(2 * np.pi * np.arange(20_000) / 20_000)
    return float(masses @ phi(ends, ends, masses) - phi(fine, ends, masses).min())


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Five statements: three on the paper's landscape, two derived."""
    found = compare(parameters, data["even"])
    limits = bounds(parameters, data["even"])
    return [
        _places(data["even"], found),
        _monotone(data, 64 * EPS * (1 + limits.max())),
        _largest(parameters, data["peak"], limits),
        _exception(parameters, data["exception"]),
        _at_rest(data["rest"], data["minimum"]),
    ]


def _places(data: xr.Dataset, found: list[dict[str, Any]]) -> Claim:
    rows, start = Rows(), f"{data.sizes['network']} networks, {data.sizes['token']} tokens"
    for k, one in enumerate(found):
        rows.add(0.0, one["distance"], one["tolerance"], f"network {k}")
    atoms, tops = (sum(len(one[name]) for one in found) for name in ("angles", "peaks"))
    return rows.equal(
        f"{start}: angle of atoms less that of the critical point next to a peak of U",
        "twice the speed left at the end over the curvature; width of atoms squared; rounding",
        origin=PAPER,
        detail=f"{atoms} atoms, {tops} peaks",
    )


def _monotone(data: dict[str, xr.Dataset], rounding: float) -> Claim:
    rows = Rows()
    for name, words, sign in (("even", "attracting", 1), ("repel", "repelling", -1)):
        for k, gain in enumerate(sign * np.diff(data[name]["energy"].values, axis=0).T):
            rows.add(0.0, gain.min(), rounding, f"{words}, network {k}")
    words = "growth of E between frames (attracting tokens), fall of E (repelling tokens)"
    return rows.at_least(words, "rounding of sums over pairs", origin=PAPER)


def _largest(parameters: Parameters, data: xr.Dataset, limits: np.ndarray) -> Claim:
    """E at a distance x from the peak is lower by |U''| x^2/2, and the speed left is |U''| x."""
    rows = Rows()
    for k, limit in enumerate(limits):
        network, ends = network_of(data, k), data.isel(network=k)
        top = circle_points(theory.landscape.largest_potential(network)[1])
        bent = -theory.landscape.dirac_stability(top, parameters.beta, network).hessian_eigenvalues[0]
        allowed = float(ends["speed"]) ** 2 / bent + 64 * EPS * (1 + abs(limit))
        rows.add(limit, ends["energy"][-1], allowed, f"network {k}")
    words = f"tokens that start within {ARC:g} of the highest peak: E at the end, against 1/(2β) + max U"
    return rows.equal(words, "square of the speed left over the curvature of U; rounding", origin=PAPER)


def _exception(parameters: Parameters, data: xr.Dataset) -> Claim:
    """The density without atoms is at rest up to the threshold, and beyond it the excess of u pulls."""
    from scipy.special import ive

    rows, n = Rows(), data.sizes["token"]
    # the trapezoidal rule is exact up to degrees beyond n, whose coefficients e^(-beta) I_(n-1)(beta) are
    missed = 4 * float(ive(n - 1, parameters.beta)) + 64 * EPS
    for share, fastest in zip(parameters.shares, data["speed"].max("token", skipna=False).values, strict=True):
        beyond = max(share - 1, 0.0) * data.attrs["limit"]
        rows.add(beyond, fastest, beyond * (2 * np.pi / n) ** 2 / 8 + missed, f"u = {share:g} u*")
    shares = ", ".join(f"{share:g}" for share in parameters.shares)
    return rows.equal(
        f"U = u cos θ, u/u* = {shares}: largest speed in the density without atoms, against max(u - u*, 0)",
        "the largest sine on the grid; trapezoidal rule: degrees beyond the number of tokens; rounding",
        origin=consequence("A density at rest"),
    )


def _at_rest(data: xr.Dataset, best: xr.Dataset) -> Claim:
    """From the minimiser on a grid the energy falls by no more than its distance to the minimum on the circle."""
    rows, gaps = Rows(), best["circle_gap"].values
    for k, gap in enumerate(gaps):
        energy = data["energy"].values[:, k]
        fall = energy[0] - energy[1:]
        frames = [f"network {k}, frame {frame + 1}" for frame in range(len(fall))]
        rows.add(0.0, np.maximum(-fall, fall - gap), 64 * EPS, frames)
    return rows.at_most(
        "repelling tokens on the atoms of the minimiser: E leaves its certified range by",
        "E falls by 0 to mean Φ - min Φ of the minimiser; rounding",
        origin=consequence("Repelling tokens"),
        detail=f"ranges up to {gaps.max():.1e}",
    )
