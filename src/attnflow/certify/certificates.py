"""What a proof leaves: a certificate that another program can check, or the place where it could not be decided."""

import copy
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from attnflow.certify.checking.words import statement
from attnflow.errors import InvalidInput
from attnflow.folders import saving, write_file
from attnflow.parsing import parse_json
from attnflow.reading import read_text
from attnflow.wording import fresh_path

FORMAT = 1
FLOATS = "numbers of the file are binary64 floats, read exactly"
BALLS = "FLINT's ball arithmetic encloses (found by attnflow.certify; `attnflow check` needs mpmath.iv instead)"


@dataclass(frozen=True)
class Certificate:
    """A statement that was proved, computer-assisted: conditional on the arithmetic and on the lemmas it assumes.

    `data` is all that the independent checker needs (`attnflow.certify.check`). A certificate is no truth value: ask
    `isinstance(found, Certificate)`.

    ```python
    found = attnflow.certify.dominant_degree((5.0, 6.0), 2)
    found.statement, found.claims["degree"], found.assumes
    attnflow.certify.check(found).confirmed
    ```
    """

    kind: str
    statement: str
    assumes: tuple[str, ...]
    claims: dict[str, Any]
    data: dict[str, Any]
    enclosures: dict[str, Any] = field(default_factory=dict)
    """Proved intervals [low, high] by name; for people, the checker finds its own."""

    def __bool__(self) -> NoReturn:
        raise TypeError("A certificate is no truth value; ask `isinstance(found, attnflow.certify.Certificate)`.")

    def to_json(self) -> dict[str, Any]:
        """The certificate as plain values."""
        return {
            "format": FORMAT,
            "kind": self.kind,
            "statement": self.statement,
            "assumes": list(self.assumes),
            "claims": copy.deepcopy(self.claims),
            "data": copy.deepcopy(self.data),
            "enclosures": copy.deepcopy(self.enclosures),
        }

    def save(self, path: str | Path) -> Path:
        """Write the certificate as JSON to a new file; floats are written so that they are read back exactly."""
        where = fresh_path("path", Path(path))
        text = json.dumps(self.to_json(), separators=(",", ":"), allow_nan=False) + "\n"
        with saving(where):
            write_file(where, text.encode())
        return where

    @classmethod
    def load(cls, path: str | Path) -> "Certificate":
        """Read a saved certificate, without checking what it says."""
        try:
            found = parse_json(read_text(path))
            fields = (found["kind"], found["statement"], tuple(found["assumes"]), found["claims"], found["data"])
            return cls(*fields, found.get("enclosures", {}))
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise InvalidInput(f"`path` is {str(path)!r}, which holds no certificate ({error}).") from None


def certified(
    kind: str,
    assumes: tuple[str, ...],
    claims: dict[str, Any],
    data: dict[str, Any],
    enclosures: dict[str, Any] | None = None,
) -> Certificate:
    """A certificate whose statement is made from claims and data, as the checker will make it."""
    plain = json.loads(json.dumps([claims, data, enclosures or {}], allow_nan=False))
    return Certificate(kind, statement(kind, plain[0], plain[1]), assumes, *plain)


@dataclass(frozen=True)
class Undecided:
    """Nothing was proved, and nothing refuted: why not, and where. No truth value either.

    ```python
    found = attnflow.certify.dominant_degree((5.0, 7.0), 2)  # degree 4 overtakes degree 3 at 6.2113
    found.reason, found.where
    ```
    """

    reason: str
    where: str = ""

    def __bool__(self) -> NoReturn:
        raise TypeError("Undecided is no truth value; ask `isinstance(found, attnflow.certify.Undecided)`.")
