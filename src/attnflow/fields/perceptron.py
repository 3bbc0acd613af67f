"""Perceptron blocks: what a token feels of itself, between the attention layers."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow.checks import instance, shown
from attnflow.errors import InvalidInput
from attnflow.fields.activations import AbstractActivation, Custom, GeluTanh, as_activation
from attnflow.fields.base import AbstractField, AbstractLayered, Laws, Points
from attnflow.fields.linear import as_weights
from attnflow.fields.queries import AbstractQuery
from attnflow.fields.structure import Inner, Part, matrix_bound
from attnflow.fields.weights import AbstractWeight, Constant, as_weight
from attnflow.precision import in_float64
from attnflow.spaces import AbstractSpace, Euclidean
from attnflow.tokens import Measure, Tokens


class Perceptron(AbstractField):
    """X(x) = W sigma(A x + b) + c: a feed-forward block, which reads the token and not the measure.

    A transformer with feed-forward blocks is the sum `Attention(...) + Perceptron(...)`; alone, with W = I, it is the
    residual block of a ResNet. It is the gradient of a potential when W = A^T diag(omega) (see `Potential`), and
    generically only then.

    Arguments:
        inner: A, shape (width, dim).
        bias: b, shape (width,); none is 0. `inner=Biased(A, b)` says the same.
        outer: W, shape (dim, width); none is the identity, which needs width = dim. `Biased(W, c)` adds c, shape
            (dim,), as the blocks of GPT-2 do, whose activation is "gelu-tanh".
        activation: "relu", "gelu", "gelu-tanh", "silu", "tanh", an activation, or a function.

    Weights are arrays, `PerLayer`, `Interpolated`, `Random` or functions of t. Theory: arXiv:2601.21366.
    """

    inner: AbstractWeight
    bias: AbstractWeight | None
    outer: AbstractWeight | None
    outer_bias: AbstractWeight | None
    """c, the bias of `outer`."""
    activation: AbstractActivation

    def __init__(self, inner: Any, bias: Any = None, outer: Any = None, activation: Any = "relu"):
        self.inner, own = required("inner", inner)
        if own is not None and bias is not None:
            raise InvalidInput("`bias` is given, and `inner` is Biased, with a bias of its own; give one of them.")
        self.bias = own if bias is None else as_weight("bias", bias)
        self.outer, self.outer_bias = as_weights("outer", outer)
        self.activation = as_activation(activation)

    def formula(self, t: Any, query: AbstractQuery, mu: Measure) -> Points:
        return self.map(t, query.points(mu))

    def children(self, space: AbstractSpace) -> tuple[Part, ...]:
        return ()

    @in_float64
    def map(self, t: Any, x: Any) -> Any:
        """W sigma(A x + b) + c for every row of `x`."""
        x = jnp.asarray(x)
        z = x @ self.inner.at(t, x.dtype).T
        if self.bias is not None:
            z = z + jnp.broadcast_to(self.bias.at(t, x.dtype), z.shape)
        return outwards(t, self.activation(z), self.outer, self.outer_bias)

    def slope_bound(self, t: Any, x: Any) -> Any:
        """A bound of |D map| at every row of `x`."""
        x = jnp.asarray(x)
        inner = self.inner.at(t, x.dtype)
        z = x @ inner.T
        if self.bias is not None:
            z = z + jnp.broadcast_to(self.bias.at(t, x.dtype), z.shape)
        outer = 1.0 if self.outer is None else matrix_bound(self.outer.at(t, x.dtype))
        return outer * matrix_bound(inner) * jnp.max(self.activation.slope_bound(z), axis=-1)

    def check_parameters(self, tokens: Tokens | Measure) -> None:
        d, shape = tokens.dim, self.inner.shape
        if len(shape) != 2 or shape[1] != d:
            raise InvalidInput(f"`inner` has shape {shape}, but the tokens live in dimension {d}; give (width, {d}).")
        width = shape[0]
        if self.bias is not None and self.bias.shape != (width,):
            raise InvalidInput(f"`bias` has shape {self.bias.shape}, but `inner` has {width} rows; give ({width},).")
        check_outwards("inner", shape, self.outer, self.outer_bias, d)

    @property
    def laws(self) -> Laws:
        weights = (w for w in (self.inner, self.bias, self.outer, self.outer_bias) if w is not None)
        return Laws(rotation=False, exchangeable=True, lipschitz=True, steady=all(w.is_continuous for w in weights))


class Potential(AbstractField):
    """X = grad U, U(x) = sum_j omega_j s(a_j . x + b_j) with s' = sigma: the perceptron in gradient form.

    X(x) = sum_j omega_j sigma(a_j . x + b_j) a_j. Tokens climb where omega > 0. Together with unnormalised attention
    (clock USA0) it is the gradient flow of the energy of attention plus sum_i m_i U(x_i); generically its critical
    measures are finitely many atoms (arXiv:2601.21366).

    Arguments: `directions` a (width, dim), `biases` b and `weights` omega (width,), constant in time.
    """

    directions: Constant
    biases: Constant
    weights: Constant
    activation: AbstractActivation

    def __init__(self, directions: Any, biases: Any, weights: Any, activation: Any = "relu"):
        self.directions, self.biases, self.weights = Constant(directions), Constant(biases), Constant(weights)
        self.activation = as_activation(activation)
        if isinstance(self.activation, Custom):
            raise InvalidInput(
                f"`activation` is the function {self.activation.function!r}, whose antiderivative is not known, so it "
                "has no potential; use 'relu', 'gelu' or 'tanh', or a Perceptron."
            )
        if isinstance(self.activation, GeluTanh):
            raise InvalidInput(
                "`activation` is GeluTanh, whose antiderivative is not known, so it has no potential; use 'gelu', or a "
                "Perceptron."
            )

    @in_float64
    def potential(self, x: Any) -> Float[Array | np.ndarray, "*point"]:
        """U at points of shape (..., dim)."""
        x = jnp.asarray(x)
        return self.activation.antiderivative(self._slopes(x)) @ self.weights.at(0.0, x.dtype)

    def children(self, space: AbstractSpace) -> tuple[Part, ...]:
        return ()

    def formula(self, t: Any, query: AbstractQuery, mu: Measure) -> Points:
        x = jnp.asarray(query.points(mu))
        height = self.activation(self._slopes(x))
        weights = jnp.broadcast_to(self.weights.at(0.0, x.dtype), height.shape)
        return (weights * height) @ self.directions.at(0.0, x.dtype)

    def check_parameters(self, tokens: Tokens | Measure) -> None:
        shape = self.directions.shape
        if len(shape) != 2 or shape[1] != tokens.dim:
            raise InvalidInput(
                f"`directions` has shape {shape}, but the tokens live in dimension {tokens.dim}; give (width, "
                f"{tokens.dim})."
            )
        for name, weight in (("biases", self.biases), ("weights", self.weights)):
            if weight.shape != shape[:1]:
                raise InvalidInput(f"`{name}` has shape {weight.shape}; give one for each direction, {shape[:1]}.")

    @property
    def laws(self) -> Laws:
        return Laws(rotation=False, exchangeable=True, lipschitz=True, steady=True)

    def _slopes(self, x: Any) -> Any:
        z = x @ self.directions.at(0.0, x.dtype).T
        return z + jnp.broadcast_to(self.biases.at(0.0, x.dtype), z.shape)


class Composed(AbstractField):
    """X[mu](x) = outer(inner[mu](x)): the perceptron applied to what attention says, W sigma(A sum_j p_ij V y_j + b).

    Use it only to reproduce texts that print the block as MLP(attention). It is not a transformer as built: there the
    perceptron reads the token, in a layer of its own, and the limit of many layers is the sum `inner + outer`. Nor
    has it an energy.
    """

    outer: Perceptron
    inner: AbstractField

    def __check_init__(self) -> None:
        instance("outer", self.outer, Perceptron, "a Perceptron")

    def formula(self, t: Any, query: AbstractQuery, mu: Measure) -> Points:
        return self.outer.map(t, self.inner.formula(t, query, mu))

    def children(self, space: AbstractSpace) -> tuple[Part, ...]:
        return (
            Inner(lambda field: field.inner, space, amplify=self._amplified),
            Inner(lambda field: field.outer, Euclidean(space.dim)),
        )

    def check_parameters(self, tokens: Tokens | Measure) -> None:
        if isinstance(self.inner, AbstractLayered):
            raise InvalidInput(
                f"`inner` of Composed is {type(self.inner).__name__}, which has a layer rule of its own that would be "
                "lost; give the field that it is made of instead."
            )

    def _amplified(self, t: Any, drive: Any, error: Any) -> Any:
        return self.outer.slope_bound(t, drive()) * error

    @property
    def laws(self) -> Laws:
        return self.outer.laws.and_(self.inner.laws)


def required(role: str, value: Any) -> tuple[AbstractWeight, AbstractWeight | None]:
    """(matrix, bias) of a map that has to be given."""
    matrix, bias = as_weights(role, value)
    if matrix is None:
        raise InvalidInput(f"`{role}` is {shown(value)}; give a matrix of shape (width, dim).")
    return matrix, bias


def outwards(t: Any, hidden: Any, outer: AbstractWeight | None, shift: AbstractWeight | None) -> Any:
    """W hidden + c for every row."""
    image = hidden if outer is None else hidden @ outer.at(t, hidden.dtype).T
    return image if shift is None else image + jnp.broadcast_to(shift.at(t, image.dtype), image.shape)


def check_outwards(
    role: str, shape: tuple[int, ...], outer: AbstractWeight | None, shift: AbstractWeight | None, dim: int
) -> None:
    """Refuse a map that does not lead from the hidden layer, which the matrix `role` of this shape makes, to R^dim."""
    width = shape[0]
    if outer is None and width != dim:
        raise InvalidInput(
            f"`{role}` has shape {shape} and `outer` is not given: the identity needs width = dim. Give `outer` of "
            f"shape ({dim}, {width})."
        )
    if outer is not None and outer.shape != (dim, width):
        raise InvalidInput(f"`outer` has shape {outer.shape}; give ({dim}, {width}), back to the tokens.")
    if shift is not None and shift.shape != (dim,):
        raise InvalidInput(f"the bias of `outer` has shape {shift.shape}; give ({dim},), one number per coordinate.")
