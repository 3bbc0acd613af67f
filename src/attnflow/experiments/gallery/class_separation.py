"""A learned flow carries interleaved classes to the two sides of a line, where no line parted them before.

A neural ODE dx/dt = W tanh(A x + b) moves labelled points for the time 1, and a linear read-out follows
(arXiv:1806.07366). Weights and read-out are fitted to some points and judged by others of the same distribution. The
residual network with the same weights, x <- x + h W tanh(A x + b) in 1/h layers, is off by O(h), whether or not layers
share their weights, as long as these are smooth in depth (arXiv:2206.06929).

A flow of the plane is a homeomorphism: of two nested circles the outer one goes on surrounding the inner one, so that
no fitted flow separates them whole, only all but a slit; a third dimension removes the obstruction (arXiv:1904.01681).

Shown: spirals, half moons and circles, with errors on held-out points. Not shown: that training always gets there (it
is one seed of a problem that is not convex), nor real data. Fitting needs the extra `learn` (Optax).
"""

import dataclasses
import functools
from typing import Any

import numpy as np
import xarray as xr

from attnflow.errors import FlowFailed
from attnflow.experiments.claim import Claim
from attnflow.experiments.gallery._class_separation_figure import draw_figure
from attnflow.experiments.gallery._frames import frames
from attnflow.experiments.study import Study
from attnflow.fields import Perceptron
from attnflow.flows import Fixed, Layers, advance
from attnflow.flows.outcome import Ending
from attnflow.learn import Classifier, fit, interleaved_classes, residual_network
from attnflow.spaces import Euclidean
from attnflow.tokens import Tokens

PAPERS = ("arXiv:1806.07366", "arXiv:1904.01681", "arXiv:2206.06929")

LEVEL = 1e-4
"""Chance that a binomial interval misses."""
DIRECTIONS = 180
"""Of straight lines, over the full turn."""
CIRCLE = 2048
"""Points on each circle without noise."""
GRID = 41
"""Lines of the grid that is carried along."""
REACH = 1.5
"""The grid covers [-REACH, REACH]^2."""
NETWORK_POINTS = 200
"""Held-out points that go through residual networks."""
LEG = 32
"""Layers of a residual network per compiled piece."""
LEGS = 20
"""Frames of the flow."""
PATHS = 120
"""Held-out points that are kept at every frame; the others at the start and at the end."""
FINER = 8
"""How many steps judge the flow for one that fitted it; twice as many for comparison."""


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is fitted and with what it is judged."""

    tasks: tuple[tuple[str, int], ...] = (("spirals", 2), ("moons", 2), ("circles", 2), ("circles", 3))
    """Classes, and the dimension in which they flow."""
    points: int = 400
    held_out: int = 20_000
    noise: float = 0.02
    width: int = 16
    steps: int = 500
    """Of Adam."""
    rate: float = 0.02
    time_steps: int = 10
    """Steps of order 4 with which the flow is fitted; it is judged with finer ones."""
    layers: tuple[int, ...] = (256, 512, 1024, 2048)
    """Of residual networks, each twice the one before, multiples of 32."""
    separated: float = 0.99
    """The share of the distribution that a separating flow has to get right."""
    seed: int = 0


QUICK = Parameters(
    tasks=(("spirals", 2),),
    points=200,
    held_out=2000,
    steps=150,
    rate=0.05,
    time_steps=5,
    layers=(256, 512, 1024),
)


def run(parameters: Parameters, study: Study) -> dict[str, dict[str, xr.Dataset]]:
    """Per task the fitted weights, and where they carry the held-out points."""
    found: dict[str, dict[str, xr.Dataset]] = {}
    for index, (kind, dim) in enumerate(parameters.tasks):
        name = f"{kind}-{dim}"
        learnt = study.part(f"fit-{name}", functools.partial(_learn, parameters, study, index))
        seen = study.part(f"flow-{name}", functools.partial(_look, parameters, study, index, learnt))
        found[name] = {"fit": learnt, "flow": seen}
    return found


def _learn(parameters: Parameters, study: Study, index: int) -> xr.Dataset:
    """Fit one flow."""
    kind, dim = parameters.tasks[index]
    points, labels = interleaved_classes(
        parameters.points, kind, seed=_seed(parameters, index, 0), noise=parameters.noise
    )
    field = residual_network(dim, parameters.width, parameters.time_steps, seed=parameters.seed, shared=True)
    start = Classifier(field, np.eye(2, dim), method=Fixed(1 / parameters.time_steps))
    whole = len(parameters.tasks)
    fitted = fit(
        start, points, labels, steps=parameters.steps, rate=parameters.rate, seed=parameters.seed,
        on_progress=lambda p: study.progress(f"fitting {kind} in R^{dim}", (index + 0.8 * p.frames / p.of) / whole),
    )  # fmt: skip
    if fitted.outcome.ending is not Ending.FINISHED:  # Ctrl-C
        raise FlowFailed(fitted.outcome.message, fitted)
    made = fitted.classifier
    weights: Any = made.field
    return xr.Dataset(
        {
            "points": (("point", "coordinate"), points),
            "label": (("point",), labels),
            "inner": (("unit", "dim"), np.asarray(weights.inner.value)),
            "bias": (("unit",), np.asarray(weights.bias.value)),
            "outer": (("dim", "unit"), np.asarray(weights.outer.value)),
            "readout": (("class", "dim"), np.asarray(made.readout)),
            "offset": (("class",), np.asarray(made.bias)),
            "loss": (("step",), fitted.losses),
        },
        attrs={"accuracy": fitted.accuracy},
    )


def _look(parameters: Parameters, study: Study, index: int, learnt: xr.Dataset) -> xr.Dataset:
    """Carry held-out points, circles and a grid along the fitted flow, and points through residual networks."""
    kind, dim = parameters.tasks[index]
    whole = len(parameters.tasks)
    held, labels = interleaved_classes(
        parameters.held_out, kind, seed=_seed(parameters, index, 1), noise=parameters.noise
    )
    angles = 2 * np.pi * np.arange(CIRCLE) / CIRCLE
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    grid = np.stack(np.meshgrid(*[np.linspace(-REACH, REACH, GRID)] * 2, indexing="ij"), axis=-1)
    pieces = [held, grid.reshape(-1, 2), *([ring, 0.5 * ring] if kind == "circles" else [])]
    field = flow(learnt)
    legs = frames(
        field, place(np.concatenate(pieces), dim), 1.0, LEGS, FINER * parameters.time_steps // LEGS,
        lambda share: study.progress(f"flowing {kind} in R^{dim}", (index + 0.8 + 0.1 * share) / whole),
    )  # fmt: skip
    ends = np.cumsum([0, *(len(piece) for piece in pieces)])
    few = place(held[:NETWORK_POINTS], dim)
    gaps = []
    for k, layers in enumerate(parameters.layers):
        study.progress(f"{layers} layers on {kind}", (index + 0.9 + 0.1 * k / len(parameters.layers)) / whole)
        gaps.append(np.linalg.norm(through(field, few, layers) - legs.fine[-1, : few.n], axis=-1).max())
    named: dict[str, Any] = {
        name: (("end", f"{name}_point", "dim"), legs.fine[[0, -1], low:high])
        for name, low, high in zip(("held", "grid", "outer", "inner"), ends[:-1], ends[1:], strict=False)
    }
    return xr.Dataset(
        named
        | {
            "path": (("time", "path_point", "dim"), legs.fine[:, :PATHS]),
            "label": (("held_point",), labels),
            "error": (("time",), legs.error),
            "gap": (("network",), np.array(gaps)),
            "layers": (("network",), np.array(parameters.layers)),
            "time": (("time",), legs.time),
        }
    )


def _seed(parameters: Parameters, index: int, use: int) -> int:
    return 1000 * parameters.seed + 10 * index + use + 1


def flow(learnt: xr.Dataset) -> Perceptron:
    """The fitted field."""
    return Perceptron(learnt["inner"].values, learnt["bias"].values, learnt["outer"].values, "tanh")


def place(points: np.ndarray, dim: int) -> Tokens:
    """The points as tokens of R^dim, zeros for the further coordinates."""
    return Tokens(np.pad(points, ((0, 0), (0, dim - points.shape[1]))), space=Euclidean(dim))


def through(field: Perceptron, tokens: Tokens, layers: int) -> np.ndarray:
    """Where the residual network of so many layers takes the tokens; one program serves every number of layers."""
    for leg in range(layers // LEG):
        begin, end = leg * LEG / layers, (leg + 1) * LEG / layers
        tokens = advance(field, tokens, begin, end, Layers(1 / layers))
    return np.asarray(tokens.positions)


def side(learnt: xr.Dataset, positions: np.ndarray) -> np.ndarray:
    """Score of class 1 less that of class 0: its sign is the decision."""
    normal = learnt["readout"].values[1] - learnt["readout"].values[0]
    return np.asarray(positions @ normal + learnt["offset"].values[1] - learnt["offset"].values[0])


def lower_limit(right: int, total: int) -> float:
    """The share below which so many right ones would have a chance of at most LEVEL (Clopper and Pearson)."""
    from scipy.stats import binomtest

    return float(binomtest(right, total, alternative="greater").proportion_ci(1 - LEVEL).low)


def best_line(points: np.ndarray, labels: np.ndarray) -> float:
    """No straight line gets a larger share of the points right.

    All thresholds in each of DIRECTIONS directions. A line between two directions, turned to the nearer, changes its
    mind only about points within |x| pi/DIRECTIONS of it, which all count as right.
    """
    wide = np.linalg.norm(points, axis=1).max() * np.pi / DIRECTIONS
    best = 0
    for angle in 2 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS:
        along = points @ np.array([np.cos(angle), np.sin(angle)])
        low, high = np.sort(along[labels == 0]), np.sort(along[labels == 1])
        # the line at low[i] - wide: low[0..i] are on its side or near it, and so are those of class 1 beyond
        beyond = len(high) - np.searchsorted(high, low - 2 * wide)
        best = max(best, len(high), int((np.arange(1, len(low) + 1) + beyond).max()))
    return best / len(points)


def winding(curve: np.ndarray, points: np.ndarray) -> np.ndarray:
    """How often a closed polygon of the plane goes around each of the points."""
    seen = curve[None] - points[:, None]
    turn = np.arctan2(seen[..., 1], seen[..., 0])
    steps = np.diff(turn, axis=1, append=turn[:, :1])
    return np.round(((steps + np.pi) % (2 * np.pi) - np.pi).sum(axis=1) / (2 * np.pi)).astype(int)


def claims(parameters: Parameters, data: dict[str, dict[str, xr.Dataset]]) -> list[Claim]:
    """Separation with its binomial interval, straight lines, nested circles, residual networks."""
    made: list[Claim] = []
    for kind, dim in parameters.tasks:
        learnt, seen = data[f"{kind}-{dim}"]["fit"], data[f"{kind}-{dim}"]["flow"]
        labels, total = seen["label"].values, seen.sizes["held_point"]
        sure = np.isfinite(seen["held"].values[-1]).all(axis=-1)
        right = int((((side(learnt, seen["held"].values[-1]) > 0) == labels) & sure).sum())
        low, words = lower_limit(right, total), f"{kind} in R^{dim}"
        counted = f"{right} of {total} held-out points right; exact binomial limit, missed with chance {LEVEL:g}"
        if (kind, dim) != ("circles", 2):
            made.append(
                Claim.at_least(
                    f"{words}: share of the distribution on its side", parameters.separated, low, 0.0, counted
                )
            )
        line = best_line(seen["held"].values[0, :, :2], labels)
        source = f"all lines in {DIRECTIONS} directions, those between counted in; the flow: {counted}"
        made.append(Claim.at_most(f"{words}: share that the best straight line gets right", low, line, 0.0, source))
        if (kind, dim) == ("circles", 2):
            made += _surrounded(learnt, seen)
    made.append(_order(parameters, data))
    return made


def _surrounded(learnt: xr.Dataset, seen: xr.Dataset) -> list[Claim]:
    """Nested circles stay nested, and a line cannot part them."""
    outer, inner = seen["outer"].values[-1], seen["inner"].values[-1]
    turns = winding(outer, inner[:: CIRCLE // 256])
    wrong = int((side(learnt, outer) > 0).sum() + (side(learnt, inner) < 0).sum())
    seen_turns = ", ".join(map(str, np.unique(turns)))
    return [
        Claim.true(
            "circles in R^2: the image of the outer circle surrounds that of the inner one once",
            bool((turns == 1).all()), f"winding numbers {seen_turns} about {len(turns)} points",
            f"angles along {CIRCLE} points of the image",
        ),
        Claim.at_least(
            "circles in R^2: points of the circles on the wrong side", 1.0, wrong, 0.0,
            f"half planes are convex, so at least one; counted among {2 * CIRCLE} points without noise",
        ),
    ]  # fmt: skip


def _order(parameters: Parameters, data: dict[str, dict[str, xr.Dataset]]) -> Claim:
    """The order at which residual networks approach the flow, at the last doubling."""
    kind, dim = parameters.tasks[0]
    seen = data[f"{kind}-{dim}"]["flow"]
    gaps, error = seen["gap"].values, float(seen["error"].values[-1])
    with np.errstate(divide="ignore", invalid="ignore"):  # no distance at all has no order, and the claim fails
        orders, shares = np.log2(gaps[:-1] / gaps[1:]), error / gaps
    # an order is 1 + c h + ..., so that one doubling earlier it is off by twice as much; twice for the next term
    blur = 3 * shares[-1] / np.log(2)
    tolerance = 2 * abs(orders[-1] - orders[-2]) + blur if blur < 0.1 else np.nan  # a flow not known well fails
    return Claim.equal(
        f"{kind} in R^{dim}: order at which residual networks of {parameters.layers[-2]} and {parameters.layers[-1]} "
        "layers approach the flow", 1.0, float(orders[-1]), float(tolerance),
        "twice the change of the order since the doubling before; error of the flow by halving its steps",
    )  # fmt: skip


def draw(parameters: Parameters, data: dict[str, dict[str, xr.Dataset]]) -> Any:
    """Points that were not used in fitting, coloured by class; dashed where the read-out is undecided.

    (a) Where they start, with the decision pulled back to the start (shaded). (b) Some of them on their way.
    (c) Where they end, with the image of a square grid. (d) Distance of residual networks from the flow, and order 1.
    (e) Nested circles in the plane: the outer one (blue) surrounds the inner one (orange) to the end, but for a slit
    all of it lies across the line. (f) The same circles with a third dimension. In (b), (c) and (f) the upright
    coordinate is the distance from where the read-out is undecided.
    """
    return draw_figure(parameters.tasks, data, side, GRID)
