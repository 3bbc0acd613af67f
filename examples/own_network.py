"""My own network under the probe: hidden states, a null without training, and what theory says.

Any model will do that gives its hidden states: arrays of shape (layer, token, d), and attention weights where it has
them. Here a small network stands in for it: layers of attention whose matrices are near the identity. Its null has
the same layers with random matrices.
"""

import os

import numpy as np

import attnflow as af

texts, length = (2, 8) if os.environ.get("ATTNFLOW_SMALL") else (12, 48)


class Mine:
    """Four layers of attention in width 16; a network has `run`, `null` and these words about itself."""

    name, layers, heads, width, causal, nulls = "mine", 4, 1, 16, False, ("init",)

    def __init__(self, seed=0, trained=True):
        noise = np.random.default_rng(seed).standard_normal((3, 16, 16)) / 4
        self.words = np.random.default_rng(1).standard_normal((30, 16))
        self.query, self.key, self.value = np.eye(16) + 0.2 * noise if trained else noise

    def run(self, ids):
        """The hidden states of one text."""
        x, hidden, attention = self.words[ids], [], []
        for _ in range(self.layers):
            u = x / np.linalg.norm(x, axis=1, keepdims=True)
            weights = np.exp(4 * (u @ self.query.T) @ (u @ self.key.T).T)
            attention.append(weights[None] / weights.sum(axis=1, keepdims=True))
            hidden.append(x)
            x = x + attention[-1][0] @ u @ self.value.T
        return af.probe.Stream([*hidden, x], attention, ids, name=self.name)

    def null(self, kind, seed):
        """The same network without its training."""
        return Mine(seed + 1, trained=False)

    def heads_of(self, layer):
        """The matrices of the heads of a layer."""
        return af.probe.Heads(*(m[None] for m in (4 * self.query, self.key, self.value, np.eye(16))))


# %% [markdown]
# `compare` puts nulls beside every number: shuffled tokens, fresh weights, iid tokens, and the overlap that theory
# predicts. A star says that the network differs from a case at the level of 5 %, each number by itself; fewer than
# six texts never show a difference.

# %%
rng = np.random.default_rng(0)
found = af.probe.compare(Mine(), [rng.integers(0, 30, length) for _ in range(texts)], shuffles=1)
print(found)
found.figures()["overlap"].savefig("own_network.png", dpi=150)
