"""Comparing a network with its nulls and with theory: work that goes from text to text."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from attnflow.checks import instance, shown, whole
from attnflow.errors import InvalidInput
from attnflow.flows import (
    AbstractSingle,
    AbstractWork,
    Control,
    Drive,
    Driven,
    Ending,
    Layout,
    Outcome,
    Progress,
    Reached,
    Rows,
    Slice,
    Variable,
)
from attnflow.probe import report
from attnflow.probe.cases import FAMILIES, LETTERS, Cases, shown_states
from attnflow.probe.comparison import Comparison
from attnflow.probe.measurement import ABOUT, checked_families, measure
from attnflow.probe.network_protocol import NetworkLike
from attnflow.probe.networks.model import Network
from attnflow.probe.sinks import KEPT

LONGEST = 256
"""Tokens of a text that are looked at unless more are asked for."""
OPTIONS = tuple({*inspect.signature(measure).parameters} - {"stream", "network", "families", "sinks"})
"""Arguments of `measure` that a comparison hands on."""
BINS = 40
"""Of the histograms of overlaps."""
FEWEST = 2
"""Tokens of a text, special ones apart."""


@dataclasses.dataclass(frozen=True)
class Compare(AbstractWork):
    """A network on texts, beside its nulls and theory: the work of `compare`, whose arguments its fields are."""

    rows: ClassVar[str] = "text"
    end: ClassVar[str | None] = "texts"

    network: Any
    """A name or path for `probe.network`, or an object (`NetworkLike`)."""
    texts: Sequence[Any]
    """Texts, or arrays of token ids. More of them can be added later."""
    nulls: Any = "all"
    shuffles: int = 8
    seed: int = 0
    special: Sequence[int] | None = None
    longest: int = LONGEST
    """Tokens of a text, at most; the rest of a text is cut off, in front of a special token at its end."""
    kept: str = KEPT[1]
    families: Sequence[str] = FAMILIES
    resamples: int = 2000
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """More arguments of `measure`."""

    def checked(self) -> Self:
        if not isinstance(self.network, str | NetworkLike):
            raise InvalidInput(
                f"`network` is {shown(self.network)}; give the name or path of a network, or an object with run, null, "
                "nulls, heads_of, name, layers, heads, width and causal."
            )
        _check_texts(self.texts)
        if self.kept not in KEPT:
            raise InvalidInput(f"`kept` is {shown(self.kept)}; give one of {', '.join(map(repr, KEPT))}.")
        for name, least in (("shuffles", 0), ("seed", 0), ("longest", FEWEST), ("resamples", 1)):
            whole(name, getattr(self, name), least)
        if not checked_families(self.families):
            raise InvalidInput("`families` is empty; give one at least, such as overlaps.")
        instance("options", self.options, Mapping, "a dictionary of arguments of `measure`")
        if unknown := [one for one in self.options if one not in OPTIONS]:
            raise InvalidInput(
                f"there is no argument `{unknown[0]}`; besides its own, compare takes {', '.join(sorted(OPTIONS))}."
            )
        places = "places of tokens, such as (0, -1)"
        for one in instance("special", () if self.special is None else self.special, Sequence | np.ndarray, places):
            if isinstance(one, bool) or not isinstance(one, int | np.integer):
                raise InvalidInput(f"`special` has {shown(one)}; give {places}.")
        return self

    def stepper(self) -> "_Texts":
        return _Texts(self)

    def result(self, driven: Driven) -> Comparison:
        found = driven.dataset
        for name in found:
            found[name].attrs.setdefault("about", ABOUT.get(str(name), ""))
        return Comparison(found, driven.outcome, driven.steps, driven.checkpoint, self)

    def account(self, result: Comparison) -> Any:
        return report.account(result)

    def longer(self, until: Any, save: Any = None, *, same: bool = False) -> Self:
        """The same work with more texts, `until`, after those that it has."""
        if same and until is None:
            return self
        if isinstance(until, str | int | float) or save is not None:
            raise InvalidInput("a comparison goes on to more texts; give them: attnflow probe extend RUN --text FILE.")
        _check_texts(until)
        return dataclasses.replace(self, texts=[*self.texts, *until])


def compare(
    network: NetworkLike | str,
    texts: Sequence[Any],
    *,
    nulls: Sequence[str] | str = "all",
    shuffles: int = 8,
    seed: int = 0,
    special: Sequence[int] | None = None,
    longest: int = LONGEST,
    kept: str = KEPT[1],
    families: Sequence[str] = FAMILIES,
    resamples: int = 2000,
    on_progress: Callable[[Progress], None] | None = None,
    cancel: Callable[[], bool] | None = None,
    **options: Any,
) -> Comparison:
    """Measure a network on texts, and beside it its nulls and theory; the result prints as a table.

    Cases are the network; "shuffled tokens", the same network on the tokens of each text in random order (mean over
    `shuffles`); the null networks ("permuted", "init", and so on); "iid tokens", drawn on the sphere of the same
    dimension; and "equiangular", the overlap that theory predicts from the first state at the effective times and the
    fitted beta of the layers, where a negative time counts as 0.

    Arguments:
        network: what is looked at: a name or path for `probe.network`, or an object (`NetworkLike`).
        texts: texts, or token ids of each text.
        nulls: kinds of null networks; "all" takes those that the network offers, () none.
        shuffles: random orders of each text; 0 for none.
        seed: of everything random.
        special: places of special tokens, such as (0, -1) for [CLS] and [SEP]: they stay in place in shuffled texts and
            count as sinks. Left out, those that the tokenizer of the network adds.
        longest: tokens of a text, at most; the rest is cut off.
        kept: which tokens the table is about, "without sinks" or "all"; the dataset has both.
        families: what to measure, as in `measure`.
        resamples: of the bootstrap over texts.
        on_progress: called with a `Progress` after every forward pass.
        cancel: called often; the work stops when it returns True.
        options: more arguments of `measure`.

    `found.continued([text, ...])` adds texts. In a run folder: `attnflow probe run`.
    """
    work = Compare(network, texts, nulls, shuffles, seed, special, longest, kept, families, resamples, options)
    found: Comparison = Drive(work.checked()).run(Control(None, on_progress, cancel))
    return found


class _Texts(AbstractSingle):
    """Text after text, case after case; the state is the number of texts that are done.

    The looks at a text that is not complete are kept in memory alone; whoever goes on from the state makes them again.
    """

    def __init__(self, work: Compare):
        from attnflow.probe.networks.opening import network

        self.work_ = work
        opened = network(work.network) if isinstance(work.network, str) else work.network
        own = opened.special if isinstance(opened, Network) else ()
        special = own if work.special is None else tuple(work.special)
        kinds = _kinds(opened, work.nulls)
        if not kinds and not work.shuffles:
            raise InvalidInput("there is no null network and `shuffles` is 0; a number needs a null: give shuffles=8.")
        self.ids = [_ids(opened, k, one, special, work.longest) for k, one in enumerate(work.texts)]
        settings: dict[str, Any] = {
            "families": checked_families(work.families),
            "bootstrap": 0,
            "bins": BINS,
            "seed": work.seed,
        }
        settings |= work.options
        self.cases = Cases(opened, kinds, work.shuffles, work.seed, special, settings)
        self.looks: list[Any] = [self.cases.look(self.cases.jobs[0], 0, self.ids[0])]
        self.first = self.looks[0]
        """The network on the first text, which says what all others look like."""
        self.at, self.tokens = 0, self.cases.tokens

    @property
    def goal(self) -> tuple[float, int]:
        return float(len(self.ids)), len(self.ids)

    def layout(self) -> Layout:
        first, number = self.first, np.dtype(np.float64)
        cases = [*dict.fromkeys(case for case, _ in self.cases.jobs), "iid tokens"]
        if {"overlap", "effective_time"} <= set(first):
            cases.append("equiangular")
        rows = {"text": Variable(("text",), np.dtype(np.int64))}
        rows |= {str(name): Variable(("case", "text", *_others(first[name])), number) for name in first}
        rows["word"] = Variable(("text", "token", "letter"), np.dtype(np.uint8))
        rows["cluster"] = Variable(("text", "shown", "token"), np.dtype(np.int32))
        shown = shown_states(first.sizes["layer"])
        sizes = {str(name): size for name, size in first.sizes.items() if name != "text"}
        sizes |= {"case": len(cases), "token": self.work_.longest, "letter": LETTERS, "shown": len(shown)}
        labels = {str(name): first[name].values for name in first.coords}
        labels |= {"case": np.array(cases), "shown": shown}
        said = first.attrs | {"shuffles": self.work_.shuffles, "seed": self.work_.seed}
        return Layout({"text": rows}, sizes, {"text": len(self.ids)}, labels, {}, {"text": 1}, said, self.goal[0], {})

    def start(self) -> None:
        return None

    def begin(self) -> np.ndarray:
        return np.zeros((), np.int64)

    def work(self, state: Any) -> Slice:
        """One forward pass and its numbers; the row of a text when all its cases are there."""
        text, jobs = int(state), self.cases.jobs
        if text >= len(self.ids):
            return Slice(state, None, self._ended())
        if self.at != text:
            self.at, self.looks = text, []
        if len(self.looks) < len(jobs):
            job = jobs[len(self.looks)]
            self.looks.append(self.cases.look(job, text, self.ids[text]))
            self.tokens = self.cases.tokens
            return Slice(state, None)
        row = self._row(text)
        after = np.asarray(text + 1)
        return Slice(after, Rows({"text": row}), self._ended() if text + 1 == len(self.ids) else None)

    def _ended(self) -> Outcome:
        return Outcome(Ending.FINISHED, f"looked at {len(self.ids)} texts.")

    def _row(self, text: int) -> dict[str, np.ndarray]:
        joined = self.cases.joined(text, self.looks)
        row = {}
        for name in self.first:
            values = joined[name] if "text" in joined[name].dims else joined[name].expand_dims("text")
            dims = ("case", "text", *_others(self.first[name]))
            row[str(name)] = np.asarray(values.transpose(*dims).values, float)
        n, longest = len(self.ids[text]), self.work_.longest
        words = np.zeros((1, longest, LETTERS), np.uint8)
        words[0, :n] = self.tokens["word"]
        labels = np.full((1, len(self.tokens["cluster"]), longest), -1, np.int32)
        labels[0, :, :n] = self.tokens["cluster"]
        return row | {"text": np.array([text]), "word": words, "cluster": labels}

    def reached(self, state: Any, rows: dict[str, int]) -> Reached:
        done, jobs = int(state), self.cases.jobs
        within = len(self.looks) if self.at == done else 0
        case = jobs[min(within, len(jobs) - 1)][0]
        note = f"text {min(done + 1, len(self.ids))} of {len(self.ids)}: {case}"
        return Reached(done + within / (len(jobs) + 1), rows["text"], done * len(jobs) + within, note)

    def steps(self, state: Any) -> dict[str, int]:
        return {"forward_passes": int(state) * len(self.cases.jobs)}

    def finish(self, state: Any) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
        return {}


def _others(values: Any) -> tuple[str, ...]:
    """The dimensions of a variable of one text, without `text`."""
    return tuple(str(dim) for dim in values.dims if dim != "text")


def _check_texts(texts: Any) -> None:
    instance("texts", texts, Sequence | np.ndarray, "a list of texts, or of arrays of token ids")
    if isinstance(texts, str) or not len(texts):
        raise InvalidInput(f"`texts` is {shown(texts)}; give a list with at least one text.")
    for k, one in enumerate(texts):
        if isinstance(one, str):
            if not one.strip():
                raise InvalidInput(f"texts[{k}] is empty; give a text with a few words.")
            continue
        ids = np.asarray(one)
        if ids.ndim != 1 or ids.dtype.kind not in "iu" or len(ids) < FEWEST:
            raise InvalidInput(f"texts[{k}] is {shown(one)}; give a text, or at least two token ids, whole numbers.")


def _kinds(network: NetworkLike, nulls: Any) -> tuple[str, ...]:
    """The kinds of null networks that are asked for."""
    if isinstance(nulls, str):
        nulls = network.nulls if nulls == "all" else (nulls,)
    kinds = tuple(dict.fromkeys(instance("nulls", nulls, Sequence, 'a list of kinds, such as ["permuted"]')))
    if unknown := [kind for kind in kinds if kind not in network.nulls]:
        names = ", ".join(map(repr, network.nulls)) or "none"
        raise InvalidInput(f"`nulls` has {shown(unknown[0])}; {network.name} offers {names}.")
    return kinds


def _ids(network: Any, number: int, text: Any, special: Sequence[int], longest: int) -> np.ndarray:
    """The ids of a text, cut to `longest`; a special token at the end stays there."""
    if isinstance(text, str):
        if not isinstance(network, Network):
            raise InvalidInput(f"texts[{number}] is a text, but {network.name} reads ids; give its token ids.")
        text = network.encode(text)
    ids = np.asarray(text)
    if len(ids) > longest:
        ids = np.array([*ids[: longest - 1], ids[-1]]) if -1 in special else ids[:longest]
    if outside := [place for place in special if not -len(ids) <= place < len(ids)]:
        raise InvalidInput(f"`special` has {outside[0]}, but texts[{number}] has {len(ids)} tokens.")
    if len(ids) < FEWEST + len(special):
        raise InvalidInput(f"texts[{number}] has {len(ids)} tokens; give a text of at least {FEWEST + len(special)}.")
    return ids
