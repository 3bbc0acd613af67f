"""Sums over near tokens only, for large beta and tokens that are spread out; unit vectors of any dimension.

Beyond the distance r with e^(-beta r^2/2) = eps all tokens together add less than eps sum_j m_j |charge_j|. Tokens are
taken in the order of a k-d tree, in blocks of nearby ones: a block of queries meets the keys within r of its ball, all
at once by matrix products in coordinates around its centre, where beta (<x, y> - 1) = -beta |x - y|^2/2 is rounded
relative to the ball and not to beta. Lists of the neighbours of single tokens hold fewer pairs, at ten times the cost
of a pair (measured with cKDTree).
"""

import functools
import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from attnflow.checks import instance, whole
from attnflow.kernels import AbstractKernel
from attnflow.sums.base import EXPONENTIAL, AbstractSum, Case, Offer, Use, as_tol, least_mass
from attnflow.sums.costs import SETUP
from attnflow.sums.host import AbstractHostSum, Work, cores, tol_per_mass
from attnflow.sums.tiled import TILE, Tiled
from attnflow.sums.weights import Arguments, Charges
from attnflow.tokens import Measure, Tokens

BLOCK = 64
"""Tokens of one block, at most."""
PRODUCT = 1 << 18
"""Multiply-adds of the largest product that BLAS does in the calling thread: threads are over the blocks."""


SHIFT = 2.0
"""Added to coordinates in a k-d tree. Compiled code flushes subnormal numbers to zero, also in its callbacks: a tree
that splits many points with the same coordinate 0, just above it, would then never end."""


class Cutoff(AbstractHostSum):
    """Exact sums over all tokens within `radius`, on the CPU, in `threads` threads (default: all).

    What is left out is at most eps = tol min mass/4 for each unit of mass and charge. Memory is bounded also where all
    tokens are near each other, but the time is then that of all pairs.
    """

    threads: int = eqx.field(static=True)

    def __init__(self, tol: Any, *, exact: AbstractSum | None = None, threads: int | None = None):
        self.tol = as_tol(tol)
        self.exact = instance("exact", Tiled() if exact is None else exact, AbstractSum, "a sum such as Tiled()")
        self.threads = cores() if threads is None else whole("threads", threads, 1)

    def _numbers(self, kernel: AbstractKernel) -> tuple[Any, Any, Any]:
        beta = jnp.asarray(kernel.beta)  # type: ignore[attr-defined]
        return jnp.zeros_like(beta), jnp.where(beta >= 0, beta, jnp.nan), jnp.zeros_like(beta)

    def _work(self) -> Work:
        return functools.partial(_sums, threads=self.threads)

    def shared(self, copies: int) -> "Cutoff":
        return self

    def trusted(self, arguments: Arguments, scale: Any, total: Any) -> Any:
        weights, _, _, log_mass, _ = arguments
        if weights.at_tokens:
            return None
        least = jnp.min(jnp.where(log_mass > -jnp.inf, log_mass, jnp.inf))
        return jnp.min(total * jnp.exp(scale)) >= jnp.exp(least)

    def radius(self, beta: float, lightest: float) -> float:
        """The distance beyond which tokens are left out, when the lightest has this part of the mass."""
        return _radius(beta, tol_per_mass(float(np.min(self.tol)), lightest))

    def seconds(self, n: int, near: float) -> float:
        """Predicted time of one sum at the tokens, of Z and a weighted mean, with `near` tokens within the radius."""
        # on S^2 a block fills a square, and meets the keys within the radius of the circle around it
        met = min(float(n), near * (1 + 1.25 * math.sqrt(BLOCK / max(near, 1.0))) ** 2)
        return n * (SECONDS["tree"] + (SECONDS["token"] + met * SECONDS["pair"]) / self.threads)

    def rounding(self, count: int) -> float:
        return 0.0  # the rounding of any sum of so many terms

    def refusal(self, use: Use, tokens: Tokens | Measure | None) -> str:
        if why := use.outside_exponential("Cutoff"):
            return why
        if tokens is not None and least_mass(tokens) <= 0:
            return "`masses` holds 0; the sum Cutoff needs tokens of positive mass, use sum=Tiled()."
        return ""  # any dimension and beta, if slowly

    @classmethod
    def offers(cls, case: Case) -> tuple[Offer, ...]:
        def out(why: str) -> tuple[Offer, ...]:
            return (Offer("Cutoff", None, why_not=why),)

        if case.backend != "cpu":
            return out("is for the CPU")
        if case.use.outside_exponential(""):
            return out(EXPONENTIAL)
        if case.lightest <= 0 or case.batched:
            return out("is for one system of tokens of positive mass")
        if case.flowing:
            return out("loses when the tokens condense")
        made = cls(case.tol)
        betas = case.use.betas
        assert betas is not None
        radius = made.radius(float(np.min(betas)), case.lightest)
        if radius > 1.0:
            return out(f"tokens hear each other up to a distance of {min(radius, 2.0):.2g}")
        near = neighbours(np.asarray(case.tokens.positions), radius)
        return (Offer("Cutoff", made, made.seconds(case.n, near), case.tol, setup=SETUP["Cutoff"]),)


SECONDS = {"tree": 1e-6, "token": 3e-6, "pair": 1.5e-8}
"""Measured on one Arm Neoverse N1: a token in the tree; and, shared by threads, a token outside the products and a pair
of a query and a key that it meets."""


def neighbours(positions: np.ndarray, radius: float, sample: int = 256, seed: int = 0) -> float:
    """The mean number of tokens within `radius` of a token, itself included, estimated by `sample` of them."""
    positions = np.asarray(positions, np.float64)
    n = positions.shape[0]
    chosen = np.arange(n) if n <= sample else np.random.default_rng(seed).choice(n, sample, replace=False)
    found = 0
    for rows in np.array_split(chosen, max(1, chosen.size * n // TILE)):
        square = 2 - 2 * positions[rows] @ positions.T
        found += int(np.count_nonzero(square <= radius**2 + 1e-14))
    return found / chosen.size


def _radius(beta: float, eps: float) -> float:
    return min(math.sqrt(2 * max(math.log(1 / eps), 0.0) / beta), 3.0) if beta > 0 else 3.0


def _unit(x: np.ndarray) -> np.ndarray:
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-300))


class _Blocks:
    """Points in blocks of nearby ones, each inside a ball."""

    def __init__(self, x: np.ndarray):
        from scipy.spatial import cKDTree

        n = x.shape[0]
        count = 1 << max(0, math.ceil(math.log2(n / BLOCK)))
        # balanced: every leaf has n/count points except for rounding, so even cuts are cuts between leaves
        tree = cKDTree(x + SHIFT, leafsize=BLOCK) if count > 1 else None
        order = np.arange(n) if tree is None else tree.indices
        edges = np.arange(count + 1) * n // count
        size = int(np.max(np.diff(edges)))
        places = edges[:-1, None] + np.arange(size)[None, :]
        self.real = places < edges[1:, None]
        """Which members are points; others repeat the last one."""
        self.members = order[np.minimum(places, edges[1:, None] - 1)]
        self.points = x[self.members]
        self.centres = (np.min(self.points, axis=1) + np.max(self.points, axis=1)) / 2
        self.radii = np.sqrt(np.max(np.sum((self.points - self.centres[:, None]) ** 2, axis=2), axis=1))


def _sums(
    numbers: Any, eps: float, x: np.ndarray, y: np.ndarray, masses: np.ndarray, charges: Charges, *, threads: int
) -> np.ndarray:
    from scipy.spatial import cKDTree

    beta = float(numbers)
    charged = np.asarray(charges.array(y))
    reach = _radius(beta, eps)
    keys = _Blocks(_unit(y))
    queries = keys if x is y else _Blocks(_unit(x))
    loads = (masses[:, None] * charged)[keys.members] * keys.real[:, :, None]
    tree, widest = cKDTree(keys.centres + SHIFT), float(np.max(keys.radii))
    result = np.empty((x.shape[0], charged.shape[1]))
    size, width = keys.members.shape[1], max(y.shape[1] + 2, charged.shape[1])
    many = max(1, TILE // size)  # blocks of keys that are looked at together
    columns = max(64, PRODUCT // (queries.members.shape[1] * width))

    def block(i: int) -> None:
        centre, ball = queries.centres[i], queries.radii[i] + reach
        found = np.asarray(tree.query_ball_point(centre + SHIFT, ball + widest + 1e-12), np.intp)
        here = queries.points[i] - centre
        left = np.concatenate(
            [beta * here, np.ones((len(here), 1)), -0.5 * beta * np.sum(here**2, axis=1, keepdims=True)], axis=1
        )
        total = np.zeros((len(here), loads.shape[2]))
        for start in range(0, len(found), many):
            chosen = found[start : start + many]
            there = keys.points[chosen].reshape(-1, y.shape[1]) - centre
            square = np.einsum("ij,ij->i", there, there)
            near = np.flatnonzero(square <= (ball + 1e-12) ** 2)
            there, load = there[near], loads[chosen].reshape(-1, loads.shape[2])[near]
            right = np.concatenate([there.T, -0.5 * beta * square[None, near], np.ones((1, near.size))], axis=0)
            for first in range(0, near.size, columns):
                weights = left @ right[:, first : first + columns]
                total += np.exp(weights, out=weights) @ load[first : first + columns]
        real = queries.real[i]
        result[queries.members[i][real]] = total[real]

    def blocks(part: np.ndarray) -> None:
        for i in part:
            block(int(i))

    count = len(queries.centres)
    if threads == 1 or count < 4:
        blocks(np.arange(count))
    else:
        with ThreadPoolExecutor(threads) as pool:
            parts = [pool.submit(blocks, part) for part in np.array_split(np.arange(count), 8 * threads)]
            for part in parts:
                part.result()
    return result
