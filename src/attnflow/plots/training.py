"""Figures of training on prompts: losses of all seeds against the step."""

from typing import Any

import numpy as np

from attnflow.learn import Trained
from attnflow.plots.style import COLOURS, GREY, PAGE, panel, say, styled


def plot_training(trained: Trained) -> Any:
    """Losses of the batches and test losses, a curve for each seed."""
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 2.7))
        left, right = fig.subplots(1, 2)
        panel(left, "a", "batches")
        panel(right, "b", "test prompts")
        kept, losses = trained.dataset, np.asarray(trained.losses)
        tests, marks = kept["test_loss"].values, trained.marks
        if not len(losses):
            for axes in (left, right):
                say(axes, "no step was made")
            return fig
        for k, seed in enumerate(kept["seed"].values):
            colour = COLOURS[k % len(COLOURS)]
            left.plot(np.arange(1, len(losses) + 1), losses[:, k], color=colour, lw=0.8)
            right.plot(np.maximum(marks, 0.5), tests[:, k], "o-", color=colour, ms=2.5, lw=1.0, label=f"seed {seed}")
        for axes in (left, right):
            axes.set(xscale="log", xlabel="step", ylabel="loss")
            axes.grid(True, color=GREY, lw=0.3, alpha=0.4)
            if min(losses.min(), tests.min()) > 0:
                axes.set_yscale("log")
        if len(kept["seed"]) <= 8:
            right.legend(loc="best", fontsize=6)
        return fig


def summarise_training(trained: Trained) -> dict[str, Any]:
    """The numbers of the closing table."""
    tests, losses = trained.dataset["test_loss"].values, np.asarray(trained.losses)
    return {
        "kind": "train",
        "steps": len(losses),
        "seeds": [int(seed) for seed in trained.dataset["seed"].values],
        "test_loss_at_start": [float(one) for one in tests[0]] if len(tests) else None,
        "test_loss_at_last_mark": [float(one) for one in tests[-1]] if len(tests) else None,
        "last_mark": int(trained.marks[-1]) if len(tests) else None,
    }
