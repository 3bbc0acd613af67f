"""Random tokens on a sphere, followed to consensus: the log times of all merges of all seeds."""

import dataclasses
import functools
import math
from collections.abc import Callable

import numpy as np
import xarray as xr

from attnflow.experiments import Salted, Study
from attnflow.fields import Attention, Softmax, Unnormalised
from attnflow.flows import LongTime, merge_times
from attnflow.spaces import Sphere
from attnflow.tokens import uniform

MODELS = {"SA": Softmax(), "USA0": Unnormalised()}


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated."""

    pairs: tuple[tuple[int, str], ...] = ((2, "SA"), (3, "USA0"))
    """Two tokens: dimension and model."""
    pair_starts: int = 10_000
    pair_beta: float = 25.0
    n: int = 8
    """Tokens on S^2 whose exits are looked at."""
    cases: tuple[tuple[str, float], ...] = (("USA0", 100.0), ("USA0", 400.0), ("USA0", 10_000.0), ("SA", 100.0))
    """Model and beta of these; the largest beta of USA0 is compared with the limit."""
    starts: int = 1000
    others: int = 2000
    """Starts of the cascades whose distribution is compared."""
    level: float = 0.001
    """Probability that a claim about distributions fails although it is true."""
    tol: float = 1e-6


QUICK = Parameters(
    pairs=((3, "USA0"),), pair_starts=500, cases=(("USA0", 10_000.0), ("SA", 100.0)), starts=48, others=150
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Starts, and log times of all merges, of all seeds."""
    jobs = [(2, dim, model, parameters.pair_beta, parameters.pair_starts) for dim, model in parameters.pairs]
    jobs += [(parameters.n, 3, model, beta, parameters.starts) for model, beta in parameters.cases]
    found = {}
    for k, (n, dim, model, beta, seeds) in enumerate(jobs):
        name, title = f"{n}-S{dim - 1}-{model}-{beta:g}", f"{n} tokens on S^{dim - 1}, {model}, beta = {beta:g}"
        study.progress(title, k / len(jobs))

        def progress(share: float, k: int = k, title: str = title) -> None:
            study.progress(title, (k + share) / len(jobs))

        make = functools.partial(_merges, parameters, n, dim, model, beta, seeds, progress)
        found[name] = study.part(name, make)
    return found


def chord(parameters: Parameters, beta: float) -> float:
    """The distance at which clusters count as one."""
    return min(math.sqrt(parameters.tol) / beta, 1e-3 / math.sqrt(beta))


def _merges(
    parameters: Parameters, n: int, dim: int, model: str, beta: float, seeds: int, progress: Callable[[float], None]
) -> xr.Dataset:
    tokens = uniform(Sphere(dim), n=n, seed=parameters.seeds(range(seeds)))
    found = merge_times(
        Attention(beta, normaliser=MODELS[model]),
        tokens,
        method=LongTime(parameters.tol, angle=chord(parameters, beta)),
        on_progress=lambda p: progress(p.frames / p.of),
    )
    log_time = np.where(found.undetermined.values, np.nan, found.log_time.values)  # changed by rounding: no result
    return xr.Dataset(
        {
            "start": (("seed", "token", "dim"), np.asarray(tokens.positions)),
            "log_time": (("seed", "merge"), log_time),
            "evaluations": (("seed", "merge"), found.dataset["evaluations"].values),
        },
        attrs={"n": n, "dim": dim, "model": model, "beta": beta},
    )
