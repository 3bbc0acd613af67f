"""What specifications of earlier formats meant, said as specifications mean it now."""

from typing import Any

CENTRED = ("clustered", "caps")
"""Starts around centres, of which one number `n` once counted the tokens of each centre."""
LAST_RUNS, LAST_SWEEPS = 2, 1
"""Last formats of the folders of runs and sweeps in which it did."""


def counting_all_tokens(table: Any) -> Any:
    """The table of a specification whose `n` counted the tokens of each centre, with lists of these counts instead.

    A list has the number of each centre in every format, so that a run keeps its tokens.
    """
    if isinstance(table, list):
        return [counting_all_tokens(entry) for entry in table]
    if not isinstance(table, dict):
        return table
    changed = {key: counting_all_tokens(entry) for key, entry in table.items()}
    if table.get("name") in CENTRED and isinstance(table.get("n"), int) and isinstance(table.get("centres"), list):
        changed["n"] = [table["n"]] * len(table["centres"])
    return changed
