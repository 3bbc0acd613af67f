"""Layer norms as speed regulators: the overlap and the radius of equiangular tokens under each placement."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from attnflow.errors import InvalidInput
from attnflow.special.numbers import Numbers
from attnflow.theory.checks import checked_beta

Placement = Literal["post", "pre", "peri", "ngpt", "mix", "ln-scaling"]
PLACEMENTS = ("post", "pre", "peri", "ngpt", "mix", "ln-scaling")


@dataclass(frozen=True)
class NormPath:
    """The overlap rho(t), the radius r(t), and log(1 - rho(t)), which goes on where rho rounds to 1."""

    overlap: np.ndarray
    radius: np.ndarray
    log_gap: np.ndarray


def norm_overlap(
    t: ArrayLike,
    beta: float,
    n: int,
    *,
    placement: Placement,
    overlap0: float = 0.0,
    radius0: float = 1.0,
    alpha: float = 1.0,
    switch: float = 1.0,
) -> NormPath:
    """rho(t) and r(t) of n tokens x_i = r theta_i with <theta_i, theta_j> = rho for all i != j (SA clock).

    With A the softmax average of the theta's, e = exp(-beta (1-rho)) and a = 1 + (n-1) e:
    rho' = 2 e (1-rho)(1+(n-1)rho) / (a s), where the placement chooses the speed s and the growth of r:

    - post: s = 1, r' = 0;  pre: s = r, r' = <theta, A>;  peri: s = r |A|, r' = <theta, A>/|A|;
    - ngpt: s = |A|/alpha, r' = 0;  mix: post until `switch`, then pre;
    - ln-scaling: s = r sqrt(1+t), r' = <theta, A>/sqrt(1+t), which is pre on the clock 2 (sqrt(1+t) - 1).

    Where r' = 0, radius0 is only carried along. Needs beta >= 0, n >= 2, -1/(n-1) <= overlap0 < 1; the least
    overlap is an equilibrium, at which beta = 0 makes A vanish, so that peri and ngpt have no direction there.
    log(1-rho) and log r are integrated (LSODA, tolerance 1e-11): the approach to 1 keeps its relative accuracy.
    arXiv:2510.22026.
    """
    times = np.asarray(t, dtype=np.float64)
    if not np.isfinite(times).all() or (times < 0).any():
        raise InvalidInput(f"t is {t!r}; times must be finite and at least 0.")
    _check(beta, n, placement, alpha)
    if not -1 / (n - 1) <= overlap0 < 1:
        raise InvalidInput(f"overlap0 is {overlap0!r}; it must be in [-1/(n-1), 1) = [{-1 / (n - 1):.6g}, 1).")
    if not (np.isfinite(radius0) and radius0 > 0):
        raise InvalidInput(f"radius0 is {radius0!r}; it must be finite and positive.")
    if not (np.isfinite(switch) and switch >= 0):
        raise InvalidInput(f"switch is {switch!r}; it must be finite and at least 0.")
    # rounding would let the unstable equilibrium escape, so it is recognised instead
    balanced = bool(1 + (n - 1) * overlap0 <= 4 * np.finfo(float).eps)
    if balanced and beta == 0 and placement in ("peri", "ngpt"):
        raise InvalidInput(
            f"overlap0 is {overlap0!r}; with beta = 0 the average vanishes there and {placement!r} cannot normalise it."
        )

    flat = times.ravel()
    start = np.array([np.log1p(-overlap0), np.log(radius0)])
    physics = (float(beta), int(n), balanced, float(alpha))
    if placement == "ln-scaling":
        states = _integrate(2 * flat / (np.sqrt(1 + flat) + 1), start, "pre", physics)
    elif placement == "mix":
        early = flat <= switch
        at_switch = _integrate(np.append(flat[early], switch), start, "post", physics)
        states = np.empty((2, len(flat)))
        states[:, early] = at_switch[:, :-1]
        states[:, ~early] = _integrate(flat[~early] - switch, at_switch[:, -1], "pre", physics)
    else:
        states = _integrate(flat, start, placement, physics)
    log_gap, log_radius = states.reshape(2, *times.shape)
    # r is carried as its logarithm, exact where it never moves
    radius = np.where(log_radius == start[1], radius0, np.exp(log_radius))
    return NormPath(np.asarray(0.0 - np.expm1(log_gap)), radius, np.asarray(log_gap))


def norm_decay(placement: Placement, *, alpha: float = 1.0) -> tuple[str, float]:
    """How 1 - rho vanishes: ("exponential", c) for e^{-c t}, ("algebraic", p) for t^{-p}.

    From rho' ~ 2 (1-rho)/s with s -> 1 (post), 1/alpha (ngpt), r ~ t (pre, peri, mix) and r sqrt(t) ~ 2 t (ln-scaling);
    every start but the equilibrium -1/(n-1). arXiv:2510.22026.
    """
    _check(0.0, 2, placement, alpha)
    table = {
        "post": ("exponential", 2.0),
        "ngpt": ("exponential", 2.0 * alpha),
        "pre": ("algebraic", 2.0),
        "peri": ("algebraic", 2.0),
        "mix": ("algebraic", 2.0),
        "ln-scaling": ("algebraic", 1.0),
    }
    return table[placement]


def norm_initial_rate(beta: ArrayLike, n: ArrayLike, placement: Placement, *, alpha: float = 1.0) -> Numbers:
    """rho'(0) from orthonormal tokens of radius 1 (SA clock); broadcasts over beta and n.

    2 e/(1+(n-1)e) for post, pre, mix, ln-scaling; 2 e/sqrt(1+(n-1)e^2) for peri and alpha times that for ngpt,
    with e = exp(-beta). Needs beta >= 0, n >= 2. arXiv:2510.22026.
    """
    _check(beta, n, placement, alpha)
    e = np.exp(-np.asarray(beta, dtype=np.float64))
    others = np.asarray(n, dtype=np.float64) - 1
    if placement in ("peri", "ngpt"):
        return (alpha if placement == "ngpt" else 1.0) * 2 * e / np.sqrt(1 + others * e**2)
    return 2 * e / (1 + others * e)


def _integrate(
    times: np.ndarray, start: np.ndarray, placement: str, physics: tuple[float, int, bool, float]
) -> np.ndarray:
    """The states (log(1-rho), log r) at unsorted times >= 0, shape (2, len(times))."""
    from scipy.integrate import solve_ivp

    beta, n, balanced, alpha = physics

    def slope(_: float, state: np.ndarray) -> tuple[float, float]:
        gap, inverse_radius = np.exp(state[0]), np.exp(-state[1])
        e = np.exp(-beta * gap)
        # |sum_j theta_j|^2 / n = 1 + (n-1) rho; in terms of it <theta, A> and |A| are sums of positive parts
        q = 0.0 if balanced else max(n - (n - 1) * gap, 0.0)
        a = 1 + (n - 1) * e
        own = -np.expm1(-beta * gap)
        along = (own + e * q) / a
        pull = -2 * e * q / a
        if placement == "post":
            return pull, 0.0
        if placement == "pre":
            return pull * inverse_radius, along * inverse_radius
        size = np.sqrt(own**2 + 2 * own * e * q + e**2 * n * q) / a
        if placement == "ngpt":
            return alpha * pull / size, 0.0
        return pull * inverse_radius / size, along * inverse_radius / size

    found = np.repeat(start[:, None], len(times), axis=1)
    late = np.unique(times[times > 0])
    if len(late):
        solution = solve_ivp(slope, (0.0, late[-1]), start, "LSODA", t_eval=late, rtol=1e-11, atol=1e-12)
        if not solution.success:
            raise RuntimeError(f"the integration of {placement!r} to t = {late[-1]!r} failed: {solution.message}")
        moved = times > 0
        found[:, moved] = solution.y[:, np.searchsorted(late, times[moved])]
    return found


def _check(beta: ArrayLike, n: ArrayLike, placement: str, alpha: float) -> None:
    checked_beta(beta)
    counts = np.asarray(n, dtype=np.float64)
    if not np.isfinite(counts).all() or (counts < 2).any() or (counts != np.floor(counts)).any():
        raise InvalidInput(f"n is {n!r}; it must be an integer of at least 2.")
    if placement not in PLACEMENTS:
        raise InvalidInput(f"placement is {placement!r}; it must be one of {', '.join(PLACEMENTS)}.")
    if not (np.isfinite(alpha) and alpha > 0):
        raise InvalidInput(f"alpha is {alpha!r}; it must be finite and positive.")
