"""From weights to velocities: what the weighted sum of values is divided by, and the clock it runs on."""

import abc
import enum

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnflow.errors import InvalidInput

Column = Float[Array, " query"]
Values = Float[Array, "query value"]


class AbstractNormaliser(eqx.Module):
    """Makes the drive from the sums Z = sum_j m_j w_j = e^scale total and N = sum_j m_j w_j V y_j = e^scale values."""

    @abc.abstractmethod
    def __call__(self, scale: Column, total: Column, values: Values, beta: Float[Array, ""]) -> Values:
        """The drive at every query."""

    @abc.abstractmethod
    def check(self, beta_min: float, beta_max: float) -> None:
        """Refuse an inverse temperature at which the clock leaves float range."""


class Softmax(AbstractNormaliser):
    """N / Z: weights sum to one (the model SA)."""

    def __call__(self, scale: Column, total: Column, values: Values, beta: Float[Array, ""]) -> Values:
        return values / total[:, None]

    def check(self, beta_min: float, beta_max: float) -> None:
        """Softmax weights are in [0, 1] at every beta."""


class Clock(enum.Enum):
    """The unit of time of unnormalised attention."""

    USA0 = "USA0"
    """Weights exp(beta (<x, y> - 1)), at most 1: the clock of arXiv:2410.06833."""
    USA = "USA"
    """Weights exp(beta <x, y>): e^beta faster; the clock of arXiv:2312.10794."""
    GRAD = "grad"
    """The gradient of sum_j m_j exp(beta <x, y_j>): beta faster than USA; the clock of arXiv:2605.09213."""


class Unnormalised(AbstractNormaliser):
    """N itself: the gradient flow of the energy, on one of three clocks that differ by an exact factor.

    Velocities are computed on the clock USA0 and multiplied by e^beta (`USA`) or beta e^beta (`grad`), so the three
    agree to the last bit up to that factor: t_USA = e^(-beta) t_USA0.
    """

    clock: Clock = eqx.field(static=True)

    def __init__(self, clock: str | Clock = Clock.USA0):
        try:
            self.clock = Clock(clock)
        except ValueError:
            names = ", ".join(repr(c.value) for c in Clock)
            raise InvalidInput(f"`clock` is {clock!r}; use one of {names}.") from None

    def __call__(self, scale: Column, total: Column, values: Values, beta: Float[Array, ""]) -> Values:
        drive = jnp.exp(scale)[:, None] * values
        if self.clock is Clock.USA0:
            return drive
        rate = jnp.exp(beta) if self.clock is Clock.USA else beta * jnp.exp(beta)
        return rate * drive

    def check(self, beta_min: float, beta_max: float) -> None:
        if self.clock is not Clock.USA0 and beta_max > 700:
            raise InvalidInput(
                f"`beta` is {beta_max:g}, where the clock {self.clock.value!r} overflows (e^beta > 1e304). "
                "Use Unnormalised('USA0'), the same flow with time multiplied by e^beta."
            )
        if beta_min < -350:
            raise InvalidInput(
                f"`beta` is {beta_min:g}, where unnormalised weights reach e^{{-2 beta}} and overflow. "
                "Use Softmax(), or beta above -350."
            )
