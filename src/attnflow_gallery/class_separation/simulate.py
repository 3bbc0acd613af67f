"""Flows fitted to labelled points, and where they carry held-out points, circles and grids."""

import dataclasses
from typing import Any

import numpy as np
import xarray as xr

from attnflow.errors import FlowFailed
from attnflow.experiments import Salted, Study
from attnflow.fields import Perceptron
from attnflow.flows import Ending, Fixed, Layers, Solve, advance
from attnflow.learn import Classifier, fit, interleaved_classes, residual_network
from attnflow.spaces import Euclidean
from attnflow.tokens import Tokens

CIRCLE = 2048
"""Points on each circle without noise, before refinement."""
VIEWS = 128
"""Points of the inner circle from which the outer one is seen."""
TURN = np.pi / 4
"""The image of the outer circle is refined until it turns by less between neighbours, seen from every view."""
BATCH = 1024
"""Points that are inserted at once."""
ROUNDS = 24
"""Batches after which refinement is given up."""
LINES = np.linspace(-1.15, 1.15, 24)
"""Of a square grid that is carried along."""
ALONG = 1201
"""Points on each of its lines."""
PIXELS = 121
"""Of the map of decisions, in each direction."""
REACH = 1.3
"""The map covers [-REACH, REACH]^2."""
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
class Parameters(Salted):
    """What is fitted and with what it is judged."""

    tasks: tuple[tuple[str, int], ...] = (("spirals", 2), ("moons", 2), ("circles", 2), ("circles", 3))
    """Classes, and the dimension in which they flow."""
    fits: int = 4
    """Initial weights per task."""
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


FEW = (("spirals", 2), ("circles", 2), ("circles", 3))
QUICK = Parameters(FEW, fits=2, points=200, held_out=6000, steps=150, rate=0.05, time_steps=5, layers=(256, 512, 1024))


def run(parameters: Parameters, study: Study) -> dict[str, dict[str, xr.Dataset]]:
    """Per task the fitted weights, and where they carry the held-out points."""
    names = [f"{kind}-{dim}" for kind, dim in parameters.tasks]
    fits = study.parts({f"fit-{name}": (_learn, parameters, study, k) for k, name in enumerate(names)})
    looks = {f"flow-{name}": (_look, parameters, study, k, fits[f"fit-{name}"]) for k, name in enumerate(names)}
    flows = study.parts(looks)
    return {name: {"fit": fits[f"fit-{name}"], "flow": flows[f"flow-{name}"]} for name in names}


def _learn(parameters: Parameters, study: Study, index: int) -> xr.Dataset:
    """Fit the same points from several initial weights."""
    kind, dim = parameters.tasks[index]
    seed = parameters.seed(10 * index + 1)
    points, labels = interleaved_classes(parameters.points, kind, seed=seed, noise=parameters.noise)
    found = [_fit(parameters, study, dim, number, points, labels) for number in study.along(range(parameters.fits))]
    fields: list[Any] = [one.classifier.field for one in found]
    return xr.Dataset(
        {
            "inner": (("fit", "unit", "dim"), np.array([one.inner.value for one in fields])),
            "bias": (("fit", "unit"), np.array([one.bias.value for one in fields])),
            "outer": (("fit", "dim", "unit"), np.array([one.outer.value for one in fields])),
            "readout": (("fit", "class", "dim"), np.array([one.classifier.readout for one in found])),
            "offset": (("fit", "class"), np.array([one.classifier.bias for one in found])),
            "loss": (("fit", "step"), np.array([one.losses for one in found])),
        }
    )


def _fit(parameters: Parameters, study: Study, dim: int, number: int, points: Any, labels: Any) -> Any:
    def say(progress: Any) -> None:
        study.progress(f"fitting in R^{dim}, {number + 1} of {parameters.fits}", progress.frames / progress.of)

    seed = parameters.seed(number)
    field: Any = residual_network(dim, parameters.width, parameters.time_steps, seed=seed, shared=True)
    start = Classifier(field, np.eye(2, len(field.outer.value)), method=Fixed(1 / parameters.time_steps))
    fitted = fit(start, points, labels, steps=parameters.steps, rate=parameters.rate, seed=seed, on_progress=say)
    if fitted.outcome.ending is not Ending.FINISHED:  # Ctrl-C
        raise FlowFailed(fitted.outcome.message, fitted)
    return fitted


def _look(parameters: Parameters, study: Study, index: int, learnt: xr.Dataset) -> xr.Dataset:
    """Carry held-out points along every fitted flow, circles too; grids and networks for the best fit only."""
    kind, dim = parameters.tasks[index]
    seed = parameters.seed(10 * index + 2)
    held, labels = interleaved_classes(parameters.held_out, kind, seed=seed, noise=parameters.noise)
    chosen, ends, curves = flow(learnt, best(learnt)), [], []
    for number in study.along(range(parameters.fits)):
        study.progress(f"flowing {kind} in R^{dim}, {number + 1} of {parameters.fits}", 0.0)
        field = flow(learnt, number)
        ends.append(carry(parameters, field, held))
        if kind == "circles":
            curves.append(circles(parameters, field, study))
    named: dict[str, Any] = {
        "held": (("held_point", "coordinate"), held),
        "label": (("held_point",), labels),
        "end": (("fit", "held_point", "dim"), np.array(ends)),
    }
    if curves:
        named["inner"] = (("fit", "inner_point", "dim"), np.array([inner for inner, _ in curves]))
        longest = max(len(outer) for _, outer in curves)
        padded = [np.pad(outer, ((0, longest - len(outer)), (0, 0)), mode="edge") for _, outer in curves]
        named["outer"] = (("fit", "outer_point", "dim"), np.array(padded))
    if index == 0:
        named |= _pictures(parameters, chosen)
    # the flow of a few points and the change by halving its steps
    few, step = place(held[:NETWORK_POINTS], chosen), Fixed(1 / (FINER * parameters.time_steps))
    steps = Solve(chosen, few, 1.0, save=LEGS, method=step, keep=("positions",))
    return xr.Dataset(named | _networks(parameters, steps, study.refined(f"flow-{kind}-{dim}-steps", steps)))


def _networks(parameters: Parameters, steps: Solve, path: xr.Dataset) -> dict[str, Any]:
    """Root mean square distance of residual networks from the flow, and the change of the flow by halving its steps."""
    fine = path["positions"].values
    gaps = [through(steps.field, steps.tokens, layers) - fine[-1] for layers in parameters.layers]
    return {
        "gap": (("network",), np.array([_rms(gap) for gap in gaps])),
        "error": ((), 15 * _rms(path["positions_error"].values[-1])),
        "layers": (("network",), np.array(parameters.layers)),
        "path": (("time", "path_point", "dim"), fine[:, :PATHS]),
        "time": (("time",), path["time"].values),
    }


def _rms(gap: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.sum(gap**2, axis=-1))))


def _pictures(parameters: Parameters, field: Perceptron) -> dict[str, Any]:
    """The map of decisions, and the image of a square grid."""
    side = np.linspace(-REACH, REACH, PIXELS)
    pixels = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1)
    fine = np.linspace(LINES[0], LINES[-1], ALONG)
    upright = np.stack(np.broadcast_arrays(LINES[:, None], fine), axis=-1)
    mesh = np.stack([upright, upright[..., ::-1]])
    images = [carry(parameters, field, one.reshape(-1, 2)).reshape(*one.shape[:-1], -1) for one in (pixels, mesh)]
    return {"map": (("x1", "x2", "dim"), images[0]), "mesh": (("way", "line", "along", "dim"), images[1])}


def best(learnt: xr.Dataset) -> int:
    """The fit with the smallest loss at its end; held-out points play no part in it."""
    return int(np.argmin(learnt["loss"].values[:, -1]))


def flow(learnt: xr.Dataset, number: int) -> Perceptron:
    """The field of one fit."""
    one = learnt.isel(fit=number)
    return Perceptron(one["inner"].values, one["bias"].values, one["outer"].values, "tanh")


def place(points: np.ndarray, field: Any) -> Tokens:
    """The points as tokens of the space of the field, zeros for the further coordinates."""
    dim = len(field.outer.value)
    return Tokens(np.pad(points, ((0, 0), (0, dim - points.shape[1]))), space=Euclidean(dim))


def carry(parameters: Parameters, field: Perceptron, points: np.ndarray) -> np.ndarray:
    """Where the flow takes the points."""
    step = 1 / (FINER * parameters.time_steps)
    return np.asarray(advance(field, place(points, field), 0.0, 1.0, Fixed(step)).positions)


def through(field: Any, tokens: Tokens, layers: int) -> np.ndarray:
    """Where the residual network of so many layers takes the tokens; one program serves every number of layers."""
    for leg in range(layers // LEG):
        begin, end = leg * LEG / layers, (leg + 1) * LEG / layers
        tokens = advance(field, tokens, begin, end, Layers(1 / layers))
    return np.asarray(tokens.positions)


def ring(turns: np.ndarray) -> np.ndarray:
    """Points of the unit circle."""
    return np.stack([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)], axis=-1)


def circles(parameters: Parameters, field: Perceptron, study: Study) -> tuple[np.ndarray, np.ndarray]:
    """Images of the inner circle, and of the outer one with points inserted until neighbours look close."""
    turns = np.arange(CIRCLE) / CIRCLE
    inner, outer = carry(parameters, field, 0.5 * ring(turns)), carry(parameters, field, ring(turns))
    views = inner[:: CIRCLE // VIEWS]
    for k in range(ROUNDS):
        study.progress("refining the image of a circle", k / ROUNDS)
        wide = np.flatnonzero(increments(outer, views) >= TURN)[:BATCH]
        if not len(wide):
            break
        after = np.append(turns[1:], 1.0)[wide]
        middle = np.resize((turns[wide] + after) / 2, BATCH)  # one shape, one program
        images = carry(parameters, field, ring(middle))[: len(wide)]
        turns, outer = np.insert(turns, wide + 1, middle[: len(wide)]), np.insert(outer, wide + 1, images, axis=0)
    return inner, outer


def increments(curve: np.ndarray, views: np.ndarray) -> np.ndarray:
    """The largest |turn| from each point of a closed polygon to the next, seen from any of the views."""
    found = np.zeros(len(curve))
    for view in views:
        found = np.maximum(found, np.abs(turning(curve, view)))
    return found


def turning(curve: np.ndarray, view: np.ndarray) -> np.ndarray:
    """Angles from each point of a closed polygon of the plane to the next, seen from a point."""
    seen = (curve[:, 0] - view[0]) + 1j * (curve[:, 1] - view[1])
    return np.angle(np.roll(seen, -1) * np.conj(seen))


def side(learnt: xr.Dataset, number: int, positions: np.ndarray) -> np.ndarray:
    """Distance from the plane on which the read-out is undecided, positive for class 1."""
    one = learnt.isel(fit=number)
    normal = one["readout"].values[1] - one["readout"].values[0]
    shift = float(one["offset"].values[1] - one["offset"].values[0])
    return np.asarray((positions @ normal + shift) / np.linalg.norm(normal))
