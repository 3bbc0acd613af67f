"""Claims that means lie on one side of a bound beyond their standard errors, with the effect that they expect."""

from typing import Any

import numpy as np

from attnflow.errors import InvalidInput
from attnflow.experiments.claim import Claim, Origin
from attnflow.experiments.kit.rows import Rows
from attnflow.experiments.kit.statistics import LEVEL, student

CAUTION = 2.0
"""The smallest number of standard errors that are taken off a mean before it is compared with its bound."""


class Effects:
    """Means with standard errors, of which `above` or `below` claims that all lie on one side of their bounds.

    The claim is `mean - k error >= bound`, or `mean + k error <= bound`, in every row. It fails by chance where the
    means lie only a few standard errors from their bounds, although it is true. So the experiment says how many it
    expects, from runs with other salts, and k is chosen such that a claim with these effects fails with probability
    `LEVEL` at most; k never exceeds the bound of Student's test at `LEVEL`. Expectations that leave k < 2 are refused.

    ```python
    effects = Effects(draws=parameters.prompts, expected=12.0)
    for time, (mean, error) in leads.items():
        effects.add(0.0, mean, error, f"t = {time:g}")
    claim = effects.above("early sources lead", "paired differences", origin=observed("Leads"))
    ```

    Arguments:
        draws: independent draws from which each standard error was computed.
        expected: the smallest |mean - bound| over its standard error that is expected in any row.
    """

    def __init__(self, draws: int, expected: float) -> None:
        self.draws, self.expected = int(draws), float(expected)
        self.rows: list[tuple[np.ndarray, list[str]]] = []

    def add(self, bound: Any, mean: Any, error: Any, label: str | list[str]) -> None:
        """Adds one comparison, or arrays of them that are broadcast; an error of 0 marks what is no random number."""
        columns = np.stack(np.broadcast_arrays(*(np.asarray(v, float) for v in (bound, mean, error)))).reshape(3, -1)
        labels = [label] * columns.shape[1] if isinstance(label, str) else [str(text) for text in label]
        self.rows.append((columns, labels))

    def above(self, statement: str, test: str, *, origin: Origin | None = None, detail: str = "") -> Claim:
        """Claims `mean - k error >= bound` in every row; `test` says of what the standard errors are."""
        rows, reason, level = self._compared(-1.0, test)
        return rows.at_least(statement, reason, origin=origin, detail=detail, level=level)

    def below(self, statement: str, test: str, *, origin: Origin | None = None, detail: str = "") -> Claim:
        """Claims `mean + k error <= bound` in every row; `test` says of what the standard errors are."""
        rows, reason, level = self._compared(1.0, test)
        return rows.at_most(statement, reason, origin=origin, detail=detail, level=level)

    def _compared(self, side: float, test: str) -> tuple[Rows, str, float]:
        tests = sum(int(np.count_nonzero(columns[2])) for columns, _ in self.rows)
        allowed, level = power(self.draws, self.expected, tests)
        rows = Rows()
        for (bound, mean, error), labels in self.rows:
            rows.add(bound, mean + side * allowed * error, 0.0, labels)
        reason = (
            f"{test}; {allowed:.1f} standard errors off; {self.expected:g} or more are expected, and chance then "
            f"fails it with probability {'below 1e-20' if level < 1e-20 else format(level, '.0e')}"
        )
        return rows, reason, level


def power(draws: int, expected: float, tests: int = 1) -> tuple[float, float]:
    """How many standard errors to take off means that are expected to be `expected` of them above their bounds.

    With T the noncentral t of `draws` - 1 degrees of freedom and noncentrality `expected`, the number k solves
    `tests` P(T < k) = `LEVEL`, and is at most the bound of Student's two-sided test at `LEVEL` for all tests.

    Arguments:
        draws: independent draws from which a standard error was computed.
        expected: the smallest number of standard errors between a mean and its bound that is expected.
        tests: how many means are compared.

    Returns:
        k, and the probability, at most, that chance fails a comparison.

    Raises:
        InvalidInput: k would be below 2, so that the comparisons would hold by luck or fail by chance.
    """
    from scipy.stats import nct

    tests = max(tests, 1)
    allowed = float(np.minimum(student(LEVEL, draws, tests), nct.ppf(LEVEL / tests, draws - 1, expected)))
    if not allowed >= CAUTION:
        raise InvalidInput(
            f"`expected` is {expected:g} standard errors of {draws} draws in {tests} tests, too few for a claim that "
            f"chance fails with probability {LEVEL:g}; take more draws, or leave the claim out."
        )
    return allowed, max(tests * float(nct.cdf(allowed, draws - 1, expected)), float(np.finfo(float).tiny))
