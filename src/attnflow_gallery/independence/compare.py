"""Monte Carlo against the limits of many tokens and the closure of softmax."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import Claim, Origin, consequence
from attnflow.experiments.kit import LEVEL, Effects, Rows, many_tokens, student
from attnflow_gallery.independence.simulate import BATCH, DEGREES, MODELS, NAMES, Parameters

PAIRS = consequence("Two tokens")
TRIPLES = consequence("Three tokens")
OWN = consequence("A token's own weight")


class Series(NamedTuple):
    """One quantity of one model at every size, its limit, and its deviations from what is predicted at that size."""

    label: str
    limit: float
    sizes: np.ndarray
    mean: np.ndarray
    off: np.ndarray
    error: np.ndarray

    @property
    def left(self) -> tuple[float, float, float]:
        """What is left for 1/n -> 0, its standard error, and room for the next order."""
        found = many_tokens(self.sizes, self.off, self.error)
        return float(found[0]), float(found[1]), float(found[2])


def series(parameters: Parameters, data: dict[str, xr.Dataset], model: str) -> list[Series]:
    """All quantities of a model: pairs at one time, pairs at two times, triples."""
    t, beta, part = parameters.until, parameters.beta, data[model]
    sizes, found = part["size"].values, []
    for at, name in enumerate(NAMES):
        mean, error = part["mean"].values[:, at], part["error"].values[:, at]
        if name == "triple":
            limit = float(theory.uniform.triple_correlation(t, beta, model=model))
            predicted = np.full(len(sizes), limit)
        else:
            same: Any = {"k": DEGREES[at % len(DEGREES)], "from_start": at >= len(DEGREES), "model": model}
            limit = float(theory.uniform.pair_correlation(t, beta, 2, **same))
            own = theory.uniform.pair_correlation(t, beta, 2, n=sizes, **same) if model == "SA" else limit
            predicted = np.broadcast_to(own, sizes.shape)
        found.append(Series(f"{model}, {name}", limit, sizes, mean, mean - predicted, error))
    return found


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Pairs, triples and their signs, and the dilution on S^2."""
    every = [one for model in MODELS for one in series(parameters, data, model)]
    pairs = [one for one in every if "triple" not in one.label]
    triples = [one for one in every if "triple" in one.label]
    where = f"circle, β = {parameters.beta:g}, t = {parameters.until:g}"
    return [
        _limit(f"{where}: n E P_k(⟨x₁, x₂⟩) less its limit, for 1/n → 0", pairs, parameters, PAIRS),
        _limit(f"{where}: n² E cos(θ₁ + θ₂ − 2θ₃) less its limit, for 1/n → 0", triples, parameters, TRIPLES),
        _signs(f"{where}: n² E cos(θ₁ + θ₂ − 2θ₃), times −1 for softmax", triples, parameters),
        _own(parameters, data["sphere"]),
    ]


def _limit(words: str, found: list[Series], parameters: Parameters, origin: Origin) -> Claim:
    rows, allowed = Rows(), student(LEVEL, BATCH, len(found))
    for one in found:
        left, error, room = one.left
        rows.add(0.0, left, allowed * error + room, f"{one.label}, limit {one.limit:.4f}")
    sizes = parameters.sizes
    return rows.equal(
        words,
        f"Student's test over draws, level {LEVEL:g} for all {len(found)}; a line in 1/n through n = {sizes[-2]} and "
        f"{sizes[-1]}; the bend seen since n = {sizes[-3]}, which is 1.5 times what a term of order 1/n² adds",
        origin=origin,
        level=LEVEL,
    )


def _signs(words: str, found: list[Series], parameters: Parameters) -> Claim:
    triples = Effects(BATCH, parameters.expected_triples)
    for series in found:
        sign = -1 if series.label.startswith("SA") else 1
        labels = [f"{series.label}, n = {n}" for n in series.sizes[-2:]]
        triples.add(0.0, sign * series.mean[-2:], series.error[-2:], labels)
    return triples.above(words, "Student's test", origin=TRIPLES)


def _own(parameters: Parameters, part: xr.Dataset) -> Claim:
    n, beta, t = parameters.sphere_size, parameters.sphere_beta, parameters.until
    rows, allowed = Rows(), student(LEVEL, BATCH, len(DEGREES))
    for at, k in enumerate(DEGREES):
        mean, error = float(part["mean"][at]), float(part["error"][at])
        limit = float(theory.uniform.pair_correlation(t, beta, 3, k=k))
        own = float(theory.uniform.pair_correlation(t, beta, 3, k=k, n=n))
        label = f"degree {k}: {mean:.4f} ± {error:.4f}, closure {own:.4f}, many tokens {limit:.4f}"
        rows.add(abs(mean - limit) / 4, abs(mean - own), allowed * error, label)
    return rows.at_most(
        f"S², softmax, β = {beta:g}, n = {n}: with the token's own weight at most a quarter of the deviation is left",
        f"Student's test, level {LEVEL:g} for both degrees",
        origin=OWN,
        level=LEVEL,
    )
