"""Layer norms as speed regulators: where a network normalises decides how fast its tokens move (arXiv:2510.22026).

A placement is a space and a wrapper around a field. With x = r theta, |theta| = 1, and A the drive of the inner field
at the normalised tokens, directions move as d theta/dt = P_theta A / s:

| placement | how | layer | s | dr/dt |
|---|---|---|---|---|
| Post-LN | the bare field on a `Sphere` | theta <- N(theta + h A) | 1 | 0 |
| Pre-LN | `Pre(field)` on `Euclidean` | x <- x + h A | r | <theta, A> |
| Peri-LN | `Peri(field)` on `Euclidean` | x <- x + h N(A) | r abs(A) | <theta, A>/abs(A) |
| nGPT | `Ngpt(field, alpha)` on a `Sphere` | theta <- N(theta + h alpha (N(A) - theta)) | abs(A)/alpha | 0 |
| Mix-LN | `Mix(field, switch)` on `Euclidean` | Post before the switch, then Pre | 1, then r | 0, then <theta, A> |
| LN-scaling | `Scaled(field)` on `Euclidean` | x <- x + h A/sqrt(1+t) | r sqrt(1+t) | <theta, A>/sqrt(1+t) |

Post-LN as trained networks have it, with gain, bias and eps, is `Post(field, norm)` on `Euclidean`: its layer of step 1
is x <- norm(x + A).
"""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from attnflow.axes import Batched, positive
from attnflow.checks import number
from attnflow.errors import InvalidInput
from attnflow.fields.base import AbstractField, AbstractLayered, Laws, Points
from attnflow.fields.normed_rows import affine, by_size, check_rows, direction, spread
from attnflow.fields.queries import AbstractQuery
from attnflow.fields.structure import Inner, Part
from attnflow.fields.timed import Switch
from attnflow.fields.weights import AbstractWeight, as_weight
from attnflow.lazy import listing
from attnflow.precision import in_float64
from attnflow.spaces import AbstractSpace, Euclidean, Sphere
from attnflow.tokens import Measure, Tokens

__all__ = ["AbstractNorm", "LayerNorm", "Mix", "Ngpt", "Peri", "Post", "Pre", "RmsNorm", "Scaled", "Unit"]
__dir__ = listing(__all__)


class AbstractNorm(eqx.Module):
    """A layer norm, applied to every row. What has no direction (a zero vector) is not divided."""

    @abc.abstractmethod
    def __call__(self, t: Any, x: Points) -> Points:
        """The normalised rows of `x`, with the gain of time t."""

    @abc.abstractmethod
    def check(self, dim: int) -> None:
        """Refuse gains that do not act on R^dim."""

    @abc.abstractmethod
    def spread(self, t: Any, dim: int, error: Any) -> Any:
        """A bound of |norm(x) - norm(y)| over all x, y of R^dim with |x - y| <= `error`, which is positive."""

    @abc.abstractmethod
    def image(self, dim: int) -> AbstractSpace:
        """The space on which all normalised vectors of R^dim lie; R^dim where none smaller is known."""

    @property
    @abc.abstractmethod
    def is_isotropic(self) -> bool:
        """Whether it commutes with rotations."""

    @property
    @abc.abstractmethod
    def is_continuous(self) -> bool:
        """Whether it changes continuously with time."""


class Unit(AbstractNorm):
    """N(x) = x/|x|: the norm of the theory, one unit vector per token."""

    def __call__(self, t: Any, x: Points) -> Points:
        return direction(x)

    def check(self, dim: int) -> None:
        """Every vector has a norm."""

    def spread(self, t: Any, dim: int, error: Any) -> Any:
        return jnp.full_like(error, 2.0)

    def image(self, dim: int) -> AbstractSpace:
        return Sphere(dim) if dim > 1 else Euclidean(dim)

    @property
    def is_isotropic(self) -> bool:
        return True

    @property
    def is_continuous(self) -> bool:
        return True


class RmsNorm(AbstractNorm):
    """gain * x/sqrt(mean of x_i^2 + eps) + bias (arXiv:1910.07467); gain or bias break the rotations.

    With eps = 0 it is sqrt(d) gain * x/|x| + bias. Trained networks have a small `eps`, 1e-6 or 1e-5 in Llama
    (arXiv:2302.13971), which makes short vectors shorter than sqrt(d).
    """

    gain: AbstractWeight | None
    bias: AbstractWeight | None
    eps: float = eqx.field(static=True, default=0.0)

    def __init__(self, gain: Any = None, bias: Any = None, eps: float = 0.0):
        self.gain = None if gain is None else as_weight("gain", gain)
        self.bias = None if bias is None else as_weight("bias", bias)
        self.eps = number("eps", eps, low=0.0)

    def __call__(self, t: Any, x: Points) -> Points:
        return affine(t, by_size(x, self.eps), self.gain, self.bias)

    def check(self, dim: int) -> None:
        check_rows(dim, gain=self.gain, bias=self.bias)

    def spread(self, t: Any, dim: int, error: Any) -> Any:
        return spread(t, dim, error, self.gain, self.eps)

    def image(self, dim: int) -> AbstractSpace:
        return Euclidean(dim)

    @property
    def is_isotropic(self) -> bool:
        return self.gain is None and self.bias is None

    @property
    def is_continuous(self) -> bool:
        return all(w is None or w.is_continuous for w in (self.gain, self.bias))


class LayerNorm(AbstractNorm):
    """gain * (x - mean)/sqrt(var + eps) + bias, mean and variance over the coordinates (arXiv:1607.06450).

    Trained networks have a small `eps`, 1e-5 in GPT-2 and GPT-NeoX.
    """

    gain: AbstractWeight | None
    bias: AbstractWeight | None
    eps: float = eqx.field(static=True, default=0.0)

    def __init__(self, gain: Any = None, bias: Any = None, eps: float = 0.0):
        self.gain = None if gain is None else as_weight("gain", gain)
        self.bias = None if bias is None else as_weight("bias", bias)
        self.eps = number("eps", eps, low=0.0)

    def __call__(self, t: Any, x: Points) -> Points:
        centred = x - jnp.mean(x, axis=-1, keepdims=True)
        return affine(t, by_size(centred, self.eps), self.gain, self.bias)

    def check(self, dim: int) -> None:
        if dim < 2:
            raise InvalidInput(f"LayerNorm in dimension {dim} leaves nothing; use tokens of dimension 2 or more.")
        check_rows(dim, gain=self.gain, bias=self.bias)

    def spread(self, t: Any, dim: int, error: Any) -> Any:
        return spread(t, dim, error, self.gain, self.eps)

    def image(self, dim: int) -> AbstractSpace:
        return Euclidean(dim)

    @property
    def is_isotropic(self) -> bool:
        return False

    @property
    def is_continuous(self) -> bool:
        return all(w is None or w.is_continuous for w in (self.gain, self.bias))


class Pre(AbstractField):
    """X[mu](x) = A(norm(x)) in the measure of the norm(y): Pre-LN, x <- x + h A. Radii grow like t, 1 - rho ~ t^-2."""

    field: AbstractField
    norm: AbstractNorm = Unit()

    def formula(self, t: Any, query: AbstractQuery, mu: Measure) -> Points:
        return _normalised(self, t, query, mu)

    def children(self, space: AbstractSpace) -> tuple[Part, ...]:
        return (Inner(_inner, self.norm.image(space.dim), view=_view(self.norm)),)

    def check_parameters(self, tokens: Tokens | Measure) -> None:
        _check_stream(self, tokens)

    @property
    def laws(self) -> Laws:
        return _laws(self.field, self.norm)


class Post(AbstractField):
    """X[mu](x) = norm(x + A[mu](x)) - x: Post-LN with gain, bias and eps, as BERT has it (arXiv:1810.04805).

    A layer of step 1, `Layers(1.0)` on `Euclidean`, is x <- norm(x + A(x)), the network as built; of several parts in
    turn, `Alternate(1.0, update=Renormalise())`. Smaller steps go a part of the way, so that the flow relaxes to the
    fixed points of the layer, which are those of the network. Without a gain on the sphere use the bare field.
    """

    field: AbstractField
    norm: AbstractNorm = Unit()

    def formula(self, t: Any, query: AbstractQuery, mu: Measure) -> Points:
        x = jnp.asarray(query.points(mu))
        return self.norm(t, x + jnp.asarray(self.field.formula(t, query, mu))) - x

    def children(self, space: AbstractSpace) -> tuple[Part, ...]:
        def amplify(t: Any, drive: Any, error: Any) -> Any:
            return self.norm.spread(t, space.dim, error)

        return (Inner(_inner, space, amplify=amplify),)

    def check_parameters(self, tokens: Tokens | Measure) -> None:
        _check_stream(self, tokens)

    @property
    def laws(self) -> Laws:
        return _laws(self.field, self.norm)


class Peri(AbstractField):
    """X[mu](x) = N(A(norm(x))): Peri-LN, input and output normalised. 1 - rho ~ t^-2 from any start.

    A drive of zero stays zero. The output is scaled to norm 1, whatever `norm` does to the input.
    """

    field: AbstractField
    norm: AbstractNorm = Unit()

    def formula(self, t: Any, query: AbstractQuery, mu: Measure) -> Points:
        return direction(_normalised(self, t, query, mu))

    def children(self, space: AbstractSpace) -> tuple[Part, ...]:
        return (Inner(_inner, self.norm.image(space.dim), _view(self.norm), _error_of_direction),)

    def check_parameters(self, tokens: Tokens | Measure) -> None:
        _check_stream(self, tokens)

    @property
    def laws(self) -> Laws:
        return _laws(self.field, self.norm)


class Scaled(AbstractField):
    """X[mu](x) = A(norm(x))/sqrt(1+t): LN-scaling, Pre-LN on the clock 2 (sqrt(1+t) - 1). 1 - rho ~ t^-1."""

    field: AbstractField
    norm: AbstractNorm = Unit()

    def formula(self, t: Any, query: AbstractQuery, mu: Measure) -> Points:
        return _normalised(self, t, query, mu) / _root(t, mu.positions.dtype)

    def children(self, space: AbstractSpace) -> tuple[Part, ...]:
        def amplify(t: Any, drive: Any, error: Any) -> Any:
            return error / _root(t, error.dtype)

        return (Inner(_inner, self.norm.image(space.dim), _view(self.norm), amplify),)

    def check_parameters(self, tokens: Tokens | Measure) -> None:
        _check_stream(self, tokens)

    @property
    def laws(self) -> Laws:
        return _laws(self.field, self.norm)


class Ngpt(AbstractField):
    """X[mu](x) = alpha (N(A) - x) on the sphere: nGPT (arXiv:2410.01131), 1 - rho ~ e^(-2 alpha t).

    With `Layers`, x <- N(x + h alpha (N(A) - x)). A drive A of zero moves nothing.
    """

    field: AbstractField
    alpha: Batched = eqx.field(converter=positive("alpha"), default=1.0)

    def formula(self, t: Any, query: AbstractQuery, mu: Measure) -> Points:
        pull = direction(jnp.asarray(self.field.formula(t, query, mu)))
        return jnp.asarray(self.alpha, pull.dtype) * (pull - jnp.asarray(query.points(mu)))

    def children(self, space: AbstractSpace) -> tuple[Part, ...]:
        def amplify(t: Any, drive: Any, error: Any) -> Any:
            return jnp.asarray(self.alpha, error.dtype) * _error_of_direction(t, drive, error)

        return (Inner(_inner, space, amplify=amplify),)

    def check_parameters(self, tokens: Tokens | Measure) -> None:
        if not isinstance(tokens.space, Sphere):
            raise InvalidInput(
                f"Ngpt needs tokens on a sphere, not on {tokens.space}; "
                f"make the tokens with space=af.Sphere({tokens.dim})."
            )
        _check_inner(self)

    @property
    def laws(self) -> Laws:
        return self.field.laws


class Mix(AbstractLayered):
    """Post-LN before the time `switch`, Pre-LN from then: Mix-LN (arXiv:2412.13795).

    With theta = x/|x| and A = A(norm(x)): before, d theta/dt = P_theta A at constant |x|, or theta <- N(theta + h A);
    after, dx/dt = A, or x <- x + h A. `Layers` runs these rules whatever its `update`.
    """

    field: AbstractField
    switch: Switch
    norm: AbstractNorm

    def __init__(self, field: AbstractField, switch: Any = 1.0, norm: AbstractNorm = Unit()):
        self.field = field
        self.switch = switch if isinstance(switch, Switch) else Switch(switch)
        self.norm = norm

    def formula(self, t: Any, query: AbstractQuery, mu: Measure) -> Points:
        pull = _normalised(self, t, query, mu)
        x = jnp.asarray(query.points(mu))
        theta = direction(x)
        turn = pull - jnp.sum(theta * pull, axis=-1, keepdims=True) * theta
        return jnp.where(self.switch.is_on(jnp.asarray(t, float)), pull, jnp.sum(theta * x, -1, keepdims=True) * turn)

    @in_float64
    def layer(self, t: Any, step: Any, query: AbstractQuery, mu: Measure) -> Points:
        x = jnp.asarray(query.points(mu))
        change = jnp.asarray(step, x.dtype) * _normalised(self, t, query, mu)
        theta = direction(x)
        post = jnp.sum(theta * x, -1, keepdims=True) * direction(theta + change)
        return jnp.where(self.switch.is_on(jnp.asarray(t, float)), x + change, post)

    def children(self, space: AbstractSpace) -> tuple[Part, ...]:
        return (Inner(_inner, self.norm.image(space.dim), view=_view(self.norm)),)

    def check_parameters(self, tokens: Tokens | Measure) -> None:
        _check_stream(self, tokens)

    @property
    def laws(self) -> Laws:
        return _laws(self.field, self.norm)._replace(steady=False)


def _inner(field: Any) -> AbstractField:
    return field.field


def _view(norm: AbstractNorm) -> Callable[[Any, AbstractQuery, Measure], tuple[AbstractQuery, Measure]]:
    """The normalised points and the normalised measure; queries at the tokens stay at the tokens."""

    def view(t: Any, query: AbstractQuery, mu: Measure) -> tuple[AbstractQuery, Measure]:
        dtype = query.points(mu).dtype
        seen = mu.on(norm.image(mu.dim), norm(t, jnp.asarray(mu.positions, dtype)))
        return query.moved(lambda x: norm(t, jnp.asarray(x))), seen

    return view


def _normalised(placement: Pre | Peri | Scaled | Mix, t: Any, query: AbstractQuery, mu: Measure) -> Any:
    """The drive of the inner field at the normalised points, in the normalised measure."""
    return jnp.asarray(placement.field.formula(t, *_view(placement.norm)(t, query, mu)))


def _error_of_direction(t: Any, drive: Callable[[], Any], error: Any) -> Any:
    """|N(a) - N(b)| <= 2 |a - b|/(|a| + |b|), and at most 2."""
    size = jnp.linalg.norm(drive(), axis=-1)
    return 2 * error / jnp.maximum(size, error)


def _root(t: Any, dtype: Any) -> Any:
    return jnp.sqrt(1.0 + jnp.asarray(t, dtype))


def _laws(field: AbstractField, norm: AbstractNorm) -> Laws:
    laws = field.laws
    return laws._replace(rotation=laws.rotation and norm.is_isotropic, steady=laws.steady and norm.is_continuous)


def _check_stream(placement: Pre | Post | Peri | Scaled | Mix, tokens: Tokens | Measure) -> None:
    if not isinstance(tokens.space, Euclidean):
        raise InvalidInput(
            f"{type(placement).__name__} changes norms and needs tokens in R^d, not on {tokens.space}; "
            f"make the tokens with space=af.Euclidean({tokens.dim})."
        )
    placement.norm.check(tokens.dim)
    _check_inner(placement)


def _check_inner(placement: Pre | Post | Peri | Scaled | Mix | Ngpt) -> None:
    if isinstance(placement.field, AbstractLayered):
        raise InvalidInput(
            f"`field` of {type(placement).__name__} is {type(placement.field).__name__}, which has its own layer rule "
            "that would be lost; wrap the fields that it is made of instead."
        )
