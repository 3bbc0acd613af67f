"""Distances to the density given the heads, the moving Poisson kernel, its martingale, and the uniform start."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, consequence
from attnflow.experiments.kit import EPS, LEVEL, Rows, averaged, student
from attnflow_gallery.common_noise.simulate import BLOCK, Parameters

SECOND = 8.0
"""Second order of the noise: a mean square is that of the linearised layers times 1 + O(1/n), here at most 8/n."""
OTHER = consequence("Other heads")
CARRIED = consequence("The noise of sampling, carried by the layers")
POISSON = consequence("A moving Poisson kernel")
MARTINGALE = consequence("The logarithm of the order is a martingale")
LEAVE = consequence("Layers leave the Poisson kernels")
UNIFORM = consequence("The uniform start")
AVERAGE = consequence("The average over heads")


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Same and other heads; the Poisson kernel and its order; layers; the uniform start; the average over heads."""
    return [
        _same(parameters, data),
        _other(parameters, data),
        _kernel(data["kernel"]),
        _logarithm(parameters, data["order"]),
        _order(parameters, data["order"]),
        _leave(parameters, data),
        _antipodal(parameters, data["long"]),
        _power(parameters, data),
        _average(parameters, data),
    ]


def _test(draws: int, what: str) -> str:
    return f"Student's test of {draws} {what} at level {LEVEL:g}"


def jackknife(rows: np.ndarray, estimate: Callable[[np.ndarray], Any]) -> tuple[np.ndarray, np.ndarray]:
    """An estimate from the mean of independent rows (draw, ...), and its standard error by leaving one draw out."""
    count, total = len(rows), rows.sum(axis=0)
    without = np.array([estimate((total - row) / (count - 1)) for row in rows])
    spread = np.sqrt((count - 1) / count * np.sum((without - without.mean(axis=0)) ** 2, axis=0))
    return np.asarray(estimate(total / count)), spread


def power_of(tolerance: Any, error: Any, size: Any) -> str:
    """What the test can see: errors of this share are noticed with probability 98 % (two standard errors more)."""
    most = float(np.max((np.asarray(tolerance) + 2 * np.asarray(error)) / np.asarray(size)))
    return f"an error of {100 * most:.0f} % would be noticed with probability 98 %"


def squares(parameters: Parameters, data: dict[str, xr.Dataset], which: str) -> np.ndarray:
    """(seed, size) |c_1 of n tokens - c_1 of the density|^2: the same heads ("mean"), or the mean over "other" ones."""
    density = data["density"][which].values.reshape(parameters.heads, -1, 2)
    tokens = [data[f"tokens-{n}"]["mean"].values[:, None] for n in parameters.sizes]
    return np.stack([np.sum((one - density) ** 2, axis=-1).mean(axis=1) for one in tokens], axis=1)


def blocks(rows: np.ndarray) -> np.ndarray:
    """Means (block, ...) of rows (seed, ...)."""
    return np.asarray(rows.reshape(-1, BLOCK, *rows.shape[1:]).mean(axis=1))


def _same(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    sizes, waves = np.array(parameters.sizes), data["density"]["power"].values
    total = waves.sum(axis=0)
    rows = np.column_stack([sizes * squares(parameters, data, "mean"), total])
    ratio, error = jackknife(rows, lambda mean: mean[:-1] / mean[-1])
    # the powers of the waves fall geometrically, by more than 2 from one to the next
    left = float(waves[-1].mean() / total.mean())
    tolerance = (student(LEVEL, parameters.heads, len(sizes)) * error + left + SECOND / sizes) / 2
    found, compared = np.sqrt(ratio), Rows()
    compared.add(1.0, found, tolerance, [f"n = {n}" for n in sizes])
    return compared.equal(
        "the same heads: √n times the rms distance of c_1 to the density, over that of the linearised layers",
        f"{_test(parameters.heads, 'head streams')} for all n; share of the last wave; {SECOND:g}/n; halves for roots",
        origin=CARRIED,
        level=LEVEL,
        detail=f"linearised {np.sqrt(total.mean()):.3f}; {power_of(tolerance, error / 2, 1.0)} at every n",
    )


def _other(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    """E|c^n - c'|^2 - E|c^n - c|^2 = 2 Var c up to O(1/n), for the density c' of independent head streams."""
    mean = data["density"]["mean"].values.reshape(-1, BLOCK, 2)
    twice = 2 * mean.var(axis=1, ddof=1).sum(axis=-1)
    same = blocks(squares(parameters, data, "mean"))
    off, error = averaged(blocks(squares(parameters, data, "other")) - twice[:, None] - same)
    sizes, rows = np.array(parameters.sizes), Rows()
    tolerance = student(LEVEL, len(twice), len(sizes)) * error + SECOND * same.mean(axis=0) / sizes
    rows.add(0.0, off, tolerance, [f"n = {n}" for n in sizes])
    known = twice.mean() + same.mean(axis=0)
    return rows.equal(
        "other heads: the mean square distance of c_1 is twice its variance over heads, plus that with the same heads; "
        "difference",
        f"{_test(len(twice), f'blocks of {BLOCK} head streams')} for all n; {SECOND:g}/n of that with the same heads",
        origin=OTHER,
        level=LEVEL,
        detail=f"predicted {', '.join(f'{v:.4f}' for v in known)}; {power_of(tolerance, error, known)}",
    )


def masses(part: xr.Dataset) -> np.ndarray:
    """(path, frame, arc) the mass of the Poisson kernel of w between neighbouring points."""
    w, z = (part[name].values[..., 0] + 1j * part[name].values[..., 1] for name in ("w", "points"))
    w = w[..., None]
    # the Moebius map that takes w to 0 takes the kernel to the uniform density
    uniform = (z - w) / (1 - np.conj(w) * z)
    return np.asarray(np.angle(np.roll(uniform, -1, axis=-1) / uniform) / (2 * np.pi))


def _kernel(part: xr.Dataset) -> Claim:
    found, gap, tau = masses(part), part["gap"].values, part["tau"].values
    share, rows = 1 / found.shape[-1], Rows()
    for path, frame in np.ndindex(gap.shape):
        rounding = 8 * EPS * (1 + part.attrs["boosts"]) / gap[path, frame]
        rows.add(share, found[path, frame], rounding, f"path {path}, τ = {tau[frame]:g}")
    order, off = f"|w|² from {1 - gap.max():.3f} to {1 - gap.min():.3f}", np.abs(found - share).max()
    return rows.equal(
        f"infinite temperature: points of equal masses keep the mass 1/{found.shape[-1]} in the moving Poisson kernel",
        "rounding of every boost, 8 eps, over 1 − |w|², by which the kernel stretches",
        origin=POISSON,
        detail=f"{order}; largest difference {off:.1e}",
    )


def _logarithm(parameters: Parameters, part: xr.Dataset) -> Claim:
    times, rows = part["tau"].values[1:], Rows()
    mean, error = averaged(np.log(part["u"])[:, 1:])
    tolerance = student(LEVEL, part.sizes["path"], len(times)) * error
    rows.add(theory.random_layers.poisson_log_order(parameters.order), mean, tolerance, [f"τ = {t:g}" for t in times])
    statement = f"infinite temperature: E log|w|² stays log {parameters.order:g}"
    return rows.equal(statement, _test(part.sizes["path"], "paths"), origin=MARTINGALE, level=LEVEL)


def _order(parameters: Parameters, part: xr.Dataset) -> Claim:
    times, rows, h = part["tau"].values[1:], Rows(), parameters.boost
    found, error = averaged(part["u"][:, 1:])
    mean = theory.random_layers.poisson_order_mean(parameters.order, times)
    tolerance = student(LEVEL, part.sizes["path"], len(times)) * error + h * (mean - parameters.order)
    rows.add(mean, found, tolerance, [f"τ = {t:g}" for t in times])
    reason = f"{_test(part.sizes['path'], 'paths')}; a share h = {h:g} of the growth for boosts of weak order 1"
    return rows.equal(
        "infinite temperature: E|w|² grows as the backward equation has it", reason, origin=MARTINGALE, level=LEVEL
    )


def departures(parameters: Parameters, part: xr.Dataset, h: float) -> np.ndarray:
    """(seed, frame) |c_2 - c_1^2|^2/(h tau) after the short time and twice of it."""
    modes = part["modes"].values[..., 0] + 1j * part["modes"].values[..., 1]
    taus = h * np.round(2 * parameters.leave_tau / h) * np.array([0.5, 1.0])
    return np.asarray(np.abs(modes[:, 1:, 1] - modes[:, 1:, 0] ** 2) ** 2 / (h * taus))


def at_zero(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error at tau -> 0 from values (draw, ..., 2) at tau and 2 tau: the first order cancels."""
    return averaged(2 * rows[..., 0] - rows[..., 1])


def _zero_test(draws: int) -> str:
    return f"{_test(draws, 'head streams')}, extrapolated from two τ to 0; shares (2τ)² and 2h"


def _leave(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    steps, u, tau = np.array(parameters.leave_steps), parameters.order, parameters.leave_tau
    found = np.stack([departures(parameters, data[f"leave-{h:g}"], h) for h in steps], axis=1)
    mean, error = at_zero(found)
    predicted, rows = (u * (1 - u)) ** 2 / 8, Rows()
    tolerance = student(LEVEL, len(found), len(steps)) * error + predicted * (4 * tau**2 + 2 * steps)
    rows.add(predicted, mean, tolerance, [f"h = {h:g}" for h in steps])
    x = np.log(steps) - np.mean(np.log(steps))
    rms = np.log(steps * found[..., 1].mean(axis=0)) / 2
    return rows.equal(
        f"infinite temperature: layers of time h leave the Poisson kernels, E|c_2 − c_1²|²/(hτ) → {predicted:.6f}",
        _zero_test(len(found)),
        origin=LEAVE,
        level=LEVEL,
        detail=f"power of h of the rms {x @ rms / (x @ x):.3f} (1/2 expected); {power_of(tolerance, error, predicted)}",
    )


def _antipodal(parameters: Parameters, part: xr.Dataset) -> Claim:
    odd, even, rows = part["size"].values[..., ::2], part["size"].values[..., 1], Rows()
    for frame, tau in enumerate(part["tau"].values):
        # a layer stretches by 1 + 2 sqrt(h) |V| b at most; its square mean grows like e^(4 tau) or slower
        labels = [f"path {path}, τ = {tau:g}, mode {mode}" for path in range(len(odd)) for mode in (1, 3)]
        rows.add(0.0, odd[:, frame], 64 * EPS * np.exp(4 * tau), labels)
    return rows.equal(
        f"uniform start, b = {max(parameters.uniform_b):g}: odd modes are 0 on every path, so there is no consensus",
        "rounding of 64 labels, 64 eps, growing like e^(4τ) at most",
        origin=UNIFORM,
        detail=f"largest {odd.max():.1e}; meanwhile |c_2| has grown to {even[:, -1].mean():.2f} in the mean",
    )


def _power(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    h, rows = parameters.uniform_h, Rows()
    tau = h * np.round(2 * parameters.uniform_tau / h) / 2
    for b in parameters.uniform_b:
        found = data[f"uniform-{b:g}"]["power"].values / (tau * np.array([1.0, 2.0]))
        mean, error = at_zero(found)
        value, before = theory.random_layers.uniform_start_power(2, b), found.mean(axis=0)
        allowed = student(LEVEL, len(found), len(parameters.uniform_b)) * error + value * (4 * tau**2 + 2 * h)
        rows.add(value, mean, allowed, f"b = {b:g}, before extrapolation {before[0]:.4f} and {before[1]:.4f}")
    return rows.equal(
        "uniform start: E|c_2|²/τ at τ → 0", _zero_test(parameters.uniform_heads), origin=UNIFORM, level=LEVEL
    )


def average(tau: np.ndarray, d: int, h: float) -> np.ndarray:
    """E <x(tau), x(0)> of one token after layers of time h, to first order in h."""
    return np.asarray(theory.random_layers.one_token_decay(tau, d) * np.exp(h * tau * (d - 1) * (d - 4) / (4 * d * d)))


def _average(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    times, h, rows = np.array(parameters.mean_times), parameters.mean_h, Rows()
    for d in parameters.dims:
        mean, error = averaged(data[f"single-{d}"]["overlap"])
        predicted = average(times, d, h)
        allowed = student(LEVEL, parameters.tokens, len(parameters.dims) * len(times)) * error
        rows.add(predicted, mean, allowed + predicted * h * h * times, [f"d = {d}, τ = {t:g}" for t in times])
    reason = f"{_test(parameters.tokens, 'tokens')}; first order in h = {h:g} is in the prediction, h² is not"
    statement = "average over heads: E<x(τ), x(0)> of one token decays like e^(-(d-1)τ/(2d))"
    return rows.equal(statement, reason, origin=AVERAGE, level=LEVEL)
