"""Mutations: break the physics of a simulation, run it again, and see which claims notice."""

import contextlib
import dataclasses
import inspect
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from attnflow.errors import AttnflowError, InvalidInput, NotFinite
from attnflow.experiments.claim import Claim
from attnflow.experiments.study import Study
from attnflow.experiments.verdicts import missing
from attnflow.fields import Attention
from attnflow.parsing import parse_json
from attnflow.reading import read_text


@dataclasses.dataclass(frozen=True)
class Mutation:
    """A change of the physics: while it is applied, `attribute` of `module` is what `change` makes of the original.

    ```python
    from attnflow_gallery.staircase import simulate

    weak = Mutation("beta 1 % smaller", simulate, "Attention", scaled("beta", 0.99))
    ```

    The simulation looks its parts up in its own module, so that only the simulation changes: predictions, claims and
    stored data do not.
    """

    name: str
    module: ModuleType
    attribute: str
    change: Callable[[Any], Any]

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """The simulation is mutated inside this context."""
        original = getattr(self.module, self.attribute)
        setattr(self.module, self.attribute, self.change(original))
        try:
            yield
        finally:
            setattr(self.module, self.attribute, original)


def scaled(argument: str, factor: float) -> Callable[[Any], Any]:
    """Multiplies an argument of a function or class by `factor`."""
    return altered(argument, lambda value: factor * value)


def with_arguments(**arguments: Any) -> Callable[[Any], Any]:
    """Sets arguments of a function or class, whatever it is called with."""
    return lambda original: lambda *a, **k: original(*a, **(k | arguments))


def faster(factor: float) -> Callable[[Any], Any]:
    """Multiplies the fields that a function or class makes: tokens move `factor` times as fast."""
    return lambda original: lambda *a, **k: factor * original(*a, **k)


def altered(argument: str, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Replaces an argument of a function or class by `change` of it; the default counts as given."""

    def around(original: Any) -> Any:
        signature = inspect.signature(original)

        def call(*arguments: Any, **keywords: Any) -> Any:
            bound = signature.bind(*arguments, **keywords)
            bound.apply_defaults()
            bound.arguments[argument] = change(bound.arguments[argument])
            return original(*bound.args, **bound.kwargs)

        return call

    return around


def other_beta(factor: float) -> Callable[[Any], Any]:
    """Multiplies beta of the argument `field`, plain attention, by `factor`."""

    def change(field: Attention) -> Attention:
        return Attention(factor * field.beta, normaliser=field.normaliser)

    return altered("field", change)


def result(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Replaces what a function returns by `change` of it."""
    return lambda original: lambda *a, **k: change(original(*a, **k))


@dataclasses.dataclass(frozen=True)
class Matrix:
    """Which mutations make which claims fail."""

    claims: tuple[str, ...]
    """Keys of claims (statements with # for numbers), each once."""
    mutations: tuple[str, ...]
    killed: tuple[tuple[bool, ...], ...]
    """For every claim and mutation: does a claim of this key fail?"""
    refused: dict[str, str]
    """Mutations that ended in an error of the library or in NaN, with the message; such a mutation kills nothing."""

    @property
    def survivors(self) -> tuple[str, ...]:
        """Claims that no mutation makes fail."""
        return tuple(claim for claim, row in zip(self.claims, self.killed, strict=True) if not any(row))


def claims_of(module: Any, parameters: Any) -> list[Claim]:
    """The claims of an experiment after a run in a temporary folder; data with a NaN are refused."""
    with tempfile.TemporaryDirectory() as folder:
        data = module.run(parameters, Study(Path(folder) / "parts"))
        if lost := list(missing(data)):
            raise NotFinite(f"the data have a NaN in {lost[0]}, which makes every claim fail; change the physics less.")
        return list(module.claims(parameters, data))


def kill_matrix(
    module: Any,
    parameters: Any,
    mutations: Sequence[Mutation] | None = None,
    on_mutation: Callable[[str], None] = lambda name: None,
) -> Matrix:
    """Run an experiment as it is, then under each of its mutations, and compare the verdicts.

    Raises `InvalidInput` if a claim fails without a mutation, or if a statement depends on the data.
    """
    mutations = module.MUTATIONS if mutations is None else mutations
    right = claims_of(module, parameters)
    for claim in right:
        if not claim.holds:
            raise InvalidInput(f"the claim {claim.statement!r} fails without a mutation ({claim.found}); correct that.")
    keys = tuple(dict.fromkeys(claim.key for claim in right))
    columns: list[set[str]] = []
    refused: dict[str, str] = {}
    for mutation in mutations:
        on_mutation(mutation.name)
        try:
            with mutation.applied():
                wrong = claims_of(module, parameters)
        except AttnflowError as error:
            refused[mutation.name] = str(error)
            columns.append(set())
            continue
        if len(right) != len(wrong):
            raise InvalidInput(
                f"{len(right)} claims became {len(wrong)} under the mutation {mutation.name!r}; make the same claims "
                "whatever the data are."
            )
        for before, after in zip(right, wrong, strict=True):
            if before.statement != after.statement:
                raise InvalidInput(
                    f"the statement {before.statement!r} became {after.statement!r} under the mutation "
                    f"{mutation.name!r}; put what depends on the data into `detail`."
                )
        columns.append({claim.key for claim in wrong if not claim.holds})
    killed = tuple(tuple(key in column for column in columns) for key in keys)
    return Matrix(keys, tuple(mutation.name for mutation in mutations), killed, refused)


def read_matrices(path: str | Path) -> dict[str, Matrix]:
    """The matrices by experiment in a record of campaigns/physics.py."""
    try:
        rows = parse_json(read_text(path))["experiments"]
        return {
            name: Matrix(
                tuple(row["claims"]),
                tuple(row["mutations"]),
                tuple(tuple(map(bool, k)) for k in row["killed"]),
                row["refused"],
            )
            for name, row in rows.items()
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{str(path)!r} is no record of campaigns/physics.py ({error}).") from None
