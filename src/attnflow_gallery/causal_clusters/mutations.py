"""Ways to break the simulation."""

from typing import Any

import numpy as np

from attnflow.experiments import Mutation, altered, result, scaled
from attnflow.fields import Attention
from attnflow.masks import Causal
from attnflow.tokens import Tokens
from attnflow_gallery.causal_clusters import simulate


def _backwards(tokens: Tokens) -> Tokens:
    """The order of the tokens reversed for the flow."""
    return tokens.moved(np.asarray(tokens.positions)[..., ::-1, :])


def _strict(original: Any) -> Any:
    return lambda beta: Attention(beta, mask=Causal(strict=True))


def _open(original: Any) -> Any:
    return lambda beta: Attention(beta)


MUTATIONS = (
    Mutation("beta 1 % larger", simulate, "field", scaled("beta", 1.01)),
    Mutation("beta 3 times as large", simulate, "field", scaled("beta", 3.0)),
    Mutation("beta 9 times as small", simulate, "field", scaled("beta", 1 / 9)),
    Mutation("no mask", simulate, "field", _open),
    Mutation("no token hears itself", simulate, "field", _strict),
    Mutation("flow of the tokens in reverse order", simulate, "advance", altered("tokens", _backwards)),
    Mutation("beta fixed at 25", simulate, "field", altered("beta", lambda beta: min(beta, 25.0))),
    Mutation("angle of strong centres 10 % larger", simulate, "strong", scaled("delta", 1.1)),
    Mutation("angle of Rényi centres 10 % larger", simulate, "renyi", scaled("delta", 1.1)),
    Mutation("one Rényi centre is not counted", simulate, "renyi", result(lambda found: found[1:])),
)
