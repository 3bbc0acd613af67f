"""With noise the uniform measure is stable above kappa_c; below it order sets in, continuously or with a jump.

Tokens with noise dX = X[mu] dt + sqrt(2 kappa) dB have the density rho of d rho/dt + div(rho grad Phi) = kappa Lap rho.
A harmonic of degree k of the uniform measure on S^(d-1) then grows at the rate lambda_k - kappa k (k+d-2)
(arXiv:2312.10794 for lambda_k), and the first to grow is always k = 1, at
kappa_c = I_(d/2)(beta)/(beta I_(d/2-1)(beta)) for softmax attention (SA) and the mean weight times that for its
gradient-flow variant (USA0). Ordered states are fixed points rho ~ exp(Phi[rho]/kappa). On the circle
kappa = kappa_c + 2 c m^2 + ... along them, m = |mean of x|, with c in closed form by expanding to third order: c < 0
for SA at the beta shown, and for USA0 below the beta* with I_2/I_1 = 1/2, where the transition turns from a continuous
one into a jump, with a fold above kappa_c and two stable states between.

Shown: kappa_c by the linearised operator; branches with their stability; m ~ sqrt(kappa_c - kappa); the equation with
noise, which relaxes to the branch; tokens with noise on both sides of kappa_c and, between kappa_c and the fold, in the
ordered state. Not shown: which of two stable states wins in the end, or the switching of finite systems between them.

Tokens have errors of the clock (the step of the noise is first order) and of their number; see `compare`.
"""

import dataclasses
import functools
import itertools
from typing import Any

import numpy as np
import xarray as xr
from scipy.optimize import brentq
from scipy.special import ive

from attnflow import theory
from attnflow.axes import Along
from attnflow.experiments.claim import Claim, share_used
from attnflow.experiments.study import Study
from attnflow.fields import Attention, Softmax, Unnormalised
from attnflow.flows import Brownian, Evenly, Layers, ProjectRenormalise, solve
from attnflow.meanfield import (
    Density,
    ZonalBasis,
    bifurcation,
    branch,
    evolve,
    linearised,
    sample,
    stability,
    stationary,
    uniform,
    von_mises_fisher,
)
from attnflow.plots.style import PAGE, styled
from attnflow.sums import Circle

PAPERS = ("arXiv:2312.10794",)

MODELS = {"SA": Softmax(), "USA0": Unnormalised()}
BASIS = ZonalBasis(2, 64)
CLOCK = 0.004
"""Noise times step of the tokens."""


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is simulated."""

    dims: tuple[int, ...] = (2, 3, 8, 64)
    """Of the spaces R^d around the spheres on which kappa_c is looked for."""
    onset_betas: tuple[float, ...] = (1.0, 4.0, 20.0)
    cases: tuple[tuple[str, float], ...] = (("SA", 4.0), ("USA0", 1.0), ("USA0", 4.0))
    """Branches on the circle."""
    tokens: int = 1000
    seeds: int = 12
    first_seed: int = 10_000_000
    """Held-out seeds: sizes and tolerances were chosen on smaller ones."""
    shares: int = 4
    """Systems without order, each of as many tokens less, for one with order."""
    burn: float = 8.0
    """Times kappa_c: when averages over tokens begin."""
    last: float = 12.0
    """And when they end."""
    below: tuple[float, ...] = (0.5, 0.75)
    """Noise of the tokens over kappa_c, with order."""
    above: tuple[float, ...] = (1.5,)
    """And without; times the noise of the fold, where there is one."""


QUICK = Parameters(
    dims=(2,),
    onset_betas=(4.0,),
    cases=(("USA0", 4.0),),
    tokens=300,
    seeds=6,
    shares=1,
    burn=4.0,
    last=6.0,
    below=(0.6,),
    above=(1.8,),
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Zero crossings; branches; states near the onset; the equation and tokens at chosen noise."""
    data = {}
    study.progress("the linearised operator", 0.0)
    data["onset"] = study.part("onset", functools.partial(onsets, parameters))
    study.progress("where the jump begins", 0.05)
    data["jump"] = study.part("jump", jump)
    for index, (model, beta) in enumerate(parameters.cases):
        name = f"{model}-beta{beta:g}"
        say = functools.partial(_say, study, name, 0.1 + 0.9 * index / len(parameters.cases), len(parameters.cases))
        say("the branch", 0.0)
        data[name] = study.part(name, functools.partial(followed, model, beta))
        say("near the onset", 0.1)
        data[f"near-{name}"] = study.part(f"near-{name}", functools.partial(near, model, beta, data[name]))
        part = data[name]
        data[f"flows-{name}"] = study.part(
            f"flows-{name}", functools.partial(flows, model, beta, part, parameters, say)
        )
    return data


def _say(study: Study, name: str, begin: float, count: int, words: str, share: float) -> None:
    study.progress(f"{name}: {words}", begin + 0.9 * share / count)


def field_of(model: str, beta: float) -> Attention:
    """Attention on the circle, with sums fit for thousands of tokens."""
    return Attention(beta, normaliser=MODELS[model], sum=Circle(1e-10, 32, guarded=False))


def onsets(parameters: Parameters) -> xr.Dataset:
    """The noise at which the largest eigenvalue at the uniform measure is 0; it is linear in the noise."""
    shape = (len(MODELS), len(parameters.dims), len(parameters.onset_betas))
    found = np.empty(shape)
    for i, d in enumerate(parameters.dims):
        density = uniform(ZonalBasis(d, 48))
        for (j, model), (k, beta) in itertools.product(enumerate(MODELS), enumerate(parameters.onset_betas)):
            field = Attention(beta, normaliser=MODELS[model])
            scale = float(theory.critical_noise(beta, d, model=model))

            def growth(kappa: float, field: Any = field, density: Density = density) -> float:
                return float(linearised(field, density, kappa, sector=1).growth[0])

            found[j, i, k] = brentq(growth, 0.5 * scale, 2 * scale, xtol=1e-14 * scale, rtol=1e-14)
    return xr.Dataset(
        {"kappa": (("model", "dimension", "beta"), found)},
        {"model": list(MODELS), "dimension": list(parameters.dims), "beta": list(parameters.onset_betas)},
    )


def jump() -> xr.Dataset:
    """The beta at which c, by Newton's method at amplitudes s and s/2, changes sign; from s = 0.1 and 0.05."""

    def curvature(beta: float, amplitude: float) -> float:
        return bifurcation(Attention(beta, normaliser=Unnormalised()), 2, amplitude=amplitude).curvature

    found = [brentq(curvature, 2.2, 2.7, args=(s,), xtol=1e-9) for s in (0.1, 0.05)]
    return xr.Dataset({"beta": ("amplitude", found)}, {"amplitude": [0.1, 0.05]})


def followed(model: str, beta: float) -> xr.Dataset:
    """The branch of ordered states from 0.48 kappa_c to the uniform measure."""
    field = Attention(beta, normaliser=MODELS[model])
    onset = float(theory.critical_noise(beta, 2, model=model))
    begin = stationary(field, 0.48 * onset, von_mises_fisher(BASIS, 8.0)).density
    return branch(field, 0.48 * onset, begin, within=(0.45 * onset, 3 * onset), step=0.08)


def near(model: str, beta: float, part: xr.Dataset) -> xr.Dataset:
    """Order at kappa_c (1 - delta), or at kappa_c (1 + delta) behind the fold of a jump, delta halved four times."""
    field = Attention(beta, normaliser=MODELS[model])
    shape, onset = bifurcation(field, 2), float(theory.critical_noise(beta, 2, model=model))
    side = float(np.sign(shape.curvature))
    fold = int(np.argmax(part["kappa"].values)) if side > 0 else 0
    late = np.abs(part["kappa"].values[fold:] - onset * (1 + 0.01 * side))
    guess = part["coefficients"].values[fold + int(np.argmin(late))]
    deltas, orders = 0.01 * 0.5 ** np.arange(5), []
    for delta in deltas:
        state = stationary(field, onset * (1 + side * delta), Density(BASIS, guess, tolerance=np.inf)).density
        orders.append(float(np.linalg.norm(state.moments.mean)))
        guess = np.asarray(state.coefficients) * 0.5 ** (BASIS.degrees / 2)  # degree k goes with m^k
    return xr.Dataset(
        {"order": ("delta", orders), "onset": onset, "curvature": shape.curvature, "side": side}, {"delta": deltas}
    )


def flows(model: str, beta: float, part: xr.Dataset, parameters: Parameters, say: Any) -> xr.Dataset:
    """At each noise: m of the branch, its growth, m of the equation after 25 relaxation times, m^2 of tokens by seed.

    `ordered` tells from which side tokens and equation start, and thus which state is meant.
    """
    onset = float(theory.critical_noise(beta, 2, model=model))
    fold = float(part["kappa"].max())
    points = [(share * onset, True) for share in parameters.below]
    if fold > 1.01 * onset:
        points += [(onset + 0.2 * (fold - onset), True)]
    points += [(share * max(fold, onset), False) for share in parameters.above]
    rows = []
    for index, (kappa, ordered) in enumerate(points):
        say(f"kappa = {kappa:.3g}", 0.15 + 0.85 * index / len(points))
        rows.append(_one(model, beta, kappa, ordered, onset, parameters))
    names = ("kappa", "ordered", "order", "growth", "shifted", "begin", "equation", "steps", "squares")
    columns = {name: [row[name] for row in rows] for name in names}
    variables: dict[str, Any] = {name: ("point", np.array(columns[name])) for name in names[:-1]}
    return xr.Dataset(
        variables | {"squares": (("point", "seed"), np.array(columns["squares"]))}, attrs={"onset": onset}
    )


def _one(model: str, beta: float, kappa: float, ordered: bool, onset: float, parameters: Parameters) -> dict[str, Any]:
    plain = Attention(beta, normaliser=MODELS[model])
    start = von_mises_fisher(BASIS, 4.0 if ordered else 0.2)
    step = CLOCK / onset
    state, shifted = uniform(BASIS), 0.0
    if ordered:
        state = stationary(plain, kappa, von_mises_fisher(BASIS, 8.0)).density
        # what the first-order step may do to the noise: see `compare`
        other = stationary(plain, kappa * (1 - 8 * kappa * step), state).density
        shifted = float(np.linalg.norm(other.moments.mean))
    growth = stability(plain, state, kappa).growth
    flow = evolve(plain, start, 25 / abs(growth), kappa=kappa, save=1)
    # without order m fluctuates, whatever the number of tokens: smaller systems, but more of them
    parts = 1 if ordered else parameters.shares
    density = von_mises_fisher(BASIS, 4.0) if ordered else uniform(BASIS)
    tokens = sample(density, parameters.tokens // parts, parameters.first_seed)
    first = parameters.first_seed + int(1e6 * kappa)  # another path for every noise
    moved = solve(
        field_of(model, beta),
        tokens,
        parameters.last / onset,
        save=Evenly(24),
        noise=Brownian(kappa, seed=Along("seed", range(first, first + parts * parameters.seeds))),
        method=Layers(step, ProjectRenormalise()),
    ).dataset
    late = moved.where(moved["time"] >= burn(parameters, ordered) / onset, drop=True)["positions"]
    squares = (late.mean("token") ** 2).sum("dim").mean("time").values
    return {
        "kappa": kappa,
        "ordered": ordered,
        "order": float(np.linalg.norm(state.moments.mean)),
        "growth": growth,
        "shifted": shifted,
        "begin": float(np.linalg.norm(np.mean(np.asarray(tokens.positions), axis=0))),
        "equation": float(np.linalg.norm(flow.density().moments.mean)),
        "steps": flow.steps["accepted"],
        "squares": squares.reshape(parameters.seeds, parts).mean(axis=1),
    }


def burn(parameters: Parameters, ordered: bool) -> float:
    """Times kappa_c: when averages begin; tokens without order start as they should be but for their correlations."""
    return parameters.burn if ordered else parameters.burn / 2


def landau(beta: float, model: str) -> float:
    """The c of kappa = kappa_c + 2 c m^2 on the circle: rho = exp(Phi/kappa) expanded to third order."""
    a = ive([0, 1, 2], beta)
    if model == "USA0":
        one, two = a[1:] / beta
        return float(one * (two / (one - two) - 1) / 4)
    one, two = a[1:] / a[0]
    power, ratio = 1 / one, two / one
    return float(one**2 / (beta * power) * (power - 1) * ((power - 1) * ratio / (1 - ratio) - (power + 2)) / 4)


def compare(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[dict[str, Any]]:
    """One row per noise at which tokens were followed: m^2 by theory and by tokens, and its tolerance.

    With order m^2 is that of the branch. Without, m fluctuates with mean square kappa/((kappa - kappa_c) n), as the
    linear equation with its noise says. The noise of a step of length h turns a token by arctan(v), v normal of
    variance 2 kappa h: its diffusion is kappa (1 - 4 kappa h); Euler's rule for the drift is taken to add as much.
    """
    rows = []
    for model, beta in parameters.cases:
        part = data[f"flows-{model}-beta{beta:g}"]
        onset = float(part.attrs["onset"])
        for k in range(part.sizes["point"]):
            one = part.isel(point=k)
            kappa, squares = float(one["kappa"]), one["squares"].values
            error = squares.std(ddof=1) / np.sqrt(len(squares))
            ordered = bool(one["ordered"])
            n = parameters.tokens // (1 if ordered else parameters.shares)
            slip, left = 8 * kappa * CLOCK / onset, np.exp(float(one["growth"]) * burn(parameters, ordered) / onset)
            square = float(one["order"]) ** 2 if ordered else kappa / ((kappa - onset) * n)
            tolerance = 4 * error + left * abs(float(one["begin"]) ** 2 - square)
            if ordered:
                tolerance += abs(float(one["shifted"]) ** 2 - square) + n**-0.5
            else:
                tolerance += square * (slip * kappa / (kappa - onset) + n**-0.5)
            rows.append(
                {"model": model, "beta": beta, "kappa": kappa, "onset": onset, "ordered": ordered}
                | {"square": square, "found": float(squares.mean()), "error": error, "tolerance": tolerance}
                | {"order": float(one["order"]), "equation": float(one["equation"])}
                | {"rounding": 1e-10 * float(one["steps"]) + 4 * np.exp(-25.0)}
            )
    return rows


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """kappa_c; beta*; for each branch its kind and its onset; the equation; the tokens."""
    made = []
    rows: list[Any] = []
    onset = data["onset"]["kappa"]
    for model, d, beta in itertools.product(MODELS, parameters.dims, parameters.onset_betas):
        k = np.arange(1, 60)
        expected = float(np.max(theory.growth_rates(beta, d, k, model) / (k * (k + d - 2))))
        rows.append((float(onset.sel(model=model, dimension=d, beta=beta)) / expected, 1.0, 1e-10, (model, d, beta)))
    found, expected, tolerance, (model, d, beta) = max(rows, key=lambda row: share_used(*row[:3]))
    where = f"worst of {len(rows)}: {model}, S^{d - 1}, β = {beta:g}"
    statement = f"the uniform measure becomes unstable at κ_c = max_k λ_k/(k(k+d-2)): quotient ({where})"
    source = "eigenvalues are exact to rounding, 1e-10 asked for"
    made.append(Claim.equal(statement, expected, found, tolerance, source))

    coarse, fine = data["jump"]["beta"].values
    star = float(brentq(lambda beta: ive(2, beta) / ive(1, beta) - 0.5, 2, 3, xtol=1e-14))
    statement = "USA0 on the circle: the transition turns into a jump where I_2/I_1 = 1/2"
    source = "what halving the amplitude changes (extrapolation of order 4)"
    made.append(Claim.equal(statement, star, fine, abs(fine - coarse), source))

    for model, beta in parameters.cases:
        name = f"{model}-beta{beta:g}"
        made += _branch_claims(model, beta, star, data[name], data[f"near-{name}"])
    rows = compare(parameters, data)
    worst = max(rows, key=lambda row: share_used(row["equation"], row["order"], row["rounding"]))
    statement = f"the equation with noise relaxes to the branch: m (worst of {len(rows)}: {_where(worst)})"
    source = "e^(-25) of the start; rtol 1e-10 of every step"
    made.append(Claim.equal(statement, worst["order"], worst["equation"], worst["rounding"], source))
    for ordered, words in ((True, "of the branch"), (False, "κ/((κ-κ_c)n)")):
        some = [row for row in rows if row["ordered"] == ordered]
        worst = max(some, key=lambda row: share_used(row["found"], row["square"], row["tolerance"]))
        side = "with order" if ordered else "without order"
        n = parameters.tokens // (1 if ordered else parameters.shares)
        statement = f"{n} tokens {side}: mean of m² is {words} (worst of {len(some)}: {_where(worst)})"
        source = (
            f"4 standard errors of {parameters.seeds} seeds; what is left of the start; the step's change of κ; "
            + ("n^(-1/2)" if ordered else "relative n^(-1/2)")
        )
        made.append(Claim.equal(statement, worst["square"], worst["found"], worst["tolerance"], source))
    return made


def _branch_claims(model: str, beta: float, star: float, part: xr.Dataset, close: xr.Dataset) -> list[Claim]:
    onset, jumps = float(close["onset"]), model == "USA0" and beta > star
    kappa, unstable, fold = part["kappa"].values, part["unstable"].values, int(np.argmax(part["kappa"].values))
    if jumps:
        right = fold < len(kappa) - 2 and (unstable[:fold] == 0).all() and (unstable[fold + 1 : -1] == 1).all()
        words = f"fold at {kappa[fold] / onset:.4f} κ_c, {int(np.sum(unstable > 0))} unstable states behind it"
        statement = f"{model}, β = {beta:g}: the branch is stable up to a fold above κ_c, then unstable down to κ_c"
        right = right and kappa[fold] > onset
    else:
        right = bool((np.diff(kappa) > 0).all() and (unstable == 0).all() and kappa[-1] <= onset * (1 + 1e-9))
        words = f"{len(kappa)} states, none unstable, the last at {kappa[-1] / onset:.4f} κ_c"
        statement = f"{model}, β = {beta:g}: the branch is stable and ends continuously at κ_c"
    made = [Claim.true(statement, bool(right), words, "eigenvalues at every state")]
    order, delta = close["order"].values, close["delta"].values
    ratio = np.log2(order[:-1] / order[1:])
    exponents = 2 * ratio[1:] - ratio[:-1]  # errors are of first order in delta
    statement = f"{model}, β = {beta:g}: exponent of m in |κ - κ_c|"
    source = "what one more halving changes of the extrapolated value, or a hundredth of it if that is less"
    change = min(abs(exponents[-1] - exponents[-2]), 0.005)
    made.append(Claim.equal(statement, 0.5, exponents[-1], change, source))
    quotients = float(close["side"]) * delta * onset / (2 * order**2)
    extrapolated = 2 * quotients[1:] - quotients[:-1]
    statement = f"{model}, β = {beta:g}: (κ - κ_c)/2m² tends to the closed form of third order"
    change = min(abs(extrapolated[-1] - extrapolated[-2]), 0.01 * abs(landau(beta, model)))
    made.append(Claim.equal(statement, landau(beta, model), extrapolated[-1], change, source))
    return made


def _where(row: dict[str, Any]) -> str:
    return f"{row['model']}, β = {row['beta']:g}, κ = {row['kappa'] / row['onset']:.3g} κ_c"


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Order m = |mean of x| against noise on the circle.

    Branches of stationary states (full: stable, dashed: unstable), the equation with noise (open squares) and tokens
    with noise (marks, root mean square and two standard errors). Last panel: m near the onset; lines: the closed form
    of third order, slope 1/2.
    """
    from attnflow.experiments.gallery import _noisy_transition_figure as panels

    with styled() as figure:
        count = len(parameters.cases) + 1
        fig = figure.Figure(figsize=(PAGE, 2.5 * ((count + 1) // 2)))
        axes = fig.subplots((count + 1) // 2, 2).ravel()
        rows = compare(parameters, data)
        for one, (model, beta) in zip(axes, parameters.cases, strict=False):
            some = [row for row in rows if (row["model"], row["beta"]) == (model, beta)]
            panels.draw_branch(one, model, beta, data[f"{model}-beta{beta:g}"], some)
        panels.draw_onset(axes[count - 1], parameters.cases, data)
        for one in axes[count:]:
            one.set_visible(False)
        for letter, one in zip("abcdefgh", axes[:count], strict=False):
            one.set_title(f"({letter})", loc="left", fontweight="bold")
        return fig
