"""The log-time integrator: weighted clusters followed to consensus, however long it takes.

Only the nearest pairs of clusters move: the force of a pair at half squared distance u is e^(-beta u), and the smallest
u rules. In the clock s with dt = e^(-L) ds, L = log of the sum of e^(-beta u) over all pairs,

    dX_q/ds = sum_p M_p e^(-beta u_pq - L) P_q (x_p - x_q)        (softmax: divided by M_q + sum_p M_p e^(-beta u_pq))

has weights in [0, 1] for every beta, and log t is carried: nothing overflows and nothing drowns in rounding. u is
computed as |x_p - x_q|^2 / 2, and P_q x_p as P_q (x_p - x_q), so near pairs keep their digits. Two clusters that have
met become one, in place: the second keeps its slot with mass zero. Everything here is pure and can be batched.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from attnflow.special.quotients import expm1_ratio

SHRINK, GROW, SAFETY = 0.2, 5.0, 0.9
SMALLEST = 1e-14
EVALUATIONS = 15
"""Forces per attempted step: the stages, and the one that sets the clock."""


class Physics(eqx.Module):
    """Numbers are traced; whether weights are divided by their sum is compiled in."""

    beta: Float[Array, ""]
    softmax: bool = eqx.field(static=True)
    tol: Float[Array, ""]
    """Error of log t per step; positions are kept to tol / (1 + beta), which later merge times need."""
    angle: Float[Array, ""]
    """Clusters closer than this are one."""
    log_until: Float[Array, ""]
    sensitive: bool = eqx.field(static=True)
    """Whether a small perturbation is carried along."""


class ClusterState(NamedTuple):
    """What moves."""

    x: Float[Array, "slot dim"]
    mass: Float[Array, " slot"]
    log_t: Float[Array, ""]
    arc: Float[Array, ""]
    """Length of the path so far, in the metric weighted by masses."""
    step: Float[Array, ""]
    shift: Float[Array, "slot dim"]
    """What a perturbation of size 1 has become, divided by e^log_unit."""
    log_unit: Float[Array, ""]
    log_growth: Float[Array, ""]
    """Logarithm of the largest size that the perturbation has had so far."""
    log_error: Float[Array, ""]
    """Error of log t by the integration of t alone: the sum of the errors of steps."""
    defect: Float[Array, ""]
    """Sum of the position errors of steps, each divided by the size of the perturbation when it was made."""
    evaluations: Int[Array, ""]
    rejected: Int[Array, ""]
    frozen: Bool[Array, ""]
    shortened: Bool[Array, ""]
    """Whether a step was shortened to end at `log_until`, which longer flows would not do."""


class Records(NamedTuple):
    """What a slice of work leaves: one row per accepted step or merge, as many as `filled`."""

    log_t: Float[Array, " row"]
    x: Float[Array, "row slot dim"]
    mass: Float[Array, "row slot"]
    energy: Float[Array, " row"]
    """The renormalised energy, in the units of the masses."""
    log_speed: Float[Array, " row"]
    arc: Float[Array, " row"]
    first: Int[Array, " row"]
    """Slot that took the other over, or -1 for a step."""
    second: Int[Array, " row"]
    log_growth: Float[Array, " row"]
    error: Float[Array, " row"]
    """Estimate of the error of log t: its own, and 2 beta times that of positions, grown like the perturbation."""
    evaluations: Int[Array, " row"]
    filled: Int[Array, ""]


def begin(x: Any, mass: Any, sensitive: bool, key: Any) -> ClusterState:
    """Clusters at time 0. A perturbation, where one is carried, has entries of size 1, at random."""
    shift: Any = np.zeros(x.shape, x.dtype)
    if sensitive:
        shift = jax.random.normal(key, x.shape, x.dtype)
        shift = shift - jnp.sum(shift * x, axis=1, keepdims=True) * x
    zero: Any = np.zeros((), x.dtype)
    first: Any = np.asarray(-np.inf, x.dtype)
    step: Any = np.asarray(1e-3, x.dtype)
    none: Any = np.zeros((), int)
    no: Any = np.asarray(False)
    return ClusterState(x, mass, first, zero, step, shift, zero, zero, zero, zero, none, none, no, no)


def distances(x: Any, mass: Any) -> tuple[Any, Any, Any]:
    """(x_p - x_q as [coordinate, q, p], u_pq, which pairs count); the pairs are innermost, where loops are fastest."""
    apart = x.T[:, None, :] - x.T[:, :, None]
    u = 0.5 * jnp.sum(apart * apart, axis=0)
    real = (mass > 0)[:, None] & (mass > 0)[None, :] & ~jnp.eye(x.shape[0], dtype=bool)
    return apart, u, real


def nearest_pair(x: Any, mass: Any) -> tuple[Any, Any, Any]:
    """(p, q, u_pq) of the two clusters that are nearest to each other, p < q."""
    _, u, real = distances(x, mass)
    u, n = jnp.where(real, u, jnp.inf), x.shape[0]
    nearest = jnp.argmin(u)
    p, q = nearest // n, nearest % n
    return jnp.minimum(p, q), jnp.maximum(p, q), u[p, q]


def force(physics: Physics, x: Any, mass: Any) -> tuple[Any, Any]:
    """(dX/ds, L)."""
    apart, u, real = distances(x, mass)
    log_weight = jnp.where(real, -physics.beta * u, -jnp.inf)
    top = jnp.max(jnp.where(real, log_weight, -1e300))
    weight = jnp.exp(log_weight - top)  # at most 1, and 0 for pairs that do not count
    total = jnp.sum(weight) / 2
    level = jnp.log(total) + top
    pull = weight * (mass / jnp.where(total > 0, total, 1.0))[None, :]
    towards = jnp.sum(pull[None] * apart, axis=2).T + jnp.sum(pull * u, axis=1)[:, None] * x  # P_q(x_p - x_q)
    if physics.softmax:
        heard = mass + jnp.exp(level) * jnp.sum(pull, axis=1)
        towards = towards / jnp.where(mass > 0, heard, 1.0)[:, None]
    return jnp.where((mass > 0)[:, None], towards, 0.0), level


def energy(physics: Physics, x: Any, mass: Any) -> Any:
    """(1/2 beta) sum over pairs of M_p M_q (e^(-beta u) - 1): at most 0, and 0 at consensus."""
    _, u, real = distances(x, mass)
    return -0.5 * jnp.sum(jnp.where(real, u * expm1_ratio(-physics.beta * u), 0.0) * mass[:, None] * mass[None, :])


def compact(clusters: ClusterState, size: int) -> tuple[ClusterState, Int[Array, " slot"]]:
    """The clusters in `size` slots, in the order in which they were, and the slots that they had."""
    order = jnp.argsort(clusters.mass <= 0, stable=True)[:size]
    return clusters._replace(x=clusters.x[order], mass=clusters.mass[order], shift=clusters.shift[order]), order


def slice_of_work(
    physics: Physics, clusters: ClusterState, rows: int, few: int, keep: bool
) -> tuple[ClusterState, Records]:
    """Steps and merges until `rows` of them are recorded, at most `few` clusters are left, or the time is up.

    `keep=False` records merges only, and tries no more than `rows` steps: members of a batch, which wait for each
    other, then try equally many.
    """
    n, d = clusters.x.shape
    frames, tried = (rows, 8 * rows) if keep else (1, rows)
    column = jnp.zeros(rows, clusters.x.dtype)
    records = Records(
        column, jnp.zeros((frames, n, d), column.dtype), jnp.zeros((frames, n), column.dtype), column, column, column,
        jnp.full(rows, -1), jnp.full(rows, -1), column, column, jnp.zeros(rows, int), jnp.zeros((), int),
    )  # fmt: skip

    def going(carry: Any) -> Any:
        state, records, tries = carry
        crowded = jnp.sum(state.mass > 0) > few
        return crowded & ~is_over(physics, state) & (records.filled < rows) & (tries < tried)

    def go(carry: Any) -> Any:
        state, records, tries = carry
        first, second, u = nearest_pair(state.x, state.mass)
        met = u <= 0.5 * physics.angle**2
        state, done = jax.lax.cond(
            met,
            lambda state: (_merged(physics, state, first, second), jnp.asarray(True)),
            lambda state: _stepped(physics, state),
            state,
        )
        row = jnp.where(done, records.filled, rows)  # a row out of bounds is dropped
        frame = row if keep else frames
        level_of_energy, log_speed = _height(physics, state) if keep else (column[0], column[0])
        error = state.log_error + 2 * physics.beta * state.defect * jnp.exp(_log_size(state))
        entry = Records(
            state.log_t, state.x, state.mass, level_of_energy, log_speed, state.arc,
            jnp.where(met, first, -1), jnp.where(met, second, -1), state.log_growth, error, state.evaluations,
            records.filled,
        )  # fmt: skip
        fields = {
            name: getattr(records, name)
            .at[frame if name in ("x", "mass") else row]
            .set(getattr(entry, name), mode="drop")
            for name in Records._fields[:-1]
        }
        records = Records(**fields, filled=records.filled + done.astype(int))
        return state, records, tries + 1

    state, records, _ = jax.lax.while_loop(going, go, (clusters, records, jnp.zeros((), int)))
    return state, records


def _height(physics: Physics, state: ClusterState) -> tuple[Any, Any]:
    """The energy, and the logarithm of the largest speed."""
    towards, level = force(physics, state.x, state.mass)
    log_speed = level + jnp.log(jnp.max(jnp.linalg.norm(towards, axis=1)))
    return energy(physics, state.x, state.mass), log_speed


def is_over(physics: Physics, clusters: ClusterState) -> Any:
    """Whether one cluster is left, the time is up, or nothing can move; of one system or of many."""
    alone = (clusters.mass > 0).sum(axis=-1) <= 1
    return alone | (clusters.log_t >= physics.log_until) | clusters.frozen | has_failed(clusters)


def has_failed(clusters: ClusterState) -> Any:
    """Whether steps have become too small to go on."""
    return ~(clusters.step > SMALLEST)


def _merged(physics: Physics, state: ClusterState, first: Any, second: Any) -> ClusterState:
    """The second cluster taken over by the first, at their centre of mass (which a tight pair conserves).

    The next step is one in which the clock changes by a factor of about e^(1/2).
    """
    total = state.mass[first] + state.mass[second]

    def centre(a: Any) -> Any:
        return (state.mass[first] * a[first] + state.mass[second] * a[second]) / total

    middle = centre(state.x)
    x = state.x.at[first].set(middle / jnp.linalg.norm(middle))
    mass = state.mass.at[first].set(total).at[second].set(0.0)
    towards = force(physics, x, mass)[0]
    _, change = jax.jvp(lambda x: force(physics, x, mass)[1], (x,), (towards,))
    return state._replace(
        x=x,
        mass=mass,
        step=jnp.minimum(state.step, 0.5 / jnp.maximum(jnp.abs(change), 1e-3)),
        evaluations=state.evaluations + 2,
        shift=state.shift.at[first].set(centre(state.shift)).at[second].set(0.0),
    )


def _stepped(physics: Physics, state: ClusterState) -> tuple[ClusterState, Any]:
    """One attempted step of Dormand-Prince 8(7) and whether it was accepted."""
    import diffrax

    now, start = force(physics, state.x, state.mass)

    def rate(_: Any, y: Any, __: Any) -> Any:
        x, _, shift, _ = y

        def at(x: Any) -> Any:
            return force(physics, x / jnp.linalg.norm(x, axis=1, keepdims=True), state.mass)

        if physics.sensitive:
            (towards, level), (turn, _) = jax.jvp(at, (x,), (shift,))
        else:
            (towards, level), turn = at(x), None
        speed = jnp.sqrt(jnp.sum(state.mass * jnp.sum(towards * towards, axis=1)))
        return towards, jnp.exp(start - level), turn, speed

    zero = jnp.zeros_like(state.arc)
    term, solver = diffrax.ODETerm(rate), diffrax.Dopri8()
    y = (state.x, zero, state.shift if physics.sensitive else None, zero)
    memory = solver.init(term, zero, state.step, y, None)
    end, error, _, _, _ = solver.step(term, zero, state.step, y, None, memory, False)
    assert error is not None
    shift = end[2] if physics.sensitive else state.shift
    alive = (state.mass > 0)[:, None]
    log_t = jnp.logaddexp(state.log_t, jnp.log(jnp.maximum(end[1], 0.0)) - start)
    error_x = jnp.max(jnp.where(alive, jnp.abs(error[0]), 0.0))
    error_t = jnp.exp(jnp.log(jnp.abs(error[1])) - start - log_t)
    x = end[0] / jnp.linalg.norm(end[0], axis=1, keepdims=True)
    share, off_meeting = _meeting(physics, state, x, error[0])
    off_meeting = off_meeting * jnp.exp(-start - log_t)
    size = jnp.maximum(jnp.maximum(error_x * (1 + physics.beta), error_t), off_meeting) / physics.tol
    fine = jnp.isfinite(size) & jnp.isfinite(log_t) & jnp.all(jnp.isfinite(end[0]))
    factor = jnp.where(fine, jnp.clip(SAFETY * jnp.where(fine, size, 1.0) ** (-1 / 8), SHRINK, GROW), SHRINK)
    # a step that passes the last time is repeated, shortened in proportion
    beyond = fine & (log_t > physics.log_until + physics.tol)
    left = jnp.exp(physics.log_until + start) - jnp.exp(state.log_t + start)
    shorten = jnp.clip(left / jnp.maximum(end[1], 1e-300), 1e-6, 1.0)
    # so is one that passes a meeting by more than the tolerance of log t
    late = fine & ((1 - share) * -jnp.expm1(state.log_t - log_t) > physics.tol)
    shorten = jnp.where(late, share, shorten)
    good = fine & (size <= 1.0) & ~beyond & ~late
    largest = jnp.maximum(jnp.max(jnp.abs(shift)), 1e-300)
    big = (largest > 1e100) | (largest < 1e-100)
    moved = state._replace(
        x=jnp.where(alive, x, state.x),
        log_t=log_t,
        arc=state.arc + end[3],
        step=state.step * factor,
        shift=jnp.where(big, shift / largest, shift),
        log_unit=state.log_unit + jnp.where(big, jnp.log(largest), 0.0),
        log_growth=jnp.maximum(state.log_growth, state.log_unit + jnp.log(largest)),
        log_error=state.log_error + error_t + off_meeting,
        defect=state.defect + error_x * (jnp.exp(-state.log_unit) / largest if physics.sensitive else 1.0),
    )
    stay = state._replace(
        step=state.step * jnp.where((beyond | late) & (size <= 1.0), shorten, jnp.minimum(factor, SAFETY)),
        rejected=state.rejected + 1,
        shortened=state.shortened | beyond,
    )
    result = jax.tree.map(lambda a, b: jnp.where(good, a, b), moved, stay)
    still = jnp.max(jnp.abs(now)) == 0
    return result._replace(evaluations=state.evaluations + EVALUATIONS, frozen=still), good


def _log_size(state: ClusterState) -> Any:
    """Logarithm of the present size of the perturbation; 0 where none is carried."""
    size = jnp.max(jnp.abs(state.shift))
    return jnp.where(size > 0, state.log_unit + jnp.log(jnp.maximum(size, 1e-300)), 0.0)


def _meeting(physics: Physics, state: ClusterState, x: Any, error: Any) -> tuple[Any, Any]:
    """Of the pair that is nearest at the end `x` of a step, whose distance falls like e^(-s) when it meets:

    the share of the step after which it is as near as the merging angle (1 if it is not), and the relative error of
    its distance, which is the error in s of that moment.
    """
    p, q, _ = nearest_pair(x, state.mass)
    end = jnp.maximum(jnp.linalg.norm(x[p] - x[q]), 1e-300)
    before, after = jnp.log(jnp.linalg.norm(state.x[p] - state.x[q])), jnp.log(end)
    wanted = jnp.log(physics.angle)
    share = jnp.where(after < wanted, jnp.clip((before - wanted) / (before - after), 1e-3, 1.0), 1.0)
    return share, jnp.linalg.norm(error[p] - error[q]) / end
