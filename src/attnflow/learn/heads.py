"""Many heads in one layer: the best values of random heads for a given map of prompts, by least squares."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Float

from attnflow.axes import finite_array
from attnflow.checks import generator, instance, number, shown, whole
from attnflow.errors import InvalidInput
from attnflow.feasible import require_memory
from attnflow.fields import Attention, Biased
from attnflow.spaces import Sphere

SHARE = 4
"""There are at least so many independent prompts for each unknown of an output coordinate."""


class HeadFit(eqx.Module):
    """The result of `fit_heads`."""

    field: Attention
    """sum_h V_h sum_j softmax_j(<A_h x, x_j>) x_j; without the residual, which is in `residual`."""
    error: float
    """Root mean square error on prompts that the fit did not see, over the root mean square of the target."""
    matrices: Float[np.ndarray, "head row column"] = eqx.field(repr=False)
    """A_h."""
    values: Float[np.ndarray, "head dim column"] = eqx.field(repr=False)
    """V_h."""
    residual: bool = eqx.field(static=True)
    """Whether x_i is added to the sum of the heads."""
    bias: bool = eqx.field(static=True)
    """Whether heads see a constant coordinate 1 beside those of a token."""

    def __call__(self, prompts: Any) -> Float[np.ndarray, "prompt token dim"]:
        """What the heads make of prompts (prompts, tokens, dim)."""
        x = _prompts("prompts", prompts, self.values.shape[1])
        return _answers(x, self.matrices, self.values, self.residual, self.bias)


def fit_heads(
    target: Callable[[np.ndarray], Any],
    *,
    heads: int,
    tokens: int,
    dim: int,
    samples: int = 2048,
    residual: bool = False,
    bias: bool = False,
    matrices: Any = None,
    scales: tuple[float, float] = (0.5, 8.0),
    seed: int = 0,
) -> HeadFit:
    """The best V_h in f(X)_i = sum_h V_h sum_j softmax_j(<A_h x_i, x_j>) x_j for a map of prompts, and its error.

    ```python
    mean = lambda x: np.broadcast_to(x.mean(axis=1, keepdims=True), x.shape)
    af.fit_heads(mean, heads=8, tokens=3, dim=2).error
    ```

    `target` gets prompts of shape (prompts, tokens, dim) and gives back as many vectors. Prompts are iid uniform on the
    sphere, each together with its antipode -X; the error is that of `samples` other ones. Without a bias f(-X) = -f(X)
    for any number of heads, so that the even part of a target is missed entirely: not every map of prompts is a limit
    of one layer of attention. A constant coordinate (`bias=True`) removes this obstruction.

    Arguments:
        heads: number of heads H. With the same seed the first heads of more heads are the same.
        samples: independent prompts of the fit; at least four for each of the H dim unknowns of an output coordinate,
            because the error of a fit with fewer says nothing.
        residual: add x_i to the sum of the heads.
        matrices: A_h, shape (heads, dim, dim), (heads, dim + 1, dim + 1) with a bias. Left out, they are Gaussian with
            entries of variance s^2/dim, where log s is uniform between those of `scales`.
    """
    from scipy.linalg import lstsq

    for name, value, least in (("heads", heads, 1), ("tokens", tokens, 1), ("dim", dim, 2), ("samples", samples, 1)):
        whole(name, value, least)
    size = dim + int(bool(bias))
    if heads * size * SHARE > samples:
        raise InvalidInput(
            f"`heads` is {heads}: {heads * size} unknowns for {samples} independent prompts; give at most "
            f"{samples // (SHARE * size)} heads, or at least {heads * size * SHARE} samples."
        )
    require_memory(64 * samples * tokens * heads * size, "the answers of the heads", "use fewer samples")
    instance("target", target, Callable, "a function of prompts")
    rng = generator(seed)
    mixing = _drawn(heads, size, scales, seed) if matrices is None else finite_array("`matrices`", matrices)
    if mixing.shape != (heads, size, size):
        raise InvalidInput(f"`matrices` has shape {mixing.shape}; give some of shape {(heads, size, size)}.")
    given, fresh = (
        _mirrored(Sphere(dim).sample(rng, samples * tokens).reshape(samples, tokens, dim)) for _ in range(2)
    )
    wanted, other = (_prompts("what `target` gives", target(x), dim, x.shape) for x in (given, fresh))
    if not other.any():
        raise InvalidInput("`target` gives 0 for all prompts, so that there is no relative error; give another map.")
    rows = _columns(given, mixing, bias).reshape(-1, heads * size)
    rest = (wanted - given if residual else wanted).reshape(-1, dim)
    # by QR first, which is fast for tall matrices; what is left is square, and may be of less than full rank
    basis, square = np.linalg.qr(rows)
    best = lstsq(square, basis.T @ rest, cond=1e-13)[0]
    values = best.T.reshape(dim, heads, size).swapaxes(0, 1)
    off = _answers(fresh, mixing, values, residual, bias) - other
    error = float(np.sqrt(np.sum(off**2) / np.sum(other**2)))
    return HeadFit(_field(mixing, values, bias), error, mixing, values, bool(residual), bool(bias))


def _drawn(heads: int, size: int, scales: tuple[float, float], seed: int) -> np.ndarray:
    if not isinstance(scales, Sequence) or len(scales) != 2:
        raise InvalidInput(f"`scales` is {shown(scales)}; give the least and the largest scale, as (0.5, 8.0).")
    low, high = (number("scales", one, low=1e-12) for one in scales)
    rng = np.random.default_rng([seed, 1])
    exponents = np.random.default_rng([seed, 2]).uniform(np.log(low), np.log(high), heads)
    return np.exp(exponents)[:, None, None] * rng.standard_normal((heads, size, size)) / np.sqrt(size)


def _prompts(name: str, given: Any, dim: int, shape: tuple[int, ...] | None = None) -> np.ndarray:
    x = np.asarray(given, dtype=np.float64)
    if x.ndim != 3 or x.shape[2] != dim or (shape is not None and x.shape != shape) or not np.isfinite(x).all():
        wanted = f"shape (prompts, tokens, {dim})" if shape is None else f"shape {shape}"
        raise InvalidInput(f"{name} has shape {x.shape}; give finite numbers of {wanted}.")
    return x


def _mirrored(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x, -x])


def _columns(x: np.ndarray, matrices: np.ndarray, bias: bool) -> np.ndarray:
    """(prompt, token, head, size): softmax_j(<A_h x_i, x_j>) x_j of every head."""
    y = np.concatenate([x, np.ones((*x.shape[:2], 1))], axis=-1) if bias else x
    found = np.empty((*x.shape[:2], len(matrices), y.shape[-1]))
    for h, matrix in enumerate(matrices):
        logits = (y @ matrix.T) @ np.swapaxes(y, 1, 2)
        share = np.exp(logits - logits.max(axis=-1, keepdims=True))
        found[:, :, h] = (share / share.sum(axis=-1, keepdims=True)) @ y
    return found


def _answers(x: np.ndarray, matrices: np.ndarray, values: np.ndarray, residual: bool, bias: bool) -> np.ndarray:
    found = np.einsum("pihs,hds->pid", _columns(x, matrices, bias), values, optimize=True)
    return np.asarray(found + x if residual else found)


def _field(matrices: np.ndarray, values: np.ndarray, bias: bool) -> Attention:
    if not bias:
        return Attention(1.0, query=matrices, value=values, average="sum")
    size = matrices.shape[1]
    key = Biased(np.eye(size, size - 1), np.eye(size)[-1])
    query = Biased(matrices[:, :, :-1], matrices[:, :, -1])
    return Attention(1.0, query=query, key=key, value=Biased(values[:, :, :-1], values[:, :, -1]), average="sum")
