"""What experiments on trained networks share: texts, and the numbers of a network on them.

Reactions are written here: standard ones of organic chemistry, as SMILES. Passages of English come from the help texts
of Python's standard library (`pydoc_data.topics`, the language reference; PSF licence version 2), which every
installation has; they differ a little between versions of Python.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from attnflow.errors import InvalidInput
from attnflow.experiments.kit.statistics import averaged, student
from attnflow.probe import Stream, find_sinks, measure

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


def correlations(data: xr.Dataset) -> np.ndarray:
    """(text, layer, head) sign(β) √R²: the correlation of log-attention with cosines within rows.

    It stays within [-1, 1] where tokens have collapsed and slopes have any size.
    """
    some = data.isel(layer=slice(0, -1))
    return np.asarray(np.sign(some["beta"].values) * np.sqrt(some["beta_r2"].values))
