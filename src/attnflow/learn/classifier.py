"""A flow that moves points until a linear read-out tells their classes apart."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.axes import finite_array, positive
from attnflow.errors import InvalidInput
from attnflow.fields import AbstractField
from attnflow.flows import AbstractMethod, Fixed, advance
from attnflow.precision import in_float64, is_concrete
from attnflow.spaces import Euclidean
from attnflow.tokens import Tokens, from_array

Points = Float[Array | np.ndarray, "point coordinate"]


class Classifier(eqx.Module):
    """softmax(R x(T) + r), where x(t) starts at the point x and follows the field: a neural ODE (arXiv:1806.07366).

    With `method=Layers(step)` it is a residual network of T/step layers. Points with fewer coordinates than the flow
    get zeros for the others (`padded`). The points are the tokens of one measure: with a `Perceptron` each goes its own
    way; an attention field would let them feel each other.

    Arguments:
        readout: R, shape (classes, dim); dim is the dimension of the flow.
        bias: r, shape (classes,); default 0.
        method: how the flow is followed; default `Fixed(0.1)`.
        until: T.
    """

    field: AbstractField
    method: AbstractMethod
    until: np.ndarray
    readout: Float[Array | np.ndarray, "class dim"]
    bias: Float[Array | np.ndarray, " class"]

    def __init__(
        self,
        field: AbstractField,
        readout: Any,
        bias: Any = None,
        *,
        method: AbstractMethod | None = None,
        until: float = 1.0,
    ):
        self.field = field
        self.method = Fixed() if method is None else method
        self.until = positive("until")(until)
        self.readout = finite_array("`readout`", readout)
        if self.readout.ndim != 2 or self.readout.shape[0] < 2:
            raise InvalidInput(f"`readout` has shape {self.readout.shape}; give (classes, dim), at least two classes.")
        self.bias = finite_array("`bias`", np.zeros(self.classes) if bias is None else bias)
        if self.bias.shape != (self.classes,):
            raise InvalidInput(
                f"`bias` has shape {self.bias.shape}; give one number for each of {self.classes} classes."
            )
        field.check(self._tokens(1))
        self.method.check(float(self.until), field)

    @property
    def classes(self) -> int:
        """Number of classes."""
        return self.readout.shape[0]

    @property
    def dim(self) -> int:
        """Dimension of the space in which the points flow."""
        return self.readout.shape[1]

    @in_float64
    def __call__(self, points: Points) -> Float[Array | np.ndarray, "point class"]:
        """Probabilities of the classes."""
        return jax.nn.softmax(self.scores(points), axis=-1)

    @in_float64
    def scores(self, points: Points) -> Float[Array | np.ndarray, "point class"]:
        """R x(T) + r: the logarithms of the probabilities up to a constant for each point."""
        x = jnp.asarray(self._moved(points, 0.0, self.until))
        scores = x @ jnp.asarray(self.readout, x.dtype).T
        return scores + jnp.broadcast_to(jnp.asarray(self.bias, x.dtype), scores.shape)

    @in_float64
    def flow_points(self, points: Points, times: Sequence[float]) -> Float[np.ndarray, "time point dim"]:
        """Where the points are at each of the increasing `times` from 0 to `until`."""
        stops = np.asarray(times, dtype=np.float64)
        if stops.ndim != 1 or not stops.size or stops[0] < 0 or stops[-1] > self.until or (np.diff(stops) < 0).any():
            raise InvalidInput(f"`times` is {times}; give increasing times between 0 and {float(self.until):g}.")
        frames, x, now = [], padded(points, self.dim), 0.0
        for stop in stops:
            if stop > now:
                self.method.check(float(stop), self.field)  # layers end at multiples of their step
                x, now = self._moved(x, now, stop), stop
            frames.append(x)
        return np.stack([np.asarray(frame) for frame in frames])

    def accuracy(self, points: Points, labels: Any) -> float:
        """The share of points whose most probable class is their label."""
        scores = self.scores(points)
        return float(np.mean(np.argmax(scores, axis=-1) == checked_labels(labels, *scores.shape)))

    def _moved(self, points: Points, start: Any, end: Any) -> Any:
        x = padded(points, self.dim)
        return advance(self.field, self._tokens(x.shape[0]).moved(x), start, end, self.method).positions

    def _tokens(self, n: int) -> Tokens:
        return from_array(np.zeros((n, self.dim)), space=Euclidean(self.dim))


@in_float64
def padded(points: Points, dim: int) -> Float[Array | np.ndarray, "point dim"]:
    """The points of R^k in R^dim, dim >= k, with zeros for the further coordinates.

    A flow is a homeomorphism and cannot undo a knot or a nesting; with room to spare it can go around
    (arXiv:1904.01681).
    """
    points = finite_array("`points`", points)
    if points.ndim != 2 or points.shape[0] == 0 or points.shape[1] > dim:
        raise InvalidInput(f"`points` has shape {points.shape}; give (points, coordinates), at most {dim} coordinates.")
    pad: Any = np.pad if is_concrete(points) else jnp.pad
    return pad(points, ((0, 0), (0, dim - points.shape[1])))


def checked_labels(labels: Any, n: int, classes: int) -> np.ndarray:
    """One integer from 0 to classes - 1 for each of `n` points, or an error."""
    values = np.asarray(labels)
    if values.shape != (n,) or values.dtype.kind not in "iu":
        raise InvalidInput(
            f"`labels` has shape {values.shape} and dtype {values.dtype}; give one integer for each of the {n} points."
        )
    if values.min() < 0 or values.max() >= classes:
        bad = values[(values < 0) | (values >= classes)][0]
        raise InvalidInput(f"`labels` has the entry {bad}; classes are numbered from 0 to {classes - 1}.")
    return values.astype(np.int64)
