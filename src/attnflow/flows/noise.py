"""Noise: Brownian motion on the space, added to the flow of a field. It is not a velocity; `solve(..., noise=...)`."""

import zlib
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from attnflow.axes import Batched, as_seed, scalar
from attnflow.checks import flag
from attnflow.errors import InvalidInput
from attnflow.spaces import AbstractSpace


class Brownian(eqx.Module):
    """dX = drive dt + sqrt(2 kappa) dB, so that the density of the tokens obeys an equation with kappa times Laplacian.

    On the sphere dB is Brownian motion of the sphere, the Stratonovich equation dX = P_X o dW (in the sense of Ito
    P_X dW - ((d-1)/2) X dt). `common=True` gives all tokens the same W, as random weights do; otherwise every token
    has its own. The noise of a step is drawn from fold_in(seed, label), where the label is the number of the layer
    (`Layers`) or the last stop and the steps since (`Fixed`): the same settings give the same path, and
    `seed=Along("seed", range(64))` gives 64 independent ones. With kappa = 0 the result is that without noise.
    """

    kappa: Batched = eqx.field(converter=scalar("kappa", low=0.0))
    common: bool = eqx.field(static=True, default=False)
    seed: Batched = eqx.field(converter=as_seed, default=0)

    def __check_init__(self) -> None:
        flag("common", self.common)

    def key(self, label: Any) -> Any:
        """The random key of the step with this label, a short vector of integers."""
        # the generator is named so that numbers do not depend on the user's configuration of JAX
        key = jax.random.key(jnp.asarray(self.seed).astype(int), impl="threefry2x32")
        key = jax.random.fold_in(key, zlib.crc32(b"noise"))  # another stream than random weights of the same seed
        for k in range(label.shape[0]):
            key = jax.random.fold_in(key, label[k])
        return key

    def driver(self, x: Any) -> jax.ShapeDtypeStruct:
        """What W looks like: one vector for every token, or one for all."""
        return jax.ShapeDtypeStruct(x.shape[-1:] if self.common else x.shape, x.dtype)

    def push(self, space: AbstractSpace, x: Any, w: Any) -> Any:
        """sqrt(2 kappa) P_x w: the tangent vector by which an increment w of W moves `x`."""
        size = jnp.sqrt(2 * jnp.asarray(self.kappa, x.dtype))
        return size * space.tangent(x, jnp.broadcast_to(w if w.ndim == x.ndim else w[None, :], x.shape))

    def kick(self, space: AbstractSpace, x: Any, step: Any, label: Any) -> Any:
        """`x` after the noise of one step: N(x + sqrt(2 kappa h) P_x xi), of weak order 1.

        (E N(x + P_x v) = x - |v|^2 x / 2 + ...: the normalisation gives the Ito correction by itself.)
        """
        # apart from what comes before, which the compiler would otherwise round in another way than without noise
        x = jax.lax.optimization_barrier(x)
        w = self.driver(x)
        xi = jnp.sqrt(jnp.asarray(step, x.dtype)) * jax.random.normal(self.key(label), w.shape, w.dtype)
        return jnp.where(jnp.asarray(self.kappa) > 0, space.retract(x + self.push(space, x, xi)), x)

    def check(self, space: AbstractSpace) -> None:
        """Refuse a space on which this is not Brownian motion."""
        if not space.is_riemannian:
            raise InvalidInput(
                f"`noise` on {space}: P_X o dW is Brownian motion only where `tangent` is the orthogonal projection."
            )
