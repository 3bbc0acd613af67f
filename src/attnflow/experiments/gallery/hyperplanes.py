"""Without layer norm, a simple leading eigenvalue of V draws rescaled tokens onto at most three parallel hyperplanes.

Tokens in R^d follow dx_i/dt = sum_j A_ij V x_j with A the softmax of <x_i, x_j>. Let lambda > 0 be a simple eigenvalue
of V, larger than the real parts of all others, phi its eigenvector and phi* the dual one. For z = e^(-tV) x the
coordinate y = phi*(z) obeys dy_i/dt = lambda sum_j A_ij (y_j - y_i), so that its extremes close in, and it takes at
most three limits: the largest y, the smallest, and 0 (arXiv:2305.05465). Other coordinates are free; where V has
negative eigenvalues they grow.

Two exact solutions. Clusters at x and -x, of equal masses, move as x(t) = e^(sV) x(0), ds/dt = tanh |x|^2: they only
lag behind the linear flow, and z tends to e^(-delay V) z(0) with delay = int_0^infinity (coth |e^(sV) x(0)|^2 - 1) ds.
A token of no mass between them, at eps phi, while the clusters are at +- X phi, leaves the middle plane like
eps (sinh X^2 / sinh X(0)^2)^(1/2): doubly exponentially in t, so the third plane needs a token that is exactly there.

Shown: the example of V = [[1, 0.3], [0, -0.4]], random V and starts, both solutions, and that V = I, whose leading
eigenvalue is not simple, has more limits. Tokens come near their plane like e^(-lambda t) if <u, Vu> > 0 for all u;
otherwise they may stay at a tie between a leader and themselves, and come more slowly: there no rate is claimed. Not
shown: Q and K other than the identity, and <Q phi, K phi> < 0.
"""

import dataclasses
import functools
import itertools
import math
from typing import Any

import numpy as np
import xarray as xr

from attnflow.axes import Along
from attnflow.experiments.claim import Claim, worst
from attnflow.experiments.gallery._frames import frames, leaders, rates
from attnflow.experiments.study import Study
from attnflow.fields import Attention, Rescaled
from attnflow.observe import attention_matrix, distinct, hyperplane_coordinates
from attnflow.plots.style import COLOURS, GREY, INK, PAGE, styled
from attnflow.spaces import Euclidean
from attnflow.tokens import Tokens, stack

PAPERS = ("arXiv:2305.05465",)

EXAMPLE = np.array([[1.0, 0.3], [0.0, -0.4]])
SURE = 1e-9
"""A row of attention is decided if all but one of its weights add up to less."""
BEFORE = 2.0
"""How long before the end leaders are looked for; they must be the same at the end."""
ANGLES = (-1.0, 0.0, 1.0)
"""The clusters of a pair are at cos(angle) phi + sin(angle) w, phi*(w) = 0."""
HORIZON, PANELS = 10.0, 80
"""Where integrals over s end (|e^(sV) x|^2 has passed 20, and coth is 1, for leading coordinates above 0.001)."""
SMALL = 1e-2
"""Up to which <x, X> the token in the middle counts as a small disturbance."""


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is simulated."""

    tokens: int = 30
    starts: int = 60
    """Random ones, each with a V of its own, of leading eigenvalue 1."""
    dims: tuple[int, ...] = (2, 3)
    identities: int = 10
    """Random starts with V = I."""
    pairs: tuple[float, ...] = (0.4, 0.6, 0.8, 1.1, 1.5)
    """Norms of x(0) of two clusters, in three directions each."""
    middle: tuple[float, ...] = (0.6, 1.0)
    """X(0) of the clusters beside the middle plane."""
    offset: float = 1e-9
    """Initial distance from it."""
    until: float = 10.0
    legs: int = 40
    steps: int = 25
    """Per leg; half as long ones are taken for comparison."""
    seed: int = 2


QUICK = Parameters(starts=7, dims=(2,), identities=3, pairs=(0.6, 1.1), middle=(0.6,), until=7.0, legs=14, steps=20)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Frames of all starts of a dimension, their coordinates, and who leads whom shortly before the end."""
    return {
        f"R{dim}": study.part(f"R{dim}", functools.partial(_follow, parameters, k, dim, study))
        for k, dim in enumerate(parameters.dims)
    }


def leading(value: np.ndarray) -> np.ndarray:
    """The unit eigenvector phi for the eigenvalue 1."""
    found, vectors = np.linalg.eig(value)
    return np.asarray(vectors[:, np.argmax(found.real)].real)


def draw_values(count: int, dim: int, rng: np.random.Generator) -> np.ndarray:
    """Random V: the eigenvalue 1, others of real part between -0.6 and 0.6, every third time a complex pair."""
    made = []
    for k in range(count):
        inner = np.diag(np.r_[1.0, rng.uniform(-0.6, 0.6, dim - 1)])
        if k % 3 == 2 and dim > 2:
            inner[2, 2] = inner[1, 1]
            inner[1, 2], inner[2, 1] = 1.0, -1.0
        basis = np.eye(dim) + 0.3 * rng.standard_normal((dim, dim))
        made.append(basis @ inner @ np.linalg.inv(basis))
    if dim == 2:
        made[0] = EXAMPLE
    return np.array(made)


def _starts(parameters: Parameters, dim: int) -> tuple[list[Tokens], np.ndarray]:
    """Tokens and V: random ones, those with V = I, pairs of clusters, and those with a token in the middle."""
    rng, other = np.random.default_rng(parameters.seed), np.random.default_rng([parameters.seed, dim])
    rng.standard_normal((20, 2))  # what `vertices` draws
    n, space = parameters.tokens, Euclidean(dim)
    values = draw_values(parameters.starts, dim, other)
    tokens = [Tokens(x, space=space) for x in rng.standard_normal((parameters.starts + parameters.identities, n, dim))]
    half = np.where(np.arange(n) < n // 2, 1.0, -1.0)[:, None]
    phi = leading(values[0])
    across = values[0] @ (aim := other.standard_normal(dim)) - aim  # phi* of it is 0
    across /= np.linalg.norm(across)
    for radius, angle in itertools.product(parameters.pairs, ANGLES):
        tokens.append(Tokens(radius * half * (np.cos(angle) * phi + np.sin(angle) * across), space=space))
    for radius in parameters.middle:
        x, masses = radius * half * phi, np.ones(n)
        x[[0, -1]] = parameters.offset * half[[0, -1]] * phi
        masses[[0, -1]] = 0.0
        tokens.append(Tokens(x, masses, space=space))
    rest = len(tokens) - parameters.starts - parameters.identities
    same = np.broadcast_to(np.eye(dim), (parameters.identities, dim, dim))
    return tokens, np.concatenate([values, same, np.broadcast_to(values[0], (rest, dim, dim))])


def _follow(parameters: Parameters, index: int, dim: int, study: Study) -> xr.Dataset:
    tokens, values = _starts(parameters, dim)
    found = frames(
        Rescaled(Attention(1.0, value=Along("start", values))), stack("start", range(len(tokens)), tokens),
        parameters.until, parameters.legs, parameters.steps,
        lambda share: study.progress(f"{len(tokens)} starts in R^{dim}", (index + share) / len(parameters.dims)),
    )  # fmt: skip
    early = int(np.searchsorted(found.time, parameters.until - BEFORE - 1e-9))
    leader, doubt = _leaders(found.fine[early], values[: parameters.starts], found.time[early])
    later, more = _leaders(found.fine[-1], values[: parameters.starts], found.time[-1])
    return xr.Dataset(
        {
            "fine": (("frame", "start", "token", "dim"), found.fine),
            "error": (("frame", "start"), found.error),
            "coordinate": (("frame", "start", "token"), _coordinates(found.fine, values)),
            "coarse": (("frame", "start", "token"), _coordinates(found.coarse, values)),
            "value": (("start", "row", "dim"), values),
            "leader": (("random", "token"), leader),
            "doubt": (("random", "token"), np.where(leader == later, np.maximum(doubt, more), 1.0)),
            "time": (("frame",), found.time),
        },
        attrs={"early": early},
    )


def _leaders(z: np.ndarray, values: np.ndarray, t: float) -> tuple[np.ndarray, np.ndarray]:
    """Whom each token of each start sees most, and the sum of its other weights; x = e^(tV) z."""
    from scipy.linalg import expm

    raw = [Tokens(x @ expm(t * v).T, space=Euclidean(len(v))) for x, v in zip(z, values, strict=False)]
    return leaders(attention_matrix(Attention(1.0), tokens) for tokens in raw)


def _coordinates(z: np.ndarray, values: np.ndarray) -> np.ndarray:
    """phi*(z); for V = I the first coordinate, as good as any."""
    same = np.eye(values.shape[-1])
    found = [z[:, k, :, 0] if (v == same).all() else hyperplane_coordinates(z[:, k], v) for k, v in enumerate(values)]
    return np.stack(found, axis=1)


def delay(value: np.ndarray, x: np.ndarray, until: float = math.inf) -> float:
    """By how much a pair lags behind the linear flow at t = `until`: t - s(t), dt/ds = coth |e^(sV) x|^2."""
    from scipy.optimize import brentq

    eigenvalues, vectors = np.linalg.eig(value)
    nodes, weights = np.polynomial.legendre.leggauss(16)

    def lag(s: float) -> float:
        at = s * (np.arange(PANELS)[:, None] + (1 + nodes) / 2).ravel() / PANELS
        path = (np.exp(np.multiply.outer(at, eigenvalues)) * np.linalg.solve(vectors, x)) @ vectors.T
        square = np.minimum(np.sum(path.real**2, axis=1), 300.0)
        return float(s * np.sum(2 / np.expm1(2 * square) * np.tile(weights, PANELS)) / 2 / PANELS)

    return lag(min(HORIZON, brentq(lambda s: s + lag(s) - until, 0.0, until)) if until < math.inf else HORIZON)


def departure(radius: float, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log of how much z of the token in the middle has grown, and log X of the clusters beside it.

    With u = X^2, dt = du/(2 u tanh u) gives u(t), and x grows by (sinh u/sinh u(0))^(1/2), z by e^(-t) of that.
    """
    from scipy.integrate import quad
    from scipy.optimize import brentq

    begin = 2 * math.log(radius)

    def until(s: float) -> float:  # the time at u = e^s: (s - begin)/2 and the excess of 1/tanh over 1
        excess = quad(lambda q: 1 / math.expm1(2 * math.exp(q)) if q < 5 else 0.0, begin, s, epsabs=1e-13)[0]
        return float((s - begin) / 2 + excess)

    s = np.array([brentq(lambda s, t=t: until(s) - t, begin, begin + 2 * t + 1e-9, xtol=1e-13) for t in times])
    u = np.exp(s)
    log_sinh = u + np.log(-np.expm1(-2 * u))
    return (log_sinh - (radius**2 + np.log(-np.expm1(-2 * radius**2)))) / 2 - times, s / 2


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """For each dimension: extremes, number of planes, approach, pairs, the middle plane, and V = I."""
    made = []
    for dim in parameters.dims:
        part = data[f"R{dim}"]
        made += [_closing(dim, parameters, part), *_planes(dim, parameters, part), _approach(dim, part)]
        made += [_pairs(dim, parameters, part), _middle(dim, parameters, part)]
    return made


def _closing(dim: int, parameters: Parameters, part: xr.Dataset) -> Claim:
    y, coarse = (part[name].values[:, : parameters.starts] for name in ("coordinate", "coarse"))
    wide = np.abs(part["fine"].values[:, : parameters.starts]).max(axis=(2, 3))
    error = np.abs(y - coarse).max(axis=2) + 1e-14 * wide
    growth = np.maximum(np.diff(y.max(axis=2), axis=0), -np.diff(y.min(axis=2), axis=0))
    tolerance = error[1:] + error[:-1]
    at = worst(growth, tolerance)
    return Claim.at_most(
        f"R^{dim}, {parameters.starts} random starts: growth of an extreme coordinate between frames",
        0.0, float(growth[at]), float(tolerance[at]), "change by halving the steps; rounding",
    )  # fmt: skip


def limits(part: xr.Dataset, start: int) -> np.ndarray:
    """Groups of coordinates at the end that are nearer to each other than e^(-t/2) of their range at t = 0."""
    y = part["coordinate"].values[:, start]
    return distinct(y[-1], float(np.ptp(y[0]) * np.exp(-part["time"].values[-1] / 2)))


def _planes(dim: int, parameters: Parameters, part: xr.Dataset) -> list[Claim]:
    counts = [len(limits(part, k)) for k in range(parameters.starts + parameters.identities)]
    y = part["coordinate"].values[:, : parameters.starts]
    ends = np.stack([y[-1].max(axis=1), y[-1].min(axis=1)], axis=1)
    apart = np.abs(y[-1][:, :, None] - ends[:, None, :]).min(axis=2)
    elsewhere = int(np.sum(apart > np.exp(-part["time"].values[-1] / 2) * np.ptp(y[0], axis=1)[:, None]))
    near = "counted; coordinates nearer than e^(-t/2) of the initial range are one"
    words = f"R^{dim}, {parameters.starts} random starts"
    most, free = max(counts[: parameters.starts]), max(counts[parameters.starts :], default=0)
    many = f"R^{dim}, V = I, {parameters.identities} starts: most limits of a coordinate, more than three"
    return [
        Claim.at_most(f"{words}: number of hyperplanes, at most", 3, most, 0, near),
        Claim.equal(f"{words}: tokens on neither the first nor the last hyperplane", 0, elsewhere, 0, near),
        Claim.at_least(many, 4, free, 0, near),
    ]


def _approach(dim: int, part: xr.Dataset) -> Claim:
    """How far coordinates come towards that of their leader between `early` and the end."""
    early, leader, doubt = int(part.attrs["early"]), part["leader"].values, part["doubt"].values
    count = len(leader)
    rows = np.arange(count)[:, None]

    def distances(name: str, frame: int) -> np.ndarray:
        y = part[name].values[frame, :count]
        return np.asarray(np.abs(y - y[rows, leader]))

    before, after = ([distances(name, frame) for name in ("coordinate", "coarse")] for frame in (early, -1))
    sure = (doubt < SURE) & (doubt[rows, leader] < SURE) & (leader[rows, leader] == leader) & (before[0] > 0)
    # where <u, Vu> > 0 for all u, a token that has decided between two others is driven away from the tie
    both = part["value"].values[:count] + np.swapaxes(part["value"].values[:count], 1, 2)
    sure &= np.linalg.eigvalsh(both).min(axis=1)[:, None] > 0
    size = np.ptp(part["coordinate"].values[early, :count], axis=1)[:, None]
    wide = np.abs(part["fine"].values[-1, :count]).max(axis=(1, 2))[:, None]
    span = float(part["time"].values[-1] - part["time"].values[early])
    # d|y_i - y_l|/dt + |y_i - y_l| is at most the weights on others, of both tokens, times the range
    rate, tolerance = rates(before, after, span, 2 * SURE * size + 1e-14 * wide, sure)
    at = worst(np.abs(rate - 1), tolerance)
    return Claim.equal(
        f"R^{dim}, V + Vᵀ > 0: rate at which coordinates near that of the leader (worst of {int(sure.sum())})", 1.0,
        float(rate[at]), float(tolerance[at]), "change by halving the steps; weights on others, below 1e-9; rounding",
    )  # fmt: skip


def _pairs(dim: int, parameters: Parameters, part: xr.Dataset) -> Claim:
    from scipy.linalg import expm

    first = parameters.starts + parameters.identities
    chosen = range(first, part.sizes["start"] - len(parameters.middle))
    off, tolerance = [], []
    for k in chosen:
        begin, end, value = part["fine"].values[0, k], part["fine"].values[-1, k], part["value"].values[k]
        lag = delay(value, begin[0], parameters.until)
        off.append(np.abs(end - begin @ expm(-lag * value).T).max())
        tolerance.append(part["error"].values[-1, k] + 1e-11 * (1 + np.linalg.norm(value @ end[0])))
    (at,) = worst(np.array(off), np.array(tolerance))
    radius = float(np.linalg.norm(part["fine"].values[0, chosen[at], 0]))
    return Claim.at_most(
        f"R^{dim}: distance of two clusters from e^(-delay V) z(0) (worst of {len(off)}: |x| = {radius:g})", 0.0,
        float(off[at]), float(tolerance[at]), "change by halving the steps; error of the integral",
    )  # fmt: skip


def _middle(dim: int, parameters: Parameters, part: xr.Dataset) -> Claim:
    """At the last frame at which the disturbance is small."""
    rows = []
    for radius, k in zip(parameters.middle, range(-len(parameters.middle), 0), strict=True):
        growth, size = departure(radius, part["time"].values)
        product = parameters.offset * np.exp(np.minimum(growth + part["time"].values + size, 700.0))
        frame = int(np.flatnonzero(product < SMALL)[-1])
        away = [np.abs(part[name].values[frame, k, 0]) / parameters.offset for name in ("coordinate", "coarse")]
        tolerance = abs(np.log(away[0] / away[1])) + product[frame] ** 2 / 3 + 1e-14 / parameters.offset
        rows.append((growth[frame], np.log(away[0]), tolerance, part["time"].values[frame]))
    predicted, measured, allowed, time = np.array(rows).T
    (at,) = worst(np.abs(measured - predicted), allowed)
    label = f"worst of {len(rows)}: X = {parameters.middle[at]:g}, t = {time[at]:g}"
    return Claim.equal(
        f"R^{dim}: log of the growth of the distance from the middle plane ({label})", predicted[at], measured[at],
        allowed[at], "change by halving the steps; <x, X>²/3; rounding over the initial distance",
    )  # fmt: skip


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Rescaled tokens z = e^(-tV) x; the first random start, of V = [[1, 0.3], [0, -0.4]] in the plane, in (a) and (b).

    (a) The leading coordinate of every token in time. (b) The same tokens in the plane: at t = 0 (dots), their paths to
    t = 3, where they are (squares), and the lines on which the leading coordinate has its limits. (c) Two clusters at
    +-x: the factor by which the leading coordinate has shrunk in the end, measured (marks) and by the integral (lines).
    (d) Distance of a token from the middle plane, measured (marks) and by the formula (lines).
    """
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 5.0))
        axes = fig.subplots(2, 2)
        first = data[f"R{parameters.dims[0]}"]
        _draw_coordinates(axes[0, 0], first)
        _draw_plane(axes[0, 1], first)
        _draw_pairs(axes[1, 0], parameters, first)
        _draw_middle(axes[1, 1], parameters, first)
        for letter, one in zip("abcd", axes.flat, strict=True):
            one.set_title(f"({letter})", loc="left", fontweight="bold")
        return fig


def _draw_coordinates(axes: Any, part: xr.Dataset) -> None:
    y = part["coordinate"].values[:, 0]
    axes.plot(part["time"], y, color=GREY, lw=0.6)
    for limit, colour in zip((y[-1].min(), y[-1].max()), COLOURS, strict=False):
        axes.axhline(limit, color=colour, lw=1.2, ls="--")
        up = limit > 0
        axes.annotate(f"{limit:.4f}", (part["time"].values[-1], limit), xytext=(0, -3 if up else 3), color=colour,
                      textcoords="offset points", ha="right", va="top" if up else "bottom", fontsize=7)  # fmt: skip
    axes.axhline(0.0, color=INK, lw=0.6, ls=":")
    axes.set_xlabel("time $t$")
    axes.set_ylabel(r"leading coordinate $\varphi^*(z_i)$")


def _draw_plane(axes: Any, part: xr.Dataset) -> None:
    last = int(np.searchsorted(part["time"].values, 3.0))
    z, value = part["fine"].values[: last + 1, 0, :, :2], part["value"].values[0]
    for token in range(z.shape[1]):
        axes.plot(*z[:, token].T, color=GREY, lw=0.5)
    axes.plot(*z[0].T, "o", ms=2.5, color=INK, mew=0)
    low, high = 1.1 * z[..., 1].min(), 1.1 * z[..., 1].max()
    dual = hyperplane_coordinates(np.eye(2), value) if len(value) == 2 else np.array([1.0, 0.0])
    y = part["coordinate"].values[-1, 0]
    for limit, colour in zip((y.min(), y.max()), COLOURS, strict=False):
        axes.plot([(limit - dual[1] * h) / dual[0] for h in (low, high)], [low, high], "--", color=colour, lw=1.2)
        axes.plot(*z[-1][np.abs(y - limit) < 0.1].T, "s", ms=3, color=colour, mew=0)
    axes.set_ylim(low, high)
    axes.set_xlabel("$z_1$")
    axes.set_ylabel("$z_2$")


def _draw_pairs(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    first = parameters.starts + parameters.identities
    value, y = part["value"].values[first], part["coordinate"].values[:, :, 0]
    for k, (angle, colour) in enumerate(zip(ANGLES, COLOURS, strict=False)):
        chosen = [first + k + len(ANGLES) * j for j in range(len(parameters.pairs))]
        direction = part["fine"].values[0, chosen[0], 0] / parameters.pairs[0]
        radii = np.linspace(0.8 * min(parameters.pairs), 1.1 * max(parameters.pairs), 60)
        axes.plot(radii, [math.exp(-delay(value, r * direction)) for r in radii], color=colour, lw=1.0)
        left = y[-1, chosen] / y[0, chosen]
        axes.plot(parameters.pairs, left, "o", ms=4, color=colour, label=rf"$\alpha = {angle:g}$")
    axes.set_ylim(0, 1.03)
    axes.set_xlabel(r"$r$, clusters at $\pm r(\cos\alpha\,\varphi + \sin\alpha\,w)$")
    axes.set_ylabel(r"$\varphi^*(z_\infty) / \varphi^*(z(0))$")
    axes.legend(loc="lower right")


def _draw_middle(axes: Any, parameters: Parameters, part: xr.Dataset) -> None:
    time = part["time"].values
    for k, (radius, colour) in enumerate(zip(parameters.middle, COLOURS, strict=False)):
        fine = np.linspace(0.0, 5.0, 200)
        growth, _ = departure(radius, fine)
        away = np.log10(parameters.offset) + growth / math.log(10)
        keep = away < -1
        axes.plot(fine[keep], 10 ** away[keep], color=colour, lw=1.0)
        measured = np.abs(part["coordinate"].values[:, k - len(parameters.middle), 0])
        look = {"ms": 4, "mfc": "white", "mec": colour, "mew": 0.9, "label": f"$X(0) = {radius:g}$"}
        axes.plot(time[time <= 4.0], measured[time <= 4.0], "o", **look)
    axes.set_yscale("log")
    axes.set_xlabel("time $t$")
    axes.set_ylabel("distance from the middle plane")
    axes.legend(loc="lower right")
