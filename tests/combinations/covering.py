"""Few cases in which words that can go together do so two by two: `covering.txt`, one case a line.

`python -m tests.combinations.covering` writes the file. It is to be run again after a change of the words or of what
must work; a test says so.
"""

import itertools
from pathlib import Path

import numpy as np

from tests.combinations.cases import LAYER_WORDS, WORDS, at_random, layers_must_work, must_work

PATH = Path(__file__).parent / "covering.txt"
SETS = {"combinations": (WORDS, must_work, 30_000, 0), "layers": (LAYER_WORDS, layers_must_work, 12_000, 1)}
"""For each set its words, what must work, and the number and the seed of the cases that are drawn."""


def drawn(name):
    """The cases at random that must work."""
    words, works, count, seed = SETS[name]
    return [case for case in at_random(words, count, seed) if works(case)]


def drawn_evenly(name, each=600):
    """The same with as many draws for every wrapper and sum: some of these seldom must work, and would be rare above.

    The first draws do not depend on `each`, so that what the file was made from contains what a quick test draws.
    """
    words, works, _, seed = SETS[name]
    strata = itertools.product(words["wrapper"], words["sum"])
    cases = (at_random(words | {"wrapper": [a], "sum": [b]}, each, seed + k) for k, (a, b) in enumerate(strata))
    return [case for case in itertools.chain.from_iterable(cases) if works(case)]


def read(name):
    """The cases of a set, or the rare ones beside it, as `covering.txt` has them."""
    words = SETS[name.removeprefix("rare ")][0]
    choices = {word: {str(choice): choice for choice in choices} for word, choices in words.items()}
    section = PATH.read_text(encoding="utf-8").split(f"# {name}\n")[1].split("#")[0]
    rows = [line.split(", ") for line in section.splitlines() if line]
    return [{word: choices[word][choice] for word, choice in zip(words, row, strict=True)} for row in rows]


def pairs(cases):
    """Every two words that are together in one of the cases."""
    named = ([(name, str(choice)) for name, choice in case.items()] for case in cases)
    return set(itertools.chain.from_iterable(itertools.combinations(case, 2) for case in named))


def covering(cases, known=()):
    """Few of the cases with all pairs of words that they have beyond those of `known`; greedy."""
    number = {pair: k for k, pair in enumerate(sorted(pairs(cases) - pairs(known)))}
    holds = np.zeros((len(cases), len(number)), np.float32)
    for row, case in zip(holds, cases, strict=True):
        row[[number[pair] for pair in pairs([case]) if pair in number]] = 1
    left, found = np.ones(len(number), np.float32), []
    while left.any():
        best = int(np.argmax(holds @ left))
        left[holds[best] > 0] = 0
        found.append(cases[best])
    return found


def text():
    """The content of `covering.txt`."""
    found = {}
    for name in SETS:
        found[name] = covering(drawn(name))
        found[f"rare {name}"] = covering(drawn_evenly(name, 5_000), known=found[name])
    rows = {name: [", ".join(map(str, case.values())) for case in cases] for name, cases in found.items()}
    return "\n".join("\n".join([f"# {name}", *lines, ""]) for name, lines in rows.items())


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
