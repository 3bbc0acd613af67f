"""A network in our own format whose layers are steps of a flow: the observables of its stream are those of the flow."""

import numpy as np

import attnflow as af
from attnflow.errors import InvalidInput
from tests.kit import drive

KINDS = ("permuted", "init", "norms only")


class FlowNetwork:
    """Layers x <- N(x + step * attention(x)), from embedded words; Q = K = I, V = I unless matrices are given."""

    def __init__(self, beta=4.0, *, layers=4, step=0.25, width=12, words=30, causal=False, seed=0, matrices=None):
        self.name, self.layers, self.heads, self.width, self.causal = "flow", layers, 1, width, causal
        self.nulls = KINDS
        self.beta, self.step, self.seed = beta, step, seed
        rng = np.random.default_rng(seed)
        self.embedding = rng.standard_normal((words, width)) + 0.3
        self.matrices = [np.eye(width)] * 3 if matrices is None else matrices

    @property
    def field(self):
        query, key, value = self.matrices
        mask = af.Causal() if self.causal else None
        return af.Attention(self.beta, query=query, key=key, value=value, mask=mask)

    def start(self, ids):
        return af.from_array(self.embedding[np.asarray(ids)], normalise=True)

    def flow(self, ids):
        end = self.layers * self.step
        return af.solve(
            self.field, self.start(ids), end, save=self.layers, method=af.Layers(self.step), keep=["positions"]
        )

    def run(self, ids):
        states = self.flow(ids).positions.values
        frames = [af.Tokens(x) for x in states[:-1]]
        attention = np.stack([af.observe.attention_matrix(self.field, mu)[None] for mu in frames])
        middle = np.stack([mu.positions + self.step * drive(self.field, mu.measure) for mu in frames])
        return af.probe.Stream(
            states,
            attention,
            np.asarray(ids),
            self.causal,
            after_attention=middle,
            unembedding=self.embedding,
            name=self.name,
            facts={"seed": self.seed},
        )

    def null(self, kind, seed):
        rng = np.random.default_rng([seed, 17])
        if kind not in KINDS:
            raise InvalidInput(f"`kind` is {kind!r}; this network offers {', '.join(KINDS)}.")
        if kind == "permuted":
            matrices = [rng.permutation(m.reshape(-1)).reshape(m.shape) for m in self.matrices]
        elif kind == "init":
            matrices = [rng.standard_normal(m.shape) / np.sqrt(self.width) for m in self.matrices]
        else:
            matrices = [*self.matrices[:2], np.zeros_like(self.matrices[2])]
        made = FlowNetwork(
            self.beta,
            layers=self.layers,
            step=self.step,
            width=self.width,
            causal=self.causal,
            seed=self.seed,
            matrices=matrices,
        )
        made.name = f"{self.name}, {kind}"
        return made

    def heads_of(self, layer):
        query, key, value = self.matrices
        return af.probe.Heads(*(one[None] for one in (self.beta * query, key, value, np.eye(self.width))))
