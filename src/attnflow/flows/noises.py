"""Noise: what moves tokens at random beside the field. `solve(..., noise=...)`, `advance(..., noise=...)`."""

import abc
import zlib
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from attnflow.axes import Batched, as_seed, random_key, scalar
from attnflow.checks import flag, instance
from attnflow.errors import InvalidInput
from attnflow.fields.base import AbstractField, Points
from attnflow.fields.queries import AbstractQuery, AtTokens
from attnflow.lazy import listing
from attnflow.precision import is_traced
from attnflow.tokens import Measure, Tokens

__all__ = ["AbstractIto", "AbstractNoise", "AbstractStratonovich", "Brownian", "RandomValues"]
__dir__ = listing(__all__)


class AbstractNoise(eqx.Module):
    """dX = drive dt + sqrt(2 kappa) P_X G(t, X, mu) dW, where W is Brownian motion of any shape.

    A new noise is a class below `AbstractIto` or `AbstractStratonovich`, which say in which sense the equation is meant
    (below both, where that makes no difference). The class has the numbers `kappa` and `seed`, and writes the shape of
    W (`driver`), the linear map G (`push`) and a check. The factor sqrt(2 kappa), the projection P_X onto the tangent
    space, absent rows, random numbers, batches (`Along`) and resumption follow. kappa = 1/2 is P_X G dW.

    The increment of W over a step is drawn from fold_in(seed, "noise", label), where the label is the number of the
    layer (`Layers`), or the time of the last stop and the number of steps since (`Fixed`): the same settings give the
    same path. A stop is a saved time or a jump of the field. `seed` is a whole number or a `jax.random.key`;
    `seed=Along("seed", range(64))` gives 64 independent paths. With kappa = 0 the result is bitwise that without noise.
    """

    kappa: eqx.AbstractVar[Batched]
    seed: eqx.AbstractVar[Batched]

    def __check_init__(self) -> None:
        scalar("kappa", low=0.0)(self.kappa)
        as_seed(self.seed)

    @abc.abstractmethod
    def driver(self, mu: Measure) -> Any:
        """The shape of an increment of W, as `jax.ShapeDtypeStruct` or a pytree of these; floats as in mu.positions.

        Private noise, which is independent for every token, has the tokens as the first axis. Common noise does not.
        """

    @abc.abstractmethod
    def push(self, t: Any, query: AbstractQuery, mu: Measure, w: Any) -> Points:
        """G(t, x, mu) w at the points x of `query`, before projection: linear in w, for one system, in JAX."""

    @abc.abstractmethod
    def check(self, tokens: Tokens | Measure) -> None:
        """Refuse, in one sentence, tokens or a space that this noise does not fit. Their numbers may be traced."""

    def key(self, label: Any) -> Any:
        """The random key of the step with this label, a short vector of integers."""
        key = jax.random.fold_in(random_key(self.seed), zlib.crc32(b"noise"))  # another stream than random weights
        for k in range(label.shape[0]):
            key = jax.random.fold_in(key, label[k])
        return key

    def shapes(self, mu: Measure) -> Any:
        """What `driver` gives, if it consists of shapes."""
        found = self.driver(mu)
        for leaf in jax.tree.leaves(found):
            instance(
                "driver", leaf, jax.ShapeDtypeStruct, "jax.ShapeDtypeStruct(shape, mu.positions.dtype), or several"
            )
        return found

    def draw(self, label: Any, mu: Measure, step: Any) -> Any:
        """The increment of W over a step: independent Gaussian numbers of variance `step`."""
        leaves, tree = jax.tree.flatten(self.shapes(mu))
        key = self.key(label)
        keys = [key] if len(leaves) == 1 else jax.random.split(key, len(leaves))

        def increment(key: Any, like: Any) -> Any:
            return jnp.sqrt(jnp.asarray(step, like.dtype)) * jax.random.normal(key, like.shape, like.dtype)

        return jax.tree.unflatten(tree, map(increment, keys, leaves))

    def displacement(self, t: Any, mu: Measure, w: Any) -> Points:
        """sqrt(2 kappa) P_x G(t, x, mu) w at the tokens x of `mu`; 0 at absent rows."""
        x, moved = mu.positions, self.push(t, AtTokens(), mu, w)
        if moved.shape != x.shape:
            raise InvalidInput(
                f"`push` of {type(self).__name__} gives shape {moved.shape}; give {x.shape}, as the points."
            )
        return AtTokens().kept(mu, jnp.sqrt(2 * jnp.asarray(self.kappa, x.dtype)) * mu.space.tangent(x, moved))

    def kick(self, t: Any, mu: Measure, step: Any, label: Any) -> Points:
        """The tokens of `mu` after the noise of one step: retract(x + sqrt(2 kappa) P_x G w), of weak order 1.

        The limit is the Ito equation of the connection of `retract`. On a space where `tangent` is the orthogonal
        projection and `retract` the nearest point, that is the Levi-Civita connection. On the sphere
        E N(x + P_x v) = x - |P_x v|^2 x / 2 + ...: the normalisation gives the Ito correction.
        """
        # the barrier keeps the compiler from fusing this with the drift, which it would then round in another way
        x = jax.lax.optimization_barrier(mu.positions)
        mu = mu.moved(x)
        moved = mu.space.retract(x + self.displacement(t, mu, self.draw(label, mu, step)))
        return AtTokens().kept(mu, jnp.where(jnp.asarray(self.kappa) > 0, moved, x), x)


class AbstractIto(AbstractNoise):
    """Noise in the sense of Ito: the limit of layers with random weights. `Layers`, `Alternate`, `Fixed` follow it."""


class AbstractStratonovich(AbstractNoise):
    """Noise in the sense of Stratonovich: the limit of smooth random forces, with the chain rule. `Heun` follows it."""


class Brownian(AbstractIto, AbstractStratonovich):
    """dX = drive dt + sqrt(2 kappa) dB, so that the density of the tokens obeys an equation with kappa times Laplacian.

    On the sphere dB is Brownian motion of the sphere, the Stratonovich equation dX = P_X o dW. In the sense of Ito in
    R^d that is P_X dW - ((d-1)/2) X dt, and in the sense of Ito on the sphere P_X dW: the process is the same in both
    senses, so every method with noise follows it. `common=True` gives all tokens the same W; otherwise every token has
    its own.
    """

    kappa: Batched = eqx.field(converter=scalar("kappa", low=0.0))
    common: bool = eqx.field(static=True, default=False)
    seed: Batched = eqx.field(converter=as_seed, default=0)

    def __check_init__(self) -> None:
        flag("common", self.common)

    def driver(self, mu: Measure) -> jax.ShapeDtypeStruct:
        shape = mu.positions.shape
        return jax.ShapeDtypeStruct(shape[-1:] if self.common else shape, mu.positions.dtype)

    def push(self, t: Any, query: AbstractQuery, mu: Measure, w: Any) -> Points:
        x = query.points(mu)
        return jnp.broadcast_to(w if w.ndim == x.ndim else w[None, :], x.shape)

    def check(self, tokens: Tokens | Measure) -> None:
        if not tokens.space.is_riemannian:
            raise InvalidInput(
                f"`noise` on {tokens.space}: P_X o dW is Brownian motion only where `tangent` is the orthogonal "
                "projection; use Sphere or Euclidean."
            )


class RandomValues(AbstractIto):
    """dX_i = sqrt(2 kappa) P_{X_i} dW X[mu](X_i): random value matrices in infinitely many layers.

    X[mu] is the drive of `field`: of Attention(beta) the softmax mean. W is one matrix for all tokens, with independent
    entries of variance t/d. This is the limit h -> 0 of layers x <- N(x + sqrt(2 kappa h) V X[mu](x)) whose V are drawn
    afresh with entries N(0, 1/d), that is of `Attention(beta, value=Random((d, d), scale=(d h)**-0.5, step=h))` with
    `Layers(h)` for kappa = 1/2; t is then the time tau = eta^2 L / H of arXiv:2604.01978. Q and K that are `Random`
    with the step of `Layers` are drawn afresh with V. Many tokens are summed fast with `field.prepare(tokens)`.

    `low_rank=True` draws n d numbers instead of d^2 where there are n < d rows: the displacements W X of the n tokens
    are Gaussian with covariance S_ij = <X_i, X_j>/d in every coordinate, so that C Xi with C C^T = S has the same
    distribution, at a cost of O(n^2 d). C is the triangular factor of the drives by QR, so that nothing is added to a
    diagonal and tokens at one point stay together; S may have any rank (for beta = 0 it is 1). Paths differ from those
    of `low_rank=False` with the same seed. Derivatives need S of full rank.
    """

    field: AbstractField  # type: ignore[misc]  # mypy counts the abstract variables, which are no fields
    kappa: Batched = eqx.field(converter=scalar("kappa", low=0.0), default=0.5)
    seed: Batched = eqx.field(converter=as_seed, default=0)
    low_rank: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
        instance("field", self.field, AbstractField, "a field such as Attention(2.0)")
        flag("low_rank", self.low_rank)

    def driver(self, mu: Measure) -> jax.ShapeDtypeStruct:
        rows = mu.n if self._is_low(mu) else mu.dim
        return jax.ShapeDtypeStruct((rows, mu.dim), mu.positions.dtype)

    def push(self, t: Any, query: AbstractQuery, mu: Measure, w: Any) -> Points:
        if self._is_low(mu) and not query.at_tokens:
            raise InvalidInput(
                "RandomValues(low_rank=True) is known at the tokens alone; use low_rank=False at points."
            )
        back = mu.space.retract  # a layer may have left the space, for which the sums of the field were made
        drive = self.field.formula(t, query.moved(back), mu.moved(back(mu.positions)))
        scale = jnp.sqrt(jnp.asarray(mu.dim, w.dtype))
        if not self._is_low(mu):
            return drive @ w.T / scale
        factor = jnp.linalg.qr(drive.T, mode="r")
        # a positive diagonal makes the factor unique, hence continuous in the drives
        signs = jnp.where(jnp.diag(factor) < 0, -1, 1).astype(w.dtype)
        return (factor * signs[:, None]).T @ w / scale

    def _is_low(self, mu: Measure) -> bool:
        return self.low_rank and mu.n < mu.dim

    def check(self, tokens: Tokens | Measure) -> None:
        if not is_traced((self.field, tokens)):
            self.field.check(tokens)


_FOLLOWED = {
    AbstractIto: ("Ito", "Layers(step) or Fixed(step)"),
    AbstractStratonovich: ("Stratonovich", "Heun(step)"),
}


def check_noise(noise: AbstractNoise, method: Any, tokens: Tokens | Measure) -> None:
    """Refuse noise that does not fit these tokens, or in a sense that `method` does not follow (`method.calculus`)."""
    name, own = type(noise).__name__, [words for sense, words in _FOLLOWED.items() if isinstance(noise, sense)]
    if not own:
        raise InvalidInput(
            f"`noise` is {name}, which does not say in which sense it is meant; derive it from AbstractIto or "
            "AbstractStratonovich."
        )
    followed = "no noise" if method.calculus is None else f"noise in the sense of {_FOLLOWED[method.calculus][0]}"
    if method.calculus is None or not isinstance(noise, method.calculus):
        raise InvalidInput(
            f"`method` is {type(method).__name__}, which follows {followed}; for the noise {name}, in the sense of "
            f"{' and '.join(sense for sense, _ in own)}, use {' or '.join(fix for _, fix in own)}."
        )
    noise.check(tokens)
