"""The spectrum of V decides whether tokens on the sphere cluster, where, and whether two clusters can last for ever.

The model is dx_i/dt = P (1/H) sum_h sum_j A^h_ij V_h x_j. It is seldom a gradient flow, but four things are exact, for
all Q_h and K_h, with V the mean of the V_h:

- Tokens at one point x stay together and follow dx/dt = P V x: x(t) = e^(tV) x(0), normalised. So consensus goes to the
  leading eigenvector of a symmetric V, and turns with an antisymmetric one.
- Near consensus, chords grow by 1/|e^(tV) x(0)|, at the rate -<x, Vx>: V = I contracts, V = -I disperses, an
  antisymmetric V does neither, and random heads contract in the end if the leading eigenvalue of V has a real part > 0.
- At beta = 0 all tokens move by one Moebius map of the sphere, and cross-ratios of chords never change.
- If all V_h are symmetric with an eigenvector phi, clusters of equal masses at phi and -phi are in equilibrium. Bending
  both towards another eigenvector (lambda_2) grows at the mean over heads of lambda_2 - lambda_1 tanh(beta b), turning
  them both at that of (lambda_2 - lambda_1) tanh(beta b), b = <Q phi, K phi>. So two clusters last for ever where
  tanh(beta b) > lambda_2/lambda_1, and for V = I never.

The energy of one head with V = Q^T K symmetric never falls; that of two softmax heads may (arXiv:2312.10794).

Shown: these against simulations. Measured, with no theory: how often random starts end in two clusters, and the
effective rank of tokens under several random heads of equal total strength, which for large beta falls more slowly the
more heads there are. Not shown: weights that change with depth.
"""

import dataclasses
import functools
import itertools
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr

from attnflow.axes import Along
from attnflow.experiments.claim import Claim, worst
from attnflow.experiments.gallery._frames import frames
from attnflow.experiments.study import Study
from attnflow.fields import Attention
from attnflow.flows import Fixed, advance
from attnflow.observe import effective_rank, energy_rate, interaction_energy
from attnflow.precision import double
from attnflow.spaces import Sphere
from attnflow.tokens import Measure, Tokens, stack, uniform

PAPERS = ("arXiv:2312.10794",)

KINDS = {"symmetric": 0, "antisymmetric": 2, "-I": 4, "random heads": 3}
"""Kinds of V for tight clusters, and their colours."""
SHOWN = ("V = I", "two eigenvalues", "V = -I", "antisymmetric V")
TIGHT = 1e-7
"""Size of tight clusters and of disturbances."""
LEGS = 8
ESCAPE = 12.0
"""Two clusters must have gone where a disturbance of them would have grown by e^12 in the time."""


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is simulated, on the sphere in R^3 but for the random heads."""

    tokens: int = 24
    tight: int = 4
    """Tight clusters of each kind, and starts at beta = 0."""
    pairs: int = 6
    """Random heads with two antipodal clusters."""
    ratio: float = 0.7
    """lambda_2/lambda_1 of V where the end of random starts is looked at."""
    betas: tuple[float, ...] = (0.3, 0.6, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0)
    seeds: int = 48
    until: float = 4.0
    end: float = 80.0
    """Where random starts count as ended."""
    steps: int = 25
    """In an eighth of the time, and half as long ones for comparison."""
    states: int = 300
    """In which the energy of one head, and of two, is looked at."""
    heads: tuple[int, ...] = (1, 2, 4, 8)
    head_betas: tuple[float, ...] = (1.0, 8.0, 32.0)
    head_dim: int = 8
    head_seeds: int = 60
    head_until: float = 7.5
    seed: int = 0


QUICK = Parameters(
    tokens=12, tight=1, pairs=2, betas=(0.3, 2.0), seeds=6, states=40,
    heads=(1,), head_betas=(8.0,), head_dim=3, head_seeds=4,
)  # fmt: skip


class Case(NamedTuple):
    """One system: beta, the matrices of two heads, and positions."""

    kind: str
    beta: float
    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    x: np.ndarray
    frame: np.ndarray
    """Eigenvectors of both V_h, as columns, and their eigenvalues; for two antipodal clusters."""
    spectra: np.ndarray


def cases(parameters: Parameters) -> list[Case]:
    """All systems that are followed together: two heads each, equal ones where a single head is meant."""
    rng, n = np.random.default_rng(parameters.seed), parameters.tokens
    made: list[Case] = []

    def add(
        kind: str, beta: float, value: Any, x: Any, query: Any = np.eye(3), key: Any = np.eye(3),
        frame: Any = np.eye(3), spectra: Any = np.ones((2, 3)),
    ) -> None:  # fmt: skip
        q, k, v = (np.broadcast_to(matrix, (2, 3, 3)) for matrix in (query, key, value))
        made.append(Case(kind, beta, q, k, v, x / np.linalg.norm(x, axis=1, keepdims=True), frame, spectra))

    for _, kind in itertools.product(range(parameters.tight), KINDS):
        value = rng.standard_normal((2, 3, 3)) / np.sqrt(3)
        if kind == "-I":
            value = -np.eye(3)
        elif kind != "random heads":
            value = value[0] + (1 if kind == "symmetric" else -1) * value[0].T
        x = rng.standard_normal(3) + np.zeros((n, 1))
        near = x / np.linalg.norm(x, axis=1, keepdims=True) + TIGHT * rng.standard_normal((n, 3))
        add(kind, rng.uniform(0.5, 4.0), value, near, *rng.standard_normal((2, 2, 3, 3)))
    for _ in range(parameters.tight):
        heads = rng.standard_normal((3, 2, 3, 3)) / np.sqrt(3)
        add("beta = 0", 0.0, heads[0], rng.standard_normal((n, 3)), heads[1], heads[2])
    for k in range(parameters.pairs + len(parameters.betas)):
        frame = np.linalg.qr(rng.standard_normal((3, 3)))[0]
        spectra, (query, key) = rng.uniform(-1.0, 1.0, (2, 3)), rng.standard_normal((2, 2, 3, 3)) / np.sqrt(3)
        beta = rng.uniform(0.5, 3.0)
        if k >= parameters.pairs:
            spectra, query, key = np.array([[1.0, *[parameters.ratio] * 2]] * 2), np.eye(3), np.eye(3)
            beta = parameters.betas[k - parameters.pairs]
        half = np.where(np.arange(n) < n // 2, 1.0, -1.0)[:, None]
        x = half * frame[:, 0] + TIGHT * (frame[:, 1] + half * frame[:, 2])
        add("pair", beta, np.einsum("ik,hk,jk->hij", frame, spectra, frame), x, query, key, frame, spectra)
    turning = np.cross(np.eye(3), [0.3, 0.5, 1.0])
    start = rng.standard_normal((n, 3))
    for kind, value in zip(SHOWN, (np.eye(3), np.diag([1.0, 0.5, 0.5]), -np.eye(3), turning), strict=True):
        add(kind, 4.0, value, start)
    for beta, _ in itertools.product(parameters.betas, range(parameters.seeds)):
        add("start", beta, np.diag([1.0, parameters.ratio, parameters.ratio]), rng.standard_normal((n, 3)))
    return made


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Short and long frames of all cases, rates of the energy, and the effective rank under random heads."""
    jobs = {
        "short": functools.partial(_follow, parameters, study, parameters.until, (0.0, 0.3)),
        "long": functools.partial(_follow, parameters, study, parameters.end, (0.3, 0.3)),
        "energy": functools.partial(_energies, parameters, study),
        "heads": functools.partial(_heads, parameters, study),
    }
    return {name: study.part(name, make) for name, make in jobs.items()}


def _follow(parameters: Parameters, study: Study, until: float, share: tuple[float, float]) -> xr.Dataset:
    all_of_them = cases(parameters)
    numbers = range(len(all_of_them))
    batch: dict[str, Any] = {
        name: Along("case", [getattr(case, name) for case in all_of_them], labels=numbers)
        for name in ("beta", "query", "key", "value")
    }
    tokens = stack("case", numbers, [Tokens(case.x) for case in all_of_them])
    found = frames(
        Attention(**batch), tokens, until, LEGS, parameters.steps,
        lambda done: study.progress(f"{len(all_of_them)} systems to t = {until:g}", share[0] + share[1] * done),
    )  # fmt: skip
    return xr.Dataset(
        {
            "fine": (("frame", "case", "token", "dim"), found.fine),
            "coarse": (("frame", "case", "token", "dim"), found.coarse),
            "error": (("frame", "case"), found.error),
            "time": (("frame",), found.time),
        }
    )


def _energies(parameters: Parameters, study: Study) -> xr.Dataset:
    """Rates of the log of the energy, V_h = Q_h^T K_h symmetric, in random states: two equal heads and two others.

    Three tokens on the circle and large matrices: how often the energy falls depends much on that.
    """
    study.progress(f"energy of {parameters.states} states", 0.6)
    tokens = uniform(Sphere(2), n=3, seed=range(parameters.states))
    heads = 3 * np.random.default_rng([parameters.seed, 1]).standard_normal((parameters.states, 2, 2, 2))
    heads = (heads + np.swapaxes(heads, 2, 3)) / 2

    def rate(matrices: Any, x: Any) -> Any:
        field, here = Attention(2.0, key=matrices, value=matrices), Measure(x)
        return energy_rate(field, here) / interaction_energy(field, here)

    found = double(jax.jit(jax.vmap(rate)))
    rates = [found(kind, np.asarray(tokens.positions)) for kind in (heads[:, [0, 0]], heads)]
    return xr.Dataset({"rate": (("kind", "state"), np.array(rates))})


def _heads(parameters: Parameters, study: Study) -> xr.Dataset:
    """Effective rank and share of starts at one point, under H random heads of which all sums are equally strong."""
    rank = np.zeros((len(parameters.heads), len(parameters.head_betas), parameters.head_seeds))
    dim, seeds = parameters.head_dim, parameters.head_seeds
    for k, count in enumerate(parameters.heads):
        study.progress(f"{count} random heads", 0.7 + 0.3 * k / len(parameters.heads))
        rng = np.random.default_rng([parameters.seed, 2, count])
        query, key, value = rng.standard_normal((3, seeds, count, dim, dim)) / np.sqrt(dim)
        field = Attention(
            Along("beta", parameters.head_betas), query=Along("seed", query), key=Along("seed", key),
            value=Along("seed", value), average="root",
        )  # fmt: skip
        tokens = uniform(Sphere(dim), n=parameters.tokens, seed=range(seeds))
        rank[k] = effective_rank(advance(field, tokens, 0.0, parameters.head_until, Fixed(0.1)))
    return xr.Dataset({"rank": (("heads", "beta", "seed"), rank)})


def linear_flow(value: np.ndarray, x: np.ndarray, times: np.ndarray) -> np.ndarray:
    """e^(tV) x at all times."""
    from scipy.linalg import expm

    return np.array([expm(t * value) @ x for t in times])


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Consensus, tight clusters, beta = 0, two clusters, random starts, energy."""
    short, known = data["short"], cases(parameters)
    made = [*_consensus(known, short), _cross_ratios(known, short), *_two_clusters(known, short)]
    return [*made, _ends(parameters, known, data["long"]), *_of_energy(parameters, data["energy"])]


def of_kind(known: list[Case], *kinds: str) -> list[int]:
    """Numbers of the cases of these kinds."""
    return [k for k, case in enumerate(known) if case.kind in kinds]


def _stiffness(case: Case) -> float:
    """(2 beta |B| + 4) |V|: how fast, per size of a cluster, chords deviate from the linear law."""
    logits = np.linalg.norm(np.swapaxes(case.query, 1, 2) @ case.key, 2, axis=(1, 2))
    return float(np.max((2 * case.beta * logits + 4) * np.linalg.norm(case.value, 2, axis=(1, 2))))


def chords(x: np.ndarray) -> np.ndarray:
    """|x_i - x_(i+1)| around the tokens, (..., token)."""
    return np.asarray(np.linalg.norm(x - np.roll(x, 1, axis=-2), axis=-1))


def _consensus(known: list[Case], short: xr.Dataset) -> list[Claim]:
    """-d log|x_i - x_j|/dt is <x, Vx>, up to what attention and the projection make of the size of the cluster."""
    place, growth, chosen = [], [], of_kind(known, *KINDS)
    times = short["time"].values
    for k in chosen:
        x, rough = short["fine"].values[:, k], short["coarse"].values[:, k]
        middle = x.mean(axis=1)
        flow = linear_flow(known[k].value.mean(axis=0), middle[0], times)
        size = np.linalg.norm(flow, axis=1, keepdims=True)
        wide = np.linalg.norm(x - middle[:, None], axis=2).max()
        place.append((np.linalg.norm(middle - flow / size, axis=1).max(), short["error"].values[:, k].max() + wide))
        measured, coarse = (np.log(chords(y)[1:] / chords(y)[0]) for y in (x, rough))
        # the coordinates of tokens round by eps, chords by twice that
        slack = np.abs(measured - coarse) + _stiffness(known[k]) * times[-1] * wide + 4e-16 / chords(x)[1:] * len(times)
        at = worst(np.abs(measured + np.log(size[1:])), slack)
        growth.append((-np.log(size[1 + at[0], 0]), measured[at], slack[at], times[1 + at[0]]))
    off, allowed = np.array(place).T
    (first,) = worst(off, allowed)
    predicted, measured, slack, when = np.array(growth).T
    (second,) = worst(np.abs(measured - predicted), slack)
    label = f"worst of {len(chosen)}: {known[chosen[second]].kind}, t = {when[second]:g}"
    return [
        Claim.at_most(
            f"distance of consensus from e^(tV) x, normalised (worst of {len(chosen)})", 0.0, off[first],
            allowed[first], "change by halving the steps; size of the cluster",
        ),
        Claim.equal(
            f"log of the growth of a small chord, -log |e^(tV) x| ({label})", predicted[second], measured[second],
            slack[second], "change by halving the steps; (2β|B| + 4)|V| t times the size of the cluster; rounding",
        ),
    ]  # fmt: skip


def _cross_ratios(known: list[Case], short: xr.Dataset) -> Claim:
    chosen = of_kind(known, "beta = 0")

    def ratios(name: str) -> np.ndarray:
        x = short[name].values[:, chosen]
        a, b, c = (np.roll(x, k, axis=2) for k in (1, 2, 3))
        near, far = (np.log(np.linalg.norm(u - v, axis=-1)) for u, v in ((x, a), (x, b)))
        return np.asarray(near + np.log(np.linalg.norm(b - c, axis=-1)) - far - np.log(np.linalg.norm(a - c, axis=-1)))

    fine, coarse = ratios("fine"), ratios("coarse")
    change = np.abs(fine - fine[0])[1:]
    slack = np.abs(fine - coarse)[1:] + 1e-12
    at = worst(change, slack)
    return Claim.at_most(
        f"β = 0, random heads: change of the log of a cross-ratio (worst of {fine[0].size})", 0.0, float(change[at]),
        float(slack[at]), "change by halving the steps; rounding",
    )  # fmt: skip


def pair_rates(case: Case) -> tuple[float, float]:
    """Rates at which two antipodal clusters bend and turn."""
    phi, one = case.frame[:, 0], case.spectra
    tilt = np.tanh(case.beta * np.einsum("i,hji,hjk,k->h", phi, case.query, case.key, phi))
    return float(np.mean(one[:, 1] - one[:, 0] * tilt)), float(np.mean((one[:, 2] - one[:, 0]) * tilt))


def measured_rates(case: Case, x: np.ndarray, time: float) -> np.ndarray:
    """The same from positions at t = 0 and at `time`, (2, token, dim)."""
    both = np.stack([x[:, 0] + x[:, -1], x[:, 0] - x[:, -1]])
    parts = np.einsum("mtd,dm->mt", both, case.frame[:, 1:])
    return np.asarray(np.log(np.abs(parts[:, 1] / parts[:, 0])) / time)


def _two_clusters(known: list[Case], short: xr.Dataset) -> list[Claim]:
    found: list[list[tuple[float, float, float]]] = [[], []]
    time, chosen = float(short["time"][-1]), of_kind(known, "pair")
    for k in chosen:
        case, ends = known[k], (0, -1)
        fine, coarse = (measured_rates(case, short[n].values[ends, k], time) for n in ("fine", "coarse"))
        large, small = (TIGHT * np.exp(f([*fine, 0.0]) * time) for f in (np.max, np.min))
        for rows, predicted, one, other in zip(found, pair_rates(case), fine, coarse, strict=True):
            slack = abs(one - other) + _stiffness(case) * large + 64e-16 / small / time
            rows.append((predicted, one, slack))
    made = []
    for rows, words in zip(found, ("bend", "turn"), strict=True):
        predicted, measured, slack = np.array(rows).T
        (at,) = worst(np.abs(measured - predicted), slack)
        made.append(
            Claim.equal(
                f"rate at which two antipodal clusters {words} (worst of {len(rows)})", predicted[at], measured[at],
                slack[at], "change by halving the steps; (2β|B| + 4)|V| times the disturbance; rounding",
            )
        )  # fmt: skip
    return made


def two_ended(parameters: Parameters, known: list[Case], part: xr.Dataset) -> np.ndarray:
    """Which random starts have tokens near both phi and -phi in the end, (beta, seed)."""
    along = part["fine"].values[-1, of_kind(known, "start"), :, 0]
    return np.asarray((along.max(axis=1) > 0.9) & (along.min(axis=1) < -0.9)).reshape(len(parameters.betas), -1)


def _ends(parameters: Parameters, known: list[Case], part: xr.Dataset) -> Claim:
    unstable = (parameters.ratio - np.tanh(parameters.betas)) * parameters.end > ESCAPE
    found = two_ended(parameters, known, part)[unstable]
    return Claim.equal(
        f"λ₂/λ₁ = {parameters.ratio:g}, tanh β below it, {found.size} random starts: those that end in two clusters", 0,
        int(found.sum()), 0, f"counted where a disturbance of two clusters would have grown by e^{ESCAPE:g}",
    )  # fmt: skip


def _of_energy(parameters: Parameters, part: xr.Dataset) -> list[Claim]:
    one, two = part["rate"].values
    lowest = f"one head, V = QᵀK symmetric: lowest rate of the log of its energy in {parameters.states} states"
    falls = f"two such heads: states of {parameters.states} in which their energy falls, some"
    return [
        Claim.at_least(lowest, 0.0, one.min(), 1e-12, "rounding, of rates of order 10"),
        Claim.at_least(falls, 1, int(np.sum(two < -1e-12)), 0, "counted"),
    ]


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Attention on the sphere with matrices.

    (a) One random start, Q = K = I, beta = 4, until t = 4 (dots; light ones are behind): V = I, V = diag(1, 0.5, 0.5)
    with its axis horizontal, V = -I, and an antisymmetric V. (b) Chords of tight clusters (marks) and 1/|e^(tV) x|
    (lines), for random Q and K. (c) V = diag(1, r, r): share of random starts that end in two clusters, with 95%
    intervals, and the rate at which two clusters bend, measured (diamonds) and r - tanh(beta) (line), which vanishes at
    the dashed line. (d) Effective rank of tokens under random heads at one time, mean and 95% intervals; a measurement.
    """
    from attnflow.experiments.gallery import _value_spectrum_figure

    return _value_spectrum_figure.draw(parameters, data)
