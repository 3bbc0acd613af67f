"""What experiments on trained networks share: texts, the numbers of a network on them, and claims beside its nulls.

Reactions are written here: standard ones of organic chemistry, as SMILES. Passages of English come from the help texts
of Python's standard library (`pydoc_data.topics`, the language reference; PSF licence version 2), which every
installation has; they differ a little between versions of Python.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from attnflow.errors import InvalidInput
from attnflow.experiments.kit.rows import Rows
from attnflow.experiments.kit.statistics import averaged, student
from attnflow.experiments.randomness import Salted
from attnflow.intervals import mean_ends
from attnflow.plots.style import COLOURS
from attnflow.probe import Stream, find_sinks, measure, network

GROUPS = ("C", "CC", "CCC", "CCCC", "C(C)C", "CC(C)C")
REACTIONS = (
    "CC(=O)O.O{0}>>CC(=O)O{0}",  # esterification
    "N{0}.CC(=O)Cl>>CC(=O)N{0}",  # acylation of an amine
    "BrCC.O{0}>>CCO{0}",  # Williamson's synthesis of ethers
    "BrCC.N{0}>>CCN{0}",  # alkylation of an amine
    "CC(=O){0}>>CC(O){0}",  # reduction of a ketone
    "CC(O){0}>>CC(=O){0}",  # oxidation of an alcohol
    "C=C{0}.[H][H]>>CC{0}",  # hydrogenation
    "C=C{0}.BrBr>>BrCC(Br){0}",  # bromination of an alkene
    "N#C{0}.O>>NC(=O){0}",  # hydrolysis of a nitrile
    "S{0}.BrC>>CS{0}",  # alkylation of a thiol
)
WORDS = 60
"""Of a passage, at least."""
PASSAGES = 50
"""Passages that experiments choose from: every version of Python that is supported has so many."""
INTERVAL = 0.999
"""One-sided, of means over texts."""
RESAMPLES = 20_000
"""Of texts: 20 of them are beyond the end of such an interval."""
DRAWN = 0.99
"""One-sided, over draws of a null: another draw of it is beyond the end with probability 0.01."""
GROUP = 10
"""Texts that are measured together, so that they share compiled calls."""
NETWORK = "network"
"""The case of the trained network; the others are its nulls."""
LOOKS = ((COLOURS[0], "-", "o"), (COLOURS[1], "--", "s"), (COLOURS[2], ":", "^"))
"""Colours, lines and marks of the trained network and of its nulls."""
Parts = dict[str, xr.Dataset]


@dataclasses.dataclass(frozen=True)
class BesideNulls:
    """Trained networks on texts, each beside draws of its nulls; where a class derives from `Salted` too, the salt
    draws nulls and texts.
    """

    networks: tuple[str, ...] = ("rxnmapper", "minilm")
    nulls: tuple[str, ...] = ("permuted", "init")
    draws: tuple[int, ...] = (9, 6)
    """Of every null, for each network."""
    texts: int = 50
    tokens: int = 64
    """Of a text, at most."""

    def cases(self, which: str) -> list[tuple[str, int]]:
        """The trained network, and every draw of its nulls: (case, number of the draw)."""
        count = self.draws[self.networks.index(which)]
        return [(NETWORK, 0), *((null, draw) for null in self.nulls for draw in range(count))]

    def parts(self, look: Callable[..., xr.Dataset]) -> dict[str, tuple[Any, ...]]:
        """For `Study.parts`: `look(parameters, network, case, draw)` of every network, case and draw."""
        every = [(which, *one) for which in self.networks for one in self.cases(which)]
        return {part_name(*one): (look, self, *one) for one in every}

    def drawn(self, data: Parts, which: str, case: str) -> list[xr.Dataset]:
        """The parts of a case, one a draw."""
        return [data[part_name(which, *one)] for one in self.cases(which) if one[0] == case]


def part_name(which: str, case: str, draw: int = 0) -> str:
    """The part of a network: as it was trained, or a draw of a null."""
    return f"{which}-{case}" if case == NETWORK else f"{which}-{case}-{draw}"


def network_of(which: str, case: str, seed: int) -> Any:
    """The network as it was trained, or a null of it."""
    return network(which) if case == NETWORK else network(which).null(case, seed).held()


def activations(net: Any, ids: np.ndarray) -> Stream:
    """The stream of one text."""
    found: Stream = net.run(ids)
    return found


def opened(
    parameters: BesideNulls, which: str, case: str, draw: int, make: Callable[..., Any]
) -> tuple[Any, list[np.ndarray]]:
    """The network that `make`, as `network_of`, returns, and the ids of its texts, which are those of all its cases."""
    number, kind = parameters.networks.index(which), (NETWORK, *parameters.nulls).index(case)
    drawn = parameters if isinstance(parameters, Salted) else Salted()
    net = make(which, case, drawn.seed(1000 * number + 100 * kind + draw))
    return net, texts_for(net, parameters.texts, parameters.tokens, drawn.rng(1, number))


def reactions(count: int) -> list[str]:
    """The first so many of 60 reactions, every kind in turn."""
    found = [kind.format(group) for group in GROUPS for kind in REACTIONS]
    if count > len(found):
        raise InvalidInput(f"`count` is {count}; there are {len(found)} reactions.")
    return found[:count]


def passages(count: int) -> list[str]:
    """The first so many passages of prose in the help texts of Python, each of at least `WORDS` words."""
    from pydoc_data.topics import topics

    found: list[str] = []
    for name in sorted(topics):
        text = ""
        for piece in topics[name].split("\n\n"):
            if piece[:1].isalpha() and "::=" not in piece and "***" not in piece:
                text = f"{text} {' '.join(piece.split())}".strip()
            if len(text.split()) >= WORDS:
                found.append(text)
                text = ""
                break  # one of each topic: passages of one topic are alike
    if count > len(found):
        raise InvalidInput(f"`count` is {count}; the help texts of this Python have {len(found)} passages.")
    return found[:count]


def texts_for(network: Any, count: int, longest: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Ids of so many texts, drawn and cut to `longest` tokens: reactions for a network that reads them, else passages.

    A special token at the end stays at the end.
    """
    pool = reactions(60) if "rxnmapper" in network.name else passages(PASSAGES)
    if count > len(pool):
        raise InvalidInput(f"`count` is {count}; there are {len(pool)} texts.")
    found = []
    for number in rng.permutation(len(pool))[:count]:
        ids = network.encode(pool[number])
        if len(ids) > longest:
            ids = np.array([*ids[: longest - 1], ids[-1]]) if -1 in network.special else ids[:longest]
        found.append(ids)
    return found


def numbers_of(streams: Iterable[Stream], special: Sequence[int], families: Sequence[str]) -> xr.Dataset:
    """`measure` of every stream, of one text each, without sinks and special tokens, joined along `text`."""
    rows, left = [], list[Stream]()
    for stream in (*streams, None):
        left += [] if stream is None else [stream]
        if left and (stream is None or len(left) == GROUP):
            rows.append(_numbers(_together(left), special, families))
            left = []
    return xr.concat(rows, "text", data_vars="minimal", coords="minimal", compat="override", join="outer")


def _numbers(stream: Stream, special: Sequence[int], families: Sequence[str]) -> xr.Dataset:
    marks = find_sinks(stream)
    for one in marks:
        one[list(special)] = True
    found = measure(stream, sinks=list(marks), families=families, bootstrap=0).drop_vars("sink")
    return found.sel(kept="without sinks") if "kept" in found.dims else found


def _together(streams: Sequence[Stream]) -> Stream:
    """Streams of one text each as one stream of several texts."""

    def joined(part: str) -> Any:
        known = [getattr(stream, part) for stream in streams]
        return None if known[0] is None else [one[0] for one in known]

    parts = {part: joined(part) for part in ("attention", "ids", "after_attention")}
    return Stream(joined("hidden"), causal=streams[0].causal, **parts)


def lower_ends(rows: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mean over the first axis, texts, and the lower end of its interval of 99.9 % (bootstrap over texts)."""
    (low,) = mean_ends(rows, (1 - INTERVAL,), resamples=RESAMPLES, seed=0)
    return np.mean(rows, axis=0), low


def upper_ends(rows: Any) -> np.ndarray:
    """The upper end of the interval of 99.9 % of the mean over the first axis."""
    return np.asarray(-lower_ends(-np.asarray(rows))[1])


def differences(
    parameters: BesideNulls,
    data: Parts,
    number: Callable[[xr.Dataset], np.ndarray],
    least: float,
    nulls: Sequence[str] | None = None,
) -> tuple[Rows, str]:
    """Rows that ask for more than `least` of trained less another draw of a null, and all means in words.

    `number` gives one value a text. A row has the lower end of the difference from a draw that was not made: where the
    trained network is itself such a draw, the end is above 0 with probability 0.01 at most.
    """
    rows, said = Rows(), []
    for which in parameters.networks:
        own, others = of_draws(parameters, data, which, number)
        said.append(f"{which} {own.mean():.3g}")
        for null, other in others.items():
            if nulls is None or null in nulls:
                rows.add(least, end_over_draws(own - other, another=True), 0.0, f"{which}, {null}")
            spread = f" ± {other.mean(axis=1).std(ddof=1):.2g}" if len(other) > 1 else ""
            said.append(f"{null} {other.mean():.3g}{spread}")
    words = ", ".join(said)
    return rows, f"{words}; ± is the standard deviation over draws of a null" if "±" in words else words


def of_draws(
    parameters: BesideNulls, data: Parts, which: str, number: Callable[[xr.Dataset], np.ndarray]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """(text,) numbers of the trained network, and (draw, text) those of every null."""
    own = number(data[part_name(which, NETWORK)])
    nulls = parameters.nulls
    return own, {null: np.array([number(part) for part in parameters.drawn(data, which, null)]) for null in nulls}


def end_over_draws(away: np.ndarray, *, another: bool) -> float:
    """The lower end of differences (draw, text) from draws of a null, over texts and draws.

    The room for texts is the interval of the mean over texts (`lower_ends`). The room for draws is Student's one-sided
    interval of 99 % of the mean over draws, or of `another` draw, whose standard deviation is √(1 + 1/draws) in place
    of √(1/draws) of that of the draws. The two are independent, so that their squares add. With one draw nothing is
    known about others, and the end is about this one null network.
    """
    mean, low = lower_ends(away.mean(axis=0))
    count = len(away)
    if count == 1:
        return float(low)
    spread = away.mean(axis=1).std(ddof=1) * np.sqrt(1 / count + another)
    return float(mean - np.hypot(mean - low, student(2 * (1 - DRAWN), count) * spread))


def correlations(data: xr.Dataset) -> np.ndarray:
    """(text, layer, head) sign(β) √R²: the correlation of log-attention with cosines within rows.

    It stays within [-1, 1] where tokens have collapsed and slopes have any size.
    """
    some = data.isel(layer=slice(0, -1))
    return np.asarray(np.sign(some["beta"].values) * np.sqrt(some["beta_r2"].values))


def draw_beside_nulls(
    axes: Any, parameters: BesideNulls, data: Parts, which: str, number: Callable[..., np.ndarray]
) -> None:
    """Lines over layers of the numbers (text, layer) of a network, `number(part)`: trained, and means over its nulls.

    Bars are two standard errors over texts, bands the range over draws of the means over texts.
    """
    for (colour, line, mark), case in zip(LOOKS, (NETWORK, *parameters.nulls), strict=False):
        values = np.array([number(part).mean(axis=0) for part in parameters.drawn(data, which, case)])
        layers, known = np.arange(values.shape[1]), np.isfinite(values).all(axis=0)
        look = {"color": colour, "ls": line, "marker": mark, "ms": 2.6, "lw": 0.9, "label": case}
        bars = None
        if case == NETWORK:
            bars = 2 * averaged(number(data[part_name(which, case)]))[1][known]
        else:
            axes.fill_between(
                layers[known], values.min(axis=0)[known], values.max(axis=0)[known], color=colour, alpha=0.2, lw=0
            )
        axes.errorbar(layers[known], values.mean(axis=0)[known], bars, **look)
