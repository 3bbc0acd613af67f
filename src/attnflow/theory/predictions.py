"""What theory says will happen to softmax attention at a given inverse temperature, dimension and number of tokens."""

import dataclasses

import numpy as np

from attnflow.special.formula import Integers, Optional, Reals, formula
from attnflow.theory.landscape.hemisphere import hemisphere_probability
from attnflow.theory.landscape.modes import expected_modes
from attnflow.theory.merging.exits import nearest_angle
from attnflow.theory.merging.pairs import log_merge_time, merging_angle
from attnflow.theory.uniform.equiangular import log_equiangular_time
from attnflow.theory.uniform.spectrum import STEEPEST, dominant_degree, growth_rates, multiplicity

LOG10 = np.log(10.0)
ALONE = 1.0
"""Least beta (1 - cos) of the nearest pair from which on it merges alone: its pull on others is e^-1 of that at 0."""


@dataclasses.dataclass(frozen=True)
class Prediction:
    """One statement of theory, with the conditions under which it is one."""

    quantity: str
    value: float | list[float] | None
    """A number (times as log10), or None where theory gives no number under these conditions."""
    statement: str
    conditions: str
    source: str


@formula(
    beta=Reals(0.0, STEEPEST, scalar=True),
    d=Integers(2, 10**4, scalar=True),
    n=Optional(Integers(2, 10**9, scalar=True)),
    relative=1e-11,
    absolute=1e-12,
)
def predict_particles(beta: float, *, d: int, n: int | None = None) -> list[Prediction]:
    """Predictions for n iid uniform tokens on S^{d-1} under SA, in the order of events.

    Arguments:
        beta: inverse temperature.
        d: dimension of the space around the sphere.
        n: number of tokens; None for what does not depend on it.
    """
    first = [] if n is None else [_first_merge(beta, d, n)]
    return [*_linear(beta, d), *first, _clusters(beta, d, n), *_lifetimes(beta, d), *_collapse(beta, d, n)]


def _linear(beta: float, d: int) -> list[Prediction]:
    rates = growth_rates(beta, d)
    top = int(dominant_degree(beta, d))
    low = max(1, top - 3)
    some = rates[low - 1 : low + 7]
    return [
        Prediction(
            "growth rates",
            [float(r) for r in some],
            f"harmonics of degree {low} to {low + len(some) - 1} on top of the uniform measure grow at these rates",
            "infinitesimal perturbations of the uniform measure",
            "arXiv:2410.23228",
        ),
        Prediction(
            "dominant degree",
            top,
            f"degree {top} grows fastest, at rate {rates[top - 1]:.6f}; it has {multiplicity(top, d):.0f} harmonics",
            "infinitesimal perturbations; one degree wins only if the linear phase lasts longer than beta",
            "arXiv:2410.23228",
        ),
    ]


def _first_merge(beta: float, d: int, n: int) -> Prediction:
    angles = np.asarray(nearest_angle([0.025, 0.5, 0.975], d, n=n))
    barrier = beta * (1 - np.cos(angles[1])) if n > 2 else np.inf
    who = f"the nearest two of {n} tokens, usually at angle {angles[1]:.3g},"
    if barrier < ALONE:
        return Prediction(
            "first merge",
            None,
            f"no distribution: {who} do not merge alone, as all tokens move at once",
            f"the distribution of pairs needs beta (1 - cos) of at least {ALONE:g} at that angle; it is {barrier:.2g}",
            "arXiv:2410.06833",
        )
    end = float(merging_angle(beta))
    low, median, high = (
        log_merge_time(np.clip(angles, end * (1 + 1e-9), np.pi * (1 - 1e-9)), beta, masses=(1 / n, 1 / n)) / LOG10
    )
    return Prediction(
        "first merge",
        float(median),
        f"{who} merge at t = 10^{median:.2f} (median); in 95 % of draws between 10^{low:.2f} and 10^{high:.2f}",
        f"iid uniform tokens, as if that pair were alone: beta (1 - cos) is {barrier:.2g}; the whole distribution is "
        "first_merge_probability of theory.merging",
        "arXiv:2410.06833",
    )


def _clusters(beta: float, d: int, n: int | None) -> Prediction:
    top = int(dominant_degree(beta, d))
    if d > 2:
        return Prediction(
            "clusters",
            None,
            f"theory has no cluster count for d = {d}; the scale of the pattern is that of degree {top}",
            "iid tokens",
            "–",
        )
    modes = float(expected_modes(beta))
    if n is not None and n < 4 * modes:
        return Prediction(
            "clusters",
            None,
            f"{n} tokens are too few for the distribution of large numbers; most start as clusters of their own",
            f"a count needs many more tokens than the {modes:.0f} modes of their density",
            "arXiv:2412.09080",
        )
    return Prediction(
        "clusters",
        modes,
        f"about {modes:.1f} clusters from iid tokens, up to {top} from a nearly perfect ring",
        f"a few hundred tokens, many more than modes; the mean rises towards {top} as n grows, slowly; counts vary by "
        "about one",
        "arXiv:2412.09080, arXiv:2410.23228",
    )


def _lifetimes(beta: float, d: int) -> list[Prediction]:
    found = []
    if d == 2 and (count := round(float(expected_modes(beta)))) >= 3:
        found.append(("plateau lifetime", 2 * np.pi / count, f"neighbours among {count} equispaced clusters"))
    found.append(("merging at a right angle", np.pi / 2, "two clusters at a right angle"))
    return [
        Prediction(
            name,
            float(log_merge_time(angle, beta)) / LOG10,
            f"{who} merge after t = 10^{float(log_merge_time(angle, beta)) / LOG10:.2f}",
            f"two equal clusters at angle {angle:.3f} with all others farther away, down to the merging angle "
            f"{float(merging_angle(beta)):.1e}; an irregular arrangement loses its closest pair earlier",
            "arXiv:2410.06833",
        )
        for name, angle, who in found
    ]


def _collapse(beta: float, d: int, n: int | None) -> list[Prediction]:
    found = [
        Prediction(
            "consensus",
            None,
            "all tokens converge to one point from almost every start",
            "finitely many tokens, beta >= 0; rings, simplices and antipodal pairs are the exceptions",
            "arXiv:2507.22857" if d == 2 else "Markdahl et al. 2018; arXiv:2405.18273",
        )
    ]
    if n is None:
        return found
    share = float(hemisphere_probability(n, d))
    found.append(
        Prediction(
            "hemisphere",
            share,
            f"all {n} tokens start in one open hemisphere, and converge exponentially, with probability {share:.4g}",
            "iid tokens with a continuous symmetric distribution",
            "Wendel 1962; arXiv:2312.10794",
        )
    )
    if d < n:
        found.append(
            Prediction(
                "collapse time",
                None,
                f"no closed form for {n} tokens in dimension {d}",
                f"the equiangular reduction needs d >= n, and describes iid tokens for d much larger than {n}",
                "arXiv:2312.10794",
            )
        )
        return found
    log_time = float(log_equiangular_time(0.99, beta, n)) / LOG10
    found.append(
        Prediction(
            "collapse time",
            log_time,
            f"all overlaps pass 0.99 at t = 10^{log_time:.2f}",
            "tokens that start orthonormal; iid tokens follow within O(d^(-1/2))",
            "arXiv:2312.10794",
        )
    )
    return found
