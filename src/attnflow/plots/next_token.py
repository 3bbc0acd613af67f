"""The next-token distribution along depth: entropies, alternatives, and the words that are left."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnflow.plots.style import COLOURS, GREY, INK, PAGE, literal, panel, styled
from attnflow.text import NextTokenDistribution

SHOWN = 12
"""Words in the figure."""


def draw_next_token(time: Any, along: NextTokenDistribution, words: Sequence[str]) -> Any:
    """Entropies and alternatives against time, and the likeliest words at the start and at the end.

    (a) H (solid) and what is left of H when the token is known (dashed); the gap between them is I. (b) exp(I), from
    1 to the number of tokens. (c) Probabilities of the likeliest words: at the end (bars), at the start (rings).

    Arguments:
        time: (frame,) times.
        along: what `text.distribution_along` gives for one system.
        words: what the rows of the embedding are called.
    """
    time = np.asarray(time, float)
    first, last = along.probabilities[0], along.probabilities[-1]
    rows = likeliest(first, last, SHOWN)[::-1]
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 2.7))
        left, middle, right = fig.subplots(1, 3, width_ratios=(1, 1, 1.1))
        left.fill_between(time, along.conditional_entropy, along.entropy, color=COLOURS[5], alpha=0.3, lw=0, label="I")
        left.plot(time, along.entropy, color=COLOURS[0], label="H")
        left.plot(time, along.conditional_entropy, "--", color=COLOURS[4], label="H given the token")
        left.set(xlabel="time $t$", ylabel="entropy, nats", ylim=(0, 1.3 * float(np.max(along.entropy)) + 1e-9))
        left.legend(loc="upper left", ncols=2)
        middle.plot(time, along.alternatives, color=COLOURS[0])
        top = along.weights.shape[-1]
        for level in (1, top):
            middle.axhline(level, color=GREY, lw=0.8, ls=":")
        middle.set(xlabel="time $t$", ylabel=r"alternatives $e^I$", ylim=(0.9 if top > 1 else 0, 1.04 * top))
        at = np.arange(len(rows))
        right.barh(at, last[rows], height=0.62, color=COLOURS[0], label="end")
        right.plot(first[rows], at, "o", ms=4.5, mfc="white", mec=INK, mew=0.9, label="start")
        right.set_yticks(at, [literal(words[k]) for k in rows])
        right.set(xlabel="probability $p(w)$", xlim=(0, None))
        right.legend(loc="lower right", bbox_to_anchor=(1.0, 0.97), ncols=2, handletextpad=0.4, columnspacing=0.8)
        for axes, letter, title in zip(
            (left, middle, right), "abc", ("entropies", "alternatives", "words"), strict=True
        ):
            panel(axes, letter, title)
        return fig


def likeliest(first: np.ndarray, last: np.ndarray, count: int) -> list[int]:
    """Numbers of the likeliest words, half at the end and half at the start, those at the end first."""
    ends = [np.argsort(-one, kind="stable")[:count].tolist() for one in (last, first)]
    both = dict.fromkeys([*ends[0][: count - count // 2], *ends[1][: count // 2], *ends[0]])
    return sorted(list(both)[:count], key=lambda k: -last[k])
