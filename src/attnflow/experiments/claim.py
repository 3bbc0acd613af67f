"""A claim: what was predicted, what was measured, how far apart they may be and why, and whose statement it is."""

import dataclasses
import enum
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from attnflow.errors import InvalidInput

Labels = Sequence[str] | Callable[[tuple[int, ...]], str]
"""Names of the entries of an array: a list for one axis, or a function of the index."""


class Relation(enum.Enum):
    """The relation that a claim states between the measured and the predicted value."""

    EQUAL = "equal"
    AT_MOST = "at most"
    AT_LEAST = "at least"
    TRUE = "true"


class OriginKind(enum.Enum):
    """Whose statement a claim checks."""

    PUBLISHED = "published"
    """A paper states it, and its text was read."""
    REPORTED = "reported"
    """A paper states it, according to its abstract, a summary or its authors' code: the text was not read."""
    CONSEQUENCE = "consequence"
    """It follows from published results; the derivation is in the documents."""
    OBSERVED = "observed"
    """Seen here; no paper that was read states it, and nothing derives it. The documents say what it means."""
    NUMERICS = "numerics"
    """It compares one program with another."""


@dataclasses.dataclass(frozen=True)
class Origin:
    """Whose statement a claim checks; made by `published`, `reported`, `consequence`, `observed`, or `NUMERICS`."""

    kind: OriginKind
    source: str = ""
    """A key of the bibliography, or a heading of the experiment's derivation.md."""
    place: str = ""
    """Theorem, formula or section in the paper; for what is reported, where it was read."""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.kind.value, self.source + "," * bool(self.place), self.place)))


def published(key: str, place: str = "") -> Origin:
    """A statement of the paper `key` of the bibliography, at `place` ("Theorem 4.1") where that is known."""
    return Origin(OriginKind.PUBLISHED, key, place)


def reported(key: str, read: str) -> Origin:
    """A statement of the paper `key` whose text was not read; `read` says what was: "abstract", "authors' code"."""
    return Origin(OriginKind.REPORTED, key, read)


def consequence(heading: str) -> Origin:
    """A statement that derivation.md of the experiment derives under the heading `heading`."""
    return Origin(OriginKind.CONSEQUENCE, heading)


def observed(heading: str) -> Origin:
    """A statement that nothing derives; derivation.md says under the heading `heading` what was seen, and where."""
    return Origin(OriginKind.OBSERVED, heading)


NUMERICS = Origin(OriginKind.NUMERICS)
"""One program against another."""


@dataclasses.dataclass(frozen=True)
class Claim:
    """A statement that an experiment checks; made by `equal`, `at_most`, `at_least` or `true`.

    ```python
    half = af.experiments.Claim.equal("share of heads", 0.5, 0.52, 0.03, "three standard errors of 2500 throws")
    assert half.holds
    seen = af.experiments.Claim.true("both sides come up", True, "1300 heads, 1200 tails", "counted")
    ```

    `claims(parameters, data)` of an experiment gives back a list of them. A claim that fails raises nothing: it is
    printed and written down with its verdict, and `attnflow reproduce` ends with the exit code 1. Whatever is not a
    number fails. `reason` says where the tolerance comes from; a claim without one is refused.

    Predicted, measured and tolerance may be arrays. Then the claim is about the entry that uses most of its tolerance,
    and `detail` says which one it is, by `labels`. Nothing to compare counts as failed.

    The statement depends on the parameters of an experiment, never on its data: the same claim can then be recognised
    after other random numbers and after a mutation.
    """

    statement: str
    relation: Relation
    predicted: float | str
    measured: float | str
    tolerance: float
    reason: str
    """Where the tolerance comes from."""
    detail: str = ""
    origin: Origin | None = None
    """Whose statement it is."""
    level: float = 0.0
    """The probability that the claim fails by chance although it is true; 0 where no random numbers decide."""

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise InvalidInput(f"the claim {self.statement!r} has no reason; say where its tolerance comes from.")
        if self.tolerance < 0 or np.isinf(self.tolerance):  # one that was computed to NaN makes the claim fail
            raise InvalidInput(
                f"`tolerance` of {self.statement!r} is {self.tolerance}; give a finite number of at least 0."
            )
        if not 0 <= self.level < 1:
            raise InvalidInput(f"`level` of {self.statement!r} is {self.level}; give a probability below 1.")
        if self.relation is not Relation.TRUE and np.isinf(float(self.predicted)):  # NaN makes the claim fail
            raise InvalidInput(f"`predicted` of {self.statement!r} is {self.predicted}; give a finite number.")

    @property
    def key(self) -> str:
        """The statement with # for its numbers: equal for the full and the quick version of an experiment."""
        return re.sub(r"(?<![A-Za-z_])[+\-−]?\d+(\.\d+)?(e[+-]?\d+)?", "#", self.statement)

    @property
    def excess(self) -> float:
        """How far the measured value goes beyond the predicted one, in the direction that the claim excludes."""
        return float(_excess(self.relation, float(self.predicted), float(self.measured)))

    @property
    def holds(self) -> bool:
        """The verdict; with a NaN on either side or as tolerance it is False."""
        if self.relation is Relation.TRUE:
            return self.measured == self.predicted
        return bool(self.excess <= self.tolerance)

    @property
    def used(self) -> float | None:
        """The share of what is allowed that is used: |measured - predicted| over the tolerance for an equation.

        For an inequality it is the excess over the tolerance, 0 where there is none; without a tolerance, and for
        positive numbers, the ratio of the measured number and the bound. None where nothing can be used.
        """
        if self.relation is Relation.TRUE:
            return None
        if self.tolerance > 0:
            return max(self.excess, 0.0) / self.tolerance
        predicted, measured = float(self.predicted), float(self.measured)
        if self.relation is Relation.EQUAL or not (predicted > 0 and measured > 0):
            return None
        return measured / predicted if self.relation is Relation.AT_MOST else predicted / measured

    @classmethod
    def equal(
        cls,
        statement: str,
        predicted: Any,
        measured: Any,
        tolerance: Any,
        reason: str,
        *,
        origin: Origin | None = None,
        labels: Labels | None = None,
        detail: str = "",
        level: float = 0.0,
    ) -> "Claim":
        """|measured - predicted| <= tolerance."""
        return cls._of(Relation.EQUAL, statement, predicted, measured, tolerance, reason, origin, labels, detail, level)

    @classmethod
    def at_most(
        cls,
        statement: str,
        predicted: Any,
        measured: Any,
        tolerance: Any,
        reason: str,
        *,
        origin: Origin | None = None,
        labels: Labels | None = None,
        detail: str = "",
        level: float = 0.0,
    ) -> "Claim":
        """Claims measured <= predicted + tolerance."""
        return cls._of(
            Relation.AT_MOST, statement, predicted, measured, tolerance, reason, origin, labels, detail, level
        )

    @classmethod
    def at_least(
        cls,
        statement: str,
        predicted: Any,
        measured: Any,
        tolerance: Any,
        reason: str,
        *,
        origin: Origin | None = None,
        labels: Labels | None = None,
        detail: str = "",
        level: float = 0.0,
    ) -> "Claim":
        """Claims measured >= predicted - tolerance."""
        return cls._of(
            Relation.AT_LEAST, statement, predicted, measured, tolerance, reason, origin, labels, detail, level
        )

    @classmethod
    def true(
        cls,
        statement: str,
        holds: bool | np.bool_,
        detail: str,
        reason: str,
        *,
        origin: Origin | None = None,
        level: float = 0.0,
    ) -> "Claim":
        """A statement without a number: `detail` is what was found, `reason` how `holds` was decided."""
        if not isinstance(holds, bool | np.bool_):
            raise InvalidInput(f"`holds` of {statement!r} is {holds!r}; give True or False.")
        return cls(statement, Relation.TRUE, "true", "true" if holds else "false", 0.0, reason, detail, origin, level)

    @classmethod
    def _of(
        cls,
        relation: Relation,
        statement: str,
        predicted: Any,
        measured: Any,
        tolerance: Any,
        reason: str,
        origin: Origin | None,
        labels: Labels | None,
        detail: str,
        level: float,
    ) -> "Claim":
        rows = np.broadcast_arrays(*(np.asarray(v, float) for v in (predicted, measured, tolerance)))
        if rows[0].ndim == 0:
            return cls(
                statement, relation, float(rows[0]), float(rows[1]), float(rows[2]), reason, detail, origin, level
            )
        if rows[0].size == 0:
            return cls(statement, relation, 0.0, np.nan, 0.0, reason, "nothing to compare", origin, level)
        at = worst(_excess(relation, rows[0], rows[1]), rows[2])
        found = f"worst of {rows[0].size}"
        if labels is not None:
            found += f": {labels(at) if callable(labels) else labels[at[0]]}"
        words = "; ".join(filter(None, (found, detail)))
        one = [float(row[at]) for row in rows]
        return cls(statement, relation, one[0], one[1], one[2], reason, words, origin, level)

    def to_json(self) -> dict[str, Any]:
        """Plain entries; numbers that are not finite become texts, because JSON has no such numbers."""
        origin = None if self.origin is None else dataclasses.asdict(self.origin) | {"kind": self.origin.kind.value}
        changed = {"relation": self.relation.value, "origin": origin, "holds": self.holds}
        entries = dataclasses.asdict(self) | changed
        return {k: str(v) if isinstance(v, float) and not np.isfinite(v) else v for k, v in entries.items()}

    @classmethod
    def from_json(cls, entries: dict[str, Any]) -> "Claim":
        """The claim that `to_json` was called on; the verdict is computed again."""
        entries = {k: v for k, v in entries.items() if k != "holds"}
        relation, origin = Relation(entries.pop("relation")), entries.pop("origin", None)
        if origin is not None:
            origin = Origin(OriginKind(origin["kind"]), origin["source"], origin["place"])
        if relation is not Relation.TRUE:
            entries |= {k: float(entries[k]) for k in ("predicted", "measured", "tolerance")}
        return cls(relation=relation, origin=origin, **entries)

    @property
    def expected(self) -> str:
        """The predicted value for a table, with as many digits as the tolerance calls for."""
        if self.relation is Relation.TRUE:
            return "true"
        sign = {Relation.AT_MOST: "≤ ", Relation.AT_LEAST: "≥ "}.get(self.relation, "")
        return f"{sign}{float(self.predicted):.{self._digits}g}"

    @property
    def found(self) -> str:
        """What was measured, for a table: the error and its tolerance for an equation, else the value."""
        if self.relation is Relation.TRUE:
            return self.detail or str(self.measured)
        if self.relation is not Relation.EQUAL or not self.tolerance > 0:
            allowed = f" (± {self.tolerance:.1e})" if self.tolerance > 0 else ""
            return f"{float(self.measured):.{self._digits}g}{allowed}"
        error = float(self.measured) - float(self.predicted)
        return f"off by {error:+.1e} of ±{self.tolerance:.1e} ({100 * abs(error) / self.tolerance:.0f} %)"

    @property
    def _digits(self) -> int:
        predicted, measured = float(self.predicted), float(self.measured)
        size = max(abs(predicted), abs(measured) if np.isfinite(measured) else 0.0)
        if self.tolerance > 0 and size > 0:
            return int(np.clip(np.ceil(np.log10(size / self.tolerance)) + 1, 3, 16))
        return 6


def _excess(relation: Relation, predicted: Any, measured: Any) -> Any:
    difference = measured - predicted
    if relation is Relation.EQUAL:
        return abs(difference)
    return difference if relation is Relation.AT_MOST else -difference


def worst(off: Any, tolerance: Any = 1.0) -> tuple[int, ...]:
    """Index of what uses most of its tolerance; of equals, and without a tolerance, what is farthest off.

    What is not a number uses most of all.
    """
    off, tolerance = np.broadcast_arrays(np.asarray(off, float), np.asarray(tolerance, float))
    with np.errstate(divide="ignore", invalid="ignore"):
        used = np.where(tolerance == 0, np.where(off > 0, np.inf, 0.0), off / tolerance)
    none = np.isnan(off) | np.isnan(tolerance)
    used, off = (np.where(none, np.inf, one).ravel() for one in (used, off))
    return tuple(int(k) for k in np.unravel_index(np.lexsort((off, used))[-1], tolerance.shape))


def share_interval(
    hits: Any, draws: int, confidence: float, method: Literal["exact", "wilson"] = "exact"
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the confidence interval of a probability, of which `hits` of `draws` trials came true."""
    from scipy.stats import binomtest

    found = [binomtest(int(k), draws).proportion_ci(confidence, method) for k in np.ravel(hits)]
    low, high = np.array([(one.low, one.high) for one in found]).T.reshape(2, *np.shape(hits))
    return low, high
