"""Attention climbs its energy at the rate of its squared speeds; several softmax heads may descend, USA heads never do.

For E = (1/2 beta) sum_ij m_i m_j e^(beta (<x_i, B x_j> - 1)) and V = B = B^T unnormalised attention (USA0) is a
gradient flow, dE/dt = sum_i m_i |v_i|^2, and softmax attention (SA) climbs too, dE/dt = sum_i m_i Z_i |v_i|^2 with its
denominators Z_i (arXiv:2312.10794, section 3). Heads add their energies. USA heads still follow the gradient of the
sum; softmax heads divide every gradient by a denominator of its own, and the sum may go down.

Shown: the energy gained along flows with B = I against the integral of the right-hand sides; for random symmetric
matrices the rate of E under the field of the library, by automatic differentiation, and how often it is negative; one
flow of two softmax heads that descends. The share of descending states is that of one distribution (three tokens of
random masses on the circle, beta = 2, B_h = s times a symmetrised Gaussian matrix) and depends much on it.
Formulas are evaluated in NumPy on states of their own, or on saved frames.
"""

import dataclasses
import functools
import math
from typing import Any

import jax
import numpy as np
import xarray as xr

from attnflow.axes import Along
from attnflow.experiments.claim import Claim, share_interval, worst
from attnflow.experiments.study import Study
from attnflow.fields import Attention, Softmax, Unnormalised
from attnflow.flows import Fixed, advance
from attnflow.observe import energy, energy_rate, interaction_energy
from attnflow.plots.style import COLOURS, GREY, INK, PAGE, styled
from attnflow.precision import double
from attnflow.spaces import Sphere
from attnflow.tokens import Measure, Tokens, uniform

PAPERS = ("arXiv:2312.10794", "arXiv:2512.01868")

MODELS = {"SA": Softmax(), "USA0": Unnormalised()}
BETA = 2.0
"""Of the heads."""
TOKENS = 3
"""Of the heads, on the circle."""
SUBSTEPS = 4
"""Steps from one frame to the next."""
ERRORS = 4.0
"""Standard errors that a random number may be off."""
EPS = float(np.finfo(float).eps)


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is simulated."""

    n: int = 16
    d: int = 3
    betas: tuple[float, ...] = (1.0, 4.0, 9.0)
    seeds: int = 4
    until: float = 8.0
    frames: int = 160
    """Even; the integral is done by Simpson's rule on all frames and on every second one."""
    heads: tuple[int, ...] = (2, 4, 8)
    sizes: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 6.0)
    """s, the size of the matrices."""
    draws: int = 2000
    """States per size of matrices, in the simulator."""
    other_draws: int = 20000
    """States per size of matrices, in the formula."""
    descent: int = 64
    """Frames of the flow that descends."""


QUICK = Parameters(
    betas=(1.0, 4.0), seeds=2, frames=48, descent=16, heads=(2,), sizes=(3.0,), draws=1000, other_draws=20000
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Energies and dissipations along flows, rates of random states, one descending flow."""
    found = {}
    for k, model in enumerate(MODELS):
        study.progress(f"flows of {model}", k / 6)
        found[model] = study.part(model, functools.partial(_flow, parameters, model))
    cases = [("softmax", 1), ("unnormalised", max(parameters.heads)), *(("softmax", h) for h in parameters.heads)]
    for k, (kind, heads) in enumerate(cases):
        study.progress(f"random states of {heads} {kind} heads", 1 / 3 + k / len(cases) / 2)
        name = f"{kind}-{heads}"
        found[name] = study.part(name, functools.partial(_rates, parameters, kind, heads, k))
    study.progress("a flow that descends", 0.9)
    found["descent"] = study.part("descent", functools.partial(_descend, parameters, found[f"softmax-{cases[2][1]}"]))
    return found


def _flow(parameters: Parameters, model: str) -> xr.Dataset:
    """Energy, with a step and with half of it, and the right-hand side of the identity, at every frame."""
    betas = Along("beta", parameters.betas)
    field = Attention(betas, normaliser=MODELS[model])
    span = parameters.until / parameters.frames
    coarse = fine = uniform(Sphere(parameters.d), n=parameters.n, seed=range(parameters.seeds))
    rows = []
    for frame in range(parameters.frames + 1):
        if frame:
            coarse = advance(field, coarse, 0.0, span, Fixed(span / SUBSTEPS))
            for _ in range(2):
                fine = advance(field, fine, 0.0, span / 2, Fixed(span / 2 / SUBSTEPS))
        if frame == 0:  # from here on all betas have tokens of their own
            every = np.broadcast_to(fine.positions, (len(parameters.betas), *fine.positions.shape))
            coarse = fine = Tokens(every, dims=("beta", "seed"))
        rows.append((fine.positions, coarse.positions))
    seen = [np.stack(column, axis=2) for column in zip(*rows, strict=True)]  # (beta, seed, frame, token, dim)
    columns = [np.asarray(energy(Tokens(x, dims=("beta", "seed", "frame")), betas)) for x in seen]
    columns.append(np.array([dissipation(x, beta, model) for x, beta in zip(seen[0], parameters.betas, strict=True)]))
    names = ("energy", "coarse", "dissipation")
    return xr.Dataset(
        {name: (("beta", "seed", "time"), column) for name, column in zip(names, columns, strict=True)},
        {"beta": list(parameters.betas), "time": np.linspace(0, parameters.until, parameters.frames + 1)},
    )


def dissipation(x: np.ndarray, beta: float, model: str) -> np.ndarray:
    """Sum_i m_i |v_i|^2 (USA0) or sum_i m_i Z_i |v_i|^2 (SA) for equal masses and B = I: x (..., n, d)."""
    n = x.shape[-2]
    weights = np.exp(beta * (x @ np.swapaxes(x, -1, -2) - 1)) / n
    pull = weights @ x
    pull = pull - np.sum(pull * x, axis=-1, keepdims=True) * x
    squares = np.sum(pull**2, axis=-1)
    return np.asarray(np.mean(squares / weights.sum(axis=-1) if model == "SA" else squares, axis=-1))


def states(heads: int, size: float, draws: int, seed: list[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Matrices (draws, heads, 2, 2), positions (draws, tokens, 2), masses (draws, tokens)."""
    rng = np.random.default_rng(seed)
    gaussian = size * rng.standard_normal((draws, heads, 2, 2))
    masses = rng.random((draws, TOKENS)) + 0.5
    x = rng.standard_normal((draws, TOKENS, 2))
    matrices = (gaussian + np.swapaxes(gaussian, -1, -2)) / 2
    return matrices, x / np.linalg.norm(x, axis=-1, keepdims=True), masses / masses.sum(axis=1, keepdims=True)


def _rates(parameters: Parameters, kind: str, heads: int, place: int) -> xr.Dataset:
    """dE/dt of random states by the library, the formula at the same states, its rounding error, and at others."""
    rule = Softmax() if kind == "softmax" else Unnormalised()

    def one(matrices: Any, x: Any, masses: Any) -> Any:
        field = Attention(BETA, query=matrices, value=matrices, average="sum", normaliser=rule)
        return energy_rate(field, Measure(x, masses))

    compiled = double(jax.jit(jax.vmap(one)))
    rows, others = [], []
    for k, size in enumerate(parameters.sizes):
        drawn = states(heads, size, parameters.draws, [place, k, 0])
        exact, error = formula(*drawn, kind)
        rows.append((np.asarray(compiled(*drawn)), exact, error))
        others.append(formula(*states(heads, size, parameters.other_draws, [place, k, 1]), kind))
    dims = ("size", "draw")
    measured, exact, error = (np.array(column) for column in zip(*rows, strict=True))
    return xr.Dataset(
        {"rate": (dims, measured), "formula": (dims, exact), "rounding": (dims, error),
         "other_share": ("size", np.array([np.mean(value < -error) for value, error in others]))},
        {"size": list(parameters.sizes)},
        {"place": place, "heads": heads},
    )  # fmt: skip


def formula(matrices: np.ndarray, x: np.ndarray, masses: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Sum_i m_i <sum_h g_ih/Z_ih, sum_h g_ih> with g_ih = P sum_j m_j w_ij,h B_h x_j, Z = 1 for USA0; its rounding.

    Logits carry a few eps |beta B|, and so do all products of gradients, which the error adds without their signs.
    """
    logits = BETA * (np.einsum("nia,nhab,njb->nhij", x, matrices, x) - 1)
    weights = masses[:, None, None, :] * np.exp(logits)
    whole = np.einsum("nhij,nhab,njb->nhia", weights, matrices, x)
    gradients = whole - np.sum(whole * x[:, None], axis=-1, keepdims=True) * x[:, None]
    z = weights.sum(axis=-1) if kind == "softmax" else np.ones(weights.shape[:-1])
    rate = np.einsum("ni,nia,nia->n", masses, np.sum(gradients / z[..., None], axis=1), gradients.sum(axis=1))
    sizes = np.linalg.norm(whole, axis=-1)
    error = EPS * (10 + 8 * np.abs(logits).max(axis=(1, 2, 3)))
    return rate, error * np.einsum("ni,nhi,ngi->n", masses, sizes, sizes / z)


def _descend(parameters: Parameters, part: xr.Dataset) -> xr.Dataset:
    """The flow from the state that descends fastest relative to its energy, step and half step."""
    size, heads = float(part["size"].values[0]), int(part.attrs["heads"])
    drawn = states(heads, size, parameters.draws, [int(part.attrs["place"]), 0, 0])
    logits = BETA * (np.einsum("nia,nhab,njb->nhij", drawn[1], drawn[0], drawn[1]) - 1)
    level = np.einsum("ni,nhij,nj->n", drawn[2], np.exp(logits), drawn[2]) / (2 * BETA)
    k = int(np.argmin(part["rate"].values[0] / level))
    matrices, start = drawn[0][k], Tokens(drawn[1][k], drawn[2][k])
    field = Attention(BETA, query=matrices, value=matrices, average="sum")
    # E falls by its own size in about 1/|relative rate|, and the heads turn tokens at rates up to beta |B|^2
    span = 2.0 ** np.floor(np.log2(2 / parameters.descent * level[k] / abs(float(part["rate"].values[0, k]))))
    coarse = fine = start
    rows = [(0.0, *(interaction_energy(field, start),) * 2)]
    for frame in range(1, parameters.descent + 1):
        coarse = advance(field, coarse, 0.0, span, Fixed(span / SUBSTEPS))
        for _ in range(2):
            fine = advance(field, fine, 0.0, span / 2, Fixed(span / 2 / SUBSTEPS))
        rows.append((frame * span, interaction_energy(field, fine), interaction_energy(field, coarse)))
    time, values, others = np.array(rows, dtype=float).T
    return xr.Dataset(
        {"energy": ("time", values), "coarse": ("time", others)}, {"time": time},
        {"heads": heads, "size": size, "rate": float(part["rate"].values[0, k])},
    )  # fmt: skip


def simpson(values: np.ndarray, span: float) -> np.ndarray:
    """Simpson's rule on the last axis, frames `span` apart, an even number of them after the first."""
    inner = 4 * values[..., 1:-1:2].sum(axis=-1) + 2 * values[..., 2:-1:2].sum(axis=-1)
    return np.asarray(span / 3 * (values[..., 0] + inner + values[..., -1]))


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Identities along flows, signs and shares of rates, a descent."""
    made = []
    for model in MODELS:
        made += _flow_claims(parameters, model, data[model])
    made += _rate_claims(parameters, data)
    flow = data["descent"]
    off = float(np.max(np.abs(flow["energy"] - flow["coarse"]))) + 100 * EPS * float(flow["energy"][0])
    low = int(np.argmin(flow["energy"].values))
    made.append(
        Claim.at_most(f"{flow.attrs['heads']} softmax heads: least E/E(0) - 1 along the flow from the steepest state"
                      f" (at t = {float(flow['time'][low]):.2g}) is negative", 0.0,
                      float((flow["energy"][low] - flow["energy"][0] + 2 * off) / flow["energy"][0]), 0.0,
                      "what halving the step changes, and rounding, added twice to the measured value")
    )  # fmt: skip
    return made


def _flow_claims(parameters: Parameters, model: str, flow: xr.Dataset) -> list[Claim]:
    """The gain of energy is the integral of the right-hand side; it never falls."""
    values, span = flow["energy"].values, parameters.until / parameters.frames
    gain = values[..., -1] - values[..., 0]
    integral, rough = simpson(flow["dissipation"].values, span), simpson(flow["dissipation"].values[..., ::2], 2 * span)
    # Simpson's rule of half the step is 15 times better, RK4 too; sums of n^2 weights of size at most 1
    stepping = np.max(np.abs(values - flow["coarse"].values), axis=-1)
    rounding = 8 * EPS * parameters.n
    tolerance = np.abs(integral - rough) + stepping + rounding
    k = worst(np.abs(gain - integral), tolerance)
    falls = float(np.max(values[..., :-1] - values[..., 1:]))
    return [
        Claim.equal(f"{model}: energy gained until t = {parameters.until:g} is the integral of the squared speeds"
                    f" (worst of {gain.size}: β = {parameters.betas[k[0]]:g})",
                    float(integral[k]), float(gain[k]), float(tolerance[k]),
                    "change of Simpson's rule and of the energy when their steps are halved; rounding"),
        Claim.at_most(f"{model}: largest fall of the energy between two of {values.size} frames", 0.0, falls,
                      float(stepping.max()) + rounding, "change of the energy when the step is halved; rounding"),
    ]  # fmt: skip


def _rate_claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Rates against the formula, over all heads; who never descends; how many softmax heads do."""
    parts = {name: part for name, part in data.items() if "rate" in part}
    used = {}
    for name, part in parts.items():
        used[name] = np.abs(part["rate"].values - part["formula"].values) / part["rounding"].values
    worst = max(used, key=lambda name: np.nanmax([np.inf if np.isnan(used[name]).any() else 0.0, used[name].max()]))
    made = [
        Claim.at_most(f"dE/dt of random states: |library - formula| over its rounding error (worst of {len(used)} kinds"
                      f" of {used[worst].size} states: {worst})", 1.0, float(used[worst].max()), 0.0,
                      "eps (10 + 8 |logits|) of the sum of all products of gradients without their signs")
    ]  # fmt: skip
    for name, part in parts.items():
        kind, heads = name.split("-")[0], int(part.attrs["heads"])
        words = f"{heads} {kind} head{'s' if heads > 1 else ''}"
        falling = np.sum(part["rate"].values < -part["rounding"].values, axis=1)
        if kind == "unnormalised" or heads == 1:
            made.append(
                Claim.equal(f"{words}: states of {part['rate'].size} that descend", 0.0, float(falling.sum()), 0.0,
                            "a gradient, or one with positive denominators; rates within rounding are not counted")
            )  # fmt: skip
            continue
        k = len(parameters.sizes) // 2
        down, draws, other = int(falling[k]), parameters.draws, float(part["other_share"][k])
        low, high = (float(end) for end in interval(down, draws))
        words += f", s = {parameters.sizes[k]:g}"
        if heads == parameters.heads[0]:
            made.append(
                Claim.at_least(f"{words}: some states descend ({down} of {draws}, share in [{low:.3g}, {high:.3g}])",
                               1 / parameters.other_draws, low, 0.0,
                               "Wilson interval of 4 standard errors; against one state of those that the formula saw")
            )  # fmt: skip
        spread = np.sqrt(other * (1 - other) * (1 / draws + 1 / parameters.other_draws))
        made.append(
            Claim.equal(f"{words}: share of descending states, library against formula at other states", other,
                        down / draws, ERRORS * float(spread), f"{ERRORS:g} standard errors, {draws} states")
        )  # fmt: skip
    return made


def interval(count: Any, draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's interval of `ERRORS` standard errors for a share."""
    return share_interval(count, draws, math.erf(ERRORS / math.sqrt(2)), "wilson")


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Who climbs the energy.

    (a) Energy along flows with Q = K = V = I (one seed; solid SA, dashed USA0) and its start plus the integral of the
    squared speeds (marks). (b) Energy along a flow of softmax heads with V = B = B^T that descends. (c) Share of
    random states that descend against the size of the matrices: library (marks, intervals of four standard errors),
    formula at other states (lines); one softmax head and USA heads never do (grey).
    """
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 2.7))
        axes = fig.subplots(1, 3)
        _draw_flows(axes[0], parameters, data)
        flow = data["descent"]
        axes[1].plot(flow["time"], flow["energy"] / float(flow["energy"][0]), color=COLOURS[4])
        axes[1].axhline(1.0, color=GREY, lw=0.7)
        axes[1].set_xlabel("time $t$")
        axes[1].set_ylabel(f"$E(t)/E(0)$, {flow.attrs['heads']} softmax heads")
        _draw_shares(axes[2], parameters, data)
        for letter, one in zip("abc", axes, strict=True):
            one.set_title(f"({letter})", loc="left", fontweight="bold")
        return fig


def _draw_flows(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    span = parameters.until / parameters.frames
    marked = np.arange(parameters.frames // 10 // 2 * 2, parameters.frames + 1, parameters.frames // 10 // 2 * 2)
    for model, line in (("SA", "-"), ("USA0", "--")):
        for beta, colour in zip(parameters.betas, COLOURS, strict=False):
            one = data[model].sel(beta=beta).isel(seed=0)
            label = rf"$\beta = {beta:g}$" if model == "SA" else None
            axes.plot(one["time"], 2 * beta * one["energy"], line, color=colour, lw=0.9, label=label)
            gained = [float(simpson(one["dissipation"].values[: k + 1], span)) for k in marked]
            level = 2 * beta * (float(one["energy"][0]) + np.array(gained))
            face = colour if model == "SA" else "white"
            axes.plot(one["time"][marked], level, "o", ms=2.8, mec=colour, mfc=face, mew=0.7)
    axes.plot([], [], "--", color=INK, lw=0.9, label="USA0")
    axes.set_xlabel("time $t$")
    axes.set_ylabel(r"energy $2\beta E$")
    axes.legend(loc="upper left", handlelength=1.8, ncols=2, columnspacing=1.0)
    axes.set_ylim(top=0.25)


def _draw_shares(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    sizes = np.array(parameters.sizes)
    for heads, colour in zip(parameters.heads, COLOURS, strict=False):
        part = data[f"softmax-{heads}"]
        down = np.sum(part["rate"].values < -part["rounding"].values, axis=1)
        ends = np.array(interval(down, parameters.draws))
        share = down / parameters.draws
        axes.plot(sizes, part["other_share"], color=colour, lw=0.9)
        bars = np.abs(ends - share)
        axes.errorbar(sizes, share, bars, fmt="o", ms=3, color=colour, lw=0.8, label=f"{heads} softmax heads")
    axes.axhline(0.0, color=GREY, lw=0.7)
    axes.set_xlabel("size $s$ of the matrices")
    axes.set_ylabel("share of descending states")
    axes.set_ylim(-0.01, 0.48)
    axes.legend(loc="upper left")
