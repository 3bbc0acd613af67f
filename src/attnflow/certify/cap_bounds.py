"""Groups of tokens that stay apart: the comparison of caps with two point masses, as a lower bound on a time."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from attnflow.certify.balls import above, below, finite, precision
from attnflow.certify.certificates import BALLS, FLOATS, Undecided, certified
from attnflow.errors import InvalidInput
from attnflow.spaces import Sphere
from attnflow.tokens import Tokens, all_present

LONGEST = 1e300
"""No longer time is claimed: floats end soon after."""
ASSUMES = (
    FLOATS,
    BALLS,
    "tokens and centres are read as directions",
    "comparison of caps (docs/proved.md), which uses the theorem of Mueller and Kamke [walter1998ordinary]",
)


def stay_apart(tokens: Tokens, beta: float, groups: Sequence[int], *, model: str = "USA0") -> Any:
    """A `Certificate` that groups of tokens stay apart until a time T at least, or `Undecided`.

    `groups` holds the number of the group of every token. Any n, d, masses and shapes: each group lies in a cap
    around its mean direction, and while the caps grow slowly no two groups come closer than two point masses at the
    edges of their caps would: the least gap stays above the solution of s' = -C e^{-beta (1 - cos s)} sin s, with C = 1
    for two groups under USA0 (docs/proved.md, lemma 9). `model` is "USA0" or "SA", each on its own clock. beta > 0.

    ```python
    tokens = attnflow.Tokens([[1.0, 0.0], [0.8, 0.6], [-0.6, 0.8], [-0.8, 0.6]])
    found = attnflow.certify.stay_apart(tokens, 20.0, [0, 0, 1, 1])
    found.claims["time"], found.claims["gap"]
    ```
    """
    b = finite("beta", beta)
    if model not in ("USA0", "SA") or not b > 0:
        raise InvalidInput(f"`model` is {model!r} and `beta` {beta!r}; give 'USA0' or 'SA', and a positive beta.")
    tokens.single()
    all_present(tokens, "a certificate")
    if type(tokens.space) is not Sphere:
        raise InvalidInput(f"`tokens` live on {tokens.space}; the comparison of caps is about spheres.")
    places, masses = np.asarray(tokens.positions, float), np.asarray(tokens.masses, float)
    labels, names = np.asarray(groups), sorted(set(np.asarray(groups).tolist()))
    if labels.shape != (len(places),) or len(names) < 2:
        raise InvalidInput(f"`groups` has the shape {labels.shape}; give one number a token, with two groups at least.")
    if np.ptp(masses) <= 1e-14 * masses.max():
        masses = np.ones(len(masses))
    centres = np.array([np.average(places[labels == name], axis=0, weights=masses[labels == name]) for name in names])
    if not np.linalg.norm(centres, axis=1).min() > 1e-3:
        return Undecided("the mean of a group is nearly 0, so that it is in no cap")
    centres /= np.linalg.norm(centres, axis=1)[:, None]
    with precision(128) as module:
        found = _best(module, places, masses, [names.index(one) for one in labels.tolist()], centres, b, model)
    if isinstance(found, Undecided):
        return found
    first, last, time = found
    data = {
        "tokens": places.tolist(),
        "masses": masses.tolist(),
        "groups": [names.index(one) for one in labels.tolist()],
        "centres": centres.tolist(),
    }
    claims = {"beta": [b, b], "model": model, "gap": last, "time": time}
    return certified("stay apart", ASSUMES, claims, data, {"gap at the start": [first, math.nextafter(math.pi, 4)]})


def _angle(module: Any, x: Any, y: Any) -> Any:
    """The angle between two directions, 2 atan2(|x/|x| - y/|y||, |x/|x| + y/|y||)."""
    arb = module.arb
    x, y = ([arb(float(a)) for a in one] for one in (x, y))
    x, y = ([a / sum((c * c for c in one), arb(0)).sqrt() for a in one] for one in (x, y))
    less, more = (sum(((a + s * c) * (a + s * c) for a, c in zip(x, y, strict=True)), arb(0)) for s in (-1, 1))
    less, more = (one if one > 0 else arb(0).union(one.abs_upper()) for one in (less, more))
    roots = [below(one) if one > 0 else 0.0 for one in (less, more)], [above(one) for one in (less, more)]
    low = 2 * arb.atan2(arb(roots[0][0]).sqrt(), arb(roots[1][1]).sqrt())
    return low.union(2 * arb.atan2(arb(roots[1][0]).sqrt(), arb(roots[0][1]).sqrt()))


def _best(
    module: Any, places: Any, masses: Any, labels: list[int], centres: np.ndarray, beta: float, model: str
) -> Any:
    """(gap at the start, gap at the end, time): the longest time among some ends, which is that to the least gap."""
    arb, k = module.arb, len(centres)
    exact = [arb(float(m)) for m in masses]
    total = sum(exact, arb(0))
    shares = [sum((m for m, q in zip(exact, labels, strict=True) if q == p), arb(0)) / total for p in range(k)]
    radii = [
        max(above(_angle(module, places[i], centres[q])) for i, q in enumerate(labels) if q == p) for p in range(k)
    ]
    pairs = [(p, q) for p in range(k) for q in range(p)]
    gaps = [_angle(module, centres[p], centres[q]) - arb(radii[p]) - arb(radii[q]) for p, q in pairs]
    start = min(below(gap) for gap in gaps)
    pull = [(1 - m) / m if model == "SA" else 1 - m for m in shares]
    speed = max(above(pull[p] + pull[q]) for p, q in pairs)
    peak = _peak(beta)
    for share in np.linspace(1, 0.02, 50):
        end = float(start - share * (start - peak))
        if not peak <= end < start:
            continue
        grown = [arb(r) + one * (arb(start) - arb(end)) / arb(speed) for r, one in zip(radii, pull, strict=True)]
        if not all(one < arb.pi() / 2 for one in grown):
            continue
        force = (-arb(beta) * (1 - arb(end).cos())).exp() * arb(end).sin()
        if model == "SA" and not all(
            one * force * ((2 * arb(beta) * r.sin() * r.sin()).exp() - 1) <= (2 * r).sin()
            for one, r in zip(pull, grown, strict=True)
        ):
            continue
        return start, end, min(0.98 * _time(start, end, beta) / speed, LONGEST)
    return Undecided("the caps touch, or no end fulfils the conditions", f"least gap {start:.6g}")


def _peak(beta: float) -> float:
    """A float at or above the peak of g, whose cosine is 2 beta/(sqrt(1 + 4 beta^2) + 1)."""
    with precision(128) as module:
        b = module.arb(beta)
        return above((2 * b / ((1 + 4 * b * b).sqrt() + 1)).acos())


def _time(start: float, end: float, beta: float) -> float:
    """A float below the integral of 1/g from `end` to `start`, by the closed form of two point masses."""
    from attnflow.certify.closed_forms import merge_time

    return merge_time(start, beta, until=end, masses=(0.5, 0.5), model="USA0").low
