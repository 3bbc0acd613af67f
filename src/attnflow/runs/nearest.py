"""Suggestions for misspelt names."""

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """'; did you mean ...?' when something is near, else the list of what is known."""
    names, word = list(known), word[:80]
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.5) or [n for n in names if word and n.startswith(word)]
    return f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(sorted(names))}."
