"""Which sum to use: the cheapest that meets the tolerance for these tokens, found before anything is traced."""

import dataclasses
import importlib.util
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnflow.errors import InvalidInput
from attnflow.masks import AbstractMask, Causal, Everyone
from attnflow.precision import full_precision
from attnflow.spaces import AbstractSpace, Sphere
from attnflow.special.degrees import basis_size
from attnflow.sums.base import AbstractSum, Columns, Use, Weights, least_mass
from attnflow.sums.circle import BLOCK, Circle
from attnflow.sums.costs import costs
from attnflow.sums.cutoff import Cutoff, neighbours
from attnflow.sums.dense import Dense
from attnflow.sums.fused import Fused
from attnflow.sums.harmonics import Harmonics
from attnflow.sums.series import AbstractSeries, needed_degree, repeated, round_off
from attnflow.sums.sht import FastSphere
from attnflow.sums.tiled import Tiled
from attnflow.tokens import Tokens

TOLERANCE = {"float64": 1e-12, "float32": 1e-4}
LOOSEST = 1e-6
MEMORY = 2**31
"""Bytes that the basis of a series may take."""
LARGEST = {"float64": 1300, "float32": 140}
"""Degrees beyond which harmonics underflow before they can grow again."""


@dataclasses.dataclass(frozen=True)
class Option:
    """One way to sum: what one evaluation costs and how far its softmax mean may be off; or why it is out."""

    name: str
    sum: AbstractSum | None
    seconds: float = math.inf
    accuracy: float = math.inf
    why_not: str = ""
    doubtful: bool = False
    """Whether its accuracy depends on how much the tokens see of each other now."""


@dataclasses.dataclass(frozen=True)
class Choice:
    """What was chosen and what was not."""

    sum: AbstractSum
    tol: float
    options: tuple[Option, ...]
    setting: str

    def explain(self) -> str:
        """The choice in words: predicted seconds of one field, accuracy of the softmax mean, and why others are out."""
        lines = [f"{self.setting}, tolerance {self.tol:.0e}:"]
        for option in sorted(self.options, key=lambda o: o.seconds):
            mark = "->" if option.sum is self.sum else "  "
            if option.why_not:
                lines.append(f"{mark} {option.name:10s} out: {option.why_not}")
            else:
                lines.append(
                    f"{mark} {option.name:10s} about {option.seconds:.1e} s, off by at most {option.accuracy:.0e}"
                )
        return "\n".join(lines)


def choose(
    tokens: Tokens,
    beta: Any,
    *,
    tol: float | None = None,
    mask: AbstractMask | None = None,
    plain: bool = True,
    ratios: bool = True,
    space: AbstractSpace | None = None,
    flowing: bool = False,
    backend: str | None = None,
) -> Choice:
    """The cheapest sum over pairs of `tokens` whose softmax mean is off by at most `tol` at the tokens.

    Arguments:
        beta: one inverse temperature or an array of those of a batch; one sum serves all.
        tol: absolute. Default: 1e-12 in float64 and 1e-4 in float32 or, for very many tokens, what round-off leaves of
            a series wherever they go (at most 1e-6). A float32 tolerance below rounding is refused.
        plain: whether weights are e^(beta (<x, y> - 1)) of the positions (Q = K = I, no encoding).
        ratios: whether the sum is used for softmax or unnormalised attention (hardmax and Sinkhorn take tiles).
        space: where the tokens will be evaluated, if not on their own space (layers that leave the sphere).
        flowing: whether the tokens will move: neighbours become too many when they condense.
        backend: "cpu" or "gpu"; default where JAX runs.
    """
    if tokens.present is not None and not tokens.dims:
        tokens = tokens.member()  # the choice is that for the tokens alone
    mask = Everyone() if mask is None else mask
    backend = jax.default_backend() if backend is None else backend
    betas, dtype = np.asarray(beta, np.float64), np.dtype(tokens.positions.dtype)
    floor = float(np.finfo(dtype).eps) * (4 + math.sqrt(tokens.n) + 2 * abs(betas).max())
    given, tol = tol is not None, max(TOLERANCE[dtype.name], 2 * floor) if tol is None else tol
    if not (isinstance(tol, int | float | np.number) and 0 < tol < 1):
        raise InvalidInput(f"`tol` is {tol!r}; give the absolute error of the softmax mean, in (0, 1).")
    space = tokens.space if space is None else space
    use = Use(space, betas, mask, plain, ratios)
    case = _Case(tokens, use, float(tol), dtype, backend, given, flowing)
    if tol < floor and dtype == np.float32:
        raise InvalidInput(
            f"`tol` is {tol:.0e}, but float32 reaches about {floor:.0e} at beta = {betas.max():g} and n = {tokens.n}; "
            "give tokens in float64, or a larger tol."
        )
    bounded = not Tiled(bounded=True).refusal(use, tokens)
    options = [Option("Tiled", Tiled(bounded=bounded), case.tiled_seconds(bounded), floor), case.dense(floor)]
    if not (plain and case.sphere and ratios):
        reason = "needs softmax or unnormalised attention with Q = K = I on the unit sphere"
        options.append(Option("series", None, why_not=reason))
    elif case.beta_min < 0:
        options.append(Option("series", None, why_not="needs beta >= 0"))
    else:
        options += [case.series(), case.fast(), case.cutoff(), case.fused()]
    best = options[0]
    for option in sorted(options, key=lambda option: option.seconds):
        # the cheapest first: whether round-off allows it may take an evaluation
        if not option.why_not and (not option.doubtful or case.trusted(option)):
            best = option
            break
        if option.doubtful:
            options[options.index(option)] = case.refused(option)
    assert best.sum is not None
    return Choice(best.sum, float(tol), tuple(options), case.setting())


class _Case:
    """Everything that the choice depends on."""

    def __init__(
        self,
        tokens: Tokens,
        use: Use,
        tol: float,
        dtype: Any,
        backend: str,
        given: bool,
        flowing: bool,
    ):
        betas, mask = np.asarray(use.beta), use.mask
        self.given, self.flowing = given, flowing
        self.tokens, self.tol = tokens, tol
        self.beta_min, self.beta_max = float(betas.min()), float(betas.max())
        self.mask, self.dtype, self.backend = mask, dtype, backend
        self.n, self.d = tokens.n, tokens.dim
        self.batched = bool(tokens.dims) or betas.ndim > 0  # a fall-back on tiles would run always
        self.sphere = isinstance(use.space, Sphere)
        self.lightest = least_mass(tokens)
        self.causal = isinstance(mask, Causal)
        self.costs = costs(backend, dtype)

    def setting(self) -> str:
        beta = f"{self.beta_min:g}" if self.beta_min == self.beta_max else f"{self.beta_min:g} to {self.beta_max:g}"
        return f"n = {self.n}, d = {self.d}, beta = {beta}, {self.dtype.name} on {self.backend}"

    def tiled_seconds(self, bounded: bool) -> float:
        return self.n**2 * (self.costs.pair[bounded] + self.d * self.costs.pair_dimension)

    def dense(self, floor: float) -> Option:
        needed = Dense.bytes(self.n, self.n, self.dtype)
        if needed > MEMORY:
            return Option("Dense", None, why_not=f"would take {needed / 2**30:.3g} GiB for the weights of all pairs")
        return Option("Dense", Dense(), 1.1 * self.tiled_seconds(False), floor)

    def _mask(self, takes_causal: bool) -> str:
        if self.mask.sees_everyone:
            return ""
        if not (takes_causal and self.causal and not self.mask.strict):  # type: ignore[attr-defined]
            return f"does not support the mask {type(self.mask).__name__}"
        return "needs different places under a causal mask" if repeated(self.tokens) else ""

    def _degree(self) -> int:
        return needed_degree(self.beta_max, self.d, self.tokens.masses, self.tol)

    def series(self) -> Option:
        """Circle or Harmonics."""
        name = "Circle" if self.d == 2 else "Harmonics"
        if why := self._mask(True):
            return Option(name, None, why_not=why)
        if self.lightest <= 0:
            return Option(name, None, why_not="tokens of mass zero may see less than the error of a series")
        degree = self._degree()
        size = float(basis_size(degree, self.d))
        if size > self.n and self.d > 2 and self.tiled_seconds(True) < size * self.n * self.costs.basis:
            return Option(name, None, why_not=f"its {size:.3g} harmonics up to degree {degree} outnumber the tokens")
        limit = LARGEST[self.dtype.name]
        if degree > limit and self.d > 2:
            return Option(name, None, why_not=f"degree {degree} is above {limit}, where harmonics leave float range")
        if 64 * size > MEMORY:
            return Option(name, None, why_not=f"its {size:.3g} harmonics would take {64 * size / 2**30:.3g} GiB")

        def make(tol: float, guarded: bool) -> AbstractSeries:
            if self.d == 2:
                return Circle(tol, degree, chunk=self.costs.circle_chunk, guarded=guarded)
            return Harmonics(tol, degree, self.d, chunk=self.costs.chunk(degree, self.d), guarded=guarded)

        seconds = self.costs.call + self.n * size * (self.costs.circle if self.d == 2 else self.costs.basis)
        if not self.mask.sees_everyone:
            seconds += self.n * (128 * self.costs.pair[True] + 0.3 * size * self.costs.basis)
        return self._bounded(name, make, seconds, round_off(degree + BLOCK, self.dtype))

    def _bounded(
        self, name: str, make: Callable[[float, bool], AbstractSum], seconds: float, rounding: float
    ) -> Option:
        """The option with its accuracy: by the least mass if round-off allows, else by what the tokens see now."""
        always = 4 * rounding / self.lightest
        if always <= (self.tol if self.given else max(self.tol, LOOSEST)):
            tol = max(self.tol, always)
            return Option(name, make(tol, False), seconds, tol)
        option = Option(name, make(self.tol, True), seconds, self.tol, doubtful=True)
        return self.refused(option) if self.batched else option

    def trusted(self, option: Option) -> bool:
        """Whether every token sees enough for the absolute error of the sum."""
        return _trusted(option.sum, self.tokens, self.beta_max, self.mask)

    def refused(self, option: Option) -> Option:
        """The same option, out because of its round-off."""
        return Option(option.name, None, why_not=f"round-off over the least weight seen exceeds {self.tol:.0e}")

    def fast(self) -> Option:
        """ducc0 on S^2."""
        if self.d != 3 or self.backend != "cpu":
            return Option("FastSphere", None, why_not="is for S^2 on the CPU")
        if importlib.util.find_spec("ducc0") is None:
            return Option("FastSphere", None, why_not="needs `pip install attnflow[fast]`")
        if (why := self._mask(False)) or self.lightest <= 0:
            return Option(
                "FastSphere", None, why_not=why or "tokens of mass zero may see less than the error of a series"
            )
        degree = self._degree()
        one = FastSphere(self.tol, degree)
        return self._bounded(
            "FastSphere",
            lambda tol, guarded: FastSphere(tol, degree, guarded=guarded),
            one.seconds(self.n),
            one.rounding(self.n),
        )

    def cutoff(self) -> Option:
        """Neighbour lists."""
        if self.backend != "cpu":
            return Option("Cutoff", None, why_not="is for the CPU")
        if (why := self._mask(False)) or self.lightest <= 0 or self.batched:
            return Option("Cutoff", None, why_not=why or "is for one system of tokens of positive mass")
        if self.flowing:
            return Option("Cutoff", None, why_not="loses when the tokens condense")
        made = Cutoff(self.tol)
        radius = made.radius(self.beta_min, self.lightest)
        if radius > 1.0:
            return Option("Cutoff", None, why_not=f"tokens hear each other up to a distance of {min(radius, 2.0):.2g}")
        near = neighbours(np.asarray(self.tokens.positions), radius)
        return Option("Cutoff", made, made.seconds(self.n, near), self.tol)

    def fused(self) -> Option:
        """A fused kernel on the GPU."""
        if self.backend != "gpu":
            return Option("Fused", None, why_not="is for GPUs")
        if self.dtype != np.float32:
            return Option("Fused", None, why_not="works in float32")
        if (why := self._mask(False)) or self.lightest <= 0:
            return Option("Fused", None, why_not=why or "tokens of mass zero may see nothing in float32")
        accuracy = Fused.accuracy(self.n, self.beta_max)
        if accuracy > self.tol:
            return Option("Fused", None, why_not=f"is accurate to {accuracy:.0e} only")
        return Option("Fused", Fused(), Fused.seconds(self.n, self.d), accuracy)


def _trusted(made: Any, tokens: Any, beta: float, mask: AbstractMask) -> bool:
    """Whether every token sees enough, by the sum itself."""

    @jax.jit
    def look(x: Any, masses: Any, place: Any) -> Any:
        weights = Weights(jnp.asarray(beta, x.dtype), mask, at_tokens=True)
        arguments = (weights, (x, place), (x, place), jnp.log(masses), Columns(jnp.ones((x.shape[0], 1), x.dtype)))
        scale, total = made(*arguments)
        return made.trusted(arguments, scale, total[:, 0])

    with full_precision():
        return bool(look(jnp.asarray(tokens.positions), jnp.asarray(tokens.masses), jnp.asarray(tokens.place)))
