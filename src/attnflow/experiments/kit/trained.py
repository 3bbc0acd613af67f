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
NETWORK = "network"
"""The case of the trained network; the others are its nulls."""
Parts = dict[str, xr.Dataset]


@dataclasses.dataclass(frozen=True)
class BesideNulls:
    """Trained networks on texts, each beside its nulls; where a `Salted` class derives from it, the salt draws both."""

    networks: tuple[str, ...] = ("rxnmapper", "minilm")
    nulls: tuple[str, ...] = ("permuted", "init")
    texts: int = 50
    tokens: int = 64
    """Of a text, at most."""

    @property
    def cases(self) -> tuple[str, ...]:
        """The trained network and its nulls."""
        return NETWORK, *self.nulls

    def parts(self, look: Callable[..., xr.Dataset]) -> dict[str, tuple[Any, ...]]:
        """For `Study.parts`: `look(parameters, network, case)` of every network and case."""
        return {part_name(which, case): (look, self, which, case) for which in self.networks for case in self.cases}


def part_name(which: str, case: str) -> str:
    """The part of a network, trained or as a null."""
    return f"{which}-{case}"


def network_of(which: str, case: str, seed: int) -> Any:
    """The network as it was trained, or a null of it."""
    return network(which) if case == NETWORK else network(which).null(case, seed).held()


def activations(net: Any, ids: np.ndarray) -> Stream:
    """The stream of one text."""
    found: Stream = net.run(ids)
    return found


def opened(parameters: BesideNulls, which: str, case: str, make: Callable[..., Any]) -> tuple[Any, list[np.ndarray]]:
    """The network that `make`, as `network_of`, returns, and the ids of its texts, which are those of all its cases."""
    number, drawn = parameters.networks.index(which), parameters if isinstance(parameters, Salted) else Salted()
    net = make(which, case, drawn.seed(10 * number + parameters.cases.index(case)))
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


def texts_for(network: Any, count: int, longest: int, rng: np.random.Generator | None = None) -> list[np.ndarray]:
    """Ids of so many texts, cut to `longest` tokens: reactions for a network that reads them, else passages.

    With `rng` they are drawn, else they are the first ones. A special token at the end stays at the end.
    """
    pool = reactions(60) if "rxnmapper" in network.name else passages(PASSAGES)
    if count > len(pool):
        raise InvalidInput(f"`count` is {count}; there are {len(pool)} texts.")
    found = []
    order = np.arange(len(pool)) if rng is None else rng.permutation(len(pool))
    for number in order[:count]:
        ids = network.encode(pool[number])
        if len(ids) > longest:
            ids = np.array([*ids[: longest - 1], ids[-1]]) if -1 in network.special else ids[:longest]
        found.append(ids)
    return found


def numbers_of(streams: Iterable[Stream], special: Sequence[int], families: Sequence[str]) -> xr.Dataset:
    """`measure` of every stream without sinks and special tokens, joined along `text`."""
    rows = []
    for stream in streams:
        (marks,) = find_sinks(stream)
        marks[list(special)] = True
        found = measure(stream, sinks=[marks], families=families, bootstrap=0).drop_vars("sink")
        rows.append(found.sel(kept="without sinks") if "kept" in found.dims else found)
    return xr.concat(rows, "text", data_vars="minimal", coords="minimal", compat="override")


def lower_ends(rows: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mean over the first axis, texts, and the lower end of its interval of 99.9 % (t distribution)."""
    mean, error = averaged(rows)
    return mean, mean - student(2 * (1 - INTERVAL), len(rows)) * error


def upper_ends(rows: Any) -> np.ndarray:
    """The upper end of the interval of 99.9 % of the mean over the first axis."""
    return np.asarray(-lower_ends(-np.asarray(rows))[1])


def differences(
    parameters: BesideNulls,
    data: Parts,
    number: Callable[[xr.Dataset], np.ndarray],
    least: float,
    nulls: Sequence[str] | None = None,
    *,
    sign: float = 1.0,
) -> tuple[Rows, str]:
    """Rows that ask for more than `least` of trained less null, and all means in words.

    `number` gives one value a text. Differences are paired over texts, and a row has the lower end of the interval of
    their mean: where a null does the same, it is below 0 with probability 0.999. With `sign` -1, null less trained.
    """
    rows, said = Rows(), []
    for which in parameters.networks:
        own = number(data[part_name(which, NETWORK)])
        said.append(f"{which} {own.mean():.3g}")
        for null in parameters.nulls if nulls is None else nulls:
            other = number(data[part_name(which, null)])
            rows.add(least, lower_ends(sign * (own - other))[1], 0.0, f"{which}, {null}")
            said.append(f"{null} {other.mean():.3g}")
    return rows, ", ".join(said)


def correlations(data: xr.Dataset) -> np.ndarray:
    """(text, layer, head) sign(β) √R²: the correlation of log-attention with cosines within rows.

    It stays within [-1, 1] where tokens have collapsed and slopes have any size.
    """
    some = data.isel(layer=slice(0, -1))
    return np.asarray(np.sign(some["beta"].values) * np.sqrt(some["beta_r2"].values))
