"""Ways to break the simulation."""

import dataclasses
from typing import Any

from attnflow.certify import Certificate
from attnflow.experiments import Mutation, result, scaled
from attnflow_gallery.certified_plateaus import simulate


def _claim(**changes: Any) -> Any:
    """Changes claims of a certificate; each change is a function of the old claim."""

    def changed(found: Any) -> Any:
        if not isinstance(found, Certificate):
            return found
        new = {key: change(found.claims[key]) for key, change in changes.items()}
        return dataclasses.replace(found, claims=found.claims | new)

    return result(changed)


def _doubled(table: Any) -> Any:
    return table.assign(log_proved=2 * table["log_proved"])


MUTATIONS = (
    Mutation("force: beta of the flows 0.01 % larger", simulate, "Attention", scaled("beta", 1.0001)),
    Mutation("force: beta of the flows halved", simulate, "Attention", scaled("beta", 0.5)),
    Mutation("bound: beta twice as large", simulate, "stay_apart", scaled("beta", 2.0)),
    Mutation("bound: time 0.1 % longer", simulate, "stay_apart", _claim(time=lambda t: 1.001 * t)),
    Mutation("bound: time 10 % longer", simulate, "stay_apart", _claim(time=lambda t: 1.1 * t)),
    Mutation("bound of plateaus: twice the logarithm", simulate, "plateaus", result(_doubled)),
    Mutation("tube: beta 0.1 % larger", simulate, "circle_flow", scaled("beta", 1.001)),
    Mutation("tube: radius of nothing", simulate, "circle_flow", _claim(radius=lambda r: 1e-300)),
    Mutation("half circle: claimed at once", simulate, "circle_consensus", _claim(time=lambda t: 0.0)),
)
