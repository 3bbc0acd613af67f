"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, altered
from attnflow_gallery.long_context import simulate


def _with_residual(cosines: Any) -> Any:
    """Outputs x + A instead of A."""

    def changed(field: Any, queries: Any, tokens: Any) -> Any:
        class Residual:
            def velocity(self, tokens: Any, *, at: Any) -> Any:
                return np.asarray(field.velocity(tokens, at=at)) + np.asarray(at)

        return cosines(Residual(), queries, tokens)

    return changed


MUTATIONS = (
    Mutation("beta larger by a factor 1 + 1e-6", simulate, "Along", altered("values", lambda beta: (1 + 1e-6) * beta)),
    Mutation("beta 3 % smaller", simulate, "Along", altered("values", lambda beta: 0.97 * beta)),
    Mutation("beta 3 % larger", simulate, "Along", altered("values", lambda beta: 1.03 * beta)),
    Mutation("beta = c log(2n)", simulate, "layer", altered("n", lambda n: 2 * n)),
    Mutation("half of the other tokens left out", simulate, "with_mean", altered("n", lambda n: n / 2)),
    Mutation("overlap larger by 0.001", simulate, "equiangular", altered("overlap", lambda rho: rho + 1e-3)),
    Mutation("iid tokens: overlap larger by 0.02", simulate, "around", altered("overlap", lambda rho: rho + 0.02)),
    Mutation("residual connection", simulate, "cosines", _with_residual),
)
