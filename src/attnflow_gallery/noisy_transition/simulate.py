"""Branches of stationary states, the equation with noise, and tokens with noise."""

import dataclasses
import functools
from typing import Any

import numpy as np
import xarray as xr
from scipy.optimize import brentq

from attnflow import meanfield, theory
from attnflow.axes import Along
from attnflow.experiments import Salted, Study
from attnflow.experiments.kit import ragged
from attnflow.fields import Attention
from attnflow.flows import At, Brownian, Fixed, Layers, ProjectRenormalise, solve
from attnflow.meanfield import Density, ZonalBasis, evolve, stationary, von_mises_fisher
from attnflow.sums import Circle
from attnflow.tokens import Tokens

BASIS = ZonalBasis(2, 64)
AMPLITUDES = (0.1, 0.05)
"""Of the ordered states from which the coefficient of third order is measured."""
SMALL = 0.02
"""The small order whose growth is measured."""
RELAXED = 25.0
"""For how many relaxation times the equation is followed."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated. Times are in units of 1/kappa_c."""

    dims: tuple[int, ...] = (2, 3, 8)
    """Of the spaces R^d around the spheres on which beta* is looked for."""
    cases: tuple[tuple[str, float], ...] = (("SA", 4.0), ("USA0", 1.0), ("USA0", 4.0))
    """Branches on the circle."""
    step: float = 0.01
    """Of Euler's rule, for tokens near the uniform measure."""
    growing: tuple[float, ...] = (0.5, 1.5)
    """Noise over kappa_c at which the growth of a small order is measured."""
    growth_tokens: int = 1000
    growth_seeds: int = 128
    growth_time: float = 0.5
    above: tuple[float, ...] = (2.0,)
    """Noise over kappa_c, or over the noise of the fold, of tokens without order."""
    free_tokens: int = 125
    free_seeds: int = 320
    free_burn: float = 3.0
    free_window: float = 15.0
    below: tuple[float, ...] = (0.5, 0.75)
    """Noise over kappa_c of tokens with order."""
    between: tuple[float, ...] = (0.2,)
    """Where there is a fold, more noise with order: the share of the way from kappa_c to the fold."""
    ordered_tokens: int = 1000
    ordered_seeds: int = 32
    ordered_step: float = 0.15
    """Of the Runge-Kutta rule of order 4, for tokens with order; a time, not in units of 1/kappa_c."""
    ordered_burn: float = 5.0
    """In relaxation times of the branch."""
    ordered_window: float = 6.0
    """The same."""
    frames: int = 30
    """Over which averages are taken."""


QUICK = Parameters(
    dims=(2,),
    cases=(("SA", 4.0),),
    step=0.025,
    growth_tokens=400,
    growth_seeds=80,
    free_tokens=64,
    free_seeds=320,
    free_burn=2.5,
    free_window=6.0,
    below=(0.6,),
    between=(),
    ordered_tokens=300,
    ordered_seeds=24,
    ordered_step=0.25,
    frames=20,
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """beta*; then for every model and beta the branch, states near kappa_c, the equation, and tokens."""
    data = {"jump": study.part("jump", functools.partial(jump, parameters))}
    for model, beta in study.along(parameters.cases):
        name = f"{model}-beta{beta:g}"
        data[name] = study.part(name, functools.partial(followed, model, beta))
        data |= study.parts(
            {
                f"near-{name}": (near, model, beta, data[name]),
                f"growth-{name}": (growing, parameters, model, beta),
                f"flows-{name}": (flows, parameters, model, beta, data[name], study),
            }
        )
    return data


def onset_of(model: str, beta: float) -> float:
    """kappa_c on the circle."""
    return float(theory.uniform.critical_noise(beta, 2, model=model))


def jump(parameters: Parameters) -> xr.Dataset:
    """The beta at which ordered states of small amplitude lie at kappa_c to second order, found by Newton's method."""

    def curvature(beta: float, d: int, amplitude: float) -> float:
        return meanfield.bifurcation(Attention(beta, normaliser="USA0"), d, amplitude=amplitude).curvature

    found = [[brentq(curvature, 1.1, 2.7, args=(d, s), xtol=1e-9) for s in AMPLITUDES] for d in parameters.dims]
    coordinates = {"dimension": list(parameters.dims), "amplitude": list(AMPLITUDES)}
    return xr.Dataset({"beta": (("dimension", "amplitude"), found)}, coordinates)


def size(density: Density) -> float:
    """The order m of a density."""
    return float(np.linalg.norm(density.moments.mean))


def followed(model: str, beta: float) -> xr.Dataset:
    """The branch of ordered states from 0.48 kappa_c to the uniform measure."""
    field, onset = Attention(beta, normaliser=model), onset_of(model, beta)
    begin = stationary(field, 0.48 * onset, von_mises_fisher(BASIS, 8.0)).density
    return meanfield.branch(field, 0.48 * onset, begin, within=(0.45 * onset, 3 * onset), step=0.08)


def near(model: str, beta: float, part: xr.Dataset) -> xr.Dataset:
    """Order at kappa_c (1 - delta), or at kappa_c (1 + delta) beyond the fold of a jump, delta halved four times."""
    field, onset = Attention(beta, normaliser=model), onset_of(model, beta)
    side = 1.0 if part["kappa"].max() > 1.01 * onset else -1.0
    fold = int(np.argmax(part["kappa"].values)) if side > 0 else 0
    late = np.abs(part["kappa"].values[fold:] - onset * (1 + 0.01 * side))
    guess = part["coefficients"].values[fold + int(np.argmin(late))]
    deltas, orders = 0.01 * 0.5 ** np.arange(5), []
    for delta in deltas:
        state = stationary(field, onset * (1 + side * delta), Density(BASIS, guess, tol=np.inf)).density
        orders.append(size(state))
        guess = np.asarray(state.coefficients) * 0.5 ** (BASIS.degrees / 2)  # degree k goes with m^k
    return xr.Dataset({"order": ("delta", orders), "side": side}, {"delta": deltas})


def growing(parameters: Parameters, model: str, beta: float) -> xr.Dataset:
    """m(t)/m(0) of tokens with a small order m(0) = +-SMALL, by seed.

    Both signs feel the same noise: in the difference of their means most of it cancels.
    """
    onset, step = onset_of(model, beta), parameters.step / onset_of(model, beta)
    starts = [meanfield.perturbed(BASIS, 1, sign * 2 * SMALL) for sign in (1, -1)]
    pair = [meanfield.quiet(one, parameters.growth_tokens).positions for one in starts]
    tokens = Tokens(np.stack(pair), dims=("sign",))
    before, rows = _half_difference(np.asarray(tokens.positions)), []
    for k, share in enumerate(parameters.growing):
        first = 100_000 + 1000 * parameters.cases.index((model, beta)) + 100 * k
        seeds = parameters.seeds(range(first, first + parameters.growth_seeds))
        flow = moved(model, beta, tokens, share * onset, seeds, _euler(step), [parameters.growth_time / onset])
        after = flow["positions"].isel(time=-1).transpose("seed", "sign", "token", "dim").values
        rows.append(_half_difference(after) / before)
    return xr.Dataset({"gain": (("share", "seed"), np.array(rows))}, {"share": list(parameters.growing)})


def _half_difference(x: np.ndarray) -> np.ndarray:
    """Half the difference of the means of the two signs, along the axis of the order (the last coordinate)."""
    means = x[..., -1].mean(axis=-1)
    return np.asarray((means[..., 0] - means[..., 1]) / 2)


def flows(parameters: Parameters, model: str, beta: float, part: xr.Dataset, study: Study) -> xr.Dataset:
    """At each noise: order and growth of the branch, order of the equation in the end, m^2 of tokens by seed.

    `ordered` tells from which side tokens and equation start, and thus which state is meant.
    """
    onset, fold = onset_of(model, beta), float(part["kappa"].max())
    points = [(share * onset, True) for share in parameters.below]
    if fold > 1.01 * onset:
        points += [(onset + share * (fold - onset), True) for share in parameters.between]
    points += [(share * max(fold, onset), False) for share in parameters.above]
    rows = []
    for k, (kappa, ordered) in enumerate(points):
        study.progress(f"{model}, beta = {beta:g}: kappa = {kappa:.3g}", k / len(points))
        one, first = _with_order if ordered else _without_order, 10_000 * parameters.cases.index((model, beta))
        rows.append(one(parameters, model, beta, kappa, first + 1000 * k) | {"kappa": kappa, "ordered": ordered})
    squares = ragged("squares", ("point", "seed"), [row.pop("squares") for row in rows])
    columns = {name: ("point", [row[name] for row in rows]) for name in rows[0]}
    return xr.Dataset(columns | squares)


def _with_order(parameters: Parameters, model: str, beta: float, kappa: float, first: int) -> dict[str, Any]:
    plain, start = Attention(beta, normaliser=model), von_mises_fisher(BASIS, 4.0)
    step = parameters.ordered_step
    state = stationary(plain, kappa, von_mises_fisher(BASIS, 8.0)).density
    # what the step may do to the noise, see derivation.md
    other = stationary(plain, kappa * (1 - step**2 / 3), state).density
    rate = -meanfield.stability(plain, state, kappa).growth
    seeds = parameters.seeds(range(first + 1, first + 1 + parameters.ordered_seeds))
    tokens = meanfield.sample(start, parameters.ordered_tokens, parameters.seed(first))
    times = _frames(parameters.ordered_burn / rate, parameters.ordered_window / rate, parameters.frames, step)
    found: dict[str, Any] = {"order": size(state), "shifted": size(other), "rate": rate, "begin": _length(tokens)}
    found["squares"] = _squares(moved(model, beta, tokens, kappa, seeds, Fixed(step), times), times)
    return found | _equation(plain, start, kappa, rate)


def _without_order(parameters: Parameters, model: str, beta: float, kappa: float, first: int) -> dict[str, Any]:
    plain, onset, start = Attention(beta, normaliser=model), onset_of(model, beta), meanfield.uniform(BASIS)
    step, rate = parameters.step / onset, -meanfield.stability(plain, start, kappa).growth
    seeds = parameters.seeds(range(first + 1, first + 1 + parameters.free_seeds))
    tokens = meanfield.sample(start, parameters.free_tokens, parameters.seed(first))
    times = _frames(parameters.free_burn / onset, parameters.free_window / onset, parameters.frames, step)
    found: dict[str, Any] = {"order": 0.0, "shifted": 0.0, "rate": rate, "begin": _length(tokens)}
    found["squares"] = _squares(moved(model, beta, tokens, kappa, seeds, _euler(step), times), times)
    return found | _equation(plain, von_mises_fisher(BASIS, 0.2), kappa, rate)


def _length(tokens: Tokens) -> float:
    """The order m of tokens."""
    return float(np.linalg.norm(np.mean(np.asarray(tokens.positions), axis=0)))


def _equation(plain: Attention, start: Density, kappa: float, rate: float) -> dict[str, Any]:
    """The order that the equation with noise reaches from `start`."""
    flow = evolve(plain, start, RELAXED / rate, kappa=kappa, save=1)
    return {"equation": size(flow.density()), "steps": flow.steps["accepted"]}


def _frames(burn: float, window: float, count: int, step: float) -> list[float]:
    """Times of averages: `count` of them, evenly over the window, at whole steps."""
    stride, first = max(round(window / count / step), 1), round(burn / step)
    return [float(step * (first + stride * k)) for k in range(1, count + 1)]


def _squares(flow: xr.Dataset, times: list[float]) -> np.ndarray:
    late = flow["positions"].isel(time=slice(-len(times), None))
    return np.asarray((late.mean("token") ** 2).sum("dim").mean("time").values)


def moved(
    model: str, beta: float, tokens: Tokens, kappa: float, seeds: tuple[int, ...], method: Any, times: list[float]
) -> xr.Dataset:
    """Tokens with noise on the circle, at `times`, one path a seed.

    A step turns a token by arctan(v), v normal of variance 2 kappa h, whose variance is 2 kappa h (1 - 4 kappa h):
    noise that is larger by this share turns it by what was asked for.
    """
    field = Attention(beta, normaliser=model, sum=Circle(1e-6, 16, guarded=False))
    noise = Brownian(kappa * (1 + 4 * kappa * float(method.step)), seed=Along("seed", seeds))
    return solve(field, tokens, times[-1], save=At(times), noise=noise, method=method).dataset


def _euler(step: float) -> Layers:
    return Layers(step, ProjectRenormalise())
