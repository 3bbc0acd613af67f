"""Random tokens on a sphere, followed to consensus: the log times of all merges of all seeds."""

import dataclasses
import math

import numpy as np
import xarray as xr

from attnflow.experiments import Salted, Study
from attnflow.fields import Attention
from attnflow.flows import LongTime, Progress, merge_times
from attnflow.spaces import Sphere
from attnflow.tokens import uniform


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
    level: float = 1e-6
    """Probability that a claim about distributions fails although it is true."""
    tol: float = 1e-6


QUICK = Parameters(
    pairs=((3, "USA0"),), pair_starts=500, cases=(("USA0", 10_000.0), ("SA", 100.0)), starts=64, others=300
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Starts, and log times of all merges, of all seeds."""
    jobs = [(2, dim, model, parameters.pair_beta, parameters.pair_starts) for dim, model in parameters.pairs]
    jobs += [(parameters.n, 3, model, beta, parameters.starts) for model, beta in parameters.cases]
    return study.parts({_name(*job[:4]): (_merges, parameters, study, *job) for job in jobs})


def _name(n: int, dim: int, model: str, beta: float) -> str:
    return f"{n}-S{dim - 1}-{model}-{beta:g}"


def chord(parameters: Parameters, beta: float) -> float:
    """The distance at which clusters count as one."""
    return min(math.sqrt(parameters.tol) / beta, 1e-3 / math.sqrt(beta))


def _merges(parameters: Parameters, study: Study, n: int, dim: int, model: str, beta: float, seeds: int) -> xr.Dataset:
    def say(progress: Progress) -> None:
        study.progress(_name(n, dim, model, beta), progress.frames / progress.of)

    tokens = uniform(Sphere(dim), n=n, seed=parameters.seeds(range(seeds)))
    field, method = Attention(beta, normaliser=model), LongTime(parameters.tol, angle=chord(parameters, beta))
    found = merge_times(field, tokens, method=method, on_progress=say)
    log_time = np.where(found.undetermined.values, np.nan, found.log_time.values)  # changed by rounding: no result
    return xr.Dataset(
        {
            "start": (("seed", "token", "dim"), np.asarray(tokens.positions)),
            "log_time": (("seed", "merge"), log_time),
            "evaluations": (("seed", "merge"), found.dataset["evaluations"].values),
        },
        attrs={"n": n, "dim": dim, "model": model, "beta": beta},
    )
