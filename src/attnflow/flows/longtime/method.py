"""`LongTime`: from iid tokens to consensus, through plateaus of any length."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from attnflow.axes import Along, Number, positive
from attnflow.checks import flag, number
from attnflow.errors import InvalidInput
from attnflow.feasible import length
from attnflow.fields import AbstractField, Attention, Softmax
from attnflow.fields.normalisers import Clock, Unnormalised
from attnflow.flows.longtime.integrator import Physics
from attnflow.precision import is_concrete
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens, all_present

WORKS = "LongTime follows Attention(beta) and Attention(beta, normaliser=Unnormalised()) with Q = K = V = I on a Sphere"


class LongTime(eqx.Module):
    """Follow softmax or unnormalised attention with Q = K = V = I on a sphere to consensus, or to a time of any size.

    Clusters of tokens are moved in a clock in which the strongest pull is 1, with log t carried along. A step keeps
    log t to `tol` and positions to tol/(1 + beta), which later merges need. Two clusters become one when they are
    nearer than `angle`; by default beta * angle = sqrt(tol), and at most 1e-3 beta^(-1/2). The relative error of forces
    that this makes, at most (beta^2 + 3 beta + 1)/2 times the variance of the pair, is reported with every merge. A
    small perturbation is carried along to tell what rounding has become (`sensitive`); a merge that rounding could have
    changed is marked `undetermined`. Frames are kept at marks of log t (half of `frames` up to log t = 30, and as
    many again for every factor of 3.5 in log t beyond), where plateaus begin, and after each of the last merges.

    More than 512 tokens are moved by `Adaptive` at first, until 128 clusters are left (or 512, where beta is so large
    that more stay); the times of merges before that are known to the steps between which they were looked for.
    The slow phase is that of arXiv:2410.06833.
    """

    tol: Number = eqx.field(converter=positive("tol"), default=1e-6)
    angle: float | None = eqx.field(
        static=True, default=None, converter=lambda angle: None if angle is None else number("angle", angle)
    )
    frames: int = eqx.field(static=True, default=400, converter=lambda count: length("frames", count, 2))
    sensitive: bool = eqx.field(static=True, default=True)

    def __check_init__(self) -> None:
        if isinstance(self.tol, Along) or not 1e-12 <= float(self.tol) <= 1e-2:
            raise InvalidInput(f"`tol` is {self.tol}; give one number from 1e-12 to 1e-2.")
        if self.angle is not None and not 0 < self.angle < 1:
            raise InvalidInput(f"`angle` is {self.angle}; give the angle below which clusters are one, in (0, 1).")
        flag("sensitive", self.sensitive)

    def check(self, field: AbstractField, tokens: Tokens) -> None:
        """Refuse, before any work, what has no log-time form."""
        if not isinstance(field, Attention) or not field.is_plain:
            raise InvalidInput(f"this {type(field).__name__} has no log-time form; {WORKS}. Use Adaptive.")
        if not isinstance(tokens.space, Sphere):
            raise InvalidInput(f"the tokens live on {tokens.space}; {WORKS}. Use Adaptive.")
        beta = np.atleast_1d(field.beta.values if isinstance(field.beta, Along) else field.beta)
        if beta.min() < 0:
            raise InvalidInput(f"`beta` is {beta.min():g}; LongTime needs attraction, beta >= 0. Use Adaptive.")
        if np.asarray(tokens.positions).dtype != np.float64:
            raise InvalidInput("the tokens are float32; LongTime needs float64: use `tokens.astype(float)`.")
        all_present(tokens, "LongTime")
        if np.asarray(tokens.masses).min() <= 0:
            raise InvalidInput("a token has mass 0; LongTime needs positive masses: remove it, or use Adaptive.")

    def physics(self, field: Attention, log_until: Any, unit: Any) -> Physics:
        """The numbers of the integrator; `log_until` on the clock of the field, `unit` the unit of masses."""
        xp: Any = np if is_concrete(field.beta) and is_concrete(self.tol) else jnp
        beta, tol = xp.asarray(field.beta, float), xp.asarray(self.tol, float)
        steep = xp.maximum(beta, 1.0)
        least = xp.minimum(xp.sqrt(tol) / steep, 1e-3 / xp.sqrt(steep))
        angle = least if self.angle is None else xp.full_like(beta, self.angle)
        softmax = isinstance(field.normaliser, Softmax)
        return Physics(beta, softmax, tol, angle, log_until - log_clock(field, unit), self.sensitive)


def log_clock(field: Attention, unit: Any) -> Any:
    """What to add to the log t of the integrator, which runs on SA, or on USA0 with masses in multiples of `unit`."""
    if isinstance(field.normaliser, Softmax):
        return _nothing(field.beta)
    return -jnp.log(unit) - log_faster(field)


def log_faster(field: Attention) -> Any:
    """How much faster the clock of the field is than that of SA or USA0, as a logarithm."""
    if isinstance(field.normaliser, Softmax):
        return _nothing(field.beta)
    beta = jnp.asarray(field.beta, float)
    assert isinstance(field.normaliser, Unnormalised)
    faster = {Clock.USA0: 0 * beta, Clock.USA: beta, Clock.GRAD: beta + jnp.log(jnp.maximum(beta, 1e-300))}
    return faster[field.normaliser.clock]


def mass_unit(masses: np.ndarray) -> float:
    """Equal masses are counted: their unit is the mass of one token, and clusters have integer masses in it."""
    return float(masses.flat[0]) if np.all(masses == masses.flat[0]) else 1.0


def _nothing(beta: Any) -> Any:
    return np.zeros(np.shape(beta)) if is_concrete(beta) else jnp.zeros_like(beta, float)
