"""Which tokens are meant for which atom: masses that add up, without splitting a token."""

import itertools

import numpy as np

from attnflow.tokens import Tokens

SAME = 1e-12
"""Tokens nearer than this coincide: no flow separates them. Masses that differ by less are equal."""
WINDOW = 28
"""Tokens among which sums of masses are looked for, all 2^WINDOW of them."""


def merged(tokens: Tokens) -> Tokens:
    """The same measure, with one token for all that coincide."""
    x, mass = np.asarray(tokens.positions, float), np.asarray(tokens.masses, float)
    order = np.lexsort(np.round(x, 11).T)
    apart = np.abs(np.diff(x[order], axis=0)).max(axis=1, initial=0.0) > SAME
    if apart.all():
        return tokens
    which = np.zeros(len(x), int)
    which[order] = np.concatenate([[0], np.cumsum(apart)])
    _, first, which = np.unique(which, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))  # in the order of the tokens that come first
    return Tokens(x[np.sort(first)], masses=np.bincount(rank[which], weights=mass), space=tokens.space)


def same_measure(one: Tokens, other: Tokens) -> bool:
    """Whether two measures are equal."""
    one, other = merged(one), merged(other)
    if one.n != other.n:
        return False
    rows = [np.concatenate([np.asarray(t.positions), np.asarray(t.masses)[:, None]], axis=1) for t in (one, other)]
    first, second = (part[np.lexsort(np.round(part, 12).T)] for part in rows)
    return bool(np.abs(first - second).max() < SAME)


def equal_misfit(mass: np.ndarray, quotas: np.ndarray) -> float:
    """The least mass at a wrong atom if all tokens have one mass; 0 for unequal masses, of which it is not known."""
    if np.ptp(mass) > SAME:
        return 0.0
    wanted = quotas / mass[0]
    counts = np.floor(wanted + 1e-9)
    counts[np.argsort(counts - wanted)[: len(mass) - int(counts.sum())]] += 1
    return float(np.abs(counts - wanted).sum() * mass[0] / 2)


def subset(mass: np.ndarray, quota: float) -> np.ndarray:
    """Which tokens, listed from near to far, have a sum of masses as near to `quota` as can be found.

    The first ones, except for up to `WINDOW` about the border: of those the sums of both halves are sorted and paired.
    """
    border = int(np.argmin(np.abs(np.cumsum(mass) - quota)))
    begin = int(np.clip(border - WINDOW // 2, 0, max(len(mass) - WINDOW, 0)))
    window = mass[begin : begin + WINDOW]
    middle = len(window) // 2
    left, right = (_sums(half) for half in (window[:middle], window[middle:]))
    rest = quota - mass[:begin].sum() - left
    order = np.argsort(right)
    found = np.searchsorted(right[order], rest)
    pairs = [np.clip(found + step, 0, len(right) - 1) for step in (-1, 0)]
    off = np.stack([np.abs(right[order[pair]] - rest) for pair in pairs])
    side, one = np.unravel_index(int(np.argmin(off)), off.shape)
    code = one | int(order[pairs[side][one]]) << middle
    chosen = np.arange(len(mass)) < begin
    chosen[begin : begin + len(window)] = (code >> np.arange(len(window))) & 1
    return chosen


def _sums(mass: np.ndarray) -> np.ndarray:
    """The sums of all subsets; bit k of the index says whether token k belongs."""
    found = np.zeros(1)
    for one in mass:
        found = np.concatenate([found, found + one])
    return found


def first_of_equals(inputs: list[Tokens]) -> list[int]:
    """For every input the first one that is the same measure."""
    found = list(range(len(inputs)))
    for i, k in itertools.combinations(range(len(inputs)), 2):
        if found[k] == k and same_measure(inputs[i], inputs[k]):
            found[k] = i
    return found
