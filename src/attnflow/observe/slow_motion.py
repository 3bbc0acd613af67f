"""Slow motion of a gradient flow near the configurations whose groups coincide: its hypotheses, measured.

USA0 descends E = -E0 in the metric |a|^2 = sum_i m_i |a_i|^2. Let N be the configurations in which the tokens of each
group coincide, u the tokens, and v in N the centres of their groups. Otto and Reznikoff (J. Differential Equations 237,
2007; used in arXiv:2410.06833) ask for

    |u - v|^2/2 <= E(u) - E(v) <= |grad E(u)|^2/2   and   |E(v_1) - E(v_2)| <= delta |v_1 - v_2| on N,

and conclude that |u - v| + sqrt(E(u) - E(v)) falls like e^(-t) until it is of the order of delta. In the clock USA0
groups of masses M_p contract at the rates M_p: up to relative errors O(beta diameter^2), and exponentially small ones,

    E(u) - E(v) = sum_p M_p |u - v|_p^2/2   and   |grad E(u)|^2 = sum_p M_p^2 |u - v|_p^2 + |grad E(v)|^2,

so the hypotheses hold only when time is counted in units of 1/c, c the lightest M_p: c |u - v|^2/2 <= gap <=
|grad E(u)|^2/(2c), and the fall is like e^(-ct). N is invariant under the flow (tokens that coincide stay so), so that
here the fall goes on below delta, down to rounding.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from attnflow.axes import finite_array, positive
from attnflow.checks import shown
from attnflow.errors import InvalidInput
from attnflow.fields.argument_checks import checked_arguments
from attnflow.spaces import Sphere
from attnflow.special.formula import Other, Reals, formula
from attnflow.tokens import Tokens, all_present

if TYPE_CHECKING:
    import xarray as xr

LARGEST_BLOCK = 2**21
"""Entries of the largest array of differences."""
RESOLVED = 256 * np.finfo(np.float64).eps
"""Groups whose distance is below this are rounding errors of positions, and their ratios mean nothing."""


class SlowMotion(NamedTuple):
    """The hypotheses of slow motion at one configuration u with the centres v of its groups."""

    distance: float
    """|u - v|, with chords for distances."""
    gap: float
    """E(u) - E(v)."""
    gradient: float
    """|grad E(u)|."""
    slope: float
    """|grad E(v)| along N: the constant delta at v."""
    lower: float
    """2 gap/distance^2: the first hypothesis holds with any c up to this. NaN where the distance is 0."""
    upper: float
    """gradient^2/(2 gap): the second hypothesis holds with any c up to this. NaN where the gap is 0."""
    lightest: float
    """Mass of the lightest group."""


class _Groups(NamedTuple):
    """Groups of tokens about their centres: x_i = (1 - drop_i) c + tangent_i."""

    members: Int[np.ndarray, " token"]
    centres: Float[np.ndarray, "group dim"]
    masses: Float[np.ndarray, " group"]
    shrink: Float[np.ndarray, " group"]  # 1 - |mean|
    tangent: Float[np.ndarray, "token dim"]
    drop: Float[np.ndarray, " token"]


@formula(
    tokens=Other("tokens on a sphere, one system; groups narrower than 1e-6 lose digits by the rounding of positions"),
    labels=Other("an integer for each token"),
    beta=Reals(0.0, 1e4, "right", scalar=True),
    relative=1e-10,
)
@checked_arguments
def slow_motion(tokens: Tokens, labels: ArrayLike, beta: float) -> SlowMotion:
    """The hypotheses of slow motion for one system on a sphere whose groups are named by `labels`, an integer a token.

    A centre is the normalised mass mean of its group, and no token may be a right angle or more away from it.
    Differences are taken between tokens, never between energies, so that every number keeps its relative accuracy
    however tight the groups are. O(n^2).
    """
    tokens.single()
    if not isinstance(tokens.space, Sphere):
        raise InvalidInput(f"`tokens` live on {tokens.space}; the energy is defined on a sphere.")
    all_present(tokens, "slow_motion")
    names = _members(labels, tokens.n)
    return _measure(np.asarray(tokens.positions, np.float64), np.asarray(tokens.masses, np.float64), names, beta)[0]


def slow_motion_along(
    positions: ArrayLike,
    times: ArrayLike,
    masses: ArrayLike,
    labels: ArrayLike,
    beta: float,
    *,
    rate: float | None = None,
    slack: float = 0.1,
) -> "xr.Dataset":
    """The hypotheses along a flow of USA0, by time, with the bound that they imply on |u - v| + sqrt(gap) beside.

    With c = `rate`, delta the largest slope, L the largest 1/|mean of a group| and e = `slack` in (0, 1), the bound is

        (1 + sqrt(2/c)) (e^(-(1-e) c (t - t_0)) sqrt(gap_0) + L delta/sqrt(8 e (1-e) c)),

    for gap' <= -|grad E|^2 + delta |v'|, |v'| <= L |grad E|, |grad E|^2 >= 2 c gap and |u - v|^2 <= 2 gap/c. The rate
    is, if not given, the least of `lower` and `upper` over the frames that are `resolved` (a distance above rounding);
    the bound is NaN if that is not positive: begin with frames whose groups are tighter than beta^(-1/2).
    """
    import xarray as xr

    frames, clock = finite_array("`positions`", positions), finite_array("`times`", times)
    if frames.ndim != 3 or len(frames) == 0 or clock.shape != frames.shape[:1] or (np.diff(clock) <= 0).any():
        raise InvalidInput(
            f"`positions` has shape {frames.shape} and `times` {clock.shape}; give one frame a time, ascending."
        )
    if not 0 < slack < 1:
        raise InvalidInput(f"`slack` is {shown(slack)}; give a number strictly between 0 and 1.")
    given = None if rate is None else float(positive("rate")(rate))
    b, names = float(positive("beta")(beta)), _members(labels, frames.shape[1])
    tokens = Tokens(frames, masses, dims=("frame",))
    rows = [_measure(x, m, names, b) for x, m in zip(np.asarray(tokens.positions), tokens.masses, strict=True)]
    found = {name: np.array([getattr(row, name) for row, _ in rows]) for name in SlowMotion._fields}
    lightest = float(found.pop("lightest")[0])
    resolved = found["distance"] > RESOLVED
    ratios = np.concatenate([found["lower"][resolved], found["upper"][resolved], [np.inf]])
    c = given if given is not None else (float(ratios.min()) if resolved.any() else np.nan)
    if c > 0 and found["gap"][0] >= 0:
        lipschitz = max(stretch for _, stretch in rows)
        fall = np.exp(-(1 - slack) * c * (clock - clock[0])) * np.sqrt(found["gap"][0])
        floor = lipschitz * found["slope"].max() / np.sqrt(8 * slack * (1 - slack) * c)
        bound = (1 + np.sqrt(2 / c)) * (fall + floor)
    else:
        bound = np.full(len(clock), np.nan)
    columns = {**found, "bound": bound, "resolved": resolved}
    return xr.Dataset(
        {name: ("time", column) for name, column in columns.items()},
        {"time": clock},
        {"beta": b, "lightest": lightest, "rate": c, "slack": slack},
    )


def _members(labels: ArrayLike, n: int) -> np.ndarray:
    names = np.asarray(labels)
    if names.shape != (n,) or names.dtype.kind not in "iu":
        raise InvalidInput(
            f"`labels` has shape {names.shape} and dtype {names.dtype}; give one integer for each of the {n} tokens."
        )
    return np.unique(names, return_inverse=True)[1]


def _measure(x: np.ndarray, m: np.ndarray, names: np.ndarray, beta: float) -> tuple[SlowMotion, float]:
    """The numbers of one configuration, and the largest 1/|mean| of a group."""
    groups = _grouped(x, m, names)
    inside, gradient = _within(x, m, names, beta)
    outside, slope = _between(groups, m, beta)
    square = float(2 * np.sum(groups.masses * groups.shrink))  # sum of m |x - c|^2 = 2 m (1 - <x, c>)
    gap = inside + outside
    found = SlowMotion(
        float(np.sqrt(square)),
        gap,
        gradient,
        slope,
        2 * gap / square if square > 0 else np.nan,
        gradient / (2 * gap) * gradient if gap != 0 else np.nan,
        float(groups.masses.min()),
    )
    return found, float(1 / (1 - groups.shrink.max()))


def _grouped(x: np.ndarray, m: np.ndarray, names: np.ndarray) -> _Groups:
    """Centres, and tokens about them, from differences within groups: relative accuracy at every diameter."""
    k = int(names.max()) + 1
    total = np.bincount(names, m, k)
    if (total <= 0).any():
        raise InvalidInput(f"the group of token {_token(names, total)} in `labels` has no mass; leave it out.")
    share = (m / total[names])[:, None]
    order = np.lexsort((-m, names))
    reference = x[order[np.unique(names[order], return_index=True)[1]]]  # the heaviest token of each group
    away = x - reference[names]
    middle = np.zeros_like(reference)
    np.add.at(middle, names, share * away)
    away -= middle[names]
    mean = reference + middle
    norms = np.linalg.norm(mean, axis=1)
    if (norms < 1e-6).any():
        raise InvalidInput(f"the group of token {_token(names, norms)} in `labels` has its mean at 0; split it.")
    centres = mean / norms[:, None]
    cosine = np.sum(x * centres[names], axis=1)
    if (cosine <= 0).any():
        far = int(np.argmin(cosine))
        raise InvalidInput(
            f"`labels` puts token {far} at the cosine {cosine[far]:.3g} from the centre of its group; split groups "
            "that reach a right angle."
        )
    variance = np.bincount(names, share[:, 0] * np.sum(away**2, axis=1), k)
    tangent = away - np.sum(away * centres[names], axis=1, keepdims=True) * centres[names]
    return _Groups(names, centres, total, _half(variance), tangent, _half(np.sum(tangent**2, axis=1)))


def _token(names: np.ndarray, sizes: np.ndarray) -> int:
    """The first token of the group with the least size."""
    return int(np.argmax(names == np.argmin(sizes)))


def _half(square: np.ndarray) -> np.ndarray:
    """1 - sqrt(1 - square)."""
    return square / (1 + np.sqrt(np.maximum(1 - square, 0)))


def _within(x: np.ndarray, m: np.ndarray, names: np.ndarray, beta: float) -> tuple[float, float]:
    """The part of the gap that comes from pairs within groups, and |grad E|."""
    gap, velocity = 0.0, np.empty_like(x)
    block = max(1, LARGEST_BLOCK // x.size)
    for start in range(0, len(x), block):
        rows = slice(start, start + block)
        step = x[None, :, :] - x[rows, None, :]
        depth = -0.5 * beta * np.sum(step**2, axis=-1)
        same = names[rows, None] == names[None, :]
        gap -= float(np.sum(m[rows, None] * m * np.where(same, np.expm1(depth), 0.0)))
        pull = np.einsum("ij,ijd->id", m * np.exp(depth), step)
        velocity[rows] = pull - np.sum(pull * x[rows], axis=1, keepdims=True) * x[rows]
    return gap / (2 * beta), _norm(m, velocity)


def _between(groups: _Groups, m: np.ndarray, beta: float) -> tuple[float, float]:
    """The part of the gap that comes from pairs of groups, and the slope on N.

    With w = <c_p, c_q> - <x_i, x_j>, z = beta w and U = 1 - <c_p, c_q>, a pair of groups adds the sum of
    m_i m_j e^(-beta U) (1 - e^(-z)) = m_i m_j e^(-beta U) (z - (z - 1 + e^(-z))). The sum of m_i m_j w is
    M_p M_q <c_p, c_q> (1 - |mean_p| |mean_q|), and what is left has one sign: nothing of first order cancels.
    """
    c, masses, shrink = groups.centres, groups.masses, groups.shrink
    step = c[None, :, :] - c[:, None, :]
    depth = -0.5 * beta * np.sum(step**2, axis=-1)
    weight = np.exp(depth)
    pull = np.einsum("pq,pqd->pd", masses * weight, step)
    pull -= np.sum(pull * c, axis=1, keepdims=True) * c
    slope = _norm(masses, pull)
    apart = ~np.eye(len(c), dtype=bool)
    overlap = c @ c.T
    linear = overlap * (shrink[:, None] + shrink - shrink[:, None] * shrink)
    gap = 0.5 * float(np.sum((masses[:, None] * masses * weight * linear)[apart]))
    names, drop, tangent = groups.members, groups.drop, groups.tangent
    sideways = tangent @ c.T  # <tangent_i, c_q>
    block = max(1, LARGEST_BLOCK // len(m))
    for start in range(0, len(m), block):
        rows = slice(start, start + block)
        here = names[rows]
        near = overlap[here[:, None], names] * (drop[rows, None] + drop - drop[rows, None] * drop)
        near -= (1 - drop[rows, None]) * sideways[:, here].T + (1 - drop) * sideways[rows][:, names]
        near -= tangent[rows] @ tangent.T
        rest = _remainder(beta * near, depth[here[:, None], names])
        gap -= float(np.sum((m[rows, None] * m * rest)[here[:, None] != names])) / (2 * beta)
    return gap, slope


def _norm(masses: np.ndarray, vectors: np.ndarray) -> float:
    """The root of sum m |v|^2, where the squares may underflow."""
    largest = float(np.abs(vectors).max())
    return largest * float(np.sqrt(np.sum(masses * np.sum((vectors / (largest or 1.0)) ** 2, axis=1))))


def _remainder(z: np.ndarray, depth: np.ndarray) -> np.ndarray:
    """e^depth (z - 1 + e^(-z)) for depth - z <= 0: a series up to |z| = 1, and beyond without a large factor."""
    small = np.where(np.abs(z) <= 1, z, 0.0)
    series = np.ones_like(z)
    for k in range(19, 2, -1):
        series = 1 - small / k * series
    far = np.exp(depth) * (z - 1) + np.exp(np.minimum(depth - z, 0.0))
    return np.where(np.abs(z) <= 1, np.exp(depth) * 0.5 * small**2 * series, far)
