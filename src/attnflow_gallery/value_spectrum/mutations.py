"""Ways to break the simulation."""

from typing import Any

from attnflow.axes import Along
from attnflow.experiments import Mutation, altered
from attnflow_gallery.value_spectrum import simulate


def _of(argument: str, change: Any) -> Any:
    """Attention of the flows with a changed argument; the energies keep theirs."""
    return altered(argument, lambda given: given.map(change) if isinstance(given, Along) else given)


def _of_energies(argument: str, change: Any) -> Any:
    """Attention of the energies with a changed argument; the flows keep theirs."""
    return altered(argument, lambda given: given if isinstance(given, Along) else change(given))


MUTATIONS = (
    Mutation("beta larger by 0.0001", simulate, "Attention", _of("beta", lambda beta: beta + 1e-4)),
    Mutation("beta five times as large", simulate, "Attention", _of("beta", lambda beta: 5 * beta)),
    Mutation("V 0.01 % larger", simulate, "Attention", _of("value", lambda value: 1.0001 * value)),
    Mutation("energies: V = -QᵀK", simulate, "Attention", _of_energies("value", lambda value: -value)),
    Mutation("energies: two heads for one", simulate, "one_head", lambda original: simulate.two_heads),
    Mutation("energies: one head for two", simulate, "two_heads", lambda original: simulate.one_head),
)
