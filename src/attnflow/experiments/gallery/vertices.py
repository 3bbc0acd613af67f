"""Without layer norm and with V = I, rescaled tokens end at the vertices of a polytope.

Tokens in R^d follow dx_i/dt = sum_j A_ij x_j with A the softmax of <Qx_i, Kx_j>, and grow like e^t. For z = e^(-t) x
every token is pulled towards a mean of the others, so that the convex hull of z can only shrink; with B = Q^T K > 0 it
shrinks to a polytope, and every token tends to its boundary or to 0 (arXiv:2305.05465). As logits grow like e^(2t) each
token soon sees one other alone, its leader, and closes up on it like e^(-t). A limit c must be its own best match,
<Bc, c> >= <Bc, c'> for every other limit c'.

Corners of a regular polytope, of radius r, keep their shape, dr/dt = r g(r^2) in x with g(u) the softmax mean of
cos(angle), so that the limit has the radius r exp(-int_{r^2}^infinity (1 - g)/(2 u g) du) exactly.

Shown: random starts in the plane and in space, half of them with a random B, and regular ones against the integral.
That every token ends at a vertex is seen, not proved: the theorem admits other points of the boundary, the feet of the
perpendiculars from 0 on faces, and 0, from which tokens are repelled. Not shown: B that is not symmetric.
"""

import dataclasses
import functools
import itertools
from typing import Any

import numpy as np
import xarray as xr

from attnflow.axes import Along
from attnflow.experiments.claim import Claim, worst
from attnflow.experiments.gallery._frames import frames, leaders, rates
from attnflow.experiments.study import Study
from attnflow.fields import Attention, Rescaled
from attnflow.observe import convex_hull, distinct
from attnflow.plots.style import COLOURS, GREY, INK, PAGE, styled
from attnflow.spaces import Euclidean
from attnflow.tokens import Tokens, stack

PAPERS = ("arXiv:2305.05465",)

SURE = 1e-9
"""A row of attention is decided if all but one of its weights add up to less."""
BEFORE = 2.0
"""How long before the end leaders are looked for."""
DIRECTIONS = 200
"""In which the extent of the hull is measured."""


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is simulated."""

    tokens: int = 20
    starts: int = 120
    """Random ones, Gaussian; every second with a random B."""
    dims: tuple[int, ...] = (2, 3)
    corners: tuple[tuple[int, int], ...] = ((2, 2), (2, 4), (2, 5), (2, 10), (2, 20), (3, 4), (3, 20))
    """Regular starts: dimension and number of corners, which divides the number of tokens."""
    radii: tuple[float, ...] = (0.6, 1.0, 1.6)
    until: float = 12.0
    legs: int = 48
    steps: int = 25
    """Per leg; half as long ones are taken for comparison."""
    seed: int = 2


QUICK = Parameters(starts=8, dims=(2,), corners=((2, 4), (2, 5)), radii=(0.6, 1.6), until=10.0, legs=20)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Frames of all starts of a dimension, and who leads whom shortly before the end."""
    return {
        f"R{dim}": study.part(f"R{dim}", functools.partial(_follow, parameters, k, dim, study))
        for k, dim in enumerate(parameters.dims)
    }


def _follow(parameters: Parameters, index: int, dim: int, study: Study) -> xr.Dataset:
    rng, other = np.random.default_rng(parameters.seed), np.random.default_rng([parameters.seed, dim])
    positions = list(rng.standard_normal((parameters.starts, parameters.tokens, dim)))
    regular = [(k, r) for (d, k), r in itertools.product(parameters.corners, parameters.radii) if d == dim]
    count = len(positions) + len(regular)
    maps = np.eye(dim) + 0.3 * other.standard_normal((count, dim, dim)) * (np.arange(count) % 2)[:, None, None]
    for k, radius in regular:
        corners = np.repeat(solid(dim, k), parameters.tokens // k, axis=0)
        positions.append(radius * corners @ np.linalg.inv(maps[len(positions)]).T)
    tokens = stack("start", range(count), [Tokens(x, space=Euclidean(dim)) for x in positions])
    found = frames(
        _field("start", maps), tokens, parameters.until, parameters.legs, parameters.steps,
        lambda share: study.progress(f"{count} starts in R^{dim}", (index + share) / len(parameters.dims)),
    )  # fmt: skip
    early = int(np.searchsorted(found.time, parameters.until - BEFORE - 1e-9))
    leader, doubt = leaders(
        _field(None, maps[k]).matrix(found.time[early], Tokens(found.fine[early, k], space=Euclidean(dim)))
        for k in range(parameters.starts)
    )
    return xr.Dataset(
        {
            "fine": (("frame", "start", "token", "dim"), found.fine),
            "coarse": (("frame", "start", "token", "dim"), found.coarse),
            "error": (("frame", "start"), found.error),
            "map": (("start", "row", "dim"), maps),
            "leader": (("random", "token"), leader),
            "doubt": (("random", "token"), doubt),
            "corners": (("regular",), np.array([k for k, _ in regular], int)),
            "radius": (("regular",), np.array([r for _, r in regular], float)),
            "time": (("frame",), found.time),
        },
        attrs={"early": early},
    )


def _field(dim: str | None, maps: np.ndarray) -> Any:
    """Attention with Q = K, one matrix or one per start."""
    matrix = maps if dim is None else Along(dim, maps)
    return Rescaled(Attention(1.0, query=matrix, key=matrix))


def solid(dim: int, corners: int) -> np.ndarray:
    """Corners of a regular polygon, of the tetrahedron or of the dodecahedron, on the unit sphere."""
    if dim == 2:
        angles = 2 * np.pi * np.arange(corners) / corners
        return np.stack([np.cos(angles), np.sin(angles)], axis=1)
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=3)))
    if corners == 4:
        return signs[signs.prod(axis=1) > 0] / np.sqrt(3)
    golden = (1 + np.sqrt(5)) / 2
    ridge = np.array([[0.0, a / golden, b * golden] for a, b in itertools.product((1, -1), repeat=2)])
    return np.concatenate([signs, *(np.roll(ridge, k, axis=1) for k in range(3))]) / np.sqrt(3)


def _pull(dim: int, corners: int, u: Any) -> Any:
    """(g, 1 - g): the softmax mean of cos(angle) over the corners, seen from one of them, at u = r^2."""
    cosines = solid(dim, corners) @ solid(dim, corners)[0]
    weights = np.exp(np.multiply.outer(u, cosines - 1))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights @ cosines, weights @ (1 - cosines)


def limit_radius(dim: int, corners: int, radius: float) -> float:
    """r exp(-int_{r^2}^infinity (1 - g)/(2 u g) du), the integral over log u."""
    from scipy.integrate import quad

    def rate(s: float) -> float:
        pull, rest = _pull(dim, corners, np.exp(s))
        return float(rest / (2 * pull))

    begin = 2 * np.log(radius)
    # 1 - g falls like e^(-u (1 - cos)), and neighbouring corners have 1 - cos > 0.04
    return float(radius * np.exp(-quad(rate, begin, np.log(2e4), epsabs=1e-12, epsrel=1e-12, limit=400)[0]))


def radius_path(dim: int, corners: int, radius: float, until: float) -> tuple[np.ndarray, np.ndarray]:
    """Times and radii of z, for a line in a figure: dt = du/(2 u g), z = sqrt(u) e^(-t)."""
    s = np.linspace(2 * np.log(radius), 2 * (np.log(radius) + until), 4000)
    pull, _ = _pull(dim, corners, np.exp(s))
    time = np.concatenate([[0.0], np.cumsum(np.diff(s) * (1 / pull[1:] + 1 / pull[:-1]) / 4)])
    keep = time <= until
    return time[keep], np.exp(s[keep] / 2 - time[keep])


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """For each dimension: hulls, vertices, leaders, approach, matches; then the regular starts."""
    made = []
    for dim in parameters.dims:
        part = data[f"R{dim}"]
        made += [_nested(dim, part), *_at_vertices(dim, parameters, part), _approach(dim, part)]
        if part.sizes["regular"]:
            made.append(_regular(dim, parameters, part))
    return made


def _nested(dim: int, part: xr.Dataset) -> Claim:
    rays = np.random.default_rng(0).standard_normal((DIRECTIONS, dim))
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    extent = np.max(part["fine"].values @ rays.T, axis=2)
    growth, error = np.diff(extent, axis=0).max(axis=2), part["error"].values
    tolerance = error[1:] + error[:-1]
    at = worst(growth, tolerance)
    return Claim.at_most(
        f"R^{dim}: growth of the hull between frames, {part.sizes['start']} starts, {DIRECTIONS} directions",
        0.0, float(growth[at]), float(tolerance[at]), "change by halving the steps",
    )  # fmt: skip


def limits(part: xr.Dataset, start: int) -> np.ndarray:
    """Groups of tokens at the end that are nearer to each other than e^(-t/2) of the size of the hull."""
    z = part["fine"].values[-1, start]
    return distinct(z, float(np.ptp(z, axis=0).max() * np.exp(-part["time"].values[-1] / 2)))


def _at_vertices(dim: int, parameters: Parameters, part: xr.Dataset) -> list[Claim]:
    elsewhere, missing, margins, slacks = 0, 0, [], []
    for k in range(parameters.starts):
        z, found = part["fine"].values[-1, k], limits(part, k)
        vertices = found[convex_hull(found).vertices]
        apart = np.linalg.norm(z[:, None] - vertices, axis=2).min(axis=1)
        elsewhere += int(np.sum(apart > np.exp(-part["time"].values[-1] / 2) * np.ptp(z, axis=0).max()))
        own = part["leader"].values[k] == np.arange(parameters.tokens)
        missing += int(own.sum() != len(vertices))
        seen = found @ part["map"].values[k].T
        matches = np.sum(seen * seen, axis=1, keepdims=True) - seen @ seen.T + np.diag(np.full(len(seen), np.inf))
        margins.append(matches.min())
        radius = np.linalg.norm(z[:, None] - found, axis=2).min(axis=1).max() + part["error"].values[-1, k]
        slacks.append(4 * np.linalg.norm(seen, axis=1).max() * np.linalg.norm(part["map"].values[k], 2) * radius)
    (at,) = worst(-np.array(margins), np.array(slacks))
    words = f"R^{dim}, {parameters.starts} random starts"
    near = "counted; at a vertex if within e^(-t/2) of the size of the hull"
    return [
        Claim.equal(f"{words}: tokens away from the vertices of the limit", 0, elsewhere, 0, near),
        Claim.equal(f"{words}: starts with more or fewer leaders than vertices", 0, missing, 0, "counted"),
        Claim.at_least(
            f"{words}: margin by which a limit is its own best match, at least", 0.0, float(margins[at]),
            float(slacks[at]), "distance of tokens from their limit, times twice the gradient of the margin",
        ),
    ]  # fmt: skip


def _approach(dim: int, part: xr.Dataset) -> Claim:
    """How far tokens come towards their leader between `early` and the end."""
    early, leader, doubt = int(part.attrs["early"]), part["leader"].values, part["doubt"].values
    count = len(leader)
    rows = np.arange(count)[:, None]

    def distances(name: str, frame: int) -> np.ndarray:
        z = part[name].values[frame, :count]
        return np.asarray(np.linalg.norm(z - z[rows, leader], axis=2))

    before, after = ([distances(name, frame) for name in ("fine", "coarse")] for frame in (early, -1))
    sure = (doubt < SURE) & (doubt[rows, leader] < SURE) & (before[0] > 0)
    size = np.ptp(part["fine"].values[early, :count], axis=1).max(axis=1)[:, None]
    span = float(part["time"].values[-1] - part["time"].values[early])
    # d|z_i - z_l|/dt + |z_i - z_l| is at most the weights on others, of both tokens, times the size of the hull
    rate, tolerance = rates(before, after, span, 2 * SURE * size + 1e-15, sure)
    at = worst(np.abs(rate - 1), tolerance)
    return Claim.equal(
        f"R^{dim}: rate at which tokens near their leader (worst of {int(sure.sum())})", 1.0, float(rate[at]),
        float(tolerance[at]), "change by halving the steps; weights on others, below 1e-9",
    )  # fmt: skip


def regular_radii(part: xr.Dataset) -> np.ndarray:
    """Radii of the regular starts at all frames, as B sees them: (frame, regular, token)."""
    first = part.sizes["start"] - part.sizes["regular"]
    seen = np.einsum("fstd,sed->fste", part["fine"].values[:, first:], part["map"].values[first:])
    return np.asarray(np.linalg.norm(seen, axis=-1))


def _regular(dim: int, parameters: Parameters, part: xr.Dataset) -> Claim:
    measured = regular_radii(part)[-1]
    expected = [
        limit_radius(dim, int(k), float(r)) for k, r in zip(part["corners"].values, part["radius"].values, strict=True)
    ]
    predicted = np.array(expected)[:, None] + 0 * measured
    first = part.sizes["start"] - part.sizes["regular"]
    scale = np.linalg.norm(part["map"].values[first:], 2, axis=(1, 2))[:, None]
    tolerance = scale * part["error"].values[-1, first:, None] + 1e-11 * predicted
    at = worst(np.abs(measured - predicted), tolerance)
    label = f"{int(part['corners'][at[0]])} corners, radius {float(part['radius'][at[0]]):g}"
    return Claim.equal(
        f"R^{dim}: radius of the limit of a regular start (worst of {len(predicted)}: {label})",
        float(predicted[at]), float(measured[at]), float(tolerance[at]),
        "change by halving the steps; error of the integral",
    )  # fmt: skip


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Rescaled tokens z = e^(-t) x for V = I; the first random start in (a) and (d).

    (a) Paths of the tokens (grey) from their start (dots) to the vertices of the limit (squares), with the hull at
    t = 0 (dashed), in between, and at the end (filled). (b) Volume of the hull, relative to that at t = 0: median
    and quartiles over random starts. (c) Radius of regular starts in the plane (marks) and by the integral
    (lines, dashed at the limit). (d) Distance of every token from its leader against e^(-t) (dashed).
    """
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 5.2))
        axes = fig.subplots(2, 2)
        first = data[f"R{parameters.dims[0]}"]
        _draw_paths(axes[0, 0], first)
        _draw_volumes(axes[0, 1], parameters, data)
        _draw_regular(axes[1, 0], parameters, data)
        _draw_approach(axes[1, 1], first)
        for letter, one in zip("abcd", axes.flat, strict=True):
            one.set_title(f"({letter})", loc="left", fontweight="bold")
        return fig


def _draw_paths(axes: Any, part: xr.Dataset) -> None:
    z = part["fine"].values[:, 0, :, :2]
    for token in range(z.shape[1]):
        axes.plot(*z[:, token].T, color=GREY, lw=0.6)
    axes.plot(*z[0].T, "o", ms=3, color=INK, mew=0)
    middle = np.unique(np.searchsorted(part["time"].values, [1.0, 2.0, 4.0]))
    for frame in (0, *middle):
        ring = z[frame][convex_hull(z[frame]).vertices]
        line = {"ls": "--", "color": INK} if frame == 0 else {"color": COLOURS[5]}
        axes.plot(*np.r_[ring, ring[:1]].T, lw=0.9, **line)
    ends = limits(part, 0)[:, :2]
    ring = ends[convex_hull(ends).vertices]
    axes.fill(*ring.T, facecolor=COLOURS[0], alpha=0.15, edgecolor=COLOURS[0], lw=1.2)
    axes.plot(*ring.T, "s", ms=5, color=COLOURS[0], mew=0)
    axes.set_aspect("equal", adjustable="datalim")
    axes.set_xlabel("$z_1$")
    axes.set_ylabel("$z_2$")


def _draw_volumes(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    for dim, colour in zip(parameters.dims, (COLOURS[0], COLOURS[4]), strict=False):
        part = data[f"R{dim}"]
        z = part["fine"].values[:, : parameters.starts]
        volume = np.array([[convex_hull(x).volume for x in frame] for frame in z])
        quarter, half, three = np.quantile(volume / volume[0], [0.25, 0.5, 0.75], axis=1)
        axes.plot(part["time"], half, color=colour, label=f"$d = {dim}$")
        for line in (quarter, three):
            axes.plot(part["time"], line, color=colour, lw=0.6)
        axes.fill_between(part["time"], quarter, three, color=colour, alpha=0.12, lw=0)
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("time $t$")
    axes.set_ylabel("volume of the hull / initial")
    axes.legend(loc="upper right")


def _draw_regular(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    dim, until = parameters.dims[0], 5.0
    part = data[f"R{dim}"]
    radii, corners = regular_radii(part)[:, :, 0], part["corners"].values
    for k, colour in zip(np.unique(corners), COLOURS, strict=False):
        for index in np.flatnonzero(corners == k):
            begin = float(part["radius"][index])
            axes.plot(*radius_path(dim, int(k), begin, until), color=colour, lw=1.0)
            axes.plot([until, until + 0.5], [limit_radius(dim, int(k), begin)] * 2, "--", color=colour, lw=0.9)
            early = part["time"].values <= until
            axes.plot(
                part["time"][early],
                radii[early, index],
                "o",
                markevery=max(1, int(early.sum()) // 11),
                ms=3,
                mfc="white",
                mec=colour,
                mew=0.8,
            )
        axes.plot([], [], "-o", ms=3, mfc="white", color=colour, lw=1.0, label=f"{k} corners")
    axes.set_yscale("log")
    axes.set_xlim(0, until + 0.5)
    axes.set_xlabel("time $t$")
    axes.set_ylabel("radius of $z$")
    axes.legend(loc="center right", bbox_to_anchor=(1.0, 0.25), ncols=2, columnspacing=1.0, handlelength=1.6)


def _draw_approach(axes: Any, part: xr.Dataset) -> None:
    z, leader, time = part["fine"].values[:, 0], part["leader"].values[0], part["time"].values
    apart = np.linalg.norm(z - z[:, leader], axis=2)
    for token in np.flatnonzero(leader != np.arange(len(leader))):
        axes.plot(time, apart[:, token], color=COLOURS[leader[token] % 6], lw=0.7)
    axes.plot(time, np.exp(-time) * 30, "--", color=INK, lw=1.0, label="$e^{-t}$")
    axes.set_yscale("log")
    axes.set_xlabel("time $t$")
    axes.set_ylabel("$|z_i - z_{\\mathrm{leader}}|$")
    axes.legend(loc="lower left")
