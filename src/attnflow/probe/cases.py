"""Comparing a network with its nulls and with theory."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from attnflow.checks import instance, shown, whole
from attnflow.errors import InvalidInput
from attnflow.probe.comparison import NETWORK, THEORY, Comparison, make_rows
from attnflow.probe.measurement import measure
from attnflow.probe.network_protocol import NetworkLike
from attnflow.probe.sinks import KEPT, find_sinks
from attnflow.probe.stream import Stream
from attnflow.spaces import Sphere
from attnflow.theory.uniform import equiangular_overlap
from attnflow.tokens import uniform

FAMILIES = ("overlaps", "rank", "clusters", "energy", "norms", "heads", "updates")
"""What is measured unless other families are asked for."""
OF_STATES = ("overlaps", "rank", "clusters", "energy")
"""What iid tokens have."""
SHUFFLED = "shuffled tokens"
DROPPED = ("sink", "largest_coordinate")
"""Variables whose mean over texts or shuffles has no meaning."""


def compare(
    network: NetworkLike,
    texts: Sequence[Any],
    *,
    nulls: Sequence[str] | str = "all",
    shuffles: int = 8,
    seed: int = 0,
    special: Sequence[int] = (),
    kept: str = KEPT[1],
    families: Sequence[str] = FAMILIES,
    resamples: int = 2000,
    on_progress: Callable[[str], None] | None = None,
    **options: Any,
) -> Comparison:
    """Measure a network on texts, and beside it its nulls and theory; the result prints as a table.

    Cases are the network; "shuffled tokens", the same network on the tokens of each text in random order (mean over
    `shuffles`); the null networks ("permuted", "init", and so on); "iid tokens", drawn on the sphere of the same
    dimension; and "equiangular", the overlap that theory predicts from the first state at the effective times and the
    fitted beta of the layers, where a negative time counts as 0.

    Arguments:
        network: what is looked at (`NetworkLike`).
        texts: token ids of each text.
        nulls: kinds of null networks; "all" takes those that the network offers.
        shuffles: random orders of each text; 0 for none.
        seed: of everything random.
        special: places of special tokens, such as (0, -1) for [CLS] and [SEP]: they stay in place in shuffled texts and
            count as sinks.
        kept: which tokens the table is about, "without sinks" or "all"; the dataset has both.
        families: what to measure, as in `measure`.
        resamples: of the bootstrap over texts.
        on_progress: called with a few words before every forward pass.
        options: more arguments of `measure`.
    """
    import xarray as xr

    instance(
        "network",
        network,
        NetworkLike,
        "an object with run, null, nulls, heads_of, name, layers, heads, width and causal",
    )
    many = _ids(texts)
    if kept not in KEPT:
        raise InvalidInput(f"`kept` is {shown(kept)}; give one of {', '.join(map(repr, KEPT))}.")
    say = (lambda words: None) if on_progress is None else on_progress
    whole("shuffles", shuffles, 0)
    whole("resamples", resamples, 1)
    kinds = _kinds(network, nulls)
    if not kinds and not shuffles:
        raise InvalidInput("there is no null network and `shuffles` is 0; a number needs a null, so give shuffles=8.")
    settings: dict[str, Any] = {"families": tuple(families), "bootstrap": 0, "seed": seed} | options

    def look(one: NetworkLike, ids: np.ndarray, words: str, **more: Any) -> Any:
        say(words)
        stream = instance("network.run(ids)", one.run(ids), Stream, "a Stream")
        marks = find_sinks(stream)
        for mark in marks:
            mark[list(special)] = True
        found = measure(stream, one, sinks=list(marks), **settings | more)
        found["sinks"] = (("text",), np.array([mark.sum() for mark in marks]), {"about": "number of sinks"})
        return found.drop_vars([name for name in DROPPED if name in found])

    first = look(network, many[0], f"{NETWORK}, text 1 of {len(many)}")
    fixed = {"energy_beta": first.attrs["energy_beta"]} | options
    settings |= fixed
    cases: dict[str, Any] = {NETWORK: [first]}
    cases[NETWORK] += [look(network, ids, f"{NETWORK}, text {k + 2} of {len(many)}") for k, ids in enumerate(many[1:])]
    if shuffles:
        cases[SHUFFLED] = []
        for k, ids in enumerate(many):
            orders = [_shuffled(ids, special, [seed, k, number]) for number in range(shuffles)]
            each = [look(network, order, f"{SHUFFLED}, text {k + 1} of {len(many)}") for order in orders]
            cases[SHUFFLED].append(xr.concat(each, "shuffle").mean("shuffle", keep_attrs=True))
    for kind in kinds:
        other = network.null(kind, seed)
        cases[kind] = [look(other, ids, f"{kind}, text {k + 1} of {len(many)}") for k, ids in enumerate(many)]
    alone = {**settings, "families": [one for one in families if one in OF_STATES]}
    cases[THEORY[0]] = [_iid(one, network.width, alone, [seed, k]) for k, one in enumerate(cases[NETWORK])]
    if "overlap" in first and "effective_time" in first:
        cases[THEORY[1]] = _equiangular(cases[NETWORK])
    joined = [xr.concat(each, "text", data_vars="all", coords="minimal", compat="override") for each in cases.values()]
    dataset = xr.concat(joined, "case", data_vars="all", coords="minimal", compat="override", join="outer")
    dataset = dataset.assign_coords(case=list(cases))
    for name in dataset:
        dataset[name].attrs = first[name].attrs
    dataset.attrs = first.attrs | {"shuffles": shuffles, "seed": seed}
    rows, left_out = make_rows(dataset, kept, resamples, seed)
    return Comparison(dataset, rows, left_out, kept)


def _ids(texts: Any) -> list[np.ndarray]:
    found = [
        np.asarray(one) for one in instance("texts", texts, Sequence | np.ndarray, "a list of arrays of token ids")
    ]
    if not found:
        raise InvalidInput("`texts` is empty; give the token ids of at least one text.")
    for k, one in enumerate(found):
        if one.ndim != 1 or one.dtype.kind not in "iu" or len(one) < 2:
            raise InvalidInput(f"texts[{k}] is {shown(texts[k])}; give at least two token ids, whole numbers.")
    return found


def _kinds(network: NetworkLike, nulls: Sequence[str] | str) -> tuple[str, ...]:
    """The kinds of null networks that are asked for."""
    if isinstance(nulls, str):
        return tuple(network.nulls) if nulls == "all" else (nulls,)
    return tuple(nulls)


def _shuffled(ids: np.ndarray, special: Sequence[int], seed: Any) -> np.ndarray:
    free = np.ones(len(ids), bool)
    free[list(special)] = False
    order = np.array(ids)
    order[free] = np.random.default_rng(seed).permutation(order[free])
    return order


def _iid(one: Any, width: int, settings: dict[str, Any], seed: Any) -> Any:
    """iid tokens of the same numbers, in every state the same."""
    count = int(one["tokens"].values[0])
    drawn = uniform(Sphere(width), n=count, seed=int(np.random.default_rng(seed).integers(2**31)))
    sinks = [list(range(int(one["sinks"].values[0])))]
    found = measure(Stream(np.asarray(drawn.positions)[None]), sinks=sinks, **settings)
    found = found.drop_vars([name for name in (*DROPPED, "tokens") if name in found])
    return found.isel(layer=[0] * one.sizes["layer"]).assign_coords(layer=one["layer"])


def _equiangular(many: Sequence[Any]) -> list[Any]:
    """The overlap of tokens that all have the same one, from the first state of each text, layer by layer."""
    found = [one[["overlap"]].where(False) for one in many]
    part = "attention" if np.isfinite(many[0]["effective_time"].sel(part="attention")).any() else "layer"
    for kept in KEPT:
        gone = [0 if kept == KEPT[0] else int(one["sinks"].values[0]) for one in many]
        n = np.maximum([int(one["tokens"].values[0]) - sinks for one, sinks in zip(many, gone, strict=True)], 2)
        times = np.stack([one["effective_time"].sel(kept=kept, part=part).values[0] for one in many])
        betas = np.maximum(np.stack([one["velocity_beta"].values[0] for one in many]), 0.0)
        overlap = [np.stack([one["overlap"].sel(kept=kept, view="raw").values[0, 0] for one in many])]
        known = np.isfinite(overlap[0])  # at least two tokens
        for layer in range(times.shape[1] - 1):
            start = np.clip(np.where(known, overlap[-1], 0.0), -(1 - 1e-9) / (n - 1), 1 - 1e-12)
            ahead = np.maximum(np.nan_to_num(times[:, layer]), 0.0)
            overlap.append(equiangular_overlap(ahead, betas[:, layer], n, overlap0=start))
        for one, values in zip(found, np.where(known, np.stack(overlap), np.nan).T, strict=True):
            one["overlap"].loc[{"kept": kept, "view": "raw"}] = values[None]
    return found
