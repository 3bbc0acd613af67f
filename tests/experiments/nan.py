"""Does an entry of the data that is not a number make a claim that reads it fail, without raising?"""

from unittest import mock

import numpy as np

from attnflow.experiments import claim
from attnflow.experiments.claim import Relation

CHECKED = (
    "clustering-mitigated",
    "collapse-at-initialisation",
    "common-noise",
    "depth-scalings",
    "key-dimension",
)
"""Experiments whose quick version is looked at so."""


def verdicts(module, parameters, data):
    """Whether all claims hold; and all numbers that they compare, those of rows that are not the worst too."""
    compared = []

    def worst(off, tolerance=1.0):
        compared.append(np.nan_to_num(np.stack(np.broadcast_arrays(off, tolerance))).tolist())
        return original(off, tolerance)

    original = claim.worst
    with mock.patch.object(claim, "worst", worst), np.errstate(all="ignore"):
        found = list(module.claims(parameters, data))
    compared += [
        (one.measured, one.tolerance, one.predicted, one.detail * (one.relation is Relation.TRUE)) for one in found
    ]
    return all(one.holds for one in found), compared


def changed(data, part, name, index, value):
    """The data with one entry replaced."""
    copy = data[part].copy(deep=True)
    copy[name].values[index] = value
    return data | {part: copy}


def kinds(data):
    """The first part of every kind, by its name without numbers."""
    found = {}
    for part in data:
        found.setdefault(part.rstrip("0123456789.-"), part)
    return found.values()


def passed_over(module, parameters, data):
    """(part, variable) whose last entry claims read, yet all of them hold with NaN in its place; and how many are read.

    An entry is read if a wild number in its place changes what a claim compares, or cannot be used at all.
    """
    (holds, right), read, missed = verdicts(module, parameters, data), 0, []
    assert holds
    for part in kinds(data):
        for variable, values in data[part].items():
            index = tuple(size - 1 for size in values.shape)
            if values.dtype.kind != "f":
                continue
            try:
                seen = verdicts(module, parameters, changed(data, part, variable, index, 1e6))[1] != right
            except (ValueError, ArithmeticError):
                seen = True
            if seen:
                read += 1
                if verdicts(module, parameters, changed(data, part, variable, index, np.nan))[0]:
                    missed.append((part, variable))
    return missed, read
