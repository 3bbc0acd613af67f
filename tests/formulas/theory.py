"""The oracle of what `theory` puts together: the oracles of its parts, and the words that go with them."""

import mpmath as mp

from tests.formulas.landscape import hemisphere_probability
from tests.formulas.landscape_modes import expected_modes
from tests.formulas.merging import log_merge_time, nearest_angle
from tests.formulas.oracle import oracle
from tests.formulas.uniform import dominant_degree, growth_rates, log_equiangular_time, rate


@oracle(
    "theory.predict_particles",
    draws={
        "beta": lambda rng: float(rng.choice([0.0, 1e-9, *10.0 ** rng.uniform(-1, 3, 4)])),
        "d": lambda rng: int(rng.choice([2, 3, 7, 64])),
        "n": lambda rng: rng.choice([None, 2, 9, 40, 1000]),
    },
    cases=(
        {"beta": 9.0, "d": 2, "n": 64},
        {"beta": 9.0, "d": 3, "n": 64},
        {"beta": 30.0, "d": 128, "n": 32},
        {"beta": 0.0, "d": 2, "n": 2},
    ),
    result=lambda predictions: [prediction.value for prediction in predictions],
    count=8,
    quick=4,
    fresh=2,
)
def predict_particles(beta, d, n):
    """Growth rates, their peak, first merge, clusters, lifetimes, probability of a hemisphere and collapse."""
    count, top = int(growth_rates(beta, d, None, "SA")[0]), int(dominant_degree(beta, d))
    low = max(1, top - 3)
    numbers = [rate(k, beta, d) for k in range(low, min(low + 8, count + 1))] + [mp.mpf(top)]
    if n is not None:
        angles = [nearest_angle(q, d, n) for q in (0.025, 0.5, 0.975)]
        if n == 2 or beta * (1 - mp.cos(angles[1])) >= 1:
            numbers.append(log_merge_time(angles[1], beta, (1 / n, 1 / n), None, "SA") / mp.log(10))
    modes = expected_modes(beta)
    if d == 2 and (n is None or n >= 4 * modes):
        numbers.append(modes)
    neighbours = [2 * mp.pi / round(modes)] if d == 2 and round(modes) >= 3 else []
    numbers += [log_merge_time(angle, beta, (0.5, 0.5), None, "SA") / mp.log(10) for angle in (*neighbours, mp.pi / 2)]
    if n is not None:
        numbers.append(hemisphere_probability(n, d))
        if d >= n:
            numbers.append(log_equiangular_time(0.99, beta, n, 0.0, "SA") / mp.log(10))
    return numbers
