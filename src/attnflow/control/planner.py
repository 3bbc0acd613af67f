"""Parts of a plan on the sphere: gates that move some tokens and leave all others where they are."""

import itertools
from collections import deque
from typing import Any

import jax
import numpy as np

from attnflow.control.distances import angles
from attnflow.fields import AbstractField, AtTokens, Drift, ReluUnit
from attnflow.fields.units import unit_flow
from attnflow.precision import full_precision
from attnflow.spaces import Sphere
from attnflow.tokens import Measure

NODES = 400
"""Points of a great 2-sphere through which a path may lead."""
WIDER = 1.25
"""The cap of a hop is this much wider than the hop."""
Element = tuple[AbstractField, float]


class NoPlan(Exception):
    """The plan failed for a reason that another try may avoid."""


class Stage:
    """All tokens of all measures, and the elements that have moved them so far.

    `layer` is None for exact flows, or the size of a layer, |X| Lipschitz times step: then every element is a number of
    layers x <- (x + h X)/|.|, and the plan is made for that network.
    """

    def __init__(self, clouds: list[np.ndarray], masses: list[np.ndarray], layer: float | None):
        self.clouds, self.masses, self.layer = [c.copy() for c in clouds], masses, layer
        self.elements: list[Element] = []
        self.ends = np.concatenate([[0], np.cumsum([len(c) for c in clouds])])

    @property
    def points(self) -> np.ndarray:
        """All tokens, one measure after the other."""
        return np.concatenate(self.clouds)

    def apply(self, field: AbstractField, duration: float) -> None:
        """Run an element and keep it."""
        moved, element = self.tried(field, duration)
        self.clouds = moved
        self.elements.append(element)

    def tried(self, field: AbstractField, duration: float) -> tuple[list[np.ndarray], Element]:
        """The clouds behind an element, and the element as it is stored."""
        if self.layer is None:
            return self._exact(field, duration), (field, duration)
        count = max(1, int(np.ceil(duration * _rate(field) / self.layer)))
        step = duration / count
        moved = [c.copy() for c in self.clouds]
        for _ in range(count):
            moved = [_unit(c + step * _drive(field, c, m)) for c, m in zip(moved, self.masses, strict=True)]
        return moved, (_times(field, step), float(count))

    def _exact(self, field: AbstractField, duration: float) -> list[np.ndarray]:
        with full_precision():
            if isinstance(field, ReluUnit):
                w, a, b = _weights(field)
                moved = np.asarray(_gated(self.points, w, a, b, np.float64(duration)))
                return [moved[i:j] for i, j in zip(self.ends[:-1], self.ends[1:], strict=True)]
            return [
                np.asarray(_carried(field, np.float64(duration), c, m))
                for c, m in zip(self.clouds, self.masses, strict=True)
            ]


@jax.jit
def _gated(x: Any, w: Any, a: Any, b: Any, h: Any) -> Any:
    return unit_flow(Sphere(x.shape[1]), x, w, a, b, h)[0]


@jax.jit
def _carried(field: Any, duration: Any, x: Any, masses: Any) -> Any:
    return field.carry(0.0 * duration, duration, AtTokens(), Measure(x, masses))


def _weights(field: Any) -> tuple[np.ndarray, ...]:
    """The numbers of a constant element."""
    roles = ("outer", "inner", "bias") if isinstance(field, ReluUnit) else ("vector",)
    roles = roles if isinstance(field, ReluUnit | Drift) else ("value",)
    return tuple(np.asarray(getattr(field, role).value, float) for role in roles)


def _drive(field: AbstractField, x: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """X in NumPy."""
    first, *rest = _weights(field)
    if isinstance(field, ReluUnit):
        return np.asarray(np.maximum(x @ rest[0] + rest[1], 0.0)[:, None] * first)
    return np.broadcast_to(first if isinstance(field, Drift) else first @ (masses @ x), x.shape)


def _rate(field: AbstractField) -> float:
    """How fast the element may move and stretch."""
    first, *rest = _weights(field)
    if isinstance(field, ReluUnit):
        return float(np.linalg.norm(first) * max(np.linalg.norm(rest[0]), np.abs(rest[1])))
    return float(np.linalg.norm(first) if isinstance(field, Drift) else np.linalg.norm(first, ord=2))


def _times(field: AbstractField, factor: float) -> AbstractField:
    first, *rest = _weights(field)
    return type(field)(factor * first, *rest)


def _unit(x: np.ndarray) -> np.ndarray:
    return np.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True))


def gate(centre: np.ndarray, radius: float, goal: np.ndarray, strength: float) -> ReluUnit:
    """strength (<centre, x> - cos radius)_+ P_x goal: attracts to `goal` what is within the cap, and nothing else."""
    return ReluUnit(strength * goal, centre, -float(np.cos(radius)))


def toward(x: np.ndarray, direction: np.ndarray, angle: Any) -> np.ndarray:
    """The point at this angle from x along a direction (made tangent)."""
    tangent = direction - x * (direction @ x)
    tangent = tangent / np.linalg.norm(tangent)
    angle = np.asarray(angle)[..., None]
    return np.asarray(np.cos(angle) * x + np.sin(angle) * tangent)


def free_point(points: np.ndarray, rng: np.random.Generator, tries: int = 4096) -> tuple[np.ndarray, float]:
    """(a point of the sphere far from all others, its least angle)."""
    candidates = _unit(rng.standard_normal((tries, points.shape[1])))
    candidates = np.concatenate([candidates, -_unit(points.mean(axis=0, keepdims=True) + 1e-300)])
    nearest = np.arccos(np.clip((candidates @ points.T).max(axis=1), -1, 1))
    best = int(np.argmax(nearest))
    return candidates[best], float(nearest[best])


def gather(stage: Stage, piece: np.ndarray, others: np.ndarray, tol: float) -> np.ndarray:
    """Contract the tokens `piece` (indices into all) to one point; the others are outside of the cap."""
    x = stage.points[piece]
    centre = _unit(x.mean(axis=0))
    inner = float(angles(x, centre[None]).max())
    if inner < tol:
        return centre
    outer = float(angles(others, centre[None]).min()) if len(others) else np.pi
    radius = min(0.95 * outer, 1.2)
    if radius < 1.05 * inner:
        raise NoPlan("a cloud is not isolable")
    contract(stage, piece, gate(centre, radius, centre, 1.0 / (1 - np.cos(radius))), centre, tol)
    return centre


def contract(stage: Stage, piece: np.ndarray, field: ReluUnit, goal: np.ndarray, tol: float) -> None:
    """Run the gate until the whole piece is within `tol` of its goal; nothing else may move."""
    before = stage.points
    still = np.setdiff1d(np.arange(len(before)), piece)
    duration = 12.0
    for _ in range(14):
        moved, element = stage.tried(field, duration)
        after = np.concatenate(moved)
        if angles(after[piece], goal[None]).max() <= tol:
            if len(still) and np.abs(after[still] - before[still]).max() > 1e-9 + tol:
                raise NoPlan("a gate moves others")
            stage.clouds = moved
            stage.elements.append(element)
            return
        duration *= 1.6
    raise NoPlan("a gate does not gather its cloud")


def cut(stage: Stage, cloud: np.ndarray, mass: np.ndarray, quota: float, others: np.ndarray, rng: Any,
        tol: float) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Take tokens of total mass `quota` off a cloud into a point beside it: (indices, the point)."""
    x = stage.points[cloud]
    centre = _unit(x.mean(axis=0))
    radius = float(angles(x, centre[None]).max())
    best: tuple[float, Any] = (0.0, None)
    for _ in range(96):
        direction = rng.standard_normal(len(centre))
        for far in (0.8, 1.2, 2.0, 3.5):
            z = toward(centre, direction, min(far * radius, 1.2))
            height = x @ z
            order = np.argsort(-height)
            k = int(np.argmin(np.abs(np.cumsum(mass[order]) - quota))) + 1
            if k >= len(order):
                continue
            gap = height[order[k - 1]] - height[order[k]]
            level = (height[order[k - 1]] + height[order[k]]) / 2
            if level >= 1 or (len(others) and (others @ z).max() > level - 0.05 * (1 - level)):
                continue
            score = float(gap / (1 - level))
            if score > best[0]:
                best = score, (z, level, cloud[order[:k]])
    if best[1] is None:
        raise NoPlan("no cap cuts the cloud")
    z, level, piece = best[1]
    field = gate(z, float(np.arccos(level)), z, 1.0 / (1 - level))
    contract(stage, piece, field, z, min(tol, 0.05 * float(np.arccos(level))))
    return piece, z


def carry(stage: Stage, piece: np.ndarray, start: np.ndarray, goal: np.ndarray, others: np.ndarray, rng: Any,
          tol: float) -> None:  # fmt: skip
    """Carry a piece at `start` to `goal` by hops whose caps contain no other token."""
    for _ in range(4):
        path = _path(start, goal, others, rng, float(angles(stage.points[piece], start[None]).max()))
        if path is not None:
            break
    else:
        raise NoPlan("no path")
    for p, q in itertools.pairwise(path):
        length = float(angles(p[None], q[None])[0, 0])
        middle = _unit(p + q)
        radius = WIDER * length / 2
        height = np.cos(length / 2) - np.cos(radius)
        contract(stage, piece, gate(middle, radius, q, 1.0 / height), q, tol)


def _path(start: np.ndarray, goal: np.ndarray, others: np.ndarray, rng: Any, size: float) -> list[np.ndarray] | None:
    """Few hops from start to goal on a great 2-sphere through both and a random direction."""
    d = len(start)
    basis = np.linalg.qr(np.stack([start, goal, rng.standard_normal(d)], axis=1))[0][:, :3] if d > 3 else np.eye(3)
    near = [float(angles(others, one[None]).min()) if len(others) else 1.0 for one in (start, goal)]
    nodes = [np.stack([start, goal]), _fibonacci(NODES, rng) @ basis.T]
    for one, room in zip((start, goal), near, strict=True):
        for radius in max(room, 1e-6) * np.array([0.4, 0.8, 1.5, 3.0, 6.0, 12.0]):
            if radius < 1.2:
                turn = _unit(rng.standard_normal((16, 3))) @ basis.T
                nodes.append(np.stack([toward(one, way, radius) for way in turn]))
    least, balls = max(4 * size, 1e-12), _balls(others, start, goal)
    if _hops(nodes[0], *balls, least)[0, 1]:
        return [start, goal]
    x = np.concatenate(nodes)
    return _fewest(x, _hops(x, *balls, least))


def _balls(others: np.ndarray, start: np.ndarray, goal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Few balls (centres, radii) that contain all other tokens, small against their distance from start and goal."""
    if not len(others):
        return others, np.zeros(0)
    far = angles(others, np.stack([start, goal])).min(axis=1)
    side = 2.0 ** np.floor(np.log2(np.maximum(0.05 * far, 1e-9)))
    boxes = np.concatenate([np.round(others / side[:, None]), np.log2(side)[:, None]], axis=1)
    _, first = np.unique(boxes, axis=0, return_index=True)
    # two points of one box are closer than its diagonal; an arc is at most pi/2 times its chord
    return others[first], np.pi / 2 * side[first] * np.sqrt(others.shape[1])


def _hops(x: np.ndarray, others: np.ndarray, radii: np.ndarray, least: float) -> np.ndarray:
    """Which hops are allowed: not too short or long, and no other token in their cap."""
    length = angles(x, x)
    allowed = (length > least) & (length < 2.2)
    sizes = np.unique(radii)
    if len(others):
        for k in range(len(x)):
            middle = x[k] + x
            middle = middle / np.maximum(np.linalg.norm(middle, axis=1, keepdims=True), 1e-300)
            cosine = middle @ others.T
            closest = [np.arccos(np.clip(cosine[:, radii == r].max(axis=1), -1, 1)) - r for r in sizes]
            # near angles 0 the arc cosine is rough, by 1e-8
            allowed[k] &= np.min(closest, axis=0) > WIDER * length[k] / 2 * 1.02 + 3e-8
    return allowed


def _fewest(x: np.ndarray, allowed: np.ndarray) -> list[np.ndarray] | None:
    """Breadth first from node 0 to node 1."""
    before = np.full(len(x), -1)
    before[0] = 0
    queue = deque([0])
    while queue:
        here = queue.popleft()
        for there in np.flatnonzero(allowed[here] & (before < 0)):
            before[there] = here
            if there == 1:
                path = [1]
                while path[-1] != 0:
                    path.append(int(before[path[-1]]))
                return [x[k] for k in reversed(path)]
            queue.append(int(there))
    return None


def _fibonacci(n: int, rng: Any) -> np.ndarray:
    """Nearly equidistant points of S^2, turned at random."""
    k = np.arange(n) + 0.5
    z, turn = 1 - 2 * k / n, np.pi * (1 + 5**0.5) * k
    flat = np.sqrt(1 - z**2)
    return (
        np.stack([flat * np.cos(turn), flat * np.sin(turn), z], axis=1) @ np.linalg.qr(rng.standard_normal((3, 3)))[0]
    )
