"""Layers against exact maps, and their limits near consensus and for clusters that are apart."""

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence
from attnflow.experiments.kit import EPS, Rows
from attnflow_gallery.skip_strength.simulate import SMALL, SPREAD, Parameters

MAP = consequence("Equiangular tokens")
CLOUD = consequence("Tight clouds")
PAIR = consequence("Two clusters")
MODES = consequence("Modes of the uniform measure")


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Near each other, apart, and from the uniform measure."""
    return [
        _map(parameters, data["equiangular"]),
        *_near(parameters, data["near"]),
        _clouds(parameters, data["clouds"]),
        *_pairs(parameters, data["pairs"]),
        _rings(parameters, data["rings"]),
    ]


def deficits(parameters: Parameters, beta: float, skip: float) -> np.ndarray:
    """1 - overlap after 0, 1, ... layers from orthonormal tokens, by the exact map."""
    found = [1.0]
    for _ in range(parameters.layers):
        found.append(float(theory.uniform.layer_deficit(found[-1], beta, parameters.n, skip=skip)))
    return np.array(found)


def _map(parameters: Parameters, part: xr.Dataset) -> Claim:
    rows = Rows()
    for i, beta in enumerate(parameters.betas):
        for j, skip in enumerate(parameters.skips):
            known = deficits(parameters, beta, skip)
            # a layer rounds coordinates by some n EPS; what that leaves of |x - y| grows by 1 + beta at most in all,
            # before the tokens gather, and shrinks after
            worst = 50 * parameters.n * EPS * (1 + beta) * np.arange(1, len(known) + 1)
            labels = [f"β = {beta:g}, α = {skip:g}, layer {k}" for k in range(len(known))]
            rows.add(np.sqrt(known), np.sqrt(part["deficit"].values[i, j]), worst, labels)
    return rows.equal(
        "orthonormal tokens: √(1 - overlap), layer by layer", "rounding of every layer, grown", origin=MAP
    )


def _near(parameters: Parameters, part: xr.Dataset) -> list[Claim]:
    cubic, linear = Rows(), Rows()
    start, n = np.array(parameters.deficits), parameters.n
    for i, beta in enumerate(parameters.betas):
        for j, skip in enumerate(parameters.skips):
            found = part["deficit"].values[i, j]
            labels = [f"β = {beta:g}, α = {skip:g}, from {one:g}" for one in start]
            if skip == 0:
                # the next term is (3 beta + 1) delta at most; |x - y| is rounded at 10 n EPS
                off = 2 * (3 * beta + 1) * start + 40 * n * EPS / np.sqrt(found)
                cubic.add(1.0, found / ((beta / n) ** 2 * start**3), off, labels)
            else:
                # the next term is (2 beta/(n skip) + 2 beta + 1) delta at most
                linear.add(
                    (skip / (1 + skip)) ** 2, found / start, (2 * beta / (n * skip) + 2 * beta + 1) * start, labels
                )
    return [
        cubic.equal("no skip connection: (1 - overlap)/((β/n)² (1 - overlap before)³)", "the next order", origin=MAP),
        linear.equal("skip connection: factor of 1 - overlap per layer is (α/(1 + α))²", "the next order", origin=MAP),
    ]


def _clouds(parameters: Parameters, part: xr.Dataset) -> Claim:
    rows, beta = Rows(), parameters.betas[0]
    for j, skip in enumerate(parameters.skips):
        before, after = part["spectrum"].values[:, j, 0], part["spectrum"].values[:, j, 1]
        known = before * ((skip + beta * before) / (1 + skip)) ** 2
        # terms of the next order are (1 + beta)^2 |v|^2, |v|^2 of n coordinates; and rounding of |x - y|
        off = 4 * (1 + beta) ** 2 * parameters.n * SPREAD**2 + 40 * parameters.n * EPS / np.sqrt(known)
        rows.add(1.0, after / known, off, f"α = {skip:g}")
    return rows.equal(
        "tight clouds: largest variances c become c ((α + β c)/(1 + α))²",
        f"4 n (1 + β)² times the square of the spread {SPREAD:g}; rounding",
        origin=CLOUD,
    )


def _pairs(parameters: Parameters, part: xr.Dataset) -> list[Claim]:
    angles, layers = Rows(), Rows()
    beta, start = parameters.pair
    time = float(theory.merging.merge_time(start, beta, until=parameters.until))
    for j, skip in enumerate(parameters.skips):
        found, known = part["angle"].values[j], [start]
        for _ in range(parameters.pair_layers):
            ahead = known[-1]
            known.append(float(theory.merging.layer_angle(ahead, beta, skip=skip)) if ahead > 1e-12 else 0.0)
        # every layer rounds; the way that a pair is ahead is its rounding over its speed
        speed = np.abs(np.gradient(known)) + EPS
        off = 20 * EPS * np.arange(len(known)) * (1 + np.max(speed) / np.min(speed[np.array(known) > parameters.until]))
        angles.add(known, found, off + 1e-12, f"α = {skip:g}")
        merged = float(np.argmax(found <= parameters.until)) if found[-1] <= parameters.until else np.nan
        ends = [
            np.log(np.tan(a / 2)) + np.log(1 - np.tanh(beta * np.sin(a / 2) ** 2)) for a in (start, parameters.until)
        ]
        predicted = (1 + skip) * time - (ends[0] - ends[1]) / 2
        layers.add(predicted + 0.5, merged, 0.5 + 1 / (1 + skip), f"α = {skip:g}")
    return [
        angles.equal("two clusters: angle, layer by layer", "rounding of every layer, over the speed", origin=PAIR),
        layers.equal(
            "two clusters: layers to merge are (1 + α) T less a constant",
            "1/2 as layers are whole; the next order, 1/(1 + α)",
            origin=PAIR,
        ),
    ]


def _rings(parameters: Parameters, part: xr.Dataset) -> Claim:
    rows = Rows()
    for j, skip in enumerate(parameters.skips):
        known = theory.uniform.layer_growth(parameters.ring_beta, 2, k=parameters.degrees, skip=skip)
        labels = [f"α = {skip:g}, degree {k}" for k in parameters.degrees]
        # rounding of angles over the amplitude; the next order in the amplitude is its square
        rows.add(known, part["factor"].values[j], 20 * EPS / SMALL + 1e3 * SMALL**2, labels)
    return rows.equal(
        f"ring, β = {parameters.ring_beta:g}: factor of a mode per layer is 1 + λ_k/(α + r)",
        "rounding over the amplitude; its square",
        origin=MODES,
    )
