"""Rates of moments and complex rates of modes, against closed forms."""

import itertools

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence
from attnflow.experiments.kit import EPS, Rows
from attnflow_gallery.general_interaction.simulate import (
    MODELS,
    POWERS,
    SEED,
    TURNS,
    Parameters,
    Turn,
    Weights,
    directions,
    even,
    growing,
    kept,
    modes,
    moment_rates,
    moved,
)

STATIONARY = consequence("Which weights keep the uniform measure")
RATES = consequence("Growth and turning")
FINER = 2
"""How many times finer the quadrature of the predictions is."""


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Moments that stay, moments that move, and modes on both spheres."""
    return [*_moments(parameters, data), _modes(parameters, data, 2), _modes(parameters, data, 3)]


def predicted(parameters: Parameters, d: int, one: Weights, scale: float, model: str) -> tuple[np.ndarray, np.ndarray]:
    """Rates of the moments by the closed velocity, and what a finer quadrature over the sphere changes."""
    u, rows = directions(parameters, d), []
    for finer in (1, FINER):
        size = Parameters(ring=finer * parameters.ring, latitudes=finer * parameters.latitudes)
        tokens = even(size, d)
        x = np.asarray(tokens.positions)
        velocity = theory.uniform.uniform_velocity(x, scale * one.interaction, one.value, model=model)
        rows.append(moment_rates(x, np.asarray(tokens.masses), velocity, u))
    return rows[1], np.abs(rows[1] - rows[0])


def _moments(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    still, moving = Rows(), Rows()
    for d, model in itertools.product((2, 3), MODELS):
        some, part = kept(parameters, d), data[f"moments-{d}-{model}"]["rate"].values
        for (at, scale), (k, one) in itertools.product(enumerate(parameters.scales), enumerate(some + moved(d))):
            expected, rough = predicted(parameters, d, one, scale, model)
            found, label = part[at, k], f"S^{d - 1}, {model}, {one.name}, scale {scale:g}"
            # rounding of weights, relative to the largest weight, and of sums
            largest = np.exp(np.linalg.norm(scale * one.interaction, 2)) if model == "USA" else 1.0
            room = (
                1e3 * EPS * largest * np.linalg.norm(one.value, 2)
                + 2 * rough
                + _kernel(parameters, d, one, scale, model)
            )
            if k < len(some):
                still.add(0.0, found, room, label)
                continue
            moving.add(expected, found, room, label)
    reason = "rounding; degrees of the kernel beyond the quadrature; what a finer quadrature changes"
    every = f"E⟨x, u⟩^p, p = {', '.join(map(str, POWERS))}"
    return [
        still.equal(
            f"VBᵀ = cI + S, S skew, [S, BBᵀ] = 0: rates of {every} at the uniform measure", reason, origin=STATIONARY
        ),
        moving.equal(
            f"other weights, V = I with B symmetric among them: rates of {every}, formula", reason, origin=STATIONARY
        ),
    ]


def _kernel(parameters: Parameters, d: int, one: Weights, scale: float, model: str) -> float:
    """What degrees of the kernel beyond the exactness of the quadrature may add to a velocity."""
    exact = parameters.ring - 1 if d == 2 else 2 * parameters.latitudes - 1
    beta = float(np.linalg.norm(scale * one.interaction, 2))
    beyond = float(np.sum(theory.uniform.degree_weights(beta, d, exact + 200)[exact:]))
    largest = np.exp(2 * beta) if model == "SA" else np.exp(beta)
    return 4 * beyond * largest * float(np.linalg.norm(one.value, 2))


def rate(one: Turn, mode: tuple[int, int], beta: float, d: int, model: str) -> complex:
    """Lambda of a mode."""
    degree, order = mode
    turned = {"angle": order * one.angle, "scale": one.scale, "spin": order * one.spin}
    return complex(theory.uniform.turning_rates(beta, d, degree, model=model, **turned))


def measured(part: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Times and the logarithms of amplitudes over their start, (turn, mode, time), with the phase followed."""
    amplitude = part["real"].values + 1j * part["imaginary"].values
    ratio = amplitude / amplitude[..., :1]
    return part["time"].values, np.log(np.abs(ratio)) + 1j * np.unwrap(np.angle(ratio), axis=-1)


def _modes(parameters: Parameters, data: dict[str, xr.Dataset], d: int) -> Claim:
    rows, known = Rows(), modes(parameters, d)
    for model, beta in [(model, beta) for of, model, beta in growing(parameters) if of == d]:
        part = data[f"growth-{d}-{model}-{beta:g}"]
        (*_, end), logs = measured(part)
        unit, last = float(part["unit"]), logs[..., -1]
        for (a, one), (b, mode) in itertools.product(enumerate(TURNS), enumerate(known)):
            expected = rate(one, mode, beta, d, model) * unit
            found, size = last[a, b] / end * unit, np.exp(max(last[a, b].real, 0.0))
            fast = abs(expected) + mode[0]  # the base state turns at most at the rate 1
            allowed = 4 * fast**5 * parameters.step**4 / 120
            allowed += 1e2 * EPS / SEED * np.exp(max(-last[a, b].real, 0.0)) + 1e2 * (SEED * size) ** 2
            label = f"{model}, β = {beta:g}, {one.name}, degree {mode[0]}, order {mode[1]}"
            rows.add([expected.real, expected.imag], [found.real, found.imag], allowed, label)
    where = "the circle" if d == 2 else "S²"
    return rows.equal(
        f"{where}, B = βR, V = (cI + S)R: growth and turning of seeded modes",
        "4 rate⁵ h⁴/120 of RK4, with the base state turning; round-off over the seed; third order of the seed",
        origin=RATES,
    )
