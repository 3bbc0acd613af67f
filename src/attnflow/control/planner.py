"""Parts of a plan on the sphere: gates that move some tokens and leave all others where they are."""

import itertools
from collections import deque
from typing import Any

import numpy as np

from attnflow.control.distances import angles
from attnflow.control.stage import NoPlan, Stage, unit
from attnflow.fields import ReluUnit

NODES = 400
"""Points of a great 2-sphere through which a path may lead."""
WIDER = 1.25
"""The cap of a hop is this much wider than the hop."""


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
    candidates = unit(rng.standard_normal((tries, points.shape[1])))
    candidates = np.concatenate([candidates, -unit(points.mean(axis=0, keepdims=True) + 1e-300)])
    nearest = np.arccos(np.clip((candidates @ points.T).max(axis=1), -1, 1))
    best = int(np.argmax(nearest))
    return candidates[best], float(nearest[best])


def gather(stage: Stage, piece: np.ndarray, others: np.ndarray, tol: float) -> tuple[Stage, np.ndarray]:
    """Contract the tokens `piece` (indices into all) to one point; the others are outside of the cap."""
    x = stage.points[piece]
    centre = unit(x.mean(axis=0))
    inner = float(angles(x, centre[None]).max())
    if inner < tol:
        return stage, centre
    outer = float(angles(others, centre[None]).min()) if len(others) else np.pi
    radius = min(0.95 * outer, 1.2)
    if radius < 1.05 * inner:
        raise NoPlan("a cloud is not isolable")
    field = gate(centre, radius, centre, 1.0 / (1 - np.cos(radius)))
    return contract(stage, piece, field, centre, tol), centre


def contract(stage: Stage, piece: np.ndarray, field: ReluUnit, goal: np.ndarray, tol: float) -> Stage:
    """Run the gate until the whole piece is within `tol` of its goal; nothing else may move."""
    before = stage.points
    still = np.setdiff1d(np.arange(len(before)), piece)
    duration = 12.0
    for _ in range(14):
        moved = stage.then(field, duration)
        after = moved.points
        if angles(after[piece], goal[None]).max() <= tol:
            if len(still) and np.abs(after[still] - before[still]).max() > 1e-9 + tol:
                raise NoPlan("a gate moves others")
            return moved
        duration *= 1.6
    raise NoPlan("a gate does not gather its cloud")


def cut(
    stage: Stage, cloud: np.ndarray, mass: np.ndarray, quota: float, others: np.ndarray, rng: Any, tol: float
) -> tuple[Stage, np.ndarray, np.ndarray]:
    """Take tokens of total mass `quota` off a cloud into a point beside it: (stage, indices, the point)."""
    x = stage.points[cloud]
    centre = unit(x.mean(axis=0))
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
    return contract(stage, piece, field, z, min(tol, 0.05 * float(np.arccos(level)))), piece, z


def carry(
    stage: Stage, piece: np.ndarray, start: np.ndarray, goal: np.ndarray, others: np.ndarray, rng: Any, tol: float
) -> Stage:
    """Carry a piece at `start` to `goal` by hops whose caps contain no other token."""
    for _ in range(4):
        path = _path(start, goal, others, rng, float(angles(stage.points[piece], start[None]).max()))
        if path is not None:
            break
    else:
        raise NoPlan("no path")
    for p, q in itertools.pairwise(path):
        length = float(angles(p[None], q[None])[0, 0])
        middle = unit(p + q)
        radius = WIDER * length / 2
        height = np.cos(length / 2) - np.cos(radius)
        stage = contract(stage, piece, gate(middle, radius, q, 1.0 / height), q, tol)
    return stage


def _path(start: np.ndarray, goal: np.ndarray, others: np.ndarray, rng: Any, size: float) -> list[np.ndarray] | None:
    """Few hops from start to goal on a great 2-sphere through both and a random direction."""
    d = len(start)
    basis = np.linalg.qr(np.stack([start, goal, rng.standard_normal(d)], axis=1))[0][:, :3] if d > 3 else np.eye(3)
    near = [float(angles(others, one[None]).min()) if len(others) else 1.0 for one in (start, goal)]
    nodes = [np.stack([start, goal]), _fibonacci(NODES, rng) @ basis.T]
    for one, room in zip((start, goal), near, strict=True):
        for radius in max(room, 1e-6) * np.array([0.4, 0.8, 1.5, 3.0, 6.0, 12.0]):
            if radius < 1.2:
                turn = unit(rng.standard_normal((16, 3))) @ basis.T
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
