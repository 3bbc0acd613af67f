"""Clusters by connectivity: two tokens are linked when their distance on the space is at most a scale.

Labels are the connected components, found exactly (`observe/linked.py`). Chords in R^d decide where they can
(`space.chords`), the distance on the space elsewhere.
"""

import dataclasses
import functools
import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from attnflow import sketches
from attnflow.axes import Number
from attnflow.describe import html_table, listed
from attnflow.fields.argument_checks import checked_arguments
from attnflow.observe.linked import Links, components, mass_around
from attnflow.observe.observable import observable
from attnflow.precision import in_float64
from attnflow.spaces import AbstractSpace
from attnflow.special.formula import Other, Reals, formula
from attnflow.tokens import Measure, Tokens
from attnflow.tokens.labels import label_array

LADDER = 8
"""Clusters are described in arrays of 1, 8, 64, 512 rows, then of powers of two."""
WIDEST = 0.5  # radians: at beta < 4 the kernel is so wide that a larger scale would call everything one cluster

SYSTEM = Other("tokens of one system, no two of them at the distance `scale` to within rounding")
SCALE, SHARE = Reals(0.0, ends="none", scalar=True), Reals(0.5, 1.0, scalar=True)
SHOWN = 8
"""Clusters, and tokens of a cluster, that a notebook lists."""


@dataclasses.dataclass(frozen=True, repr=False)
class Clusters:
    """The clusters of one system, largest mass first."""

    labels: np.ndarray
    """(n,) number of the cluster of each token, -1 for absent rows and for tokens that `share` leaves out."""
    centres: np.ndarray
    """(count, d) mass centres, on the space."""
    masses: np.ndarray
    """(count,) total masses."""
    radii: np.ndarray
    """(count,) distance from the centre to the farthest token."""
    scale: float
    """The linking distance."""
    leaders: np.ndarray
    """(count,) the token of each with the least place, test particles aside: under a causal mask no other token of its
    cluster moves it, and all others of the cluster see it."""
    names: np.ndarray | None = None
    """(n,) the labels of the tokens, where they have some."""

    @property
    def members(self) -> list[list[Any]]:
        """The tokens of each cluster in their order: their labels where they have some, else their numbers."""
        names: list[Any] = list(range(len(self.labels))) if self.names is None else self.names.tolist()
        return [[names[k] for k in np.flatnonzero(self.labels == q)] for q in range(self.count)]

    def __repr__(self) -> str:
        return f"Clusters({', '.join(f'{key}: {value}' for key, value in self._facts().items())})"

    def _repr_html_(self) -> str:
        rows = {
            f"cluster {q}": f"mass {self.masses[q]:.3g}, radius {self.radii[q]:.3g}, {len(members)} tokens: "
            + ", ".join(map(str, members if len(members) <= SHOWN else [*members[:SHOWN], "…"]))
            for q, members in enumerate(self.members[:SHOWN])
        }
        more = {"…": f"{self.count - SHOWN} more"} if self.count > SHOWN else {}
        return html_table("Clusters", self._facts() | rows | more, sketches.bars(self.masses, "masses"))

    def _facts(self) -> dict[str, str]:
        """What the clusters are, in a few words."""
        return {
            "count": str(self.count),
            "masses": listed([float(f"{mass:.3g}") for mass in self.masses]),
            "largest radius": f"{self.radii.max():.3g}",
            "scale": f"{self.scale:.3g}",
            "condensed": "yes" if self.condensed else "no",
        }

    @property
    def count(self) -> int:
        """Number of clusters."""
        return len(self.masses)

    @property
    def condensed(self) -> bool:
        """Whether every cluster is smaller than the linking distance.

        Before condensation it is not: iid tokens percolate into one chain, and the count says nothing about modes.
        """
        return bool(self.radii.max() <= self.scale)


@formula(beta=Reals(0.0, scalar=True), relative=4e-16)
def cluster_scale(beta: Number) -> float:
    """The linking angle for inverse temperature beta: beta^(-1/2), the range of the pair force, at most 0.5.

    Closer than about beta^(-1/2) a pair contracts its relative disturbances (arXiv:2410.06833). A negative beta repels,
    has no such range and is refused.
    """
    return 1 / max(1 / WIDEST, math.sqrt(beta))


@formula(tokens=SYSTEM, scale=SCALE, share=SHARE, relative=1e-15, absolute=4e-15)
@checked_arguments
def clusters(tokens: Tokens | Measure, *, scale: float, share: float = 1.0) -> Clusters:
    """The connected components of tokens linked within the distance `scale` (an angle on the sphere), one system.

    With `share` < 1 the tokens that have least mass around them (within about scale/2) are left out, up to a mass of
    1 - share: among many tokens a chain of a few stragglers would link clusters that hold nearly all mass.
    """
    tokens.single()
    found = _clusters(tokens, scale, share)
    return dataclasses.replace(found, names=label_array(tokens.labels)) if isinstance(tokens, Tokens) else found


def _clusters(tokens: Tokens | Measure, scale: float, share: float) -> Clusters:
    if tokens.present is not None:
        return _of_some(tokens, np.asarray(tokens.present), scale, share)
    x = np.asarray(tokens.positions, dtype=np.float64)
    if share < 1:
        mass = np.asarray(tokens.masses, dtype=np.float64)
        around = mass_around(x, mass, min(tokens.space.chords(scale / 2)[1], scale))
        order = np.argsort(around, kind="stable")
        kept = np.ones(len(x), bool)
        kept[order[np.cumsum(mass[order]) <= (1 - share) * mass.sum() * (1 + 1e-9)]] = False
        return _of_some(tokens, kept, scale, 1.0)
    links = Links(*tokens.space.chords(scale), functools.partial(_are_near, tokens.space, scale))
    return _describe(tokens, x, components(x, links), scale)


@observable
@formula(tokens=SYSTEM, scale=SCALE, share=SHARE)
@checked_arguments
def cluster_count(tokens: Tokens | Measure, *, scale: float, share: float = 1.0) -> np.int64:
    """The number of `clusters` of one system, on the host."""
    return np.int64(clusters(tokens, scale=scale, share=share).count)


def _of_some(tokens: Tokens | Measure, kept: np.ndarray, scale: float, share: float) -> Clusters:
    own = Measure(tokens.positions[kept], tokens.masses[kept], place=tokens.place[kept], space=tokens.space)
    found, labels = _clusters(own, scale, share), np.full(tokens.n, -1, np.int32)
    labels[kept] = found.labels
    return dataclasses.replace(found, labels=labels, leaders=np.flatnonzero(kept)[found.leaders])


@eqx.filter_jit
def _distances(space: AbstractSpace, a: Any, b: Any) -> Any:
    return space.distance(jnp.asarray(a), jnp.asarray(b))


@eqx.filter_jit
def _described(space: AbstractSpace, x: Any, labels: Any, means: Any, members: Any) -> Any:
    """The centres of clusters, and how far each point is from its own.

    Where a mean has no nearest point, as in a cluster that surrounds the origin, any member will do.
    """
    means, members = jnp.asarray(means), jnp.asarray(members)
    centres, nudged = space.retract(means), space.retract(means + 1e-12 * members)
    stable = jnp.linalg.norm(centres - nudged, axis=1, keepdims=True) < 0.1
    centres = jnp.where(stable, centres, nudged)
    return centres, space.distance(jnp.asarray(x), centres[labels])


def _filled_up(rows: np.ndarray, factor: int = 2) -> np.ndarray:
    """Rows filled up with copies of the last one to a power of `factor`, of 2 beyond 512: few sizes are compiled."""
    size = 1
    while size < len(rows):
        size *= factor if size < 512 else 2
    return np.pad(rows, [(0, size - len(rows))] + [(0, 0)] * (rows.ndim - 1), "edge")


def _are_near(space: AbstractSpace, scale: float, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if not len(a):
        return np.zeros(0, bool)
    return np.asarray(in_float64(_distances)(space, _filled_up(a), _filled_up(b)))[: len(a)] <= scale


def _describe(tokens: Tokens | Measure, x: np.ndarray, component: np.ndarray, scale: float) -> Clusters:
    mass = np.asarray(tokens.masses, dtype=np.float64)
    total = np.bincount(component, mass)
    order = np.argsort(-total, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    labels = rank[component]
    weight = np.where(total[component] > 0, mass, 1.0)  # clusters of test particles get their plain mean
    grouped = np.argsort(labels, kind="stable")
    first = np.searchsorted(labels[grouped], np.arange(len(order)))
    sums = np.add.reduceat((weight[:, None] * x)[grouped], first, axis=0)
    means = sums / np.bincount(labels, weight)[:, None]
    given = _filled_up(x), _filled_up(labels), _filled_up(means, LADDER), _filled_up(x[grouped[first]], LADDER)
    centres, away = (np.asarray(found) for found in in_float64(_described)(tokens.space, *given))
    radii = np.zeros(len(order))
    np.maximum.at(radii, labels, away[: len(x)])
    first_seen = np.lexsort((np.asarray(tokens.place), mass == 0, labels))
    leaders = first_seen[np.searchsorted(labels[first_seen], np.arange(len(order)))]
    return Clusters(
        labels.astype(np.int32), np.array(centres[: len(order)]), total[order], radii, float(scale), leaders
    )
