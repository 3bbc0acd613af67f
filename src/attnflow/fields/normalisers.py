"""From weights to velocities: what the weighted sum of values is divided by, and the clock it runs on."""

import abc
import enum
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attnflow import describe
from attnflow.axes import Number, positive, scalar
from attnflow.checks import instance, shown, whole
from attnflow.errors import InvalidInput
from attnflow.fields.pairs import Pairs, Values, values_of
from attnflow.kernels import AbstractKernel, Exponential
from attnflow.masks import AbstractMask

Drive = Float[Array, "query value"]


class AbstractNormaliser(eqx.Module):
    """Makes the drive at every query from the pairs and the values V y_j."""

    is_lipschitz: eqx.AbstractClassVar[bool]
    """Whether the drive is a Lipschitz function of the positions."""

    takes_series: eqx.AbstractClassVar[bool]
    """Whether its sums may be cut at a tolerance (`Circle`, `Harmonics`, `FastSphere`, `Cutoff`, `Fused`)."""

    @abc.abstractmethod
    def __call__(self, pairs: Pairs, values: Values) -> Drive:
        """The drive at every query; zero where a query sees nobody."""

    @abc.abstractmethod
    def error(self, pairs: Pairs, cut: Any) -> Float[Array, " query"]:
        """A bound of the error at every query, for values of size at most 1 and sums S that are off by `cut`."""

    @abc.abstractmethod
    def check(self, kernel: AbstractKernel, mask: AbstractMask, dtype: Any = np.float64) -> None:
        """Refuse a kernel, its parameters known, or a mask with which the normaliser has no meaning in this type."""


class Softmax(AbstractNormaliser, describe.LeftOut):
    """Weights sum to one over the tokens that are seen (the model SA)."""

    is_lipschitz = True
    takes_series = True

    def __call__(self, pairs: Pairs, values: Values) -> Drive:
        _, total, weighted = pairs.totals(values)
        return weighted / total

    def error(self, pairs: Pairs, cut: Any) -> Float[Array, " query"]:
        scale, total, _ = pairs.totals(pairs.key[:, :0])
        return self.bound(cut, pairs.unit * jnp.exp(scale) * total[:, 0])

    def bound(self, cut: Any, seen: Any) -> Any:
        """The error of a mean of vectors of size at most 1, when numerator and denominator `seen` are off by `cut`."""
        return 2 * cut / seen

    def check(self, kernel: AbstractKernel, mask: AbstractMask, dtype: Any = np.float64) -> None:
        _positive(self, kernel)


class Clock(enum.Enum):
    """The unit of time of unnormalised attention."""

    USA0 = "USA0"
    """Weights exp(beta (<x, y> - 1)), at most 1: the clock of arXiv:2410.06833."""
    USA = "USA"
    """Weights exp(beta <x, y>): e^beta faster; the clock of arXiv:2312.10794."""
    GRAD = "grad"
    """The gradient of sum_j m_j exp(beta <x, y_j>): beta faster than USA; the clock of arXiv:2605.09213."""


class Unnormalised(AbstractNormaliser):
    """The sum itself: the gradient flow of the energy, on one of three clocks that differ by an exact factor.

    Velocities are computed on the clock USA0 and multiplied by e^beta (`USA`) or beta e^beta (`grad`), so the three
    agree to the last bit up to that factor: t_USA = e^(-beta) t_USA0. Under a mask the masses, times e^bias, are
    rescaled to sum to 1 over the tokens that are seen, so that a prefix does not depend on what follows it.
    """

    clock: Clock = eqx.field(static=True)
    is_lipschitz = True
    takes_series = True

    def __init__(self, clock: str | Clock = Clock.USA0):
        try:
            self.clock = Clock(clock)
        except ValueError:
            names = ", ".join(repr(c.value) for c in Clock)
            raise InvalidInput(f"`clock` is {shown(clock)}; use one of {names}.") from None

    def __call__(self, pairs: Pairs, values: Values) -> Drive:
        scale, sums = pairs.sums(values_of(values, pairs.key))
        if pairs.mask.sees_everyone:
            drive = pairs.unit * jnp.exp(scale)[:, None] * sums
        else:
            level, seen = pairs.seen()
            some = seen > 0
            share = jnp.exp(scale - jnp.where(some, level, scale)) / jnp.where(some, seen, 1.0)
            drive = jnp.where(some, share, 0.0)[:, None] * sums
        return self._speed(pairs) * drive

    def error(self, pairs: Pairs, cut: Any) -> Float[Array, " query"]:
        speed = jnp.abs(self._speed(pairs))
        if pairs.mask.sees_everyone:
            return jnp.broadcast_to(speed * cut, pairs.query.shape[:1])
        level, seen = pairs.seen()
        return 2 * speed * cut / (pairs.unit * jnp.exp(level) * jnp.where(seen > 0, seen, 1.0))

    def _speed(self, pairs: Pairs) -> Any:
        """How much faster than USA0 the clock runs."""
        if self.clock is Clock.USA0:
            return jnp.ones((), pairs.query.dtype)
        beta = pairs.kernel.beta  # type: ignore[attr-defined]
        return jnp.exp(beta) if self.clock is Clock.USA else beta * jnp.exp(beta)

    def check(self, kernel: AbstractKernel, mask: AbstractMask, dtype: Any = np.float64) -> None:
        if not isinstance(kernel, Exponential):
            if self.clock is not Clock.USA0:
                raise InvalidInput(
                    f"`clock` is {self.clock.value!r}, which is for the kernel Exponential; with "
                    f"{type(kernel).__name__} use Unnormalised('USA0'), the sum itself."
                )
            return
        beta, largest = float(kernel.beta), _largest_exponent(dtype)
        if self.clock is not Clock.USA0 and beta > largest:
            raise InvalidInput(
                f"`beta` is {beta:g}, where the clock {self.clock.value!r} overflows in {np.dtype(dtype).name} (above "
                f"{largest}); use Unnormalised('USA0'), the same flow with another unit of time."
            )
        if 2 * beta < -largest:
            raise InvalidInput(
                f"`beta` is {beta:g}, where unnormalised weights reach e^(-2 beta) and overflow in "
                f"{np.dtype(dtype).name}; use Softmax(), or beta above {-largest / 2:g}."
            )


class Hardmax(AbstractNormaliser):
    """The limit beta -> infinity of softmax: a query listens only to the keys with the largest log weight.

    Keys within `tol` of the largest are tied and share in proportion to their masses (so two equal tokens count
    like one of twice the mass). The drive is piecewise constant in the logits, so the flow is that of a
    discontinuous field: use `Layers` or `Fixed`; orders of convergence are lost where the winner changes. The beta of
    the field only sets the weight of the logits against the bias of a mask.
    """

    tol: Number = eqx.field(converter=scalar("tol", low=0.0), default=1e-12)
    is_lipschitz = False
    takes_series = False

    def __call__(self, pairs: Pairs, values: Values) -> Drive:
        top, values = pairs.top(), values_of(values, pairs.key)
        charges = jnp.concatenate([jnp.ones((values.shape[0], 1), values.dtype), values], axis=1)
        sums = pairs.tied(top, charges, jnp.asarray(self.tol, values.dtype))
        return sums[:, 1:] / jnp.where(sums[:, :1] > 0, sums[:, :1], 1.0)

    def error(self, pairs: Pairs, cut: Any) -> Float[Array, " query"]:
        return jnp.zeros(pairs.query.shape[:1], pairs.query.dtype)  # winners are found pair by pair

    def check(self, kernel: AbstractKernel, mask: AbstractMask, dtype: Any = np.float64) -> None:
        _positive(self, kernel)
        if kernel.magnitude(1.0, 1.0) is None:
            raise InvalidInput(
                f"`kernel` is {type(kernel).__name__}, whose rounding is not known (`magnitude`), so that Hardmax "
                "cannot tell ties; use Softmax()."
            )
        beta = float(getattr(kernel, "beta", 0.0))
        if beta < 0:
            raise InvalidInput(f"`beta` is {beta:g}; Hardmax is the limit of large beta, give at least 0.")


class Sinkhorn(AbstractNormaliser):
    """Doubly stochastic attention (arXiv:2110.11773): weights e^(g_j) w_ij / sum, g such that columns sum to 1 too.

    In terms of masses: pi_ij = e^(f_i + g_j) w_ij with sum_j m_j pi_ij = 1 for all i and sum_i m_i pi_ij = 1 for all j,
    the second to `tol`. g belongs to the measure; a query anywhere listens with weights m_j e^(g_j) w_j. The
    potential is a fixed point and is differentiated implicitly. Convergence slows like e^(-beta): the iteration is
    given up, with NaN, after `iterations`.
    """

    tol: Number = eqx.field(converter=positive("tol"), default=1e-10)
    iterations: int = eqx.field(static=True, default=4096, converter=lambda count: whole("iterations", count, 1, 10**6))
    is_lipschitz = True
    takes_series = False

    def __call__(self, pairs: Pairs, values: Values) -> Drive:
        _, total, weighted = pairs.totals(values, self.potential(pairs).astype(pairs.key.dtype))
        return weighted / total

    def error(self, pairs: Pairs, cut: Any) -> Float[Array, " query"]:
        return jnp.full(pairs.query.shape[:1], jnp.inf, pairs.query.dtype)  # such sums are refused

    def potential(self, pairs: Pairs) -> Float[Array, " key"]:
        """The log factors g_j of the columns, with mean 0 over the measure; in float64 whatever the tokens are."""
        import lineax as lx
        import optimistix as optx

        pairs = jax.tree.map(lambda a: a.astype(float) if eqx.is_inexact_array(a) else a, pairs)
        rows, columns = pairs.among_keys(), pairs.transposed()
        ones = jnp.ones((pairs.key.shape[0], 1), pairs.key.dtype)
        weights = pairs.masses / jnp.sum(pairs.masses)

        def log_sum(side: Pairs, offset: Any) -> Any:
            scale, total, _ = side.totals(ones[:, :0], offset)
            return scale + jnp.log(total[:, 0])

        def once(g: Any, _: Any) -> Any:
            new = -log_sum(columns, -log_sum(rows, g))  # rows, then columns
            new = new if pairs.present is None else jnp.where(pairs.present, new, 0.0)
            return new - jnp.sum(weights * new)

        tol: Any = jnp.asarray(self.tol, pairs.key.dtype)
        solution: Any = optx.fixed_point(
            once,
            optx.FixedPointIteration(rtol=0.0, atol=tol, norm=optx.max_norm),
            jnp.zeros_like(pairs.masses),
            max_steps=self.iterations,
            adjoint=optx.ImplicitAdjoint(linear_solver=lx.GMRES(rtol=1e-10, atol=1e-12)),
            throw=False,
        )
        return jnp.where(solution.result == optx.RESULTS.successful, solution.value, jnp.nan)

    def check(self, kernel: AbstractKernel, mask: AbstractMask, dtype: Any = np.float64) -> None:
        _positive(self, kernel)
        if not mask.sees_everyone:
            raise InvalidInput(
                f"Sinkhorn with the mask {type(mask).__name__}: rows and columns cannot both sum to 1 when some pairs "
                "are unseen (under a causal mask only the identity does). Use Softmax(), or the mask Everyone()."
            )


MODELS: dict[str, AbstractNormaliser] = {"SA": Softmax(), "USA0": Unnormalised("USA0"), "USA": Unnormalised("USA")}
"""The models of `theory` by their names: self-attention, and unnormalised self-attention on two clocks."""


def as_normaliser(given: AbstractNormaliser | str | None) -> AbstractNormaliser:
    """The normaliser of a model, or the one that is given; softmax by default."""
    if not isinstance(given, str):
        chosen = Softmax() if given is None else given
        return instance("normaliser", chosen, AbstractNormaliser, "a normaliser such as Softmax()")
    if given not in MODELS:
        raise InvalidInput(f"`normaliser` is {shown(given)}; use one of {', '.join(map(repr, MODELS))}, or an object.")
    return MODELS[given]


def model_of(normaliser: AbstractNormaliser) -> str:
    """The name by which `theory` knows attention with this normaliser: "SA", "USA0" or "USA"."""
    for name, one in MODELS.items():
        if eqx.tree_equal(one, normaliser) is True:
            return name
    raise InvalidInput(f"theory has no model with {normaliser!r}; its models are {', '.join(MODELS)}.")


def _largest_exponent(dtype: Any) -> int:
    """The largest z with e^z, times a few thousands, inside the range of floats: 700 in float64, 79 in float32."""
    return int(np.log(float(np.finfo(dtype).max))) - 9


def _positive(normaliser: AbstractNormaliser, kernel: AbstractKernel) -> None:
    if kernel.is_signed:
        name = type(normaliser).__name__
        raise InvalidInput(
            f"`kernel` is {type(kernel).__name__}, which changes sign, so that {name} would divide by sums near 0; use "
            "Unnormalised()."
        )
