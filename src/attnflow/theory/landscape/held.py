"""Two clusters that two neurons hold apart against attention: how strong attention must be to merge them.

U(x) = (1/2) sum_j (a_j . x)_+^2 with two unit vectors a_1, a_2 at the angle Theta (`opening`) in (pi/2, pi); attention
of weight kappa; clusters of mass 1/2 on the arc at the separation theta. Only the nearer neuron acts on each cluster
for theta >= pi - Theta.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from attnflow.errors import InvalidInput
from attnflow.theory.checks import checked_beta, checked_model


class Hold(NamedTuple):
    """The largest kappa at which two neurons hold two clusters apart, and the separation there."""

    kappa: float
    angle: float
    turns: bool
    """Whether the pair turns away first: then only mirror-symmetric tokens last up to kappa."""


def hold_threshold(beta: float, opening: float, *, model: str = "USA0") -> Hold:
    """Up to which weight kappa of attention two neurons hold two clusters: the maximum of sin(Theta - theta)/g(theta).

    g = e^(-beta (1 - cos theta)) sin theta for USA0 and 2 sin theta/(1 + e^(beta (1 - cos theta))) for SA: the closing
    speed at kappa = 1. Equilibria are kappa g(theta) = sin(Theta - theta), theta in [pi - Theta, Theta). Above the
    maximum there are none and the clusters merge. So kappa grows like e^(beta u), u = 1 - cos theta. The
    maximum is a fold, or the kink theta = pi - Theta at small beta. Needs theta >= Theta - pi/2 for tokens that
    are not mirror images (`turns` says if not). Derived here from the energy of arXiv:2601.21366.
    """
    b, wide, kind = _checked(beta, opening, model)
    found = minimize_scalar(
        lambda t: -_log_ratio(t, b, wide, kind), bounds=(np.pi - wide, wide), method="bounded", options={"xatol": 1e-12}
    )
    angle = float(found.x) if -found.fun > _log_ratio(np.pi - wide, b, wide, kind) else float(np.pi - wide)
    return Hold(float(np.exp(_log_ratio(angle, b, wide, kind))), angle, angle < wide - np.pi / 2)


def held_angle(beta: float, opening: float, kappa: float, *, model: str = "USA0") -> float:
    """The separation at which two neurons hold two clusters against attention of weight kappa: the larger root theta.

    kappa g(theta) = sin(Theta - theta), as in `hold_threshold`, between the fold and Theta. kappa above 0, below the
    threshold.
    """
    b, wide, kind = _checked(beta, opening, model)
    hold = hold_threshold(beta, opening, model=model)
    if not 0 < kappa < hold.kappa:
        raise InvalidInput(f"kappa is {kappa!r}; clusters are held for kappa in (0, {hold.kappa:.8g}).")
    return float(
        brentq(lambda t: _log_ratio(t, b, wide, kind) - np.log(kappa), hold.angle, wide * (1 - 1e-15), xtol=1e-14)
    )


def held_rates(beta: float, opening: float, kappa: float) -> np.ndarray:
    """Rates of USA0 at the held pair on S^2: across on one side, across on opposite sides, turning, breathing.

    With q = e^(-beta (1 - cos theta)) at theta = `held_angle`: -cos((Theta-theta)/2) cos(Theta/2)/cos(theta/2),
    -cos^2((Theta-theta)/2) - (kappa/2) q (1 + cos theta), -cos(Theta-theta), and
    -cos(Theta-theta) + kappa q (beta sin^2 theta - cos theta), which is 0 at the fold.
    """
    b, wide, _ = _checked(beta, opening, "USA0")
    t = held_angle(beta, opening, kappa)
    q, left = np.exp(-b * (1 - np.cos(t))), wide - t
    return np.array(
        [
            -np.cos(left / 2) * np.cos(wide / 2) / np.cos(t / 2),
            -(np.cos(left / 2) ** 2) - kappa / 2 * q * (1 + np.cos(t)),
            -np.cos(left),
            -np.cos(left) + kappa * q * (b * np.sin(t) ** 2 - np.cos(t)),
        ]
    )


def _checked(beta: float, opening: float, model: str) -> tuple[float, float, str]:
    b = checked_beta(beta)
    if b.ndim:
        raise InvalidInput(f"beta is {beta!r}; it must be one number.")
    if not np.pi / 2 < opening < np.pi:
        raise InvalidInput(
            f"opening is {opening!r}; it must be in (pi/2, pi), where each neuron has a maximum of its own."
        )
    if checked_model(model) == "USA":
        raise InvalidInput("model is 'USA'; use 'USA0', with kappa e^beta times as large.")
    return float(b), float(opening), model


def _log_ratio(angle: float, beta: float, opening: float, model: str) -> float:
    """log of sin(Theta - theta)/g(theta)."""
    grown = beta * (1 - np.cos(angle))
    slow = grown if model == "USA0" else np.logaddexp(0.0, grown) - np.log(2.0)
    with np.errstate(divide="ignore"):
        return float(np.log(np.sin(opening - angle)) - np.log(np.sin(angle)) + slow)
