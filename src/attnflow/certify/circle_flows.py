"""Where tokens on the circle go, with a proved error; and consensus from a named start, or from a ball of starts."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attnflow.certify.balls import above, finite, flint, precision
from attnflow.certify.certificates import BALLS, FLOATS, Undecided, certified
from attnflow.certify.tubes import Setting, Tube, advance, half_circle
from attnflow.errors import InvalidInput

MOST = 4000
"""Steps of one flow."""
GROWTH = "errors in the maximum norm grow at most like e' = mu e + delta, mu the logarithmic norm [hairer1993solving]"
HALF = "tokens in an open half circle converge to consensus: the outermost two come closer (docs/proved.md)"


def circle_flow(
    angles: ArrayLike,
    beta: float,
    until: float,
    *,
    ball: float = 0.0,
    masses: ArrayLike | None = None,
    model: str = "SA",
    digits: int = 12,
) -> Any:
    """A `Certificate` of the angles of tokens on the circle at the time `until`, or `Undecided`.

    The start is `angles`, read as exact floats, and with `ball` > 0 every start whose angles are within `ball` of
    them. Angles are not reduced: they are followed continuously. `model` is "SA" or "USA0", beta >= 0; of `masses`
    only the ratios matter. Steps have defects of the size 10^-digits; more digits carry a flow further, as errors grow
    exponentially. About a second for 5 tokens until t = 5.

    theta_i' = sum_j m_j w_ij sin(theta_j - theta_i)/Z_i with w_ij = e^{-beta (1 - cos(theta_j - theta_i))};
    Z_i = sum_j m_j w_ij under SA and 1 under USA0, and the masses add up to 1.

    ```python
    found = attnflow.certify.circle_flow([0.3, 2.0, 4.5], 2.0, 1.0)
    found.claims["end"], found.claims["radius"]
    ```
    """
    given = _given(angles, beta, until, ball, masses, model, digits)
    with precision(64 + 5 * digits):
        found = _follow(given, digits, None)
        if isinstance(found, Undecided):
            return found
        end = [float(one) for one in found.centre]
        radius = above(found.error + max(abs(one - float(one)) for one in found.centre))
        radius *= 1.5  # the checker bounds defect and growth in its own way
    claims = given["claims"] | {"until": found.times[-1], "end": end, "radius": radius}
    return certified("circle flow", (FLOATS, BALLS, GROWTH), claims, _data(given, found, digits))


def circle_consensus(
    angles: ArrayLike,
    beta: float,
    *,
    ball: float = 0.0,
    masses: ArrayLike | None = None,
    model: str = "SA",
    digits: int = 12,
    until: float = 64.0,
) -> Any:
    """A `Certificate` that tokens on the circle converge to consensus from this start, or `Undecided`.

    With `ball` > 0 it is about every start whose angles are within `ball` of `angles`. The tokens are followed as by
    `circle_flow` until they are in an open half circle, where the distance D of the outermost two falls at least like
    D' = -2 m e^{-2 beta} sin D, m the least mass; after `until` the answer is `Undecided`.

    ```python
    found = attnflow.certify.circle_consensus([0.2, 1.9, 3.3, 5.1], 2.0, ball=1e-4)
    found.statement, found.claims["time"]
    ```
    """
    given = _given(angles, beta, until, ball, masses, model, digits)
    with precision(64 + 5 * digits):
        found = _follow(given, digits, half_circle)
    if isinstance(found, Undecided):
        return found
    claims = given["claims"] | {"time": found.times[-1]}
    return certified("consensus", (FLOATS, BALLS, GROWTH, HALF), claims, _data(given, found, digits))


def _given(
    angles: ArrayLike, beta: float, until: float, ball: float, masses: ArrayLike | None, model: str, digits: int
) -> dict[str, Any]:
    theta = np.asarray(angles, dtype=np.float64)
    mass = np.ones(len(theta)) if masses is None else np.asarray(masses, dtype=np.float64)
    if theta.ndim != 1 or len(theta) < 2 or not np.isfinite(theta).all() or np.abs(theta).max() > 1e3:
        raise InvalidInput("`angles` must be a list of at least two finite angles.")
    if mass.shape != theta.shape or not ((mass > 0) & np.isfinite(mass)).all():
        raise InvalidInput("`masses` must be positive numbers, one for each angle.")
    b, end, radius = (finite(name, x) for name, x in (("beta", beta), ("until", until), ("ball", ball)))
    if model not in ("SA", "USA0") or b < 0:
        raise InvalidInput(f"`model` is {model!r} and `beta` {beta!r}; give 'SA' or 'USA0', and beta >= 0.")
    if not (end > 0 and 0 <= radius < 1) or digits not in range(4, 61):
        raise InvalidInput("`until` must be positive, `ball` in [0, 1) and `digits` from 4 to 60.")
    if np.ptp(mass) <= 1e-14 * mass.max():
        mass = np.ones(len(mass))
    claims = {"beta": [b, b], "model": model, "ball": radius}
    return {"claims": claims, "angles": theta, "masses": mass, "until": end}


def _follow(given: dict[str, Any], digits: int, goal: Any) -> Any:
    """The tube up to the end, or to where the goal is reached; Undecided otherwise."""
    arb, claims = flint().arb, given["claims"]
    setting = Setting.of(claims["beta"][0], given["masses"], claims["model"])
    tube = Tube([0.0], [arb(float(t)) for t in given["angles"]], arb(claims["ball"]), [claims["ball"]])
    if goal is not None and goal(tube.centre, tube.error):
        return tube
    tol = max(10.0**-digits, 2.0**-16 * claims["ball"])
    steps = advance(setting, tube, given["until"], _order(digits, claims["ball"]), tol)
    while len(tube.times) <= MOST:
        try:
            next(steps)
        except StopIteration as end:
            if end.value is not None:
                return Undecided(end.value)
            break
        if goal is not None and goal(tube.centre, tube.error):
            return tube
    else:
        return Undecided(f"the flow takes more than {MOST} steps", f"t = {tube.times[-1]!r}")
    return tube if goal is None else Undecided("the tokens are in no half circle", f"until t = {tube.times[-1]!r}")


def _order(digits: int, ball: float) -> int:
    """The degree of the polynomials: about one for each digit; a ball of starts needs few."""
    return digits if ball < 1e-9 else 8


def _data(given: dict[str, Any], tube: Tube, digits: int) -> dict[str, Any]:
    return {
        "angles": given["angles"].tolist(),
        "masses": given["masses"].tolist(),
        "times": tube.times,
        "order": _order(digits, given["claims"]["ball"]),
    }
