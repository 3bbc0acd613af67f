"""Does an entry of the data that is not a number make a claim that reads it fail, without raising?"""

import numpy as np

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
    """What the claims say: verdicts and numbers, without their words."""
    with np.errstate(all="ignore"):  # of NaN and of wild numbers
        claims = list(module.claims(parameters, data))
    return [
        (claim.holds, claim.measured, claim.tolerance, claim.predicted if claim.relation is not Relation.TRUE else "")
        for claim in claims
    ]


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

    An entry is read if a wild number in its place changes a claim, or cannot be used at all.
    """
    right, read, missed = verdicts(module, parameters, data), 0, []
    for part in kinds(data):
        for variable, values in data[part].items():
            index = tuple(size - 1 for size in values.shape)
            if values.dtype.kind != "f":
                continue
            try:
                seen = verdicts(module, parameters, changed(data, part, variable, index, 1e6)) != right
            except (ValueError, ArithmeticError):
                seen = True
            if seen:
                read += 1
                wrong = verdicts(module, parameters, changed(data, part, variable, index, np.nan))
                if all(holds for holds, *_ in wrong):
                    missed.append((part, variable))
    return missed, read
