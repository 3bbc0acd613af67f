"""The effective step: which one step of which one flow the layers of a network look most like, and how far they are."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from attnflow.checks import instance
from attnflow.errors import InvalidInput
from attnflow.probe.sinks import as_sinks
from attnflow.probe.states import Variables
from attnflow.probe.stream import Stream, unit
from attnflow.probe.updates import NOISE, PARTS, tangent_updates

GRID = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Inverse temperatures that are tried."""


class Step(NamedTuple):
    """One step for all layers; one entry a text."""

    step: np.ndarray
    """The step ε; negative where attention repels."""
    beta: np.ndarray
    """The inverse temperature, the best one of those that were tried."""
    r2: np.ndarray
    """1 - D: the share of the updates that steps of one ODE explain; 0 is the share that no motion at all explains."""
    r2_free: np.ndarray
    """The same if every layer had a step of its own, at the same β: never below `r2`."""
    persistence: np.ndarray
    """The mean cosine of the updates of one token by consecutive layers: near 1 where layers are small steps of any
    one ODE, whatever its field is."""

    @property
    def distance(self) -> np.ndarray:
        """√D: the relative distance of a layer from its step of the ODE, root mean square over layers."""
        return np.asarray(np.sqrt(1 - self.r2))


def effective_step(
    stream: Stream, *, part: str | None = None, sinks: Sequence[Any] | None = None, betas: Sequence[float] = GRID
) -> Step:
    """The step ε with which the layers look most like steps of one ODE, and how far they are from it.

    The ODE is softmax attention on the sphere with Q = K = V = I. With the updates a_i = P_u (y_i - x_i)/|x_i| of layer
    l and the velocities v_i(β) of the tokens u = x/|x| before it, ε and β minimise

        D = (1/L) Σ_l Σ_i |a_i - ε v_i(β)|² / Σ_i |a_i|²,    so that    ε = Σ_l <a, v>/|a|² / Σ_l |v|²/|a|².

    Every layer counts the same. D is 1 for ε = 0; layers that are Euler steps of the flow have D = 0. β is the best of
    `betas`: its value is known up to their spacing. None of these numbers means anything without its null: `compare`
    has them with the nulls beside, as `ode_step`, `ode_r2` and so on.

    Arguments:
        stream: the stream.
        part: "attention" takes the update by attention alone, "layer" the one by the whole layer; left out,
            "attention" where the stream knows it.
        sinks: tokens that are left out, as in `measure`.
        betas: inverse temperatures that are tried.
    """
    instance("stream", stream, Stream, "a Stream, such as Stream(hidden)")
    chosen = part or ("layer" if stream.after_attention is None else "attention")
    known = PARTS if stream.after_attention is not None else PARTS[1:]
    if chosen not in known:
        raise InvalidInput(f"`part` is {chosen!r}; this stream knows {', '.join(map(repr, known))}.")
    if stream.states < 2:
        raise InvalidInput("`stream` has one state, hence no layer; give the states before and after the layers.")
    tried = np.asarray(betas, float)
    if tried.ndim != 1 or not tried.size or not np.isfinite(tried).all():
        raise InvalidInput(f"`betas` is {betas!r}; give a list of finite numbers.")
    kept = [~one for one in as_sinks(stream, sinks)]
    vectors = [unit(one, f"hidden of text {text}") for text, one in enumerate(stream.hidden)]
    rows = [_fit(stream, text, vectors[text], rows, chosen, tried) for text, rows in enumerate(kept)]
    return Step(*np.array(rows).T)


def one_step(stream: Stream, vectors: Sequence[np.ndarray], kept: Sequence[Sequence[np.ndarray]]) -> Variables:
    """The numbers of `effective_step` for both parts, with and without sinks."""
    names = ("ode_step", "ode_beta", "ode_r2", "ode_r2_free", "persistence")
    found = np.full((len(names), stream.texts, len(kept), len(PARTS)), np.nan)
    for choice, marks in enumerate(kept):
        for text in range(stream.texts):
            for number, part in enumerate(PARTS):
                if part == "layer" or stream.after_attention is not None:
                    one = _fit(stream, text, vectors[text], marks[text], part, np.asarray(GRID))
                    found[:, text, choice, number] = one
    return {name: (("text", "kept", "part"), values) for name, values in zip(names, found, strict=True)}


def _fit(
    stream: Stream, text: int, vectors: np.ndarray, rows: np.ndarray, part: str, betas: np.ndarray
) -> tuple[float, ...]:
    """(step, beta, r2, r2_free, persistence) of one text.

    Velocities are not needed one by one: with the overlaps G = <u_i, u_j>, the weights A of softmax attention and
    C_ij = <a_i, u_j>, Σ_i <a_i, v_i> = Σ_ij A_ij C_ij and |v_i|² = (A G Aᵀ)_ii - (A G)_ii².
    """
    nothing = (float("nan"),) * 5
    after = stream.after_attention[text] if part == "attention" else stream.hidden[text][1:]  # type: ignore[index]
    if rows.sum() < 2:
        return nothing
    a = tangent_updates(stream.hidden[text], after, vectors)[:, rows]
    u = vectors[: len(a)][:, rows]
    size = np.sum(a * a, axis=(1, 2))
    moved = size > (NOISE * np.finfo(after.dtype).eps) ** 2 * a.shape[1]
    if not moved.any():
        return nothing
    hidden = np.triu(np.ones((u.shape[1],) * 2, bool), 1) if stream.causal else None
    inner, square = np.zeros((2, len(betas), int(moved.sum())))
    for layer, (x, push) in enumerate(zip(u[moved], a[moved], strict=True)):
        overlaps, reach = x @ x.T, push @ x.T
        for k, beta in enumerate(betas):
            logits = beta * overlaps if hidden is None else np.where(hidden, -np.inf, beta * overlaps)
            weights = np.exp(logits - logits.max(axis=1, keepdims=True))
            weights /= weights.sum(axis=1, keepdims=True)
            pulled = weights @ overlaps
            inner[k, layer] = np.sum(weights * reach)
            speeds = np.sum(pulled * weights, axis=1) - np.diagonal(pulled) ** 2
            square[k, layer] = np.maximum(speeds, 0.0).sum()
    weight = 1 / size[moved]
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = (inner * weight).sum(axis=1) / (square * weight).sum(axis=1)
        r2 = steps * (inner * weight).mean(axis=1)
        free = (inner**2 / square * weight).mean(axis=1)
    if not np.isfinite(r2).any():
        return nothing
    best = int(np.nanargmax(r2))
    return float(steps[best]), float(betas[best]), float(r2[best]), float(free[best]), _persistence(a)


def _persistence(a: np.ndarray) -> float:
    """Mean cosine of the updates of one token by consecutive layers."""
    if len(a) < 2:
        return float("nan")
    norms = np.linalg.norm(a, axis=-1)
    both = norms[1:] * norms[:-1]
    inner = np.sum(a[1:] * a[:-1], axis=-1)
    known = both > 0
    return float(np.mean(inner[known] / both[known])) if known.any() else float("nan")
