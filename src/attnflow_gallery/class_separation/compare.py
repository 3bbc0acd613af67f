"""Separation with its binomial interval, straight lines, nested circles, residual networks."""

import numpy as np
import xarray as xr

from attnflow.experiments import Claim, consequence, published
from attnflow.experiments.kit import LEVEL, Rows, left_of_order, orders
from attnflow_gallery.class_separation import simulate
from attnflow_gallery.class_separation.simulate import CIRCLE, TURN, VIEWS, Parameters, best, side

DIRECTIONS = 180
"""Of straight lines, over the full turn."""

Data = dict[str, dict[str, xr.Dataset]]
NESTED = published("dupont2019augmented")


def lower_limit(right: float, total: int, tests: int = 1) -> float:
    """The share below which so many right ones would have a chance of at most LEVEL/tests (Clopper and Pearson)."""
    from scipy.stats import binomtest

    return float(binomtest(int(right), total, alternative="greater").proportion_ci(1 - LEVEL / tests).low)


def best_line(points: np.ndarray, labels: np.ndarray) -> float:
    """No straight line gets a larger share of the points right.

    All thresholds in each of DIRECTIONS directions. A line between two directions, turned to the nearer, changes its
    mind only about points within |x| pi/DIRECTIONS of it, which all count as right.
    """
    wide = np.linalg.norm(points, axis=1).max() * np.pi / DIRECTIONS
    found = 0
    for angle in 2 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS:
        along = points @ np.array([np.cos(angle), np.sin(angle)])
        low, high = np.sort(along[labels == 0]), np.sort(along[labels == 1])
        # the line at low[i] - wide: low[0..i] are on its side or near it, and so are those of class 1 beyond
        beyond = len(high) - np.searchsorted(high, low - 2 * wide)
        found = max(found, len(high), int((np.arange(1, len(low) + 1) + beyond).max()))
    return found / len(points)


def winding(curve: np.ndarray, views: np.ndarray) -> np.ndarray:
    """How often a closed polygon of the plane goes around each of the points."""
    return np.array([np.sum(simulate.turning(curve, view)) for view in views]) / (2 * np.pi)


def right_points(task: dict[str, xr.Dataset]) -> np.ndarray:
    """Per fit the number of held-out points on their side; not a number where a point has no side."""
    learnt, seen = task["fit"], task["flow"]
    scores = np.array([side(learnt, k, end) for k, end in enumerate(seen["end"].values)])
    return np.sum((scores > 0) == (seen["label"].values == 1), axis=1)


def wrong_circle_points(task: dict[str, xr.Dataset]) -> np.ndarray:
    """Per fit the points of the two circles without noise on the wrong side."""
    learnt, seen = task["fit"], task["flow"]
    rows = [
        np.sum(~(side(learnt, k, outer) < 0)) + np.sum(~(side(learnt, k, inner) > 0))
        for k, (outer, inner) in enumerate(zip(seen["outer"].values, seen["inner"].values, strict=True))
    ]
    return np.array(rows)


def last_order(seen: xr.Dataset) -> tuple[float, float]:
    """The order at the last doubling of the layers, and its tolerance; no number where the flow is not known well."""
    gaps, error = seen["gap"].values, float(seen["error"])
    with np.errstate(divide="ignore", invalid="ignore"):  # no distance at all has no order
        found, blur = orders(gaps), 3 * error / gaps[-1] / np.log(2)
    return float(found[-1]), float(left_of_order(found) + blur) if blur < 0.1 else np.nan


def claims(parameters: Parameters, data: Data) -> list[Claim]:
    """Circles first, then what training reaches, then residual networks."""
    flat, deep = data["circles-2"], data["circles-3"]
    surrounded, whole = Rows(), wrong_circle_points(deep)
    for k, wrong in enumerate(wrong_circle_points(flat)):
        surrounded.add(1.0, wrong, 0.0, f"fit {k}")
    return [
        _nested(flat["flow"]),
        surrounded.at_least(
            "circles in R^2: points of the circles on the wrong side, every fit",
            "a half plane is convex, so that it holds what a curve in it surrounds",
            origin=NESTED,
        ),
        Claim.equal(
            "circles in R^3: points of the circles on the wrong side, best fit",
            0.0,
            whole[best(deep["fit"])],
            0.0,
            f"counted among {2 * CIRCLE} points or more, without noise",
            origin=NESTED,
            detail=f"{np.sum(whole == 0)} of {parameters.fits} fits have none",
        ),
        *_shares(parameters, data),
        _order(parameters, data),
    ]


def _shares(parameters: Parameters, data: Data) -> list[Claim]:
    """The share of the distribution that the best fit of each task gets right."""
    limit, line, reached = Rows(), Rows(), []
    for kind, dim in parameters.tasks:
        task, words = data[f"{kind}-{dim}"], f"{kind} in R^{dim}"
        right, held = right_points(task), task["flow"]
        low = lower_limit(right[best(task["fit"])], parameters.held_out, len(parameters.tasks))
        line.add(best_line(held["held"].values, held["label"].values), low, 0.0, words)
        if (kind, dim) != ("circles", 2):
            limit.add(parameters.separated, low, 0.0, words)
            enough = np.sum(right >= parameters.separated * parameters.held_out)
            reached.append(f"{words} {enough} of {parameters.fits}")
    return [
        limit.at_least(
            "best fit: share of the distribution on its side, all but circles in R^2",
            f"exact binomial limit from {parameters.held_out} held-out points, missed with chance {LEVEL:g} by any",
            origin=consequence("Flows that separate"),
            level=LEVEL,
            detail=f"fits with at least {parameters.separated:g}: {', '.join(reached)}",
        ),
        line.at_least(
            "best fit: share of the distribution on its side, against that of the best straight line",
            f"all lines in {DIRECTIONS} directions, those between counted in; exact binomial limit, {LEVEL:g} for all",
            origin=consequence("The best straight line"),
            level=LEVEL,
        ),
    ]


def _order(parameters: Parameters, data: Data) -> Claim:
    rows, layers = Rows(), parameters.layers[-2:]
    for kind, dim in parameters.tasks:
        rows.add(1.0, *last_order(data[f"{kind}-{dim}"]["flow"]), f"{kind} in R^{dim}")
    return rows.equal(
        f"order at which residual networks of {layers[0]} and {layers[1]} layers approach the flow",
        "3 times the last change of the order, or half the change before; change of the flow by halving its steps",
        origin=consequence("Residual networks"),
    )


def _nested(seen: xr.Dataset) -> Claim:
    """The winding number about points of the inner image, in turns; not a number where the image is not resolved."""
    rows, largest = Rows(), 0.0
    for k, (outer, inner) in enumerate(zip(seen["outer"].values, seen["inner"].values, strict=True)):
        views = inner[:: CIRCLE // VIEWS, :2]
        step = float(simulate.increments(outer, views).max())
        largest = max(largest, step)
        rows.add(1.0, winding(outer, views) if step < TURN else np.full(VIEWS, np.nan), 1e-9, f"fit {k}")
    return rows.equal(
        f"circles in R^2: turns of the outer image about {VIEWS} points of the inner image, every fit",
        f"rounding; neighbours on the outer image turn by less than {TURN:.3g}, else the claim fails",
        origin=NESTED,
        detail=f"largest turn between neighbours {largest:.2f}",
    )
