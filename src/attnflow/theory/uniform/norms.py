"""Layer norms as speed regulators: the overlap and the radius of equiangular tokens under each placement."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from attnflow.errors import InvalidInput
from attnflow.special.curves import curve
from attnflow.special.formula import Integers, Reals, Word, formula
from attnflow.special.numbers import ArrayLike, Numbers
from attnflow.theory.uniform.equiangular import height
from attnflow.theory.uniform.spectrum import BETA

Placement = Literal["post", "pre", "peri", "ngpt", "mix", "ln-scaling"]
PLACEMENTS = ("post", "pre", "peri", "ngpt", "mix", "ln-scaling")
PLACEMENT = Word(PLACEMENTS)
ALPHA = Reals(0.0, 1e100, ends="right", scalar=True)


@dataclass(frozen=True)
class NormPath:
    """The overlap rho(t), the radius r(t), and log(1 - rho(t)), which goes on where rho rounds to 1."""

    overlap: np.ndarray
    radius: np.ndarray
    log_gap: np.ndarray


@formula(
    t=Reals(0.0, 1e100),
    beta=Reals(0.0, 1e6, scalar=True),
    n=Integers(2, scalar=True),
    placement=PLACEMENT,
    overlap0=Reals(-1.0, 1.0, ends="left", scalar=True),
    radius0=Reals(1e-30, 1e30, scalar=True),
    alpha=Reals(1e-30, 1e30, scalar=True),
    switch=Reals(0.0, 1e100, scalar=True),
    relative=4e-9,
    absolute=1e-11,
)
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

    Where r' = 0, radius0 is only carried along. The least overlap is an equilibrium, at which beta = 0 makes A vanish,
    so that peri and ngpt have no direction there. The gain in log-odds log((1+(n-1)rho)/(1-rho)), which is 2 n e/(a s)
    per time, and log r are integrated: the start and the approach to 1 keep their relative accuracy. arXiv:2510.22026.

    Arguments:
        t: times, in any order.
        beta: inverse temperature.
        n: number of tokens.
        placement: where the layer norms are.
        overlap0: overlap at time 0, at least -1/(n-1).
        radius0: radius at time 0.
        alpha: step of "ngpt".
        switch: time at which "mix" becomes pre.

    Raises:
        NotAccurate: if tokens gather after a wait so long that the overlap depends on its last digits.
    """
    height0 = float(height(np.asarray(float(n)), np.asarray(overlap0)))
    if height0 < 0:
        raise InvalidInput(f"`overlap0` is {overlap0!r}; it must be in [-1/(n-1), 1) = [{-1 / (n - 1):.6g}, 1).")
    if height0 == 0 and beta == 0 and placement in ("peri", "ngpt"):
        raise InvalidInput(
            f"`overlap0` is {overlap0!r}; with beta = 0 the average vanishes there, for {placement!r} to normalise."
        )
    gap0, others = 1 - overlap0, n - 1.0

    def place(gain: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """1 - rho and 1 + (n-1) rho after a gain in log-odds."""
        decay, lost = np.exp(-gain), -np.expm1(-gain)
        total = n * decay + height0 * lost
        if height0 == 0:
            return gap0 + 0 * gain, 0 * gain
        return gap0 * (n * decay / total), height0 * (n / total)

    def integrate(times: np.ndarray, start: np.ndarray, norm: str) -> np.ndarray:
        """Gains in log-odds and in log r at unsorted times, shape (2, len(times))."""

        def slopes(_: float, state: np.ndarray) -> tuple[Any, Any]:
            gap, q = place(state[0])
            e = np.exp(-beta * gap)
            a, local = 1 + others * e, -np.expm1(-beta * gap)
            pull, along = 2 * n * e / a, (local + e * q) / a
            if norm == "post":
                return pull, 0.0
            size = 1.0 if norm == "pre" else np.sqrt(local**2 + 2 * local * e * q + e**2 * n * q) / a
            if norm == "ngpt":
                return alpha * pull / size, 0.0
            inverse_radius = np.exp(-state[1]) / radius0
            return pull * inverse_radius / size, along * inverse_radius / size

        late, order = np.unique(times, return_inverse=True)
        with np.errstate(all="ignore"):  # a step of the solver that is too long is taken back
            return curve(slopes, start, [0.0, *late], rtol=1e-9, atol=1e-12)[:, 1:][:, order]

    flat, start = t.ravel(), np.zeros(2)
    if placement == "ln-scaling":
        gains = integrate(2 * flat / (np.sqrt(1 + flat) + 1), start, "pre")
    elif placement == "mix":
        early = flat <= switch
        first = integrate(np.append(flat[early], switch), start, "post")
        gains = np.empty((2, len(flat)))
        gains[:, early] = first[:, :-1]
        gains[:, ~early] = integrate(flat[~early] - switch, first[:, -1], "pre")
    else:
        gains = integrate(flat, start, placement)
    gain, growth = gains.reshape(2, *t.shape)
    with np.errstate(under="ignore"):
        log_gap = np.log1p(-overlap0) + np.zeros_like(gain)
        overlap = overlap0 + np.zeros_like(gain)
        if height0 > 0:
            share = height0 / n
            early = np.minimum(gain, 30.0)
            late = gain + np.log(share + (1 - share) * np.exp(-gain))
            log_gap = log_gap - np.where(gain < 30, np.log1p(share * np.expm1(early)), late)
            overlap = overlap + gap0 * (-np.expm1(-gain) * height0 / (n * np.exp(-gain) - height0 * np.expm1(-gain)))
        return NormPath(np.asarray(overlap), np.asarray(radius0 * np.exp(growth)), np.asarray(log_gap))


@formula(placement=PLACEMENT, alpha=ALPHA, relative=2e-16)
def norm_decay(placement: Placement, *, alpha: float = 1.0) -> tuple[str, float]:
    """How 1 - rho vanishes: ("exponential", c) for e^{-c t}, ("algebraic", p) for t^{-p}.

    From rho' ~ 2 (1-rho)/s with s -> 1 (post), 1/alpha (ngpt), r ~ t (pre, peri, mix) and r sqrt(t) ~ 2 t (ln-scaling);
    every start but the equilibrium -1/(n-1). arXiv:2510.22026.
    """
    table = {
        "post": ("exponential", 2.0),
        "ngpt": ("exponential", 2.0 * alpha),
        "pre": ("algebraic", 2.0),
        "peri": ("algebraic", 2.0),
        "mix": ("algebraic", 2.0),
        "ln-scaling": ("algebraic", 1.0),
    }
    return table[placement]


@formula(beta=BETA, n=Integers(2), placement=PLACEMENT, alpha=ALPHA, relative=2e-15)
def norm_initial_rate(beta: ArrayLike, n: ArrayLike, placement: Placement, *, alpha: float = 1.0) -> Numbers:
    """rho'(0) from orthonormal tokens of radius 1 (SA clock); broadcasts over beta and n.

    2 e/(1+(n-1)e) for post, pre, mix, ln-scaling; 2 e/sqrt(1+(n-1)e^2) for peri and alpha times that for ngpt,
    with e = exp(-beta). arXiv:2510.22026.

    Arguments:
        beta: inverse temperatures.
        n: numbers of tokens.
        placement: where the layer norms are.
        alpha: step of "ngpt".
    """
    with np.errstate(under="ignore"):
        e, others = np.exp(-beta), n - 1.0
        if placement in ("peri", "ngpt"):
            return (alpha if placement == "ngpt" else 1.0) * 2 * e / np.sqrt(1 + others * e**2)
        return 2 * e / (1 + others * e)
