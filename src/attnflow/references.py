"""The bibliography: `references.bib`, a reader for it, and which papers the words of a specification rest on.

`reference("geshkovski2023emergence")` is one line of text, `linked(key)` the same as Markdown with a link, `find(key)`
the entry with its BibTeX. `attnflow cite` prints the entries that an experiment or a run used.
"""

import dataclasses
import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from typing import Any

from attnflow.errors import InvalidInput
from attnflow.lazy import listing

__all__ = ["Entry", "bibliography", "find", "linked", "page", "parse", "reference", "short", "used"]
__dir__ = listing(__all__)

SHOWN = 5
"""So many authors are named by `reference`; of more, the first."""
PAPER = re.compile(r"[a-z]+\d{4}[a-z]+")
"""Keys of papers; software has the name of its package."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """One entry of the bibliography."""

    kind: str
    """article, inproceedings, misc, phdthesis."""
    key: str
    fields: Mapping[str, str]

    @property
    def is_software(self) -> bool:
        """Whether it is software, whose key is the name of the Python package."""
        return PAPER.fullmatch(self.key) is None

    @property
    def text(self) -> str:
        """Authors, title, where it was published, arXiv number: one line."""
        parts = [self.authors, _plain(self.fields["title"]), self.published]
        if "eprint" in self.fields:
            parts.append(f"arXiv:{self.fields['eprint']}")
        return ", ".join(filter(None, parts))

    @property
    def authors(self) -> str:
        """Surnames."""
        names = [_plain(name).partition(",")[0] for name in self.fields["author"].split(" and ")]
        if len(names) > SHOWN or names[-1] == "others":
            return f"{names[0]} et al."
        return ", ".join(names)

    @property
    def published(self) -> str:
        """Journal, conference or school, and the year."""
        fields, year = self.fields, self.fields.get("year", "")
        if "journal" in fields:
            return _plain(f"{fields['journal']} {fields.get('volume', '')} ({year})")
        if "booktitle" in fields:
            short = re.search(r"\(([A-Z]+)\)$", fields["booktitle"], flags=re.I)
            return _plain(f"{short[1] if short else fields['booktitle']} {year}")
        return ", ".join(filter(None, (fields.get("school", ""), year)))

    @property
    def url(self) -> str:
        """arXiv, else the DOI, else the page of the software; empty where there is none."""
        if "eprint" in self.fields:
            return f"https://arxiv.org/abs/{self.fields['eprint']}"
        return f"https://doi.org/{self.fields['doi']}" if "doi" in self.fields else self.fields.get("url", "")

    def to_bibtex(self, **more: str) -> str:
        """The entry as BibTeX, with further fields such as version="1.0"."""
        lines = [f"  {name} = {{{value}}}," for name, value in {**self.fields, **more}.items()]
        return "\n".join([f"@{self.kind}{{{self.key},", *lines, "}"])


def parse(text: str) -> list[Entry]:
    """The entries of a bibliography in the layout of references.bib: one field a line, values in braces."""
    found = []
    for kind, key, body in re.findall(r"^@(\w+)\{([\w-]+),\n(.*?)^\}$", text, flags=re.M | re.S):
        found.append(Entry(kind, key, dict(re.findall(r"^  (\w+) = \{(.*)\},$", body, flags=re.M))))
    return found


@functools.cache
def bibliography() -> Mapping[str, Entry]:
    """All entries by key."""
    text = resources.files("attnflow").joinpath("references.bib").read_text(encoding="utf-8")
    return {entry.key: entry for entry in parse(text)}


def find(key: str) -> Entry:
    """The entry of a key, or of an arXiv number such as "arXiv:2312.10794"."""
    known = bibliography()
    if key.startswith("arXiv:"):
        number = key.removeprefix("arXiv:")
        key = next((e.key for e in known.values() if e.fields.get("eprint") == number), key)
    if key not in known:
        from attnflow.runs.nearest import did_you_mean

        raise InvalidInput(f"there is no reference {key!r}{did_you_mean(key, known)}")
    return known[key]


def reference(key: str) -> str:
    """One line of text: authors, title, where it was published, arXiv number."""
    return find(key).text


def short(key: str) -> str:
    """The arXiv number of a paper, else its first author and year."""
    entry = find(key)
    if "eprint" in entry.fields:
        return f"arXiv:{entry.fields['eprint']}"
    return f"{entry.authors.partition(',')[0]} {entry.fields.get('year', '')}".strip()


def linked(key: str) -> str:
    """The line of `reference` as Markdown, its arXiv number (else its title) a link."""
    entry = find(key)
    number = f"arXiv:{entry.fields['eprint']}" if "eprint" in entry.fields else _plain(entry.fields["title"])
    return entry.text.replace(number, f"[{number}]({entry.url})") if entry.url else entry.text


def page() -> str:
    """The bibliography as a page of the documents: docs/references.md."""
    entries = sorted(bibliography().values(), key=lambda entry: entry.key)
    lines = [
        "# References",
        "",
        "Written from `src/attnflow/references.bib` by `python -m tests.bibliography`. `attnflow cite EXPERIMENT` and "
        "`attnflow cite RUN` print the BibTeX of what an experiment or a run used.",
    ]
    for title, software in (("Papers", False), ("Software", True)):
        chosen = (entry for entry in entries if entry.is_software == software)
        lines += ["", f"## {title}", ""]
        lines += [f'* <a id="{entry.key}"></a>`{entry.key}`: {linked(entry.key)}' for entry in chosen]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[{}\\]", "", text).replace("--", "–").split())


WORDS: dict[str, dict[str, tuple[str, ...]]] = {
    "kind": {
        "solve_long": ("geshkovski2024metastability", "prince1981high"),
        "merge_times": ("geshkovski2024metastability", "prince1981high"),
        "evolve": ("geshkovski2025perspective", "lawson1967generalized", "dormand1980family"),
        "evolve_cells": ("geshkovski2025perspective",),
        "evolve_placed": (
            "duerinckx2026kinetic",
            "geshkovski2025perspective",
            "lawson1967generalized",
            "dormand1980family",
        ),
        "gram_layers": ("koubbi2026homogenized",),
        "conditional_density": ("koubbi2026homogenized",),
        "retrieval_profile": ("duerinckx2026kinetic",),
        "fit": ("chen2018neural", "optax"),
        "match_measures": ("geshkovski2024measure",),
    },
    "field": {
        "in-turn": ("geshkovski2024measure",),
        "mean-attention": ("lipton2019kuramoto",),
        "relu": ("geshkovski2024measure",),
        "attention": ("vaswani2017attention", "geshkovski2025perspective"),
        "perceptron": ("alvarez2026perceptrons",),
        "gated-perceptron": ("shazeer2020glu",),
        "potential": ("alvarez2026perceptrons",),
        "rescaled": ("geshkovski2023emergence",),
        "pre": ("xiong2020layer", "karagodin2025normalization"),
        "peri": ("kim2025periln", "karagodin2025normalization"),
        "ngpt": ("loshchilov2024ngpt", "karagodin2025normalization"),
        "mix": ("li2024mixln", "karagodin2025normalization"),
        "scaled": ("sun2025curse", "karagodin2025normalization"),
    },
    "normaliser": {
        "softmax": ("vaswani2017attention",),
        "unnormalised": ("geshkovski2025perspective",),
        "hardmax": ("alcalde2025hardmax",),
        "sinkhorn": ("sander2022sinkformers",),
    },
    "mask": {"causal": ("karagodin2024causal",)},
    "kernel": {"gaussian": ("cheng1995meanshift",)},
    "encoding": {"rotary": ("su2021roformer",), "sinusoidal": ("vaswani2017attention",)},
    "norm": {"rms": ("zhang2019rms",), "layer": ("ba2016layer",)},
    "weight": {"random": ("koubbi2026homogenized",)},
    "noise": {
        "brownian": ("balasubramanian2025stationary", "mun2026sphere"),
        "random-values": ("koubbi2026homogenized", "fedorov2026clustering"),
    },
    "tokens": {"equiangular": ("geshkovski2025perspective",), "orthonormal": ("geshkovski2025perspective",)},
    "space": {"ellipsoid": ("karagodin2025normalization",)},
    "method": {"layers": ("chen2018neural",)},
    "solver": {"dopri5": ("dormand1980family",), "dopri8": ("prince1981high",)},
    "classifier": {"residual": ("chen2018neural", "marion2023implicit")},
}
"""Part of a specification -> word -> what the word rests on; kinds of runs are words of the part "kind"."""
NUMBERS: dict[tuple[str, str, str], tuple[str, ...]] = {
    ("mask", "causal", "slope"): ("press2022alibi", "duerinckx2026kinetic"),
    ("mask", "window", "slope"): ("press2022alibi",),
    ("kind", "evolve", "kappa"): ("balasubramanian2025stationary", "mun2026sphere"),
    ("kind", "evolve_cells", "kappa"): ("balasubramanian2025stationary", "mun2026sphere"),
    ("kind", "evolve_placed", "kappa"): ("balasubramanian2025stationary", "mun2026sphere"),
}
"""(part, word, number) -> what a value other than 0 rests on."""


def used(table: Mapping[str, Any]) -> dict[str, list[str]]:
    """Key of the bibliography -> what of a resolved specification it belongs to, such as "mask causal"."""
    from attnflow.runs.registry import REGISTRY

    found: dict[str, list[str]] = {}
    for part, word, numbers in _words(table, REGISTRY["kind"]):
        keys = [(key, f"{part} {word}") for key in WORDS.get(part, {}).get(word, ())]
        for (*where, number), rest in NUMBERS.items():
            if where == [part, word] and numbers.get(number) not in (None, 0):
                keys += [(key, f"{number} of {part} {word}") for key in rest]
        for key, why in keys:
            if why not in found.setdefault(key, []):
                found[key].append(why)
    return found


def _words(table: Mapping[str, Any], kinds: Iterable[str]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """(part, word, its entries) of a specification and of everything in it."""
    for key, value in table.items():
        if key in kinds:
            yield "kind", key, value
        yield from _named(key, value)


def _named(argument: str, value: Any) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    from attnflow.runs.registry import ARGUMENTS, REGISTRY

    for one in value if isinstance(value, list) else [value]:
        if not isinstance(one, Mapping):
            continue
        word = one.get("name")
        parts = [part for part in ARGUMENTS.get(argument, (argument,)) if word in REGISTRY.get(part, {})]
        if parts:
            yield parts[0], str(word), one
        if parts == ["method"] and word == "adaptive" and "solver" not in one:
            yield "solver", "dopri8", {}  # the default, which a specification leaves out
        for key, inner in one.items():
            yield from _named(key, inner)
