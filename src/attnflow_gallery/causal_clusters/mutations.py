"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, altered, result, scaled
from attnflow.fields import Attention
from attnflow.masks import Causal
from attnflow.tokens import Tokens
from attnflow_gallery.causal_clusters import simulate


def _backwards(original: Any) -> Any:
    """The order of the tokens reversed for the flow, and in all frames after the start."""

    def wrong(beta: float, start: Tokens, *more: Any) -> Any:
        positions = np.asarray(start.positions)
        return np.concatenate([positions[None], original(beta, start.moved(positions[..., ::-1, :]), *more)[1:]])

    return wrong


def _masked(mask: Any) -> Any:
    """Attention with another mask."""
    return lambda original: lambda beta, query=None, key=None: Attention(beta, query=query, key=key, mask=mask)


MUTATIONS = (
    Mutation("beta 1 % larger", simulate, "field", scaled("beta", 1.01)),
    Mutation("beta 3 times as large", simulate, "field", scaled("beta", 3.0)),
    Mutation("beta 9 times as small", simulate, "field", scaled("beta", 1 / 9)),
    Mutation("no mask", simulate, "field", _masked(None)),
    Mutation("no token hears itself", simulate, "field", _masked(Causal(strict=True))),
    Mutation("flow of the tokens in reverse order", simulate, "_frames", _backwards),
    Mutation("beta fixed at 25", simulate, "field", altered("beta", lambda beta: min(beta, 25.0))),
    Mutation("angle of strong centres 10 % larger", simulate, "strong", scaled("delta", 1.1)),
    Mutation("angle of Rényi centres 10 % larger", simulate, "renyi", scaled("delta", 1.1)),
    Mutation("one Rényi centre is not counted", simulate, "renyi", result(lambda found: found[1:])),
)
