"""The matrices Q, K, V, O as linear maps, with or without a bias; the identity costs nothing."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow import describe
from attnflow.axes import Along
from attnflow.checks import not_instance
from attnflow.errors import InvalidInput
from attnflow.fields.maps import AbstractLinearMap
from attnflow.fields.structure import matrix_bound
from attnflow.fields.weights import AbstractWeight, Constant, as_weight
from attnflow.precision import is_concrete


class Identity(AbstractLinearMap, describe.LeftOut):
    """x -> x."""

    def __call__(self, t: Any, x: Float[Array, "point in"]) -> Float[Array, "*head point out"]:
        return x

    def rows(self, dim: int) -> int:
        return dim

    def bound(self, t: Any, dtype: Any) -> Any:
        return jnp.ones((), dtype)

    def check(self, dim: int, heads: int | None) -> None:
        """The identity acts on every space."""

    @property
    def heads(self) -> int | None:
        return None

    @property
    def is_linear(self) -> bool:
        return True

    @property
    def is_continuous(self) -> bool:
        return True


class Matrix(AbstractLinearMap, describe.Bare):
    """x -> M x; a weight of shape (out, in), or (heads, out, in)."""

    weight: AbstractWeight
    role: str = eqx.field(static=True)

    def __call__(self, t: Any, x: Float[Array, "point in"]) -> Float[Array, "*head point out"]:
        return _product(self.weight.at(t, x.dtype), x)

    def rows(self, dim: int) -> int:
        return self.weight.shape[-2]

    def bound(self, t: Any, dtype: Any) -> Any:
        return matrix_bound(self.weight.at(t, dtype))

    def check(self, dim: int, heads: int | None) -> None:
        _check_matrix(self.weight, self.role, dim, heads)

    @property
    def heads(self) -> int | None:
        return self.weight.shape[0] if len(self.weight.shape) == 3 else None

    @property
    def is_linear(self) -> bool:
        return True

    @property
    def is_continuous(self) -> bool:
        return self.weight.is_continuous


class Biased(AbstractLinearMap):
    """x -> M x + b: the linear layer of a trained network, as in `Attention(beta, query=Biased(M, b))`.

    For `query`, `key`, `value` and `output` of `Attention`, `inner` and `outer` of `Perceptron`, and all maps of
    `GatedPerceptron`. The query, key, value and output maps of GPT-2 and of GPT-NeoX (arXiv:2204.06745) have biases;
    those of Llama (arXiv:2302.13971) have none. A bias of the queries alone changes the weights like a bias of each
    key, <b, K y>; one of the values is added once for softmax, whose weights sum to 1, and times the sum of the weights
    for `Unnormalised`.

    Arguments:
        matrix: M, shape (rows, dim), or (heads, rows, dim).
        bias: b, shape (rows,), shared by all heads, or (heads, rows). The bias of `output` has shape (dim,): it is
            added once, after the (averaged) sum over the heads.

    Both are arrays, `PerLayer`, `Interpolated`, `Random` or functions of t.
    """

    matrix: AbstractWeight
    bias: AbstractWeight
    role: str = eqx.field(static=True, repr=False)

    def __init__(self, matrix: Any, bias: Any, role: str = ""):
        # a Random weight gets its role where the map is used, so that Q and K of one seed are independent
        self.matrix = matrix if isinstance(matrix, AbstractWeight) and not role else as_weight(role or "matrix", matrix)
        self.bias = bias if isinstance(bias, AbstractWeight) and not role else as_weight(_bias_of(role), bias)
        self.role = role

    def __call__(self, t: Any, x: Float[Array, "point in"]) -> Float[Array, "*head point out"]:
        image, bias = _product(self.matrix.at(t, x.dtype), x), self.bias.at(t, x.dtype)
        shape = jnp.broadcast_shapes(image.shape, (*bias.shape[:-1], 1, bias.shape[-1]))
        return jnp.broadcast_to(image, shape) + jnp.broadcast_to(bias[..., None, :], shape)

    def rows(self, dim: int) -> int:
        return self.matrix.shape[-2]

    def bound(self, t: Any, dtype: Any) -> Any:
        sizes, shift = matrix_bound(self.matrix.at(t, dtype)), jnp.linalg.norm(self.bias.at(t, dtype), axis=-1)
        shape = jnp.broadcast_shapes(sizes.shape, shift.shape)
        return jnp.broadcast_to(sizes, shape) + jnp.broadcast_to(shift, shape)

    def check(self, dim: int, heads: int | None) -> None:
        role = self.role or "matrix"
        _check_matrix(self.matrix, role, dim, heads)
        rows, shape = self.rows(dim), self.bias.shape
        if len(self.matrix.shape) == 3 and self.matrix.shape[0] != heads:
            raise InvalidInput(
                f"`{role}` has matrices of shape {self.matrix.shape} for {heads} heads; give one number of heads."
            )
        if shape not in ((rows,), *([] if heads is None else [(heads, rows)])):
            wanted = f"({rows},)" if heads is None else f"({rows},) or ({heads}, {rows})"
            raise InvalidInput(
                f"the bias of `{role}` has shape {shape}, but its matrix has {rows} rows; give shape {wanted}."
            )

    @property
    def heads(self) -> int | None:
        counts = [w.shape[0] for w, axes in ((self.matrix, 3), (self.bias, 2)) if len(w.shape) == axes]
        return max(counts, default=None)

    @property
    def is_linear(self) -> bool:
        return False

    @property
    def is_continuous(self) -> bool:
        return self.matrix.is_continuous and self.bias.is_continuous


def as_linear_map(role: str, value: Any) -> AbstractLinearMap:
    """None is the identity; an array, a function of time or a weight is a matrix."""
    if value is None:
        return Identity()
    if isinstance(value, Biased):
        return value if value.role else Biased(value.matrix, value.bias, role)
    return value if isinstance(value, AbstractLinearMap) else Matrix(as_weight(role, value), role)


def as_weights(role: str, value: Any) -> tuple[AbstractWeight | None, AbstractWeight | None]:
    """(matrix, bias) of a map, where a field has to know them; None is the identity, and no bias."""
    made = as_linear_map(role, value)
    if isinstance(made, Biased):
        return made.matrix, made.bias
    if isinstance(made, Matrix):
        return made.weight, None
    if isinstance(made, Identity):
        return None, None
    raise not_instance(role, value, AbstractWeight, "a matrix, a weight such as PerLayer(values), or Biased(M, b)")


def largest(linear: AbstractLinearMap) -> float | None:
    """A bound of the images of vectors of norm 1 at all times, where the numbers are constant and known."""
    if isinstance(linear, Identity):
        return 1.0
    if isinstance(linear, Matrix):
        matrix = known(linear.weight)
        return None if matrix is None else float(np.max(matrix_bound(matrix)))
    if not isinstance(linear, Biased):
        return None
    matrix, bias = known(linear.matrix), known(linear.bias)
    if matrix is None or bias is None:
        return None
    return float(np.max(matrix_bound(matrix)) + np.max(np.linalg.norm(bias, axis=-1)))


def known(weight: AbstractWeight) -> np.ndarray | None:
    """The numbers of a weight that is constant in time, for all members, on the host; None if they are not known."""
    numbers: Any = weight.value if isinstance(weight, Constant) else None
    numbers = numbers.values if isinstance(numbers, Along) else numbers
    return None if numbers is None or not is_concrete(numbers) else np.asarray(numbers)


def _bias_of(role: str) -> str:
    return f"{role} bias" if role else "bias"


def _product(matrix: Any, x: Any) -> Any:
    if matrix.ndim == 2:
        return x @ matrix.T
    return (x[None] if x.ndim == 2 else x) @ matrix.mT


def _check_matrix(weight: AbstractWeight, role: str, dim: int, heads: int | None) -> None:
    shape = weight.shape
    wanted = f"(anything, {dim})" if heads is None else f"(anything, {dim}) or ({heads}, anything, {dim})"
    if len(shape) not in ((2,) if heads is None else (2, 3)) or shape[-1] != dim:
        raise InvalidInput(f"`{role}` has shape {shape}, but the tokens live in dimension {dim}; give shape {wanted}.")
