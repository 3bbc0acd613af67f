"""Sums on S^2 through the fast spherical harmonic transforms of ducc0: O(n + K^2 log K) work.

K(<x, y>) = sum_l p_l P_l(<x, y>), and 4 pi P_l(<x, y>) = (2l + 1) sum_m Y_lm(x) conj Y_lm(y): the charges
enter by the adjoint of a synthesis, each degree is multiplied by 4 pi p_l/(2l + 1), and a synthesis gives the sums at
the queries.

For the charges 1 and y, all that softmax attention needs when V = I, one adjoint transform of the masses is enough:
the radial part of N = sum_j m_j K(<x, y_j>) y_j has the kernel s K(s), the tangential part is the surface gradient of
sum_j m_j G(<x, y_j>) with G' = K. Measured 1.4 to 2 times faster than four transforms each way.
"""

import functools
import importlib
import importlib.util
import math
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from attnflow.checks import flag, instance, whole
from attnflow.errors import MissingExtra
from attnflow.kernels import AbstractKernel, expanded
from attnflow.kernels.quadrature import BEYOND
from attnflow.sums.base import AbstractSum, Case, Offer, Use, as_tol, largest
from attnflow.sums.costs import SETUP
from attnflow.sums.harmonics import Harmonics
from attnflow.sums.host import AbstractHostSum, Work, cores
from attnflow.sums.series import (
    NO_EXPANSION,
    needed_degree,
    not_for_series,
    outside_expansions,
    too_few_degrees,
    unguarded,
)
from attnflow.sums.tiled import Tiled
from attnflow.sums.weights import Arguments, Charges, Columns, Moments, seen_by_present
from attnflow.tokens import Measure, Tokens

FINEST = 2e-14
"""The smallest accuracy that is asked of ducc0, which refuses less than 7e-15; finer than this it does not improve."""

PARTS, POINTS = 8, 4096
"""Parts of the tokens, at most, that are transformed side by side; fewer where the grid, or starting threads for less
than so many points, would cost more."""


class FastSphere(AbstractHostSum):
    """Sums on S^2 through ducc0 (`pip install attnflow[fast]`), on the CPU, in `threads` threads (default: all).

    The degree is the smallest with a tail of at most eps = tol min mass/4, at most `degree`; beyond that the result is
    NaN (`check` refuses it beforehand). Round-off is absolute, see `roundoff`; besides, the masses of tokens that
    coincide are added up one by one, which may change the mass of a cluster by a factor of up to 1 + 1e-17 n. The
    result does not depend, bit by bit, on the number of threads.
    """

    degree: int = eqx.field(static=True)
    threads: int = eqx.field(static=True)
    guarded: bool = eqx.field(static=True)
    """Whether ratios must be looked at even at the tokens, because round-off over the least mass exceeds `tol`."""

    def __init__(
        self,
        tol: Any,
        degree: int,
        *,
        exact: AbstractSum | None = None,
        threads: int | None = None,
        guarded: bool = True,
    ):
        _ducc()
        self.tol = as_tol(tol)
        self.degree = whole("degree", degree, 1)
        self.threads = cores() if threads is None else whole("threads", threads, 1)
        self.guarded = flag("guarded", guarded)
        inner = (Harmonics(tol, degree, 3) if degree <= 1300 else Tiled()) if exact is None else exact
        self.exact = instance("exact", inner, AbstractSum, "a sum such as Tiled()")

    def _numbers(self, kernel: AbstractKernel) -> tuple[Any, Any, Any]:
        found = expanded(kernel, 3, self.degree + BEYOND, float)
        return found.scale, (found.p, found.rest, found.noise), 2 * found.noise

    def _work(self) -> Work:
        return functools.partial(_sums, degree=self.degree, threads=self.threads)

    def shared(self, copies: int) -> "FastSphere":
        return self

    def trusted(self, arguments: Arguments, scale: Any, total: Any) -> Any:
        weights, _, _, log_mass, _ = arguments
        if weights.at_tokens and not self.guarded:
            return None
        own, _, noise = self._numbers(weights.kernel)
        seen, masses = total * jnp.exp(scale - own.astype(scale.dtype)), jnp.exp(log_mass)
        # round-off is relative to the largest sum anywhere: at the tokens that is known
        level = jnp.max(seen_by_present(weights, seen, 0.0)) if weights.at_tokens else jnp.sum(masses)
        rounding = self.rounding(log_mass.shape[0]) + noise.astype(seen.dtype)
        least = 4 * rounding / jnp.asarray(self.tol, seen.dtype) * level
        # where truncation takes the other half of `tol`; a token alone sees its own mass except for rounding
        lightest = 0.99 * jnp.min(jnp.where(masses > 0, masses, jnp.inf))
        return jnp.min(seen_by_present(weights, seen, jnp.inf)) >= jnp.maximum(least, lightest)

    def rounding(self, count: int) -> float:
        return roundoff(self.degree, count)

    def seconds(self, n: int, charges: int | None = None) -> float:
        """Predicted time of one sum at the tokens: of Z and the weighted mean of the tokens, or of so many charges."""
        adjoints, syntheses = (1, 3) if charges is None else (charges, charges)
        transforms = n * (adjoints * SECONDS["adjoint"] + syntheses * SECONDS["synthesis"])
        transforms += (adjoints + syntheses) * self.degree**3 * SECONDS["degree"]
        return SECONDS["call"] + n * SECONDS["point"] + transforms / self.threads

    def refusal(self, use: Use, tokens: Tokens | Measure | None) -> str:
        if why := use.outside_sphere("FastSphere") or use.outside_mask("FastSphere", False):
            return why
        if use.space.dim != 3:
            return f"the sum FastSphere is for d = 3, not d = {use.space.dim}; use sum=Tiled()."
        if tokens is None or (kernels := use.kernels) is None:
            return outside_expansions("FastSphere", use, 3)
        tol = float(np.min(self.tol))
        needed = needed_degree(kernels, 3, tokens, tol)
        if needed is None or needed[0] > self.degree:
            return too_few_degrees("FastSphere", kernels, needed, self.degree)
        rounding = self.rounding(largest(tokens)) + needed[1]
        return "" if self.guarded else unguarded("FastSphere", tol, tokens, rounding)

    @classmethod
    def least_seconds(cls, case: Case) -> float:
        return SECONDS["call"]

    @classmethod
    def offers(cls, case: Case) -> tuple[Offer, ...]:
        def out(why: str) -> tuple[Offer, ...]:
            return (Offer("FastSphere", None, why_not=why),)

        if case.d != 3 or case.backend != "cpu":
            return out("is for S^2 on the CPU")
        if importlib.util.find_spec("ducc0") is None:
            return out("needs `pip install attnflow[fast]`")
        if why := not_for_series(case, False):
            return out(why)
        needed = needed_degree(case.kernels, 3, case.tokens, case.tol)
        if needed is None:
            return out(NO_EXPANSION)
        degree, noise = needed
        one = cls(case.tol, max(degree, 1))
        rounding = noise + one.rounding(case.n)
        return (
            case.cut(
                "FastSphere",
                lambda tol, guarded: cls(tol, max(degree, 1), guarded=guarded),
                one.seconds(case.n),
                rounding,
                SETUP["FastSphere"],
            ),
        )


SECONDS = {"call": 2e-3, "point": 1.2e-7, "adjoint": 3e-7, "synthesis": 2.4e-7, "degree": 6e-10}
"""Measured on one Arm Neoverse N1: a call (on x86, with the callback around it); a point, its angles and its vector;
and, shared by threads, a point and a cubed degree of each transform."""


def roundoff(degree: int, count: int = 10**6) -> float:
    """A bound of the absolute error of S besides truncation, for sum_j m_j |charge_j| = 1 and `count` tokens anywhere.

    Measured against pairwise sums for n = 10^3 to 10^6, beta from 1e-3 to 2e4, tokens uniform, in clusters, coincident
    and around the poles: at most 1e-14 for 10^3 tokens, 1.4e-13 for 10^6; at high degrees up to 9e-19 degree^2 within
    about 10/degree of a pole. It is relative to the largest sum of weights anywhere, and so smaller where that is.
    """
    return 2e-14 + 1.5e-16 * math.sqrt(count) + 1e-18 * degree**2


def _ducc() -> ModuleType:
    try:
        return importlib.import_module("ducc0").sht
    except ImportError:
        raise MissingExtra("the sum FastSphere needs ducc0; `pip install attnflow[fast]`, or use Harmonics.") from None


def _sums(
    numbers: Any,
    eps: float,
    x: np.ndarray,
    y: np.ndarray,
    masses: np.ndarray,
    charges: Charges,
    *,
    degree: int,
    threads: int,
) -> np.ndarray:
    count = charges.values.shape[1] if isinstance(charges, Columns) else 4
    p, rest, noise = numbers
    eps, kernels = max(eps, float(noise)), _kernels(p)
    if _cut(kernels[:1], eps, float(rest)) > degree:
        return np.full((x.shape[0], count), np.nan)
    at_keys = _angles(y)
    at_queries = at_keys if x is y else _angles(x)
    top = _cut(kernels if isinstance(charges, Moments) else kernels[:1], eps, float(rest))
    multipliers, degrees = 4 * np.pi * kernels / (2 * np.arange(kernels.shape[1]) + 1), _degrees(top)
    options = {"lmax": top, "epsilon": float(np.clip(eps / 2, FINEST, 1e-3))}
    sht = _ducc()

    # threads inside an adjoint transform add up in any order: parts that depend on the sizes alone do not
    parts = np.array_split(np.arange(len(y)), max(1, min(PARTS, 100 * len(y) // top**3, len(y) // POINTS)))

    def analysed(charge: np.ndarray) -> Any:
        def one(part: np.ndarray) -> Any:
            points = slice(part[0], part[-1] + 1)
            return sht.adjoint_synthesis_general(map=charge[None, points], spin=0, loc=at_keys[points], **options)

        if len(parts) == 1:
            return one(parts[0])
        with ThreadPoolExecutor(min(threads, len(parts))) as pool:
            return functools.reduce(np.add, pool.map(one, parts))

    def at(alm: Any, row: int, **kind: Any) -> Any:
        weighted = alm * multipliers[row, degrees]
        return sht.synthesis_general(alm=weighted, loc=at_queries, nthreads=threads, **kind, **options)

    result = np.empty((x.shape[0], count))
    if isinstance(charges, Columns):
        for column, charge in enumerate(np.asarray(charges.values).T):
            result[:, column] = at(analysed(masses * charge), 0, spin=0)[0]
        return result
    alm = analysed(masses)
    result[:, 0] = at(alm, 0, spin=0)[0]
    radial = at(alm, 1, spin=0)[0]
    south, east = at(alm, 2, spin=1, mode="DERIV1")
    (cos_t, cos_p), (sin_t, sin_p) = np.cos(at_queries.T), np.sin(at_queries.T)
    out = radial * sin_t + south * cos_t
    result[:, 1] = out * cos_p - east * sin_p
    result[:, 2] = out * sin_p + east * cos_p
    result[:, 3] = radial * cos_t - south * sin_t
    return result


def _angles(x: np.ndarray) -> np.ndarray:
    """Colatitude and longitude in [0, 2 pi], accurate at the poles."""
    longitude = np.arctan2(x[:, 1], x[:, 0])
    longitude[longitude < 0] += 2 * np.pi
    return np.stack([np.arctan2(np.hypot(x[:, 0], x[:, 1]), x[:, 2]), longitude], axis=1)


@functools.lru_cache(64)
def _degrees(top: int) -> np.ndarray:
    """The degree of each coefficient a_lm, m >= 0, in the order of ducc0."""
    return np.concatenate([np.arange(m, top + 1) for m in range(top + 1)])


def _kernels(p: np.ndarray) -> np.ndarray:
    """Coefficients of P_l in K(s), in s K(s) and in an integral of K(s), one degree less.

    By s P_l = ((l+1) P_{l+1} + l P_{l-1})/(2l+1) and (2l+1) P_l = P'_{l+1} - P'_{l-1}.
    """
    l = np.arange(len(p) - 1.0)  # noqa: E741
    below = np.concatenate([[0.0], p[:-2]]) / np.maximum(2 * l - 1, 1)
    above = p[1:] / (2 * l + 3)
    return np.stack([p[:-1], l * below + (l + 1) * above, np.where(l > 0, below - above, 0.0)])


def _cut(kernels: np.ndarray, eps: float, rest: float) -> int:
    """The smallest degree, at least 1, beyond which the kernels (the gradient is the third) add up to at most eps.

    For the gradient |grad P_l(<x, y>)| <= sqrt(l (l+1)/2), from the sum of |grad Y_lm|^2 over m. `rest` is what the
    first kernel has beyond the last degree.
    """
    l = np.arange(kernels.shape[1])  # noqa: E741
    sizes = np.abs(kernels) * np.stack([l >= 0, l >= 0, np.sqrt(l * (l + 1) / 2)])[: len(kernels)]
    tails = rest + np.cumsum(sizes[:, :0:-1], axis=1)[:, ::-1]  # summed from the smallest
    return max(1, int(np.max(np.sum(tails > eps, axis=1))))
