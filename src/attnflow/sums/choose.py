"""Which sum to use: the cheapest that meets the tolerance for these tokens, found before anything is traced."""

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from contextvars import ContextVar

import jax
import numpy as np

from attnflow.axes import Batched
from attnflow.checks import shown
from attnflow.errors import InvalidInput
from attnflow.kernels import AbstractKernel, as_kernel
from attnflow.masks import AbstractMask, Everyone
from attnflow.spaces import AbstractSpace
from attnflow.sums.base import AbstractSum, Case, Offer, Use, named
from attnflow.sums.circle import Circle
from attnflow.sums.cutoff import Cutoff
from attnflow.sums.dense import Dense
from attnflow.sums.fused import Fused
from attnflow.sums.harmonics import Harmonics
from attnflow.sums.sht import FastSphere
from attnflow.sums.tiled import Tiled
from attnflow.tokens import Tokens

PACKAGE: tuple[type[AbstractSum], ...] = (Tiled, Dense, Circle, Harmonics, FastSphere, Cutoff, Fused)
"""The sums that are always compared."""

_OTHERS: ContextVar[tuple[type[AbstractSum], ...]] = ContextVar("others", default=())
"""Sums from outside the package that are compared here."""


@contextlib.contextmanager
def consider(*kinds: type[AbstractSum]) -> Iterator[None]:
    """Inside, `choose`, `prepare` and `solve` compare the offers of these classes with those of the package.

    ```python
    with af.sums.consider(Squares):
        flow = af.solve(field, tokens, until=1.0)
    ```

    An inner `consider` replaces an outer one. Sums that a plugin registers are considered while the plugin is active.
    """
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, AbstractSum)):
            raise InvalidInput(f"`kinds` has {shown(kind)}; give classes of sums, subclasses of AbstractSum.")
    token = _OTHERS.set(kinds)
    try:
        yield
    finally:
        _OTHERS.reset(token)


def considered() -> tuple[type[AbstractSum], ...]:
    """The classes whose offers are compared here."""
    return (*PACKAGE, *_OTHERS.get())


@dataclasses.dataclass(frozen=True)
class Choice:
    """What was chosen and what was not."""

    sum: AbstractSum
    tol: float
    options: tuple[Offer, ...]
    setting: str

    def explain(self) -> str:
        """The choice in words: predicted times, accuracy of the softmax mean, and why other sums are out."""
        lines = [f"{self.setting}, tolerance {self.tol:.0e}:"]
        for option in sorted(self.options, key=lambda o: o.seconds):
            mark = "->" if option.sum is self.sum else "  "
            if option.why_not:
                lines.append(f"{mark} {option.name:10s} out: {option.why_not}")
            else:
                compiling = option.total(0)
                lines.append(
                    f"{mark} {option.name:10s} about {option.seconds:.1e} s after {compiling:.2g} s of compiling, "
                    f"off by at most {option.accuracy:.0e}"
                )
        return "\n".join(lines)


def choose(
    tokens: Tokens,
    kernel: AbstractKernel | Batched,
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

    Every sum offers predicted times, for compiling it and for one evaluation, and an accuracy, or says why it is out.
    The offer with the shortest time for 20 evaluations, or for 1000 along a flow, is taken.

    Arguments:
        kernel: a kernel, or beta for `Exponential(beta)`. Parameters may be batches (`Along`); one sum serves all.
        tol: absolute. Default: 1e-12 in float64 and 1e-4 in float32 or, for very many tokens, what round-off leaves of
            a series wherever they go (at most 1e-6). A float32 tolerance below rounding is refused.
        plain: whether the kernel is that of the positions (Q = K = I, no encoding).
        ratios: whether the sum is used for softmax or unnormalised attention (hardmax and Sinkhorn take tiles).
        space: where the tokens will be evaluated, if not on their own space (layers that leave the sphere).
        flowing: whether the tokens will move: neighbours become too many when they condense.
        backend: "cpu" or "gpu"; default where JAX runs.
    """
    case = _case(tokens, kernel, tol, mask, plain, ratios, space, flowing, backend)
    options = [offer for kind in considered() for offer in kind.offers(case)]
    best = _best(case, options)
    return Choice(best, float(case.tol), tuple(options), case.setting)


def cheapest(tokens: Tokens, use: Use, tol: float | None, flowing: bool) -> AbstractSum:
    """The sum that `choose` takes, without looking at those that cannot be as cheap as another."""
    case = _case(tokens, use.kernel, tol, use.mask, use.plain, use.ratios, use.space, flowing, None)
    options: list[Offer] = []
    shortest = math.inf
    for kind in considered():
        if case.evaluations * kind.least_seconds(case) <= shortest:
            offers = kind.offers(case)
            options.extend(offers)
            certain = [offer.total(case.evaluations) for offer in offers if not offer.why_not and not offer.doubtful]
            shortest = min([shortest, *certain])
    return _best(case, options)


def _case(
    tokens: Tokens,
    kernel: AbstractKernel | Batched,
    tol: float | None,
    mask: AbstractMask | None,
    plain: bool,
    ratios: bool,
    space: AbstractSpace | None,
    flowing: bool,
    backend: str | None,
) -> Case:
    """The checked arguments of `choose`."""
    if tokens.present is not None and not tokens.dims:
        tokens = tokens.member()  # the choice is that for the tokens alone
    use = Use(
        tokens.space if space is None else space, as_kernel(kernel), Everyone() if mask is None else mask, plain, ratios
    )
    kernels = use.kernels
    if kernels is None:
        raise InvalidInput(
            f"the parameters of {type(use.kernel).__name__} are being traced by a JAX transformation; choose before."
        )
    dtype = np.dtype(tokens.positions.dtype)
    norm = 1.0 if use.unit else float(np.max(np.linalg.norm(np.asarray(tokens.positions), axis=-1)))
    sizes = [float(size) for one in kernels if (size := one.magnitude(norm, norm)) is not None]
    floor = float(np.finfo(dtype).eps) * (4 + math.sqrt(tokens.n) + max(sizes, default=0.0))
    if tol is not None and not (isinstance(tol, int | float | np.number) and 0 < tol < 1):
        raise InvalidInput(f"`tol` is {shown(tol)}; give the absolute error of the softmax mean, in (0, 1).")
    if tol is not None and tol < (least := float(np.finfo(np.float64).eps)):
        raise InvalidInput(f"`tol` is {tol:g}, below the rounding of every sum; give at least {least:.1e}.")
    case = Case(tokens, use, tol, dtype, jax.default_backend() if backend is None else backend, flowing, floor)
    if case.tol < floor and dtype == np.float32:
        raise InvalidInput(
            f"`tol` is {tol:.0e}, but float32 reaches about {floor:.0e} at {named(kernels)} and n = {tokens.n}; "
            "give tokens in float64, or a larger tol."
        )
    return case


def _best(case: Case, options: list[Offer]) -> AbstractSum:
    """The sum of the cheapest offer that can be trusted; those that cannot are replaced in the list."""
    best = options[0]
    for option in sorted(options, key=lambda option: option.total(case.evaluations)):
        # the cheapest first: whether round-off allows it may take an evaluation
        if not option.why_not and (not option.doubtful or case.trusted(option)):
            best = option
            break
        if option.doubtful:
            options[options.index(option)] = case.refused(option)
    assert best.sum is not None
    return best.sum
