"""Limits, moments, inverse covariances and energies against closed forms."""

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence, reported
from attnflow.experiments.kit import Rows
from attnflow_gallery.mixed_values.simulate import BETAS, FIRST, POINTS, Parameters, logits

PRODUCTS = consequence("Products")
GAUSS = reported("castin2025transformers", "abstract; derived again here")
WHITE = consequence("V = -I whitens")
SIX = reported("cohn2007universally", "abstract")
FIVE = consequence("Five tokens that repel each other")


def growth(parameters: Parameters, part: xr.Dataset) -> np.ndarray:
    """Eigenvalues of the growth of the inverse covariance in the second half, relative to Q^T K + K^T Q."""
    rows = []
    for which in range(2):
        turn = np.linalg.inv(np.linalg.cholesky(logits(which) + logits(which).T))
        gained = part["inverse"].values[:, which, 1] - part["inverse"].values[:, which, 0]
        rows.append(np.linalg.eigvalsh(turn @ gained @ turn.T / (parameters.late / 2)))
    return np.array(rows)


def limits(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    """Limits of rescaled coordinates."""
    rows, room = Rows(), theory.landscape
    for k, (a, b, c, v) in enumerate(parameters.prisms):
        known = [float(room.pair_limit(a, middle=True)), float(room.pair_limit(b))]
        # some 100 steps are off by 1e-11 of x each; dc/da, which is below 2 for these, carries that on
        rows.add(known, data["prisms"]["end"].values[k], 100 * 1e-11 * 2 * max(a, b), f"{a:g}, {b:g}, {c:g}; v = {v:g}")
    return rows.equal(
        "prisms in R³, V = diag(1, 1, v): limits of e⁻ᵗ x are c₃(a) and c₂(b), whatever v is",
        "100 steps of 1e-11, grown by dc/da",
        origin=PRODUCTS,
    )


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """R^d, then the sphere."""
    room = theory.landscape
    moments, white = Rows(), Rows()
    for k, (value, t) in enumerate(parameters.gaussians):
        mean, variance = room.gaussian_moments(t, value, FIRST[0], mean=FIRST[1])
        # 32, 64 and 100 nodes in NumPy differ by less than 1e-9 at these times; errors of the tail move inwards
        moments.add([mean, variance], data["gaussians"]["moments"].values[k], 1e-8, f"V = {value:g}, t = {t:g}")
    for values, label in zip(growth(parameters, data["clouds"]), ("QᵀK = I", "QᵀK not symmetric"), strict=True):
        white.add(1.0, values, POINTS / parameters.late, label)
    # speeds at rest are below 1e-9, and energies are off by their squares
    energies = np.array([room.five_point_energies(beta) for beta in BETAS])
    return [
        limits(parameters, data),
        moments.equal(
            "Gaussian measure on the line: mean and variance",
            "64 nodes in place of 32 or 100 change less; steps of 1e-11",
            origin=GAUSS,
        ),
        white.equal(
            "V = -I: the inverse covariance of random tokens grows at the rate QᵀK + its transpose",
            "corrections are standardised fourth moments, at most n, over the time",
            origin=WHITE,
        ),
        Claim.equal(
            "six tokens that repel each other on S², β = 2: energy at rest is that of the octahedron",
            12 + 3 * np.exp(-2.0),
            data["six"]["energy"].values,
            1e-9,
            "speeds at rest are below 1e-6, and energies are off by their squares",
            origin=SIX,
        ),
        Claim.equal(
            "five tokens: energies of bipyramid and square pyramid at rest",
            energies,
            data["five"]["energy"].values,
            1e-9,
            "speeds at rest are below 1e-6, and energies are off by their squares",
            origin=FIVE,
        ),
        Claim.equal(
            "five tokens: the β at which the two energies are equal",
            room.five_point_flip(),
            float(data["five"]["flip"]),
            1e-7,
            "energies are off by 1e-9, and their difference grows with β at the rate 0.06",
            origin=FIVE,
        ),
    ]
