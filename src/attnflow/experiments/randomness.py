"""Random numbers of an experiment: one salt changes all of them at once."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from attnflow.errors import InvalidInput
from attnflow.parsing import parse_json
from attnflow.reading import read_text

SPACING = 1_000_000
"""Seeds of two salts lie this far apart; an experiment numbers its own seeds from 0 and uses fewer."""


@dataclasses.dataclass(frozen=True)
class Salted:
    """What the `Parameters` of an experiment derive from, if it draws random numbers.

    ```python
    @dataclasses.dataclass(frozen=True)
    class Parameters(af.experiments.Salted):
        n: int = 64

    parameters = Parameters(salt=7)
    tokens = af.uniform(af.Sphere(3), n=parameters.n, seed=parameters.seeds(range(4)))
    angles = parameters.rng(0).uniform(0, 3, size=10)
    ```

    `attnflow reproduce NAME --salt 7` sets the salt. Then every stream is another one, independent of those of any
    other salt, and a claim that held by luck has a new chance to fail.
    """

    salt: int = dataclasses.field(default=0, kw_only=True)
    """Names a family of random streams; 0 is the one of the gallery."""

    def rng(self, *labels: int) -> np.random.Generator:
        """NumPy's generator for these labels, e.g. a seed and the number of a part."""
        entropy = [int(label) for label in labels]
        return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(self.salt,) if self.salt else ()))

    def seed(self, seed: int) -> int:
        """A seed for the functions of attnflow: `seed` + 1,000,000 salt."""
        return int(seed) + SPACING * self.salt

    def seeds(self, seeds: Iterable[int]) -> tuple[int, ...]:
        """Several seeds."""
        return tuple(map(self.seed, seeds))


def draws_random_numbers(experiment: Any) -> bool:
    """True if a salt changes the random numbers of an experiment, that is if its `Parameters` derive from `Salted`."""
    return issubclass(experiment.module().Parameters, Salted)


def salted(name: str, parameters: Any, salt: int) -> Any:
    """The parameters of the experiment `name` with another salt."""
    if not isinstance(parameters, Salted):
        raise InvalidInput(
            f"the experiment {name!r} draws no random numbers that a salt changes; let its `Parameters` derive from "
            "attnflow.experiments.Salted, or leave the salt out."
        )
    if salt < 0:
        raise InvalidInput(f"`salt` is {salt}; give a whole number of at least 0.")
    return dataclasses.replace(parameters, salt=salt)


@dataclasses.dataclass(frozen=True)
class Replication:
    """What became of the claims of an experiment with fresh random numbers."""

    salts: tuple[int, ...]
    claims: int
    """Of one run."""
    failed: tuple[tuple[str, str, tuple[int, ...]], ...]
    """Statements of claims that failed, the reason, and with which salts."""

    def __str__(self) -> str:
        salts = f"With fresh random numbers (salts {', '.join(map(str, self.salts))})"
        if not self.failed:
            return f"{salts} all {self.claims} claims hold too."
        count = sum(len(some) for _, _, some in self.failed)
        listed = "; ".join(f"{statement} ({_salts(some)}: {why})" for statement, why, some in self.failed)
        return f"{salts} {count} of {len(self.salts)} × {self.claims} claims fail: {listed}."


def _salts(salts: tuple[int, ...]) -> str:
    return f"salt{'s' * (len(salts) > 1)} {', '.join(map(str, salts))}"


def read_replications(path: str | Path) -> dict[str, Replication]:
    """What a record of campaigns/replicate.py holds, by experiment."""
    try:
        runs = parse_json(read_text(path))["runs"]
        return {name: _replication(by_salt) for name, by_salt in runs.items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{str(path)!r} is no record of campaigns/replicate.py ({error}).") from None


def _replication(by_salt: dict[str, Any]) -> Replication:
    failed: dict[tuple[str, str], list[int]] = {}
    for salt, run in by_salt.items():
        for one in run["failed"]:
            failed.setdefault((one["statement"], one.get("why", "not explained")), []).append(int(salt))
    rows = tuple((statement, why, tuple(sorted(salts))) for (statement, why), salts in failed.items())
    return Replication(tuple(sorted(map(int, by_salt))), next(iter(by_salt.values()))["claims"], rows)
