"""Ways to break the simulation."""

import copy
import dataclasses
from typing import Any

from attnflow.certify import Certificate
from attnflow.experiments import Mutation, altered, result, scaled, with_arguments
from attnflow_gallery.certified_equilibria import simulate


def _stronger(beta: Any) -> Any:
    return tuple(b + 0.1 for b in beta) if isinstance(beta, tuple) else beta + 0.1


def _classes(change: Any) -> Any:
    """Changes the classes of a list."""

    def changed(found: Any) -> Any:
        if not isinstance(found, Certificate):
            return found
        claims = copy.deepcopy(found.claims)
        change(claims["classes"])
        return dataclasses.replace(found, claims=claims)

    return result(changed)


MUTATIONS = (
    Mutation("force: beta of the lists 0.1 larger", simulate, "circle_equilibria", altered("beta", _stronger)),
    Mutation(
        "index of the last class one less",
        simulate,
        "circle_equilibria",
        _classes(lambda c: c[-1].update(unstable=c[-1]["unstable"] - 1)),
    ),
    Mutation("the second class is lost", simulate, "circle_equilibria", _classes(lambda c: c.pop(1))),
    Mutation(
        "labelled counts of the last class doubled",
        simulate,
        "circle_equilibria",
        _classes(lambda c: c[-1].update(labelled=2 * c[-1]["labelled"])),
    ),
    Mutation("Newton: one start per batch", simulate, "find_equilibria", with_arguments(starts=1)),
    Mutation("Newton: beta times -4", simulate, "find_equilibria", scaled("beta", -4.0)),
    Mutation("force: repulsion in the proof on S^2", simulate, "equilibrium", scaled("beta", -1.0)),
    Mutation("force: repulsion in floats on S^2", simulate, "Attention", scaled("beta", -1.0)),
)
