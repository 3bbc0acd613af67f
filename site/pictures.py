"""The five pictures and the animation of docs/first.md: `python site/pictures.py [FOLDER]` draws them with the library.

They lie in docs/images/first, so that a code host shows them too.
"""

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

import attnflow as af
from attnflow import meanfield as mf

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "images" / "first"
WORDS = ("river", "water", "shore", "bank", "money", "loan", "cash")
ANGLES = np.radians([35, 52, 68, 100, 150, 163, 178])
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "0.6"


def circle(axis: plt.Axes) -> None:
    """The unit circle, without axes."""
    around = np.linspace(0, 2 * np.pi, 300)
    axis.plot(np.cos(around), np.sin(around), color="0.85", lw=1, zorder=0)
    axis.set(aspect="equal", xlim=(-1.3, 1.3), ylim=(-0.12, 1.22))  # nothing happens below
    axis.axis("off")


def at(angles: np.ndarray) -> np.ndarray:
    """Points of the circle."""
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def tokens() -> plt.Figure:
    """1. Words are directions; a prompt is a measure on the circle of directions."""
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 2.6))
    for axis in axes:
        circle(axis)
    for (x, y), word in zip(at(ANGLES), WORDS, strict=True):
        axes[0].annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": BLUE, "lw": 1.2})
        axes[0].text(1.12 * x, 1.1 * y, word, ha="left" if x > 0.1 else "right" if x < -0.1 else "center", va="center")
    masses = np.array([1, 2, 1, 1, 3, 1, 1]) / 10
    axes[1].scatter(*at(ANGLES).T, s=900 * masses, color=BLUE, edgecolor="w", zorder=2)
    for (x, y), mass in zip(at(ANGLES), masses, strict=True):
        axes[1].text(1.22 * x, 1.18 * y, f"{mass:.1f}", ha="center", va="center", fontsize=9, color="0.35")
    axes[0].set_title("seven words, seven unit vectors", fontsize=10, pad=10)
    axes[1].set_title(r"ten words: the measure $\mu=\sum_i m_i\,\delta_{x_i}$", fontsize=10, pad=10)
    return figure


def attention() -> plt.Figure:
    """2. One token listens: weights of attention, their mean, and the velocity along the circle."""
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 2.9))
    x = at(ANGLES)
    for axis, beta in zip(axes, (1.0, 9.0), strict=True):
        circle(axis)
        weights = np.exp(beta * (x @ x[3] - 1))
        weights /= weights.sum()
        for point, weight in zip(x, weights, strict=True):
            axis.plot(*np.stack([x[3], point]).T, color=ORANGE, lw=14 * weight, alpha=0.45, solid_capstyle="round")
        axis.scatter(*x.T, s=45, color=BLUE, zorder=3)
        mean = weights @ x
        speed = af.Attention(beta).velocity(af.from_array(x))[3]
        axis.scatter(*mean, marker="x", color="k", zorder=4)
        axis.annotate(
            "", 1.05 * x[3] + 4 * speed, 1.05 * x[3], arrowprops={"arrowstyle": "-|>", "lw": 2, "color": "k"}, zorder=5
        )
        axis.text(*(1.08 * x[3]), "bank", ha="right", va="bottom")
        axis.set_title(rf"$\beta={beta:g}$", fontsize=10, pad=10)
    return figure


def flow() -> plt.Figure:
    """3. Depth is time: angles of 32 tokens."""
    start = af.uniform(af.Sphere(2), n=32, seed=3)
    found = af.solve(af.Attention(16.0), start, 2_000.0, save=af.saving.LogSpaced(300, 0.03))
    angles = np.unwrap(np.arctan2(found.positions.values[..., 1], found.positions.values[..., 0]), axis=0)
    angles += 2 * np.pi * (angles[0] < -2.3)  # the circle is cut where no token is
    figure, axis = plt.subplots(figsize=(7.2, 3.2))
    axis.plot(found.time.values, np.degrees(angles), color=BLUE, lw=0.8, alpha=0.8)
    axis.set(xscale="log", xlabel="time $t$ (depth)", ylabel="angle of a token in degrees", xlim=(0.03, 2_000))
    return figure


def density() -> plt.Figure:
    """4. Many tokens are a density: a histogram of 50,000 tokens beside the solution of the continuity equation."""
    field, times = af.Attention(2.0), [0.0, 1.5, 3.0]
    start = mf.perturbed(mf.CircleBasis(64), degree=1, amplitude=0.5)
    smooth = mf.evolve(field, start, times[-1], save=af.saving.At(times[1:]))
    many = af.solve(field, mf.sample(start, 50_000, seed=0), times[-1], save=af.saving.At(times[1:]))
    figure, axes = plt.subplots(1, 3, figsize=(7.2, 2.4), sharey=True)
    grid = np.linspace(-np.pi, np.pi, 400)
    for k, (axis, t) in enumerate(zip(axes, times, strict=True)):
        where = many[k].positions
        axis.hist(np.arctan2(where[:, 1], where[:, 0]), 40, density=True, color=BLUE, alpha=0.4)
        axis.plot(grid, smooth.density(k)(angles=grid) / (2 * np.pi), color=ORANGE, lw=1.5)
        axis.set(title=f"$t={t:g}$", xlabel="angle", xticks=[-np.pi, 0, np.pi], xticklabels=[r"$-\pi$", "0", r"$\pi$"])
    axes[0].set_ylabel("density")
    return figure


def energy() -> plt.Figure:
    """5. A staircase: energy and number of clusters of 64 tokens, over sixteen decades of time."""
    found = af.solve_long(af.Attention(30.0), af.uniform(af.Sphere(2), n=64, seed=1))
    t = found.time.values
    figure, axes = plt.subplots(2, 1, figsize=(7.2, 3.8), sharex=True)
    axes[0].step(t, 60 * found.energy.values + 1, where="post", color=BLUE)
    axes[0].set(ylabel=r"$2\beta E_0$", xscale="log", xlim=(0.1, None))
    count = [af.observe.clusters(found[k], scale=0.05).count for k in range(len(t))]
    axes[1].step(t, count, where="post", color=ORANGE)
    axes[1].set(ylabel="clusters", xlabel="time $t$", yscale="log", yticks=[1, 2, 4, 8, 16, 32, 64])
    axes[1].yaxis.set_major_formatter("{x:g}")
    axes[1].yaxis.set_minor_locator(mpl.ticker.NullLocator())
    return figure


def motion(path: Path) -> None:
    """The animation: 100 tokens on the sphere."""
    found = af.solve(
        af.Attention(9.0), af.uniform(af.Sphere(3), n=100, seed=0), 40.0, save=af.saving.LogSpaced(60, 0.1)
    )
    af.animate(found, path)


PICTURES = {f.__name__: f for f in (tokens, attention, flow, density, energy)}


def main() -> None:
    """Draw all."""
    folder = Path(sys.argv[1]) if sys.argv[1:] else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        path = folder / f"{name}.png"
        figure = draw()
        figure.savefig(path, dpi=150, bbox_inches="tight", facecolor="w")
        plt.close(figure)
        with Image.open(path) as picture:  # 64 colours are enough
            picture.convert("RGB").quantize(64).save(path, optimize=True)
        print(path, path.stat().st_size)
    motion(folder / "motion.gif")


if __name__ == "__main__":
    main()
