"""The independent checker: it reads a certificate and proves its statement again, with mpmath.iv and exact integers.

It shares no code with the search and needs no FLINT. NumPy gives it guesses (inverses, eigenvectors), which are not
trusted. Any doubt, and any error on the way, rejects.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnflow.errors import InvalidInput, MissingExtra
from attnflow.parsing import parse_json
from attnflow.reading import read_text

BITS = 106


@dataclass(frozen=True)
class Verdict:
    """What the checker found: whether it confirmed the statement, the lemmas it went through, or why it rejects.

    ```python
    verdict = attnflow.certify.check(attnflow.certify.unstable_modes(9.0, 3, 0.01))
    verdict.confirmed, verdict.lemmas, verdict.reason
    ```
    """

    confirmed: bool
    kind: str
    statement: str
    """The statement that was confirmed, made anew from the claims that were checked."""
    lemmas: tuple[str, ...]
    reason: str = ""


def check(certificate: Any) -> Verdict:
    """Confirm or reject a certificate: a path to its JSON file, its plain values, or the object.

    All of its claims are proved again, and its statement must be the one that they make; what it says besides
    (`assumes`, `enclosures`) is for people. Seconds for most; minutes for complete lists over an interval of beta.

    ```python
    verdict = attnflow.certify.check("docs/certificates/unstable-modes.json")
    verdict.confirmed, verdict.statement
    ```
    """
    try:
        from mpmath import iv
    except ImportError:
        raise MissingExtra("the checker needs mpmath; install `attnflow[certify]`.") from None
    from attnflow.certify.checking.integers import Rejected, need
    from attnflow.certify.checking.reading import parts, read
    from attnflow.certify.checking.words import statement

    text = _text(certificate)
    before, kind = iv.prec, ""
    iv.prec = BITS
    try:
        values = read(text)
        kind, claims, data = parts(values)
        said = statement(kind, claims, data)
        need(values["statement"] == said, f"the statement of the file is not what its claims say: {said}")
        return Verdict(True, kind, said, tuple(_confirm(kind, claims, data)))
    except Rejected as error:
        return Verdict(False, kind, "", (), str(error))
    except Exception as error:  # whatever goes wrong is no confirmation
        return Verdict(False, kind, "", (), f"the certificate is malformed ({type(error).__name__}: {error})")
    finally:
        iv.prec = before


def _text(certificate: Any) -> str:
    """The certificate as JSON; what is checked is the text, not objects that may change while they are read."""
    try:
        if isinstance(certificate, str | Path):
            text = read_text(certificate)
            parse_json(text)
            return text
        return json.dumps(certificate.to_json() if hasattr(certificate, "to_json") else certificate)
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise InvalidInput(f"`certificate` is {str(certificate)[:200]!r}, which cannot be read ({error}).") from None


def _confirm(kind: str, claims: dict[str, Any], data: dict[str, Any]) -> list[str]:
    """The lemmas that were used, or Rejected."""
    from attnflow.certify.checking import flows, forms, lists, orbits

    checkers = {
        "equilibrium": orbits.check_equilibrium,
        "branch": orbits.check_branch,
        "circle list": lists.check_list,
        "circle flow": flows.check_flow,
        "consensus": flows.check_consensus,
        "dominant degree": forms.check_degree,
        "unstable modes": forms.check_unstable,
        "circle modes": forms.check_modes,
        "stay apart": forms.check_apart,
    }
    return checkers[kind](claims, data)
