"""Almost every start ends in one point for beta >= 0; on the circle three equal clusters are stable below beta = -2/3.

Softmax attention (SA) and its gradient-flow variant (USA0) bring iid tokens to consensus with probability 1 for d >= 3
and every beta >= 0 (arXiv:2312.10794), and on the circle too (arXiv:2507.22857). In an open hemisphere consensus is
certain for every real beta, because all weights are positive; n iid tokens lie in one with the probability of Wendel.
On the circle the statement ends somewhere below 0: for beta < -2/3 three equal clusters at 120 degrees are stable.

Shown: consensus of many draws, with the exact binomial bound that so many allow; draws in a hemisphere against Wendel;
the linearised flow at the ring of three, by automatic differentiation and by following a perturbed ring, against the
closed form; three iid tokens on the circle on both sides of -2/3. Large beta is followed in log time. Not shown: that
the exceptional set is null (a sample cannot), and beta between -2/3 and -0.16, where no theorem covers all n.
"""

import dataclasses
import functools
import math
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.axes import Along
from attnflow.experiments.claim import Claim, share_interval
from attnflow.experiments.study import Study
from attnflow.fields import Attention, Softmax, Unnormalised
from attnflow.flows import Fixed, advance, merge_times
from attnflow.observe import overlaps
from attnflow.plots.style import PAGE, styled
from attnflow.spaces import Sphere
from attnflow.stability import spectrum
from attnflow.tokens import Tokens, ring, stack, uniform

PAPERS = ("arXiv:2312.10794", "arXiv:2507.22857")

MODELS = {"SA": Softmax(), "USA0": Unnormalised()}
TOGETHER = 1e-6
"""Tokens have met when every overlap is within this of 1."""
CONFIDENCE = 0.999
STEP, SPAN = 0.25, 2.0
"""Step and frames of iid tokens."""
THRESHOLD = -2 / 3
BEND = 1e-6
"""Angle by which one token of the ring is displaced."""


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is simulated."""

    n: int = 8
    models: tuple[str, ...] = ("SA", "USA0")
    dims: tuple[int, ...] = (2, 3, 4)
    betas: tuple[float, ...] = (0.0, 0.5, 1.0)
    seeds: int = 600
    until: float = 120.0
    large_dims: tuple[int, ...] = (2, 3)
    large_betas: tuple[float, ...] = (4.0, 16.0, 64.0)
    """Followed in log time, SA."""
    large_seeds: int = 100
    counts: tuple[int, ...] = (4, 8, 16)
    """Numbers of tokens whose hemispheres are looked for, in the dimensions 2, ..., `largest_dim`."""
    largest_dim: int = 10
    draws: int = 2000
    circle_betas: tuple[float, ...] = (-4.0, -3.0, -2.0, -1.5, -1.2, -1.0, -0.8, -0.5, -0.25, 0.0, 0.5)
    circle_seeds: int = 400
    circle_until: float = 200.0


QUICK = Parameters(
    models=("SA",), dims=(3,), betas=(0.0, 1.0), seeds=60, until=60.0, large_dims=(), large_betas=(), counts=(8,),
    largest_dim=5, draws=400, circle_betas=(-2.0, -1.0, -0.5, 0.5), circle_seeds=59, circle_until=100.0,
)  # fmt: skip


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Times of consensus, hemispheres, and what happens to three tokens on the circle."""
    found = {}
    cases = [(model, d) for model in parameters.models for d in parameters.dims]
    for k, (model, d) in enumerate(cases):
        study.progress(f"iid tokens on S^{d - 1}, {model}", 0.5 * k / len(cases))
        found[f"{model}-S{d - 1}"] = study.part(f"{model}-S{d - 1}", functools.partial(_followed, parameters, model, d))
    for k, d in enumerate(parameters.large_dims):
        study.progress(f"iid tokens on S^{d - 1}, large beta", 0.5 + 0.1 * k)
        found[f"large-S{d - 1}"] = study.part(f"large-S{d - 1}", functools.partial(_large, parameters, d))
    study.progress("hemispheres", 0.7)
    found["hemisphere"] = study.part("hemisphere", functools.partial(_hemispheres, parameters))
    study.progress("three tokens on the circle", 0.8)
    found["circle"] = study.part("circle", functools.partial(_circle, parameters))
    study.progress("the ring of three, linearised", 0.9)
    found["ring"] = study.part("ring", functools.partial(_linearised, parameters))
    return found


def _followed(parameters: Parameters, model: str, d: int) -> xr.Dataset:
    """When each draw has come together, to one frame; infinite if it has not."""
    draws = uniform(Sphere(d), n=parameters.n, seed=range(d * parameters.seeds, (d + 1) * parameters.seeds))
    tokens = stack("beta", parameters.betas, [draws] * len(parameters.betas))
    field = Attention(Along("beta", parameters.betas), normaliser=MODELS[model])
    met = np.full((len(parameters.betas), parameters.seeds), np.inf)
    for frame in range(1, math.ceil(parameters.until / SPAN) + 1):
        tokens = advance(field, tokens, 0.0, SPAN, Fixed(STEP))
        met = np.minimum(met, np.where(_together(tokens), frame * SPAN, np.inf))
        if np.isfinite(met).all():
            break
    inside = [pole_margin(x) > 0 for x in np.asarray(draws.positions)]
    return xr.Dataset({"met": (("beta", "seed"), met), "inside": ("seed", inside)}, {"beta": list(parameters.betas)})


def _large(parameters: Parameters, d: int) -> xr.Dataset:
    """Log of the time of the last merge."""
    draws = uniform(Sphere(d), n=parameters.n, seed=range(parameters.large_seeds))
    merges = merge_times(Attention(Along("beta", parameters.large_betas)), draws)
    return xr.Dataset({"log_time": (("beta", "seed"), merges["log_time"].sel(left=1).transpose("beta", "seed").values)},
                      {"beta": list(parameters.large_betas)})  # fmt: skip


def _hemispheres(parameters: Parameters) -> xr.Dataset:
    """How many draws lie in an open hemisphere."""
    dims = range(2, parameters.largest_dim + 1)
    hits = [
        [
            sum(pole_margin(x) > 0 for x in np.asarray(uniform(Sphere(d), n=n, seed=range(parameters.draws)).positions))
            for d in dims
        ]
        for n in parameters.counts
    ]
    return xr.Dataset({"hits": (("n", "d"), np.array(hits))}, {"n": list(parameters.counts), "d": list(dims)})


def _circle(parameters: Parameters) -> xr.Dataset:
    """Three iid tokens on the circle: consensus or 120 degrees in the end; and the ring, one token displaced."""
    betas, span, step = parameters.circle_betas, 2.0, 0.1
    draws = np.asarray(uniform(Sphere(2), n=3, seed=range(parameters.circle_seeds)).positions)
    bent = np.asarray(ring(Sphere(2), n=3).positions).copy()
    bent[1] = np.cos(2 * np.pi / 3 + BEND), np.sin(2 * np.pi / 3 + BEND)
    starts = np.concatenate([draws, bent[None]])
    tokens = stack("beta", betas, [Tokens(starts, dims=("member",))] * len(betas))
    field, off = Attention(Along("beta", betas)), [_off_ring(starts[-1:])]
    for _ in range(math.ceil(parameters.circle_until / span)):
        tokens = advance(field, tokens, 0.0, span, Fixed(step))
        off.append(_off_ring(np.asarray(tokens.positions)[:, -1]))
    end = _off_ring(np.asarray(tokens.positions)[:, :-1])
    return xr.Dataset(
        {
            "together": (("beta", "seed"), _together(tokens)[:, :-1]),
            "triangle": (("beta", "seed"), end <= math.sqrt(TOGETHER)),
            "inside": (("seed",), [pole_margin(x) > 0 for x in draws]),
            "off": (("time", "beta"), np.array([np.broadcast_to(values, len(betas)) for values in off])),
        },
        {"beta": list(betas), "time": span * np.arange(len(off))},
        {"step": step},
    )


def _linearised(parameters: Parameters) -> xr.Dataset:
    """The eigenvalue of the ring of three against displacements, by automatic differentiation; and where it is zero."""
    from scipy.optimize import brentq

    still, found = ring(Sphere(2), n=3), xr.Dataset(coords={"beta": list(parameters.circle_betas)})
    for model in parameters.models:
        spectra = [spectrum(Attention(b, normaliser=MODELS[model]), still) for b in parameters.circle_betas]
        # one eigenvalue is 0 (rotation), the other two are equal
        moving = [s.eigenvalues.real[np.argsort(np.abs(s.eigenvalues))[1:]] for s in spectra]
        found[f"rate_{model}"] = (("beta", "mode"), np.array(moving))
        found[f"tolerance_{model}"] = ("beta", np.array([s.tolerance for s in spectra]))

    def rate(beta: float) -> float:
        values = spectrum(Attention(beta), still).eigenvalues.real
        return float(np.sum(values))

    return found.assign_attrs(zero=brentq(rate, -1.0, -0.3, xtol=1e-14, rtol=1e-14))


def pole_margin(x: np.ndarray) -> float:
    """Smallest <x_i, w> for a unit vector w for which all are positive, 0 if there is none.

    Either 0 is a mixture of the x_i, or the part that the best mixture leaves over is minus such a w (Gordan).
    """
    from scipy.optimize import nnls

    matrix, target = np.vstack([x.T, np.ones(len(x))]), np.append(np.zeros(x.shape[1]), 1.0)
    pole = (matrix @ nnls(matrix, target)[0] - target)[:-1]
    size = float(np.linalg.norm(pole))
    return max(float((x @ pole).min()) / size, 0.0) if size > 1e-9 else 0.0


def _together(tokens: Tokens) -> np.ndarray:
    return np.asarray(overlaps(tokens).min(axis=(-1, -2)) >= 1 - TOGETHER)


def _off_ring(positions: np.ndarray) -> np.ndarray:
    """How far the gaps of three tokens are from 120 degrees, whichever way they run round."""
    angles = np.sort(np.arctan2(positions[..., 1], positions[..., 0]), axis=-1)
    gaps = np.diff(np.concatenate([angles, angles[..., :1] + 2 * np.pi], axis=-1), axis=-1)
    return np.asarray(np.linalg.norm(gaps - 2 * np.pi / 3, axis=-1))


def simulated_rates(circle: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """Growth rate of the displacement of the ring over the first frame, and what it may be off by.

    RK4 multiplies by the Taylor polynomial of e^(rate step) and so misses about rate^5 step^4/120; the flow is linear
    up to the displacement; angles are rounded.
    """
    first, then, time = circle["off"].values[0], circle["off"].values[1], float(circle["time"][1])
    rates = np.log(then / first) / time
    rounding = 8 * np.finfo(float).eps / np.minimum(first, then) / time
    return rates, np.abs(rates) ** 5 * circle.attrs["step"] ** 4 / 60 + np.maximum(first, then) + rounding


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Consensus, hemispheres, the ring."""
    circles, spheres = [d for d in parameters.dims if d == 2], [d for d in parameters.dims if d > 2]
    made = [_all_together(parameters, data, dims) for dims in (spheres, circles) if dims]
    if parameters.large_dims:
        times = np.concatenate([data[f"large-S{d - 1}"]["log_time"].values.ravel() for d in parameters.large_dims])
        late = np.nanmax(np.where(np.isfinite(times), times, np.nan))
        where = ", ".join(f"S^{d - 1}" for d in parameters.large_dims)
        made.append(
            Claim.true(
                f"SA, β = {_list(parameters.large_betas)}, {where}: every draw reaches consensus, followed in log time",
                bool((times < np.inf).all()),
                f"{_of(times < np.inf)}; the last one at t = e^{late:.0f}", "counted",
            )
        )  # fmt: skip
    seen = data["hemisphere"]
    share = seen["hits"].values / parameters.draws
    wendel = theory.hemisphere_probability(seen["n"].values[:, None], seen["d"].values[None, :])
    allowed = 4 * np.sqrt(wendel * (1 - wendel) / parameters.draws) + 1 / parameters.draws
    i, j = np.unravel_index(np.argmax(np.abs(share - wendel) / allowed), share.shape)
    n, d = int(seen["n"][i]), int(seen["d"][j])
    made.append(
        Claim.equal(
            f"share of draws in an open hemisphere (worst of {share.size}: {n} tokens on S^{d - 1})",
            float(wendel[i, j]), float(share[i, j]), float(allowed[i, j]),
            f"4 standard errors of {parameters.draws} draws, and one draw",
        )
    )  # fmt: skip
    circle = data["circle"]
    parts = [data[f"{model}-S{d - 1}"] for model in parameters.models for d in parameters.dims]
    inside = [np.isfinite(part["met"].values[:, part["inside"].values]).ravel() for part in parts]
    inside.append(circle["together"].values[:, circle["inside"].values].ravel())
    made.append(
        Claim.true(
            "every draw that starts in an open hemisphere reaches consensus, for beta of either sign",
            bool(np.concatenate(inside).all()), _of(np.concatenate(inside)), "counted; poles by least squares",
        )
    )  # fmt: skip
    return made + _ring_claims(parameters, data)


def _ring_claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    made, circle, still = [], data["circle"], data["ring"]
    betas = circle["beta"].values
    for model in parameters.models:
        predicted = theory.ring_growth_rates(betas, 3, 1, model=model)
        error = np.abs(still[f"rate_{model}"].values - predicted[:, None]).max(axis=1)
        k = int(np.argmax(error / still[f"tolerance_{model}"].values))
        value = still[f"rate_{model}"].values[k]
        made.append(
            Claim.equal(
                f"{model}, ring of three: eigenvalue of the linearised flow (worst of {len(betas)}: β = {betas[k]:g})",
                predicted[k], value[np.argmax(np.abs(value - predicted[k]))],
                float(still[f"tolerance_{model}"][k]), "rounding of a matrix and its eigenvalues",
            )
        )  # fmt: skip
    # the slope of the sum of the three eigenvalues is above 1 there
    made.append(
        Claim.equal(
            "SA: the beta at which the ring of three loses its stability", THRESHOLD, still.attrs["zero"],
            3 * float(still["tolerance_SA"].max()), "rounding of three eigenvalues, over the slope of their sum in β",
        )
    )  # fmt: skip
    rates, allowed = simulated_rates(circle)
    predicted = theory.ring_growth_rates(betas, 3, 1)
    k = int(np.argmax(np.abs(rates - predicted) / allowed))
    made.append(
        Claim.equal(
            f"SA: growth rate of a displaced ring of three (worst of {len(betas)}: β = {betas[k]:g})",
            predicted[k], rates[k], allowed[k], "order 4 of the scheme; size of the displacement; round-off",
        )
    )  # fmt: skip
    above, below = betas > THRESHOLD, betas < THRESHOLD
    together, triangle = circle["together"].values, circle["triangle"].values
    made.append(
        Claim.true(
            f"three tokens on the circle, β = {_list(betas[above])}: every draw reaches consensus",
            bool(together[above].all()), bounded(np.all(together[above], axis=0)), "counted; exact binomial bound",
        )
    )  # fmt: skip
    lost = triangle[below].sum(axis=1)
    made.append(
        Claim.true(
            f"three tokens on the circle, β = {_list(betas[below])}: some draws end at 120 degrees, others together",
            bool((together[below] ^ triangle[below]).all() and (lost > 0).all()),
            f"{', '.join(map(str, lost))} of {parameters.circle_seeds} end at 120 degrees", "counted",
        )
    )  # fmt: skip
    least, share = float(theory.hemisphere_probability(3, 2)), together.mean(axis=1).min()
    made.append(
        Claim.at_least(
            "three tokens on the circle: smallest share over all beta that reaches consensus, at least that of Wendel",
            least, share, 4 * math.sqrt(least * (1 - least) / parameters.circle_seeds),
            f"4 standard errors of {parameters.circle_seeds} draws",
        )
    )  # fmt: skip
    return made


def _all_together(parameters: Parameters, data: dict[str, xr.Dataset], dims: list[int]) -> Claim:
    """Whether every draw reaches consensus with every model and beta; draws are counted once."""
    met = [np.all([np.isfinite(data[f"{m}-S{d - 1}"]["met"]) for m in parameters.models], axis=(0, 1)) for d in dims]
    spheres = ", ".join(f"S^{d - 1}" for d in dims)
    return Claim.true(
        f"{' and '.join(parameters.models)}, {parameters.n} iid tokens on {spheres}: every draw is in consensus at "
        f"t = {parameters.until:g} for β = {_list(parameters.betas)}",
        bool(np.all(met)), bounded(np.concatenate(met)), "counted; exact binomial bound",
    )  # fmt: skip


def _of(hits: np.ndarray) -> str:
    return f"{int(np.sum(hits))} of {np.size(hits)}"


def bounded(hits: np.ndarray) -> str:
    """How many of independent draws do, and the exact bound on the probability of those that do not."""
    _, high = share_interval(np.sum(~hits), hits.size, CONFIDENCE)
    return f"{_of(hits)}; others have probability at most {float(high):.1e} (confidence {100 * CONFIDENCE:g} %)"


def _list(values: Any) -> str:
    return ", ".join(f"{value:g}" for value in values)


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Consensus and where it ends.

    (a) Share of draws of iid tokens that have not come together yet, against time. (b) Share of draws that lie in an
    open hemisphere; lines: Wendel's formula. (c) Growth rate of a displacement of three tokens at 120 degrees on the
    circle, SA: closed form (line), linearised simulator (crosses), displaced ring (circles). (d) Share of draws of
    three tokens on the circle that reach consensus, SA; dotted: -2/3, and the share that lies in an open half-circle,
    3/4. Bars: exact binomial intervals of confidence 99.9%.
    """
    from attnflow.experiments.gallery import _consensus_figure as panels

    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 4.8))
        axes = fig.subplots(2, 2)
        panels.draw_times(axes[0, 0], parameters, data)
        panels.draw_hemispheres(axes[0, 1], parameters, data["hemisphere"])
        panels.draw_rates(axes[1, 0], data)
        panels.draw_shares(axes[1, 1], parameters, data["circle"])
        for letter, one in zip("abcd", axes.flat, strict=True):
            one.set_title(f"({letter})", loc="left", fontweight="bold")
        return fig
