"""Two clusters that two neurons hold apart against attention: how strong attention must be to merge them.

U(x) = (1/2) sum_j (a_j . x)_+^2 with two unit vectors a_1, a_2 at the angle Theta (`opening`) in (pi/2, pi); attention
of weight kappa; clusters of mass 1/2 on the arc at the separation theta. Only the nearer neuron acts on each cluster
for theta >= pi - Theta.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from attnflow.errors import InvalidInput, NotAccurate
from attnflow.special.formula import Reals, Word, formula
from attnflow.special.roots import root
from attnflow.theory.merging.pairs import LARGEST_LOG

BETA = Reals(0.0, 700.0, scalar=True)
"""The threshold is above e^beta at every opening, and leaves the range of floats soon after."""
OPENING = Reals(math.pi / 2, math.pi, ends="none", scalar=True)
"""Each neuron has a maximum to itself."""
KAPPA = Reals(0.0, ends="none", scalar=True)
USA0_OR_SA = Word(("USA0", "SA"))
PI_REMAINDER = 1.2246467991473532e-16
"""pi less the float `math.pi`."""
SMALLEST_GAP = 1e-300


class Hold(NamedTuple):
    """The largest kappa at which two neurons hold two clusters apart, and the separation there."""

    kappa: float
    angle: float
    turns: bool
    """Whether the pair turns away first: then only mirror-symmetric tokens last up to kappa."""


@formula(beta=BETA, opening=OPENING, model=USA0_OR_SA, relative="2e-15 * (5 + beta)")
def hold_threshold(beta: float, opening: float, *, model: str = "USA0") -> Hold:
    """Up to what weight kappa of attention two neurons hold two clusters: the maximum of sin(Theta - theta)/g(theta).

    g = e^(-beta (1 - cos theta)) sin theta for USA0 and 2 sin theta/(1 + e^(beta (1 - cos theta))) for SA: the closing
    speed at kappa = 1. Equilibria are kappa g(theta) = sin(Theta - theta), theta in [pi - Theta, Theta). Above the
    maximum there are none and the clusters merge. So kappa grows like e^(beta u), u = 1 - cos theta. The
    maximum is a fold, or the kink theta = pi - Theta at small beta. Needs theta >= Theta - pi/2 for tokens that
    are not mirror images (`turns` says if not). Derived here from the energy of arXiv:2601.21366.

    Arguments:
        beta: inverse temperature.
        opening: Theta, the angle between the neurons.
        model: "USA0" or "SA"; for USA divide kappa by e^beta.

    Raises:
        InvalidInput: if kappa leaves the range of floats.
    """
    fold, log_kappa = _fold(beta, opening, model), _log_ratio_at_kink(beta, opening, model)
    angle = math.pi - opening + PI_REMAINDER
    if fold is not None and _log_ratio(fold, beta, opening, model) > log_kappa:
        log_kappa, angle = _log_ratio(fold, beta, opening, model), opening - fold
    if log_kappa > LARGEST_LOG:
        raise InvalidInput(f"`beta` is {beta!r}; the threshold e^{log_kappa:.0f} leaves the range of floats.")
    return Hold(math.exp(log_kappa), angle, angle < opening - math.pi / 2)


@formula(beta=BETA, opening=OPENING, kappa=KAPPA, model=USA0_OR_SA, relative=1e-9)
def held_angle(beta: float, opening: float, kappa: float, *, model: str = "USA0") -> float:
    """The separation at which two neurons hold two clusters against attention of weight kappa: the larger root theta.

    kappa g(theta) = sin(Theta - theta), as in `hold_threshold`, between the fold and Theta.

    Arguments:
        beta: inverse temperature.
        opening: Theta, the angle between the neurons.
        kappa: weight of attention, below the threshold.
        model: "USA0" or "SA".

    Raises:
        InvalidInput: if no separation is held.
        NotAccurate: if kappa is so near a threshold that the rounding of kappa decides.
    """
    return opening - _held_gap(beta, opening, kappa, model)


@formula(beta=BETA, opening=OPENING, kappa=KAPPA, relative=1e-9, absolute="1e-9 * (1 + beta)")
def held_rates(beta: float, opening: float, kappa: float) -> np.ndarray:
    """Rates of USA0 at the held pair on S^2: across on one side, across on opposite sides, turning, breathing.

    With q = e^(-beta (1 - cos theta)) at theta = `held_angle`: -cos((Theta-theta)/2) cos(Theta/2)/cos(theta/2),
    -cos^2((Theta-theta)/2) - (kappa/2) q (1 + cos theta), -cos(Theta-theta), and
    -cos(Theta-theta) + kappa q (beta sin^2 theta - cos theta), which is 0 at the fold.

    Arguments:
        beta: inverse temperature.
        opening: Theta, the angle between the neurons.
        kappa: weight of attention, below the threshold.
    """
    gap = _held_gap(beta, opening, kappa, "USA0")
    supplement = _supplement(gap, opening)
    sine = math.sin(supplement)
    # kappa q sin theta = sin(Theta - theta)
    return np.array(
        [
            -math.cos(gap / 2) * math.cos(opening / 2) / math.sin(supplement / 2),
            -(math.cos(gap / 2) ** 2) - math.sin(gap) * math.tan(supplement / 2) / 2,
            -math.cos(gap),
            beta * math.sin(gap) * sine - math.sin(opening) / sine,
        ]
    )


def _held_gap(beta: float, opening: float, kappa: float, model: str) -> float:
    """Theta - theta of the pair that is held."""
    fold, log_kappa = _fold(beta, opening, model), math.log(kappa)
    at_kink = _log_ratio_at_kink(beta, opening, model)
    at_fold = at_kink if fold is None else _log_ratio(fold, beta, opening, model)
    largest = max(at_kink, at_fold)
    if log_kappa >= largest:
        raise InvalidInput(f"`kappa` is {kappa!r}; clusters are held for kappa in (0, e^{largest:.16g}).")
    kink = 2 * opening - math.pi - PI_REMAINDER
    widest = fold if fold is not None and log_kappa < at_fold else kink

    def excess(log_gap: float) -> float:
        return _log_ratio(math.exp(log_gap), beta, opening, model) - log_kappa

    if excess(math.log(SMALLEST_GAP)) >= 0:
        return 0.0
    gap = math.exp(float(root(excess, math.log(SMALLEST_GAP), math.log(widest), largest=math.log(widest))))
    rounding = 4e-16 * (5 + beta + abs(log_kappa))
    flat = rounding > 5e-10 * (opening - gap) * abs(_log_slope(gap, beta, opening, model))
    if flat or min(abs(log_kappa - at_fold), largest - log_kappa) < rounding:
        raise NotAccurate("`kappa` is so near a threshold that its rounding decides.")
    return gap


def _supplement(gap: float, opening: float) -> float:
    """Pi - theta = Theta - theta + (pi - Theta)."""
    return gap + (math.pi - opening + PI_REMAINDER)


def _log_slowness(supplement: float, beta: float, model: str) -> float:
    """beta (1 - cos theta) of pi - theta, or log((1 + its exponential)/2)."""
    exponent = 2 * beta * math.cos(supplement / 2) ** 2
    return exponent if model == "USA0" else float(np.logaddexp(0.0, exponent)) - math.log(2)


def _log_ratio(gap: float, beta: float, opening: float, model: str) -> float:
    """log of sin(Theta - theta)/g(theta)."""
    supplement = _supplement(gap, opening)
    return math.log(math.sin(gap)) - math.log(math.sin(supplement)) + _log_slowness(supplement, beta, model)


def _log_ratio_at_kink(beta: float, opening: float, model: str) -> float:
    """At theta = pi - Theta: sin(2 Theta - pi)/sin(Theta) = -2 cos(Theta)."""
    return math.log(-2 * math.cos(opening)) + _log_slowness(opening, beta, model)


def _log_pull(gap: float, beta: float, opening: float, model: str) -> float:
    """log of sin^2 theta sin(Theta - theta), times the share of the other cluster under SA: concave."""
    supplement = _supplement(gap, opening)
    share = 0.0 if model == "USA0" else -float(np.logaddexp(0.0, -2 * beta * math.cos(supplement / 2) ** 2))
    return math.log(math.sin(gap)) + 2 * math.log(math.sin(supplement)) + share


def _log_slope(gap: float, beta: float, opening: float, model: str) -> float:
    """Derivative of `_log_ratio` in the gap."""
    sines = math.sin(gap) * math.sin(_supplement(gap, opening))
    return (math.sin(opening) - beta * math.exp(_log_pull(gap, beta, opening, model))) / sines


def _fold(beta: float, opening: float, model: str) -> float | None:
    """Theta - theta where sin(Theta - theta)/g has its maximum inside, beta times the pull = sin(Theta), if it has."""
    if beta == 0:
        return None

    def slope(gap: float) -> float:
        """Of the logarithm of the pull, times sin(gap) sin(theta)."""
        supplement = _supplement(gap, opening)
        outer = math.cos(gap) * math.sin(supplement) + 2 * math.cos(supplement) * math.sin(gap)
        if model == "USA0":
            return outer
        fade = expit(-2 * beta * math.cos(supplement / 2) ** 2)
        return float(outer - beta * fade * math.sin(gap) * math.sin(supplement) ** 2)

    def excess(gap: float) -> float:
        return _log_pull(gap, beta, opening, model) - math.log(math.sin(opening)) + math.log(beta)

    # the pull rises with the gap up to its peak or the kink; sin(gap) is larger than it
    kink = 2 * opening - math.pi - PI_REMAINDER
    peak = kink if slope(kink) >= 0 else float(root(slope, 0.0, kink, smallest=0.0, largest=kink))
    if excess(peak) <= 0:
        return None
    return float(root(excess, 0.99 * math.sin(opening) / beta, peak, largest=peak))
