"""Parts of a plan on the sphere: gates that move some tokens and leave all others where they are."""

import itertools
from typing import Any

import numpy as np

from attnflow.control.distances import angles
from attnflow.control.division import SAME, subset
from attnflow.control.stage import NoPlan, Stage, unit
from attnflow.fields import ReluUnit

NODES = 400
"""Points of a great 2-sphere through which a path may lead."""
RING = 16
"""Points of each ring about both ends of a path; twice and three times as many where no path is found."""
WIDER = 1.25
"""The cap of a hop is this much wider than the hop."""
SIDES, FAR = 96, np.array([0.8, 1.2, 2.0, 3.5])
"""Caps that cut a cloud: random sides of it, and distances of centres in radii of the cloud."""
CLEAR, NARROW = 0.02, 1e-6
"""Least distance of the border of a cap from tokens on both sides, over the height of the cap: that which is preferred,
and that of a cap which holds all wanted tokens."""
EXCHANGES = 8
"""Caps for which tokens are exchanged until their masses add up."""


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
    mean = points.mean(axis=0, keepdims=True)
    if np.linalg.norm(mean) > 1e-14:
        candidates = np.concatenate([candidates, -unit(mean)])
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


def whole(stage: Stage, wanted: np.ndarray, others: np.ndarray, tol: float) -> tuple[Stage, np.ndarray, np.ndarray]:
    """All wanted tokens gathered at one point: (stage, their indices, the point)."""
    stage, centre = gather(stage, wanted, others, tol)
    return stage, wanted, centre


def cut(stage: Stage, wanted: np.ndarray, caps: np.ndarray, tol: float) -> tuple[Stage, np.ndarray, np.ndarray]:
    """Take as many of the wanted tokens as a cap holds without any other into its centre; `caps` are centres to try.

    (stage, indices, the point). Wanted tokens are also centres: a cap about a token holds it at least.
    """
    x = stage.points
    mine = np.isin(np.arange(len(x)), wanted)
    caps = np.concatenate([caps, x[mine]])
    height = caps @ x.T
    inside = height[:, mine]
    border = height[:, ~mine].max(axis=1, initial=-1.0)
    counts = np.sum(inside > border[:, None], axis=1)
    lowest = np.where(inside > border[:, None], inside, 2.0).min(axis=1)
    level = (lowest + border) / 2
    room = np.where((counts > 0) & (level < 1), (lowest - border) / np.maximum(1 - level, 1e-300), 0.0)
    if not room.max() > 0:
        raise NoPlan("no cap separates tokens that are meant for different atoms")
    # all tokens if a cap holds them, else many where the border is well away from the next ones, else the widest border
    good = room >= np.where(counts == len(wanted), NARROW, CLEAR)
    best = int(np.lexsort((room, np.where(good, counts, 0)))[-1])
    z, radius = caps[best], float(np.arccos(level[best]))
    piece = np.flatnonzero(mine)[inside[best] > border[best]]
    centre = unit(x[piece].mean(axis=0))
    if angles(x[piece], centre[None]).max() < tol:
        return stage, piece, centre
    field = gate(z, radius, z, 1.0 / (1 - level[best]))
    return contract(stage, piece, field, z, min(tol, 0.05 * radius)), piece, z


def caps_beside(x: np.ndarray, rng: Any) -> np.ndarray:
    """Centres of caps that cut a cloud from all sides, near and far."""
    centre = unit(x.mean(axis=0))
    radius = float(angles(x, centre[None]).max())
    found = [toward(centre, rng.standard_normal(len(centre)), np.minimum(FAR * radius, 1.2)) for _ in range(SIDES)]
    return np.concatenate(found)


def divide(
    x: np.ndarray, mass: np.ndarray, quota: float, caps: np.ndarray, others: np.ndarray
) -> tuple[np.ndarray, float, np.ndarray]:
    """Tokens of a cloud whose masses add up to `quota`: (their indices, by how much the sum is off, a cap's centre).

    Those of a cap that holds no other token, with a border far from the next ones, if such a cap has the right mass;
    else tokens near the border of a cap are exchanged until the sum is right.
    """
    height = caps @ x.T
    order = np.argsort(-height, axis=1)
    sums = np.cumsum(mass[order], axis=1)[:, :-1]
    count = np.argmin(np.abs(sums - quota), axis=1)
    row = np.arange(len(caps))
    off = np.abs(sums[row, count] - quota)
    inside, outside = (height[row, order[row, count + step]] for step in (0, 1))
    level = (inside + outside) / 2
    free = level < 1
    if len(others):
        free &= (caps @ others.T).max(axis=1) <= level - 0.05 * (1 - level)
    room = np.where(free, (inside - outside) / np.maximum(1 - level, 1e-300), 0.0)
    least = float(off.min())
    if least > SAME and np.ptp(mass) > SAME:
        chosen = [(k, subset(mass[order[k]], quota)) for k in range(0, len(caps), len(caps) // EXCHANGES)]
        misses = [abs(float(mass[order[k]][mine].sum()) - quota) for k, mine in chosen]
        if min(misses) < least - SAME:
            k, mine = chosen[int(np.argmin(misses))]
            return order[k][mine], min(misses), caps[k]
    fitting = np.where(off <= least + SAME, room, -1.0)
    best = int(np.argmax(fitting))
    return order[best, : count[best] + 1], float(off[best]), caps[best]


def carry(
    stage: Stage, piece: np.ndarray, start: np.ndarray, goal: np.ndarray, there: np.ndarray, rng: Any, tol: float
) -> Stage:
    """Carry a piece at `start` to `goal` by hops whose caps contain no other token.

    `there` says which tokens are at the goal already: the last hop gathers them, too.
    """
    away = np.setdiff1d(np.arange(len(stage.points)), piece)
    others, size = stage.points[away], float(angles(stage.points[piece], start[None]).max())
    for attempt in range(3):
        path = _path(start, goal, others, there[away], rng, size, RING * (1 + attempt))
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


def _path(
    start: np.ndarray, goal: np.ndarray, others: np.ndarray, there: np.ndarray, rng: Any, size: float, ring: int
) -> list[np.ndarray] | None:
    """Few hops from start to goal on a great 2-sphere through both and a random direction."""
    d = len(start)
    basis = np.linalg.qr(np.stack([start, goal, rng.standard_normal(d)], axis=1))[0][:, :3] if d > 3 else np.eye(3)
    obstacles = others[~there]
    near = [float(angles(obstacles, one[None]).min()) if len(obstacles) else 1.0 for one in (start, goal)]
    nodes = [np.stack([start, goal]), _fibonacci(NODES, rng) @ basis.T]
    for one, room in zip((start, goal), near, strict=True):
        for radius in max(room, 1e-6) * np.array([0.4, 0.8, 1.5, 3.0, 6.0, 12.0]):
            if radius < 1.2:
                turn = unit(rng.standard_normal((ring, 3))) @ basis.T
                nodes.append(np.stack([toward(one, way, radius) for way in turn]))
    x, least, home = np.concatenate(nodes), max(4 * size, 1e-12), _balls(obstacles, start, goal)
    if _hops(x[:1], x[1:2], *home, least)[0, 0]:
        return [start, goal]
    return _fewest(x, _hops(x, x[1:2], *home, least)[:, 0], _balls(others, start, goal), least)


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


def _hops(x: np.ndarray, y: np.ndarray, others: np.ndarray, radii: np.ndarray, least: float) -> np.ndarray:
    """Which hops from x to y are allowed: not too short or long, and no other token in their cap."""
    length = angles(x, y)
    allowed = (length > least) & (length < 2.2)
    sizes = np.unique(radii)
    if len(others):
        for k in range(len(x)):
            middle = x[k] + y
            middle = middle / np.maximum(np.linalg.norm(middle, axis=1, keepdims=True), 1e-300)
            cosine = middle @ others.T
            closest = [np.arccos(np.clip(cosine[:, radii == r].max(axis=1), -1, 1)) - r for r in sizes]
            # near angles 0 the arc cosine is rough, by 1e-8
            allowed[k] &= np.min(closest, axis=0) > WIDER * length[k] / 2 * 1.02 + 3e-8
    return allowed


def _fewest(
    x: np.ndarray, last: np.ndarray, balls: tuple[np.ndarray, np.ndarray], least: float
) -> list[np.ndarray] | None:
    """Breadth first from node 0 to node 1; `last` says from which nodes the last hop is allowed.

    Hops are checked only from nodes that the search reaches to nodes that it has not reached, since a check costs as
    many cosines as there are balls.
    """
    before, level = np.full(len(x), -1), [0]
    before[:2] = 0
    while level:
        for here in level:
            if last[here]:
                path = [here]
                while path[-1] != 0:
                    path.append(int(before[path[-1]]))
                return [x[k] for k in (*reversed(path), 1)]
        reached: list[int] = []
        for here in level:
            left = np.flatnonzero(before < 0)
            new = left[_hops(x[here : here + 1], x[left], *balls, least)[0]]
            before[new] = here
            reached.extend(map(int, new))
        level = reached
    return None


def _fibonacci(n: int, rng: Any) -> np.ndarray:
    """Nearly equidistant points of S^2, turned at random."""
    k = np.arange(n) + 0.5
    z, turn = 1 - 2 * k / n, np.pi * (1 + 5**0.5) * k
    flat = np.sqrt(1 - z**2)
    return (
        np.stack([flat * np.cos(turn), flat * np.sin(turn), z], axis=1) @ np.linalg.qr(rng.standard_normal((3, 3)))[0]
    )
