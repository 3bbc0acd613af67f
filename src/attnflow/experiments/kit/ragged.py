"""Rows of unequal lengths in one array."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnflow.experiments.verdicts import COUNTS


def ragged(name: str, dims: tuple[str, str], rows: Sequence[Any], length: int | None = None) -> dict[str, Any]:
    """Variables of a dataset: the rows, filled up with NaN to one length, and `name_counts`, the lengths that they had.

    The array says where its lengths are, so that a NaN among the numbers of a row makes claims fail and what comes
    after the row does not.
    """
    counts = np.array([len(row) for row in rows])
    values = np.full((len(rows), counts.max(initial=0) if length is None else length), np.nan)
    for row, one in zip(values, rows, strict=True):
        row[: len(one)] = one
    return {name: (dims, values, {COUNTS: f"{name}_counts"}), f"{name}_counts": (dims[:1], counts)}
