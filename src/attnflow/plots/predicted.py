"""Figures of predictions for networks: the middle of a prompt, and the layers of a network at initialisation."""

from typing import Any

import numpy as np

from attnflow import theory
from attnflow.plots.style import COLOURS, COLUMN, GREY, styled


def draw_middle(context: int, slope: float, beta: float, time: float, d: int = 64) -> Any:
    """What the last token keeps of every token of the prompt, N E<x_N(t), x_j(0)>, the least heard one marked."""
    tokens, values = theory.causal.middle_curve(context=context, slope=slope, beta=beta, time=time, d=d)
    least = int(np.argmin(values))
    with styled() as figure:
        fig = figure.Figure(figsize=(COLUMN, 2.3))
        axes = fig.subplots()
        axes.plot(tokens, values, color=COLOURS[0])
        if 0 < least < len(tokens) - 1:
            axes.plot(tokens[least], values[least], "o", ms=5, color=COLOURS[4], label=f"token {tokens[least]}")
            axes.legend(loc="upper center")
        inner = values[(tokens > 0.02 * context) | (tokens >= tokens[-1])]
        axes.set(ylim=(0, 1.25 * float(inner.max())), xlim=(0, context), xlabel="token $j$ of the prompt")
        axes.set(ylabel=r"$N\,\mathrm{E}\langle x_N(t), x_j(0)\rangle$")
        axes.set(title=rf"$N = {context}$, $\beta = {beta:g}$, $t = {time:g}$, slope {slope:g}")
        return fig


def draw_layers(
    layers: int, heads: int, d: int, d_k: int, context: int, step: float = 1.0, logit_scale: float = 1.0
) -> Any:
    """Mean overlap of tokens over the layers of a network at initialisation, from orthonormal tokens."""
    at, overlap = theory.random_layers.layer_curve(
        layers=layers, heads=heads, d=d, d_k=d_k, context=context, step=step, logit_scale=logit_scale
    )
    with styled() as figure:
        fig = figure.Figure(figsize=(COLUMN, 2.3))
        axes = fig.subplots()
        axes.plot(at, overlap, color=COLOURS[0])
        for level in (0.5, 0.9):
            axes.axhline(level, color=GREY, ls=":", lw=0.8)
        top = float(np.max(overlap))
        axes.set(ylim=(0, 1 if top > 0.4 else 1.2 * max(top, 1e-12)), xlim=(0, float(at[-1])), xlabel="layer")
        axes.set(ylabel=r"mean overlap $\langle x_i, x_j\rangle$")
        axes.set(title=rf"$d = {d}$, {heads} heads, {context} tokens, step {step:g}")
        return fig
