"""A claim: what was predicted, what was measured, how far apart they may be and why."""

import dataclasses
import enum
from typing import Any, Literal

import numpy as np

from attnflow.errors import InvalidInput


class Relation(enum.Enum):
    """The relation that a claim states between the measured and the predicted value."""

    EQUAL = "equal"
    AT_MOST = "at most"
    AT_LEAST = "at least"
    TRUE = "true"


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
    number fails. `source` says where the tolerance comes from; a claim without one is refused.
    """

    statement: str
    relation: Relation
    predicted: float | str
    measured: float | str
    tolerance: float
    source: str
    """Where the tolerance comes from."""
    detail: str = ""

    def __post_init__(self) -> None:
        if not self.source.strip():
            raise InvalidInput(f"the claim {self.statement!r} has no source; say where its tolerance comes from.")
        if self.tolerance < 0 or np.isinf(self.tolerance):  # one that was computed to NaN makes the claim fail
            raise InvalidInput(
                f"`tolerance` of {self.statement!r} is {self.tolerance}; give a finite number of at least 0."
            )
        if self.relation is not Relation.TRUE and not np.isfinite(float(self.predicted)):
            raise InvalidInput(f"`predicted` of {self.statement!r} is {self.predicted}; give a finite number.")

    @property
    def holds(self) -> bool:
        """The verdict; with a NaN on either side or as tolerance it is False."""
        if self.relation is Relation.TRUE:
            return self.measured == self.predicted
        difference = float(self.measured) - float(self.predicted)
        return bool(
            {Relation.EQUAL: abs(difference), Relation.AT_MOST: difference, Relation.AT_LEAST: -difference}[
                self.relation
            ]
            <= self.tolerance
        )

    @classmethod
    def equal(cls, statement: str, predicted: float, measured: float, tolerance: float, source: str) -> "Claim":
        """|measured - predicted| <= tolerance."""
        return cls(statement, Relation.EQUAL, float(predicted), float(measured), float(tolerance), source)

    @classmethod
    def at_most(cls, statement: str, predicted: float, measured: float, tolerance: float, source: str) -> "Claim":
        """Claims measured <= predicted + tolerance."""
        return cls(statement, Relation.AT_MOST, float(predicted), float(measured), float(tolerance), source)

    @classmethod
    def at_least(cls, statement: str, predicted: float, measured: float, tolerance: float, source: str) -> "Claim":
        """Claims measured >= predicted - tolerance."""
        return cls(statement, Relation.AT_LEAST, float(predicted), float(measured), float(tolerance), source)

    @classmethod
    def true(cls, statement: str, holds: bool | np.bool_, detail: str, source: str) -> "Claim":
        """A statement without a number: `detail` is what was found, `source` how `holds` was decided."""
        if not isinstance(holds, bool | np.bool_):
            raise InvalidInput(f"`holds` of {statement!r} is {holds!r}; give True or False.")
        return cls(statement, Relation.TRUE, "true", "true" if holds else "false", 0.0, source, detail)

    def to_json(self) -> dict[str, Any]:
        """Plain entries; numbers that are not finite become texts, because JSON has no such numbers."""
        entries = dataclasses.asdict(self) | {"relation": self.relation.value, "holds": self.holds}
        return {k: str(v) if isinstance(v, float) and not np.isfinite(v) else v for k, v in entries.items()}

    @classmethod
    def from_json(cls, entries: dict[str, Any]) -> "Claim":
        """The claim that `to_json` was called on; the verdict is computed again."""
        entries = {k: v for k, v in entries.items() if k != "holds"}
        relation = Relation(entries.pop("relation"))
        if relation is not Relation.TRUE:
            entries |= {k: float(entries[k]) for k in ("predicted", "measured", "tolerance")}
        return cls(relation=relation, **entries)

    def as_text(self) -> tuple[str, str, str]:
        """Predicted, measured and tolerance for a table, with as many digits as the tolerance calls for."""
        if self.relation is Relation.TRUE:
            return "true", self.detail or str(self.measured), "–"
        sign = {Relation.AT_MOST: "≤ ", Relation.AT_LEAST: "≥ "}.get(self.relation, "")
        predicted, measured = float(self.predicted), float(self.measured)
        size = max(abs(predicted), abs(measured) if np.isfinite(measured) else 0.0)
        digits = 6
        if self.tolerance > 0 and size > 0:
            digits = int(np.clip(np.ceil(np.log10(size / self.tolerance)) + 1, 3, 16))
        return f"{sign}{predicted:.{digits}g}", f"{measured:.{digits}g}", f"{self.tolerance:.1e}"


def share_used(found: Any, expected: Any, tolerance: Any) -> float:
    """|found - expected| over the tolerance, to find the worst of many; what is not a number is worst of all."""
    share = abs(float(found) - float(expected)) / float(tolerance)
    return float("inf") if np.isnan(share) else share


def worst(off: Any, tolerance: Any = 1.0) -> tuple[int, ...]:
    """Index of what uses most of its tolerance; what is not a number uses most of all."""
    used = np.asarray(off) / tolerance
    return tuple(int(k) for k in np.unravel_index(np.argmax(np.where(np.isnan(used), np.inf, used)), used.shape))


def share_interval(
    hits: Any, draws: int, confidence: float, method: Literal["exact", "wilson"] = "exact"
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the confidence interval of a probability, of which `hits` of `draws` trials came true."""
    from scipy.stats import binomtest

    found = [binomtest(int(k), draws).proportion_ci(confidence, method) for k in np.ravel(hits)]
    low, high = np.array([(one.low, one.high) for one in found]).T.reshape(2, *np.shape(hits))
    return low, high
