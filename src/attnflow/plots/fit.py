"""A fitted classifier: its losses, what it says of the plane before and after, and the paths of points."""

from typing import Any

import numpy as np

from attnflow.errors import InvalidInput
from attnflow.flows import Layers
from attnflow.learn import Classifier, Fitted
from attnflow.plots.style import COLOURS, COLUMN, GREY, INK, PAGE, blank, say, styled

GRID = 160
"""Points on a side of the plane."""
PATHS = 40
"""Points whose paths are drawn."""
MOMENTS = 41
"""Times at which a path is looked at."""
MOST_POINTS = 1500
MARKERS = "os^DvP"
PALE = 0.6
"""How much white is in the colour of a region."""


def draw_loss(fitted: Fitted) -> Any:
    """The loss of every step on a logarithmic axis."""
    with styled() as figure:
        fig = figure.Figure(figsize=(COLUMN, 2.3))
        draw_losses(fig.subplots(), fitted)
        return fig


def draw_plane(fitted: Fitted) -> Any:
    """Points of the plane with the regions of the classes, before and after the fit."""
    if not in_plane(fitted):
        raise InvalidInput("the points of this fit are not in the plane; draw_loss and draw_paths show the rest.")
    with styled() as figure:
        low, high = _box(fitted.work.data[0][:, :2])
        width = np.clip(5.2 * (high[0] - low[0]) / (high[1] - low[1]) + 1.0, COLUMN, PAGE)
        fig = figure.Figure(figsize=(float(width), 3.1))
        panels = fig.subplots(1, 2, sharey=True)
        for axes, classifier, when in zip(panels, _both(fitted), ("before", "after"), strict=True):
            draw_regions(axes, classifier, fitted, f"{when} the fit")
        panels[1].set_ylabel("")
        return fig


def draw_paths(fitted: Fitted) -> Any:
    """Where the fitted flow takes some of the points, and the read-out at the end.

    In the plane as they go. In more dimensions up is the direction in which the read-out tells classes apart best, and
    across the direction, orthogonal to it, in which the paths spread most.
    """
    if fitted.work is None:
        return blank("the points of this fit are not known")
    with styled() as figure:
        fig = figure.Figure(figsize=(COLUMN, 3.1))
        draw_flow(fig.subplots(), fitted)
        return fig


def plot_fit(fitted: Fitted) -> Any:
    """Losses, regions after the fit, and paths."""
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 2.5))
        if fitted.work is None:
            draw_losses(fig.subplots(), fitted)
            return fig
        if not in_plane(fitted):
            left, right = fig.subplots(1, 2)
        else:
            left, middle, right = fig.subplots(1, 3)
            draw_regions(middle, fitted.classifier, fitted, "after the fit")
        draw_losses(left, fitted)
        draw_flow(right, fitted)
        return fig


def summarise_fit(fitted: Fitted) -> dict[str, Any]:
    """The numbers of the closing table."""
    losses, work = np.asarray(fitted.losses), fitted.work
    return {
        "kind": "fit",
        "steps": len(losses),
        "loss_at_start": _number(losses[0]) if len(losses) else None,
        "loss_at_end": _number(losses[-1]) if len(losses) else None,
        "accuracy": float(fitted.accuracy),
        "accuracy_at_start": None if work is None else work.classifier.accuracy(*work.data),
        "points": None if work is None else len(work.data[0]),
        "classes": fitted.classifier.classes,
    }


def in_plane(fitted: Fitted) -> bool:
    """Whether the points that were fitted lie in the plane of the first two coordinates."""
    return fitted.work is not None and fitted.classifier.dim >= 2 and not np.any(fitted.work.data[0][:, 2:])


def draw_losses(axes: Any, fitted: Fitted) -> None:
    """Loss against step."""
    losses = np.asarray(fitted.losses)
    if not len(losses):
        say(axes, "no step was made")
        return
    axes.plot(np.arange(1, len(losses) + 1), losses, color=COLOURS[0], marker="o" if len(losses) == 1 else None, ms=3)
    if (losses > 0).all():
        axes.set_yscale("log")
    axes.set(xlim=(0, len(losses) + 1), xlabel="step", ylabel="loss (cross-entropy)")


def draw_regions(axes: Any, classifier: Classifier, fitted: Fitted, when: str) -> None:
    """Probabilities of the classes as mixtures of pale colours, the borders between them, and the points.

    A field that lets the points feel each other has no regions: then only the points are drawn. Points that are
    classified wrongly have a dark rim.
    """
    points, labels = fitted.work.data
    scores = np.asarray(classifier.scores(points))
    low, high = _box(points[:, :2])
    if is_pointwise(classifier, points):
        sides = [np.linspace(low[j], high[j], GRID) for j in (0, 1)]
        plane = np.stack(np.meshgrid(*sides), axis=-1)
        chances = np.asarray(classifier(plane.reshape(-1, 2))).reshape(GRID, GRID, -1)
        axes.imshow(
            chances @ _pale(classifier.classes),
            origin="lower",
            extent=(low[0], high[0], low[1], high[1]),
            aspect="auto",
            interpolation="bilinear",
            zorder=0,
        )
        for k in range(classifier.classes - 1 if classifier.classes == 2 else classifier.classes):
            others = np.max(np.delete(chances, k, axis=-1), axis=-1)
            gap = chances[..., k] - others
            if gap.min() < 0 < gap.max():
                axes.contour(*sides, gap, levels=[0.0], colors=INK, linewidths=0.7)
    wrong = np.argmax(scores, axis=-1) != labels
    _scatter(axes, points[:, :2], labels, wrong)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xlabel="$x_1$", ylabel="$x_2$")
    axes.set_aspect("equal")
    right = 100 * (1 - np.mean(wrong))
    axes.set_title(f"{when}: {right:.3g} % right")


def draw_flow(axes: Any, fitted: Fitted) -> None:
    """Paths of some points, from a small dot to a large one; dashed, where the read-out changes its mind."""
    (points, every), classifier = fitted.work.data, fitted.classifier
    some = np.unique(np.linspace(0, len(points) - 1, PATHS).round().astype(int))
    frames = _flown(classifier, points)[:, some]
    labels = every[some]
    view = _view(classifier, frames)
    seen = frames @ view.T
    ends = seen[-1]
    low, high = _box(seen.reshape(-1, 2))
    for path, label in zip(np.swapaxes(seen, 0, 1), labels, strict=True):
        axes.plot(*path.T, color=_colour(label), lw=0.7, alpha=0.7, zorder=2)
    axes.scatter(*seen[0].T, s=4, c=[_colour(k) for k in labels], lw=0, zorder=3)
    _scatter(axes, ends, labels, np.zeros(len(labels), bool))
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    _draw_border(axes, classifier, view, low, high)
    plain = classifier.dim == 2
    axes.set(xlabel="$x_1$" if plain else "across the read-out", ylabel="$x_2$" if plain else "along the read-out")
    axes.set(title=f"paths until $T = {float(classifier.until):g}$")


def is_pointwise(classifier: Classifier, points: np.ndarray) -> bool:
    """Whether every point goes its own way, whatever the others do."""
    together, alone = np.asarray(classifier.scores(points[:2])), np.asarray(classifier.scores(points[:1]))
    return bool(np.allclose(together[:1], alone, rtol=1e-9, atol=1e-12))


def _flown(classifier: Classifier, points: np.ndarray) -> np.ndarray:
    """(time, point, dim) of all points, which may feel each other; layers are looked at one by one."""
    until = float(classifier.until)
    count = MOMENTS - 1
    if isinstance(classifier.method, Layers):
        count = max(round(until / float(classifier.method.step)), 1)
    try:
        return classifier.flow_points(points, (until * np.arange(count + 1) / count).tolist())
    except InvalidInput:  # a method that cannot stop in between
        return classifier.flow_points(points, [0.0, until])


def _view(classifier: Classifier, frames: np.ndarray) -> np.ndarray:
    """The two directions (2, dim) that are shown."""
    if classifier.dim <= 2:
        return np.eye(2, classifier.dim)
    readout = np.asarray(classifier.readout)
    up = np.linalg.svd(readout - readout.mean(axis=0))[2][0]
    cloud = frames.reshape(-1, classifier.dim)
    cloud = cloud - cloud.mean(axis=0)
    across = np.linalg.svd(cloud - np.outer(cloud @ up, up), full_matrices=False)[2][0]
    return np.stack([across, up])


def _draw_border(axes: Any, classifier: Classifier, view: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    """Where two classes have the same score at the end, if that is a line of the picture."""
    readout, bias = np.asarray(classifier.readout) @ view.T, np.asarray(classifier.bias)
    if classifier.dim > 2 and classifier.classes > 2:
        return
    plane = np.stack(np.meshgrid(*(np.linspace(low[j], high[j], GRID) for j in (0, 1))), axis=-1)
    scores = plane @ readout.T + bias
    for k in range(1 if classifier.classes == 2 else classifier.classes):
        gap = scores[..., k] - np.max(np.delete(scores, k, axis=-1), axis=-1)
        if gap.min() < 0 < gap.max():
            axes.contour(plane[0, :, 0], plane[:, 0, 1], gap, levels=[0.0], colors=INK, linewidths=0.8, linestyles="--")


def _scatter(axes: Any, points: np.ndarray, labels: np.ndarray, wrong: np.ndarray) -> None:
    step = -(-len(points) // MOST_POINTS)
    points, labels, wrong = points[::step], labels[::step], wrong[::step]
    size = float(np.clip(2500 / len(points), 3.0, 14.0))
    for label in np.unique(labels):
        for bad in (False, True):
            chosen = (labels == label) & (wrong == bad)
            if chosen.any():
                axes.scatter(
                    *points[chosen].T,
                    s=size,
                    c=_colour(label),
                    marker=MARKERS[label % len(MARKERS)],
                    lw=0.9 if bad else 0.3,
                    edgecolors=INK if bad else "white",
                    zorder=4 if bad else 3,
                )


def _colour(label: int) -> str:
    return COLOURS[label] if label < len(COLOURS) else GREY


def _pale(classes: int) -> np.ndarray:
    """Colours of the regions, (class, 3)."""
    from matplotlib.colors import to_rgb

    return np.array([PALE + (1 - PALE) * np.array(to_rgb(_colour(k))) for k in range(classes)])


def _both(fitted: Fitted) -> tuple[Classifier, Classifier]:
    return fitted.work.classifier, fitted.classifier


def _box(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners of the picture: the points and a margin."""
    low, high = points.min(axis=0), points.max(axis=0)
    margin = 0.08 * np.maximum(high - low, 1e-9 + 0.05 * np.max(high - low))
    return low - margin, high + margin


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
