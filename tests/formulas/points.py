"""Arguments drawn from the domain of a formula: logarithmic in the value and in the distance to each finite end."""

import math
import zlib

import numpy as np

from attnflow.special.formula import Integers, Optional, Other, Reals, Word, formula

EXTREMES = (300, 100, 30, 16, 12, 8, 6, 4, 3)
"""Decimal exponents of distances that nobody uses on purpose."""
SIZES = (1, 2, 3, 5, 10, 30, 100, 1000, 10**4, 10**6, 10**9)


def draw(domain, rng):
    """One value of a domain; half of the real ones are ordinary, the others near an end or very large."""
    if isinstance(domain, Reals):
        return _real(domain, rng)
    if isinstance(domain, Integers):
        sizes = [domain.low + size - 1 for size in SIZES if domain.low + size - 1 <= domain.high]
        return int(rng.choice([*sizes[:4], *sizes]))  # small ones more often
    if isinstance(domain, Word):
        return str(rng.choice(domain.words))
    if isinstance(domain, Optional):
        return None if rng.random() < 0.3 else draw(domain.domain, rng)
    raise TypeError(f"{domain} is drawn by the oracle: give it as an argument of `oracle`")


def _real(domain, rng):
    low, high = domain.low, domain.high
    if rng.random() < 0.1:  # an end itself
        ends = [
            end
            for end, side in ((low, "left"), (high, "right"))
            if abs(end) < math.inf and domain.ends in ("both", side)
        ]
        if ends:
            return float(rng.choice(ends))
    ordinary = rng.random() < 0.5
    for _ in range(100):
        if low > -math.inf and high < math.inf:
            share = rng.random() if ordinary else 10.0 ** -rng.choice(EXTREMES)
            x = low + (high - low) * share if rng.random() < 0.6 else high - (high - low) * share
        else:
            size = 10.0 ** (rng.uniform(-2, 2) if ordinary else rng.choice(EXTREMES) * rng.choice([-1, 1]))
            x = low + size if low > -math.inf else high - size if high < math.inf else size * rng.choice([-1, 1])
        if np.asarray(x) in domain:
            return float(x)
        ordinary = True
    raise ValueError(f"no value of {domain} was found")


def points(name, domain, draws, relation, count, seed=0):
    """`count` arguments of the formula `name` as dictionaries, always the same for one seed.

    `draws` are functions of a random generator for parameters that are no numbers or words; `relation` is true of the
    arguments that are meant together.
    """
    rng = np.random.default_rng([zlib.crc32(name.encode()), seed])
    accepted: list[dict] = []
    if not count:
        return accepted
    for _ in range(1000 * count):
        arguments = {key: draws[key](rng) if key in draws else draw(kind, rng) for key, kind in domain.items()}
        if relation(arguments):
            accepted.append(arguments)
        if len(accepted) == count:
            return accepted
    raise ValueError(f"{name}: the relation holds for {len(accepted)} of {1000 * count} draws only")


__all__ = ["Integers", "Other", "Reals", "Word", "draw", "formula", "points"]
