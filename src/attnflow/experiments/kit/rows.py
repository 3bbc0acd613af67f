"""Comparisons collected one by one, from which one claim is made."""

from typing import Any

import numpy as np

from attnflow.experiments.claim import Claim, Origin


class Rows:
    """Predicted and measured values with tolerances and labels; `equal`, `at_most` and `at_least` make the claim.

    ```python
    rows = Rows()
    for beta, found, error in zip(betas, rates, errors, strict=True):
        rows.add(theory.rate(beta), found, 4 * error, f"β = {beta:g}")
    claim = rows.equal("growth rate", "4 standard errors", origin=published("geshkovski2025perspective"))
    ```

    A claim is about the entry that uses most of its tolerance; its detail names that entry by its label.
    """

    def __init__(self) -> None:
        self.values: list[np.ndarray] = []
        self.labels: list[str] = []

    def add(self, predicted: Any, measured: Any, tolerance: Any, label: str | list[str]) -> None:
        """Numbers, or arrays that are broadcast; arrays have a label for each entry, or one for all of them."""
        three = np.stack(np.broadcast_arrays(*(np.asarray(v, float) for v in (predicted, measured, tolerance))))
        self.values.append(three.reshape(3, -1))
        count = self.values[-1].shape[1]
        self.labels += [label] * count if isinstance(label, str) else [str(one) for one in label]
        if len(self.labels) != sum(one.shape[1] for one in self.values):
            raise ValueError(f"`label` has {len(label)} entries for {count} values; give one text, or one for each.")

    def equal(
        self, statement: str, reason: str, *, origin: Origin | None = None, detail: str = "", level: float = 0.0
    ) -> Claim:
        """|measured - predicted| <= tolerance in every row."""
        three, labels = self._columns(), self.labels
        return Claim.equal(statement, *three, reason, origin=origin, labels=labels, detail=detail, level=level)

    def at_most(
        self, statement: str, reason: str, *, origin: Origin | None = None, detail: str = "", level: float = 0.0
    ) -> Claim:
        """Claims measured <= predicted + tolerance in every row."""
        three, labels = self._columns(), self.labels
        return Claim.at_most(statement, *three, reason, origin=origin, labels=labels, detail=detail, level=level)

    def at_least(
        self, statement: str, reason: str, *, origin: Origin | None = None, detail: str = "", level: float = 0.0
    ) -> Claim:
        """Claims measured >= predicted - tolerance in every row."""
        three, labels = self._columns(), self.labels
        return Claim.at_least(statement, *three, reason, origin=origin, labels=labels, detail=detail, level=level)

    def _columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        predicted, measured, tolerance = np.concatenate([np.zeros((3, 0)), *self.values], axis=1)
        return predicted, measured, tolerance
