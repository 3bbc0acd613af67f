"""The cases of one text: the network, its nulls, and theory."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnflow.checks import instance
from attnflow.observe import clusters
from attnflow.probe.comparison import NETWORK, THEORY
from attnflow.probe.measurement import measure
from attnflow.probe.network_protocol import NetworkLike
from attnflow.probe.sinks import KEPT, find_sinks
from attnflow.probe.states import batch
from attnflow.probe.stream import Stream
from attnflow.spaces import Sphere
from attnflow.theory.uniform import equiangular_overlap
from attnflow.tokens import uniform

FAMILIES = ("overlaps", "rank", "clusters", "energy", "norms", "heads", "updates", "step")
"""What is measured unless other families are asked for."""
OF_STATES = ("overlaps", "rank", "clusters", "energy")
"""What iid tokens have."""
SHUFFLED = "shuffled tokens"
DROPPED = ("sink", "largest_coordinate")
"""Variables whose mean over texts or shuffles has no meaning."""
SHOWN_STATES = 5
"""States, evenly spaced, at which the clusters of the network are kept token by token."""
LETTERS = 24
"""Bytes of a word that are kept."""


class Cases:
    """What a comparison looks at, one job at a time; a job is (case, number of the shuffle).

    Arguments:
        network: what is looked at.
        kinds: of null networks.
        shuffles: random orders of each text.
        seed: of everything random.
        special: places of special tokens.
        settings: arguments of `measure`.
    """

    def __init__(
        self,
        network: NetworkLike,
        kinds: Sequence[str],
        shuffles: int,
        seed: int,
        special: Sequence[int],
        settings: dict[str, Any],
    ):
        self.network, self.seed, self.special, self.settings = network, seed, list(special), settings
        self.others = {kind: network.null(kind, seed) for kind in kinds}
        self.jobs = [(NETWORK, 0), *((SHUFFLED, k) for k in range(shuffles)), *((kind, 0) for kind in kinds)]
        self.tokens: dict[str, np.ndarray] = {}
        """Of the last text that the network was run on: the words and the clusters of its tokens."""

    def look(self, job: tuple[str, int], text: int, ids: np.ndarray) -> Any:
        """The dataset of one job for a text, given by its number and ids."""
        case, number = job
        if case == SHUFFLED:
            ids = shuffled(ids, self.special, [self.seed, text, number])
        one = self.others.get(case, self.network)
        stream = instance("network.run(ids)", one.run(ids), Stream, "a Stream")
        marks = find_sinks(stream)
        for mark in marks:
            mark[self.special] = True
        found = measure(stream, one, sinks=list(marks), **self.settings)
        found["sinks"] = (("text",), np.array([mark.sum() for mark in marks]))
        if case == NETWORK:
            self.settings = {"energy_beta": found.attrs["energy_beta"]} | self.settings  # the first text decides
            self.tokens = _of_tokens(stream, ~marks[0], found.attrs["link"])
        return found.drop_vars([name for name in DROPPED if name in found])

    def joined(self, text: int, looks: Sequence[Any]) -> Any:
        """One dataset of a text with the dimension `case`, theory included; `looks` are those of all jobs in order."""
        import xarray as xr

        found: dict[str, Any] = {}
        for case in dict.fromkeys(case for case, _ in self.jobs):
            own = [look for (name, _), look in zip(self.jobs, looks, strict=True) if name == case]
            found[case] = own[0] if len(own) == 1 else xr.concat(own, "shuffle").mean("shuffle", keep_attrs=True)
        families = self.settings["families"]
        alone = {**self.settings, "families": [one for one in families if one in OF_STATES]}
        found[THEORY[0]] = _iid(found[NETWORK], self.network.width, alone, [self.seed, text])
        if {"overlap", "effective_time"} <= set(found[NETWORK]):
            found[THEORY[1]] = _equiangular(found[NETWORK])
        every = xr.concat(found.values(), "case", data_vars="all", coords="minimal", compat="override", join="outer")
        return every.assign_coords(case=list(found))


def shown_states(states: int) -> np.ndarray:
    """The states at which clusters are kept token by token."""
    return np.unique(np.linspace(0, states - 1, SHOWN_STATES).round().astype(int))


def shuffled(ids: np.ndarray, special: Sequence[int], seed: Any) -> np.ndarray:
    """The ids in random order; those at the places `special` stay."""
    free = np.ones(len(ids), bool)
    free[list(special)] = False
    order = np.array(ids)
    order[free] = np.random.default_rng(seed).permutation(order[free])
    return order


def _of_tokens(stream: Stream, kept: np.ndarray, link: float) -> dict[str, np.ndarray]:
    """(token, letter) words as bytes of UTF-8, and (shown, token) numbers of clusters, -1 for sinks."""
    names: Any = stream.labels[0] if stream.labels is not None else () if stream.ids is None else stream.ids[0]
    words = np.zeros((len(kept), LETTERS), np.uint8)
    for row, name in zip(words, names, strict=False):
        letters = str(name).encode()[:LETTERS]
        row[: len(letters)] = list(letters)
    tokens, shown = batch(stream, [kept]), shown_states(stream.states)
    labels = np.full((len(shown), len(kept)), -1, np.int32)
    if kept.sum() > 1:
        for number, layer in enumerate(shown):
            found = clusters(tokens.member(text=0, layer=int(layer)), scale=float(np.arccos(link)))
            labels[number, kept] = found.labels  # a member has no absent rows
    return {"word": words, "cluster": labels}


def _iid(one: Any, width: int, settings: dict[str, Any], seed: Any) -> Any:
    """iid tokens of the same numbers, in every state the same."""
    count = int(one["tokens"].values[0])
    drawn = uniform(Sphere(width), n=count, seed=int(np.random.default_rng(seed).integers(2**31)))
    sinks = [list(range(int(one["sinks"].values[0])))]
    found = measure(Stream(np.asarray(drawn.positions)[None]), sinks=sinks, **settings)
    found = found.drop_vars([name for name in (*DROPPED, "tokens") if name in found])
    if "layer" not in found.dims:  # nothing of states is measured
        return found
    return found.isel(layer=[0] * one.sizes["layer"]).assign_coords(layer=one["layer"])


def _equiangular(one: Any) -> Any:
    """The overlap of tokens that all have the same one, from the first state of a text, layer by layer."""
    found = one[["overlap"]].where(False)
    part = "attention" if np.isfinite(one["effective_time"].sel(part="attention")).any() else "layer"
    for kept in KEPT:
        gone = 0 if kept == KEPT[0] else int(one["sinks"].values[0])
        n = max(int(one["tokens"].values[0]) - gone, 2)
        times = np.maximum(np.nan_to_num(one["effective_time"].sel(kept=kept, part=part).values[0]), 0.0)
        betas = np.maximum(one["velocity_beta"].values[0], 0.0)
        overlap = [float(one["overlap"].sel(kept=kept, view="raw").values[0, 0])]
        if not np.isfinite(overlap[0]):  # fewer than two tokens
            continue
        for layer in range(len(times) - 1):
            start = float(np.clip(overlap[-1], -(1 - 1e-9) / (n - 1), 1 - 1e-12))
            overlap.append(float(equiangular_overlap(times[layer], betas[layer], n, overlap0=start)))
        found["overlap"].loc[{"kept": kept, "view": "raw"}] = np.array(overlap)[None]
    return found
