"""Ordinary differential equations of closed forms, integrated twice so that the error is known."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attnflow.errors import NotAccurate

TIGHTER = 1 / 64
"""Tolerance of the second integration, as a share of that of the first."""
TIGHTEST = 3e-14
"""SciPy's solvers take no smaller relative tolerance."""


def curve(
    slope: Callable[[float, np.ndarray], Any],
    start: ArrayLike,
    times: ArrayLike,
    *,
    rtol: float,
    atol: float = 0.0,
    method: str = "DOP853",
) -> np.ndarray:
    """Solve y' = slope(t, y) from `start` at `times[0]`; the solution at all times, shape (component, time).

    The equation is integrated with two tolerances, `rtol`/1024 and 1/64 of it. Their difference bounds the error of the
    first as long as errors fall with the tolerance; the second solution is returned.

    Arguments:
        slope: right side, a function of the time and of y, shape (component,).
        start: y at the first time.
        times: monotone, in either direction; neighbours may be equal.
        rtol: relative accuracy of each component at each time.
        atol: absolute accuracy that is enough as well.
        method: a solver of `scipy.integrate.solve_ivp`; "LSODA" or "Radau" where the equation is stiff.

    Raises:
        NotAccurate: if the two solutions differ by more, or the solver gives up.
    """
    from scipy.integrate import solve_ivp

    when, first = np.asarray(times, dtype=np.float64), np.atleast_1d(np.asarray(start, dtype=np.float64))
    moved = np.append(True, np.diff(when) != 0)
    when, places = when[moved], np.cumsum(moved) - 1
    if len(when) == 1:
        return np.repeat(first[:, None], len(places), axis=1)
    solutions = []
    for share in (1.0, TIGHTER):
        tolerances = {"rtol": max(share * rtol / 1024, TIGHTEST), "atol": max(share * atol / 1024, 1e-300)}
        result = solve_ivp(slope, (when[0], when[-1]), first, method, t_eval=when, **tolerances)
        if not result.success or result.y.shape[1] != len(when):
            raise NotAccurate(f"an equation of motion cannot be integrated ({result.message}).")
        solutions.append(result.y)
    coarse, fine = solutions
    if not (np.abs(coarse - fine) <= rtol * np.abs(fine) + atol).all():
        raise NotAccurate(f"an equation of motion is not integrated to {rtol:.1g}.")
    return np.asarray(fine[:, places])
