"""How long tokens stay near where they gathered: the bounds of slow motion."""

import math

import numpy as np

from attnflow.errors import InvalidInput
from attnflow.special.formula import Integers, Reals, formula
from attnflow.special.numbers import ArrayLike, Numbers
from attnflow.wording import shown

LARGEST_LOG = float(np.log(np.finfo(np.float64).max))
CAP_SIZE = Reals(0.0, 1 / 16, ends="none")


@formula(
    beta=Reals(1.0, ends="none"), overlap=Reals(-1.0, 1.0, ends="left"), size=CAP_SIZE, n=Integers(1), relative=1e-12
)
def slow_motion_time(beta: ArrayLike, overlap: ArrayLike, size: ArrayLike, *, n: ArrayLike) -> Numbers:
    """Lower bound T_2 >= (size/n) e^{(1-overlap) beta} on the time for which n tokens stay near where they gathered.

    The tokens start in caps {<x, w_q> >= 1 - size}, and until T_2 no token leaves its cap of twice the size. Clock of
    SA or USA0. Condition: 1 - overlap - 8 size - log(2 n^2/size)/beta > 0 (theorem of arXiv:2410.06833).

    Arguments:
        beta: inverse temperature.
        overlap: the largest <x, y> between two of the caps of twice that size.
        size: size of the caps in which the tokens start.
        n: number of tokens.

    Raises:
        InvalidInput: if the condition fails, or the time is above 1e308; `log_slow_motion_time` has no such limit.
    """
    log_time = log_slow_motion_time(beta, overlap, size, n=n)
    if np.any(log_time > LARGEST_LOG):
        raise InvalidInput(
            f"`beta` is {shown(beta.tolist())}; the time leaves the range of floats, use log_slow_motion_time."
        )
    return np.exp(log_time)


@formula(
    beta=Reals(1.0, ends="none"),
    overlap=Reals(-1.0, 1.0, ends="left"),
    size=CAP_SIZE,
    n=Integers(1),
    relative=2e-15,
    absolute=1e-12,
)
def log_slow_motion_time(beta: ArrayLike, overlap: ArrayLike, size: ArrayLike, *, n: ArrayLike) -> Numbers:
    """Natural logarithm of the time for which n tokens stay near where they gathered: log(size/n) + (1-overlap) beta.

    The bound and its conditions are those of `slow_motion_time`.

    Arguments:
        beta: inverse temperature.
        overlap: the largest <x, y> between two of the caps of twice that size.
        size: size of the caps in which the tokens start.
        n: number of tokens.
    """
    gamma = 1 - overlap - 8 * size - (np.log(2) - np.log(size) + 2 * np.log(n)) / beta
    if np.any(gamma <= 0):
        raise InvalidInput(
            f"`beta` is {shown(beta.tolist())} and `size` is {shown(size.tolist())}; the theorem needs 1 - overlap - "
            f"8 size - log(2 n^2/size)/beta > 0, and it is {np.min(gamma):.3g}: give a larger beta or another size."
        )
    return np.log(size) - np.log(n) + (1 - overlap) * beta


@formula(size=Reals(0.0, (2 - math.sqrt(2)) / 4), relative=2e-15)
def cap_overlap(size: ArrayLike) -> Numbers:
    """Largest <x, y> between caps {<x, w> >= 1 - 2 size} about orthogonal w: 4 (1-2 size) sqrt(size (1-size)).

    The `overlap` that `slow_motion_time` asks for, when the tokens gather about an orthogonal frame: the sine of twice
    the opening angle. Above the size (2 - sqrt 2)/4 = 0.146... two caps touch.
    """
    return 4 * (1 - 2 * size) * np.sqrt(size * (1 - size))
