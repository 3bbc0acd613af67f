"""Finite volumes: the continuity equation for masses of cells, through concentration into clusters and beyond.

d m_i/dt = F_{i-1/2} - F_{i+1/2}, F the mass that passes an edge per unit time. Tokens move along grad Phi, and the
discrete equation climbs the discrete energy as the true one does (Carrillo, Chertock and Huang, arXiv:1402.4252):
v_{i+1/2} = (Phi_{i+1} - Phi_i)/width with Phi made of a symmetric matrix, and F carries v times the density of the cell
that the flow leaves, reconstructed linearly with a limiter. So F v >= 0 at every edge.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import xlogy
from jaxtyping import Array, Float

from attnflow.flows.compiled import compiled
from attnflow.meanfield.cells.grid import Scheme

Masses = Float[Array, " cell"]
LIMIT = 256
"""Steps between two looks at the clock."""
TINY = 1e-14
"""The shortest step, as a share of the time to be reached."""
NARROW = 0.9
"""The share of six neighbouring cells that two of them hold where a cluster counts as narrower than a cell."""


class CellState(NamedTuple):
    """Where the integration is."""

    t: Any
    masses: Any
    memory: Any
    """The next step."""
    steps: Any
    since: Any
    """The time since which half of the mass has been in clusters narrower than a cell; inf before."""
    row: Any
    """Frames so far."""


def summed(table: Any, charges: Masses) -> Array:
    """A table of the kernel (a matrix, or the transform of a row) times charges."""
    table = jnp.asarray(table)
    if table.ndim == 2:
        return table @ charges
    spectrum = jnp.fft.rfft(charges)
    return jnp.fft.irfft(jax.lax.complex(table * spectrum.real, table * spectrum.imag), charges.shape[0])


def velocity_potential(scheme: Scheme, masses: Masses) -> tuple[Array, Array]:
    """Phi in every cell, and log(K * mu) where softmax divides by it (else 0)."""
    beta, direct = scheme.beta, scheme.kernel.direct
    sums, safe = summed(scheme.kernel.table, masses), jnp.maximum(scheme.beta, 1e-12)
    level = jnp.where(
        direct, jnp.log(jnp.maximum(sums, scheme.kernel.floor)), jnp.log1p(jnp.where(direct, 0.0, beta * sums))
    )
    linear = scheme.clock_factor * jnp.where(direct, sums / safe, sums)
    phi = jnp.where(scheme.softmax, jnp.where(beta < safe, sums, level / safe), linear)
    return phi + scheme.external_potential, jnp.where(scheme.softmax, level, 0.0)


def energy(scheme: Scheme, masses: Masses) -> Array:
    """What the scheme climbs: the free energy, in units of the clock's factor."""
    return _energies(scheme, masses)[1] / scheme.clock_factor


def _energies(scheme: Scheme, masses: Masses) -> tuple[Array, Array]:
    """E plus the potentials, and the free energy: E times the clock's factor, plus potentials, minus kappa entropy."""
    sums = jnp.sum(masses * summed(scheme.kernel.table, masses))
    pairs = jnp.where(scheme.kernel.direct, (sums - jnp.sum(masses) ** 2) / jnp.maximum(scheme.beta, 1e-12), sums) / 2
    entropy = jnp.sum(xlogy(masses, masses) - masses * scheme.log_measure)
    external = jnp.sum(masses * scheme.external_potential)
    return pairs + external, scheme.clock_factor * pairs + external - scheme.kappa * entropy


def narrow_share(masses: Masses) -> Array:
    """The share of mass in clusters narrower than a cell: in two neighbours with most of the mass of six."""
    pair = masses + jnp.roll(masses, -1)
    lumps = pair >= NARROW * (jnp.roll(pair, 2) + pair + jnp.roll(pair, -2))
    return jnp.sum(jnp.where(lumps | jnp.roll(lumps, 1), masses, 0.0))


def _flux(scheme: Scheme, masses: Masses) -> tuple[Array, Array]:
    """The mass that passes every edge, and the inverse of the longest step that keeps positivity and the energy.

    Positivity: a reconstructed mass is at most 2 m_i, so a cell loses at most 2 (v area / measure) m_i. Energy: a step
    f changes E by D step + step^2 f.G f/2, G = (K-1)/beta, D = sum F (difference of G m). Summing by parts,
    f.G f <= C width^2 (sum |F|)^2 <= C Q D by Cauchy-Schwarz, with C the largest mixed second difference of G over
    width^2 and Q = width^2 sum F/(difference of G m): an Euler step climbs if it is below 2/(C Q), and the convex
    combinations of the third-order scheme, E being quadratic, if each stage is below 2/(3 C Q). Where that is short
    (softmax, K * mu small), Schur's test with the carried masses as weights gives f.G f <= R D with R of order 1; the
    weights may change within a step, so 1/(3 R) is kept to.
    """
    phi, level = velocity_potential(scheme, masses)
    v = (jnp.roll(phi, -1) - phi) / scheme.width
    rise = (jnp.roll(masses, -1) * scheme.up - masses) / scheme.gap  # slopes at the edge, times the measure of cell i
    past = (masses - jnp.roll(masses * scheme.down, 1)) / jnp.roll(scheme.gap, 1)
    inner = scheme.right > 0  # at the poles the density goes on as its mirror image, without a slope
    slope = _limited(jnp.where(jnp.roll(inner, 1), past, 0.0), jnp.where(inner, rise, 0.0))
    most = masses / jnp.maximum(scheme.ahead, scheme.behind)
    slope = jnp.clip(slope, -most, most)
    outgoing = scheme.right * (masses + slope * scheme.ahead)
    incoming = scheme.left * jnp.roll(masses - slope * scheme.behind, -1)
    carried = jnp.where(v > 0, outgoing, incoming)
    loss = scheme.right * jnp.maximum(v, 0.0) + jnp.roll(scheme.left * jnp.maximum(-v, 0.0), 1)
    inverse = jnp.exp(-(level + jnp.roll(level, -1)) / 2)  # at least the inverse of the logarithmic mean of K * mu
    weight = scheme.width * scheme.clock_factor * inverse
    crude, most_lost = 1.5 * scheme.kernel.curvature * jnp.sum(carried * weight), 2 * jnp.max(loss)

    def finer() -> Array:
        return jnp.minimum(crude, 3 * jnp.max(summed(scheme.kernel.bends, carried) * weight))

    return carried * v, jnp.maximum(most_lost, jax.lax.cond(crude > most_lost, finer, lambda: crude))


def _limited(a: Array, b: Array) -> Array:
    """The mean slope, at most twice the smaller one, 0 where they differ in sign (monotonised central)."""
    size = jnp.minimum(jnp.abs(a + b) / 2, 2 * jnp.minimum(jnp.abs(a), jnp.abs(b)))
    return jnp.where(a * b > 0, jnp.sign(a) * size, 0.0)


class Moved(NamedTuple):
    """One step: the masses after it, the estimate of its error in L^1, and the inverse of the longest step allowed."""

    masses: Any
    error: Any
    limit: Any


def advect(scheme: Scheme, masses: Masses, tau: Any) -> Moved:
    """One step without noise: third-order SSP Runge-Kutta, with Heun's step inside.

    The stages are convex combinations of Euler steps, so no mass is negative; they are summed as fluxes, to keep the
    total, and rounding below 0 is cut off.
    """

    def stage(m: Array, kept: Array) -> tuple[Array, tuple[Array, Array]]:
        flux, limit = _flux(scheme, m)
        return kept * masses + (1 - kept) * (m - tau * _divergence(flux)), (flux, limit)

    _, (fluxes, limits) = jax.lax.scan(stage, masses, jnp.array([0.0, 0.75, 0.0]))
    found = masses - tau * _divergence((fluxes[0] + fluxes[1]) / 6 + fluxes[2] * (2 / 3))
    error = tau * jnp.sum(jnp.abs(_divergence(fluxes[0] + fluxes[1] - 2 * fluxes[2]))) / 3
    return Moved(jnp.maximum(found, 0.0), error, jnp.max(limits))


def diffuse(scheme: Scheme, masses: Masses, tau: Any) -> Array:
    """The heat flow over the time `tau`, second order, never negative for any `tau`.

    Two implicit Euler steps of tau/2, which keep the sign since their matrix is an M-matrix; then the flux by which
    they exceed one of tau is taken off (Richardson), reduced where it would make a cell negative.
    """
    right, left = scheme.kappa * scheme.right / scheme.gap, scheme.kappa * scheme.left / scheme.gap
    steps = jnp.stack([tau / 2, tau])
    implicit = jax.vmap(lambda m, step: _implicit(right, left, m, step))

    def both(start: Array, _: None) -> tuple[Array, Array]:
        after = implicit(start, steps)
        return jnp.stack([after[0], masses]), after

    _, after = jax.lax.scan(both, jnp.stack([masses, masses]), None, length=2)
    half, twice, whole = after[0, 0], after[1, 0], after[0, 1]
    mean = half + twice - 2 * whole
    extra = tau / 2 * (right * mean - left * jnp.roll(mean, -1))
    out = jnp.maximum(extra, 0.0) + jnp.maximum(-jnp.roll(extra, 1), 0.0)
    share = jnp.minimum(1.0, twice / jnp.where(out > 0, out, 1.0))
    return jnp.maximum(twice - _divergence(extra * jnp.where(extra > 0, share, jnp.roll(share, -1))), 0.0)


def _implicit(right: Array, left: Array, masses: Masses, tau: Any) -> Array:
    """One implicit Euler step: a cyclic tridiagonal system, by Sherman and Morrison. Only positive terms are added."""
    diagonal = 1 + tau * (right + jnp.roll(left, 1))
    below, above = -tau * jnp.roll(right, 1), -tau * left
    corner, other = below[0], above[-1]  # first row, last column; last row, first column
    first = diagonal[0]
    bent = diagonal.at[0].add(first).at[-1].add(corner * other / first)
    sides = jnp.stack([masses, jnp.zeros_like(masses).at[0].set(-first).at[-1].set(other)], axis=1)
    solved = jax.lax.linalg.tridiagonal_solve(below.at[0].set(0.0), bent, above.at[-1].set(0.0), sides)
    y, z = solved[:, 0], solved[:, 1]
    top, bottom = y[0] - corner / first * y[-1], 1 + z[0] - corner / first * z[-1]
    return y - top / bottom * z


def _divergence(flux: Array) -> Array:
    return flux - jnp.roll(flux, 1)


def move(scheme: Scheme, masses: Masses, tau: Any) -> Moved:
    """One step. With noise, two half steps of Strang splitting (heat, attention, heat) judged by a whole one."""
    noisy = scheme.kappa > 0

    def heat(m: Array, step: Any) -> Array:
        return jax.lax.cond(noisy, diffuse, lambda scheme, m, step: m, scheme, m, step)

    def strang(m: Array, step: Any) -> Moved:
        def part(now: Moved, first: Array) -> tuple[Moved, None]:
            warm = now._replace(masses=heat(now.masses, step / 2))
            return jax.lax.cond(first, lambda: advect(scheme, warm.masses, step), lambda: warm), None

        still = Moved(m, jnp.zeros(()), jnp.zeros(()))
        return jax.lax.scan(part, still, jnp.array([True, False]))[0]

    def once(j: Array, carry: tuple[Moved, Array]) -> tuple[Moved, Array]:
        now, whole = carry
        share = jnp.where(j == 0, 1.0, 0.5)
        moved = strang(jnp.where(j == 2, now.masses, masses), share * tau)
        limit = jnp.maximum(now.limit, share * moved.limit)
        return Moved(moved.masses, moved.error, limit), jnp.where(j == 0, moved.masses, whole)

    begin = Moved(masses, jnp.zeros(()), jnp.zeros(())), masses
    found, whole = jax.lax.fori_loop(0, jnp.where(noisy, 3, 1), once, begin)
    return found._replace(error=jnp.where(noisy, jnp.sum(jnp.abs(found.masses - whole)) / 3, found.error))


@compiled
def stretch(scheme: Scheme, state: CellState, goal: Any, tol: Any) -> CellState:
    """Up to `LIMIT` steps towards `goal`."""
    spare = jnp.where(scheme.kappa > 0, 1e-2, 1e-8)  # mass per time that counts as moved, at rest too

    def attempt(carry: tuple[Any, CellState]) -> tuple[Any, CellState]:
        count, s = carry
        tau = jnp.minimum(s.memory, goal - s.t)
        moved = move(scheme, s.masses, tau)
        scale = tol * (jnp.sum(jnp.abs(moved.masses - s.masses)) + spare * tau) + 1e-12 * tau + 1e-15
        good = (moved.error <= scale) & (tau * moved.limit <= 0.99)
        power = jnp.clip(0.9 * jnp.cbrt(scale / jnp.maximum(moved.error, 1e-300)), 0.2, 3.0)
        proposed = jnp.minimum(jnp.where(jnp.isfinite(power), power, 0.2) * tau, 0.9 / moved.limit)
        proposed = jnp.where(jnp.isfinite(moved.limit), proposed, 0.2 * tau)
        after = jnp.where(
            good & (tau < s.memory), jnp.maximum(proposed, jnp.minimum(s.memory, 0.9 / moved.limit)), proposed
        )
        t = jnp.where(good, jnp.where(tau < goal - s.t, s.t + tau, goal), s.t)
        masses = jnp.where(good, moved.masses, s.masses)
        since = jnp.minimum(s.since, jnp.where(narrow_share(masses) >= 0.5, t, jnp.inf))
        steps = s.steps + jnp.stack([good, ~good]).astype(s.steps.dtype)
        return count + 1, CellState(t, masses, after, steps, since, s.row)

    def unfinished(carry: tuple[Any, CellState]) -> Any:
        count, s = carry
        return (count < LIMIT) & (s.t < goal) & (s.memory > TINY * goal)

    begin = jnp.zeros((), jnp.int64), jax.tree.map(jnp.asarray, state)
    return jax.lax.while_loop(unfinished, attempt, begin)[1]


@compiled
def measured(scheme: Scheme, frames: Any) -> tuple[Any, Any, Any]:
    """Energy, free energy and the share in narrow clusters of every frame."""
    return jax.lax.map(lambda m: (*_energies(scheme, m), narrow_share(m)), frames)
