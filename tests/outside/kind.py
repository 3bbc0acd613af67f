"""A kind of run as a user's file would add it: gossip, with a report, an observable and an end that can be moved."""

import dataclasses
import os
import time
from typing import Any, ClassVar, NamedTuple

import numpy as np
from matplotlib.figure import Figure

import attnflow as af
from attnflow.flows import (
    AbstractResult,
    AbstractSingle,
    AbstractWork,
    Ending,
    Layout,
    Outcome,
    Reached,
    Rows,
    Slice,
    Variable,
    Views,
)
from attnflow.plots import Account


@af.register("observable", "widest")
@af.Observable
def widest(mu):
    """1 - the least overlap of two tokens."""
    return 1 - (mu.positions @ mu.positions.T).min()


@dataclasses.dataclass(frozen=True)
class Talk(AbstractResult):
    """What gossip leaves: `spread` and observables along `time`, the number of meetings."""

    dataset: Any
    outcome: Any
    steps: Any
    checkpoint: Any = None
    work: Any = None


@af.register("kind", "gossip")
@dataclasses.dataclass(frozen=True)
class Gossip(AbstractWork):
    """Pairs of tokens, drawn at random, meet one after the other and go a share of the way to their middle."""

    end: ClassVar[str] = "meetings"

    tokens: af.Tokens
    meetings: int
    share: float = 1.0
    every: int = 4
    seed: int = 0
    observe: dict = dataclasses.field(default_factory=dict)

    def checked(self):
        if not 0 < self.share <= 1:
            raise af.errors.InvalidInput(f"`share` is {self.share}; give a number above 0, at most 1.")
        return dataclasses.replace(self, tokens=self.tokens.single())

    def stepper(self):
        return Meetings(self)

    def result(self, driven):
        return Talk(driven.dataset, driven.outcome, driven.steps, driven.checkpoint, self)

    def account(self, result):
        figure = Figure(figsize=(3, 2))
        figure.subplots().semilogy(result.dataset["time"], result.dataset["spread"])
        last = float(result.dataset["spread"][-1])
        return Account({"summary": figure, "spread": figure}, {"spread": last}, {"outcome": result.outcome.message},
                       captions={"spread": "The largest distance from the mean."})  # fmt: skip


class State(NamedTuple):
    x: Any
    done: Any


class Meetings(AbstractSingle):
    """One row after `every` meetings; meeting k is drawn from (seed, k), so that slices do not matter."""

    def __init__(self, gossip):
        self.gossip, self.mu = gossip, gossip.tokens.measure

    @property
    def goal(self):
        return float(self.gossip.meetings), self._rows(self.gossip.meetings)

    def _rows(self, meetings):
        return meetings // self.gossip.every + 1

    def layout(self):
        floating = np.dtype(np.float64)
        frames = {"time": Variable(("time",), floating), "spread": Variable(("time",), floating)}
        rows = {"time": self._rows(self.gossip.meetings)}
        return Layout({"time": frames}, {}, rows, {}, {}, {"time": 1}, {}, self.goal[0], {})

    def _views(self, x, t):
        return Views(np.array([[float(t)]]), x[None, None], self._fixed(), moved)

    def _fixed(self):
        import jax

        return jax.tree.map(lambda leaf: np.asarray(leaf)[None], self.mu.moved(None))

    def start(self):
        return self._views(np.asarray(self.mu.positions), 0)

    def begin(self):
        return State(np.asarray(self.mu.positions), np.asarray(-1))

    def work(self, state):
        time.sleep(float(os.environ.get("GOSSIP_SLEEP", "0")))
        done, x = int(state.done), np.array(state.x)
        for k in range(max(done, 0), 0 if done < 0 else done + self.gossip.every):
            i, j = np.random.default_rng([self.gossip.seed, k]).choice(len(x), 2, replace=False)
            x[[i, j]] += self.gossip.share * ((x[i] + x[j]) / 2 - x[[i, j]])
            x[[i, j]] /= np.linalg.norm(x[[i, j]], axis=1, keepdims=True)
        done = 0 if done < 0 else done + self.gossip.every
        spread = np.linalg.norm(x - x.mean(axis=0), axis=1).max()
        rows = Rows({"time": {"time": np.array([float(done)]), "spread": np.array([spread])}}, self._views(x, done))
        last = done + self.gossip.every > self.gossip.meetings
        ended = Outcome(Ending.FINISHED, f"{done} meetings.") if last else None
        return Slice(State(x, np.asarray(done)), rows, ended)

    def reached(self, state, rows):
        return Reached(float(state.done), rows["time"], int(state.done))

    def steps(self, state):
        return {"meetings": max(int(state.done), 0)}

    def finish(self, state):
        return {}


def moved(x, mu):
    return mu.moved(x)
