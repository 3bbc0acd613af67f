"""The independent checker: it reads a certificate and proves its statement again, with mpmath.iv and exact integers.

It shares no code with the search and needs no FLINT. NumPy gives it guesses (inverses, eigenvectors), which are not
trusted. Any doubt, and any error on the way, rejects.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnflow.errors import InvalidInput, MissingExtra

BITS = 106


@dataclass(frozen=True)
class Verdict:
    """What the checker found: whether it confirmed the statement, the lemmas it went through, or why it rejects."""

    confirmed: bool
    kind: str
    statement: str
    """The statement that was confirmed, made anew from the claims that were checked."""
    lemmas: tuple[str, ...]
    reason: str = ""


def check(certificate: Any) -> Verdict:
    """Confirm or reject a certificate: a path to its JSON file, its plain values, or the object.

    Seconds for most; minutes for complete lists over an interval of beta.
    """
    if isinstance(certificate, str | Path):
        try:
            certificate = json.loads(Path(certificate).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise InvalidInput(f"`certificate` is {str(certificate)!r}, which cannot be read ({error}).") from None
    elif hasattr(certificate, "to_json"):
        certificate = json.loads(json.dumps(certificate.to_json()))
    try:
        from mpmath import iv
    except ImportError:
        raise MissingExtra("the checker needs mpmath; install `attnflow[certify]`.") from None
    from attnflow.certify.checking.integers import Rejected, need

    before, kind = iv.prec, ""
    iv.prec = BITS
    try:
        need(isinstance(certificate, dict), "the file is no object of JSON")
        kind = str(certificate.get("kind"))
        need(certificate.get("format") == 1, "the format is not 1")
        claims, data = certificate["claims"], certificate["data"]
        lemmas = _confirm(kind, claims, data)
        return Verdict(True, kind, _words(kind, claims, data), tuple(lemmas))
    except Rejected as error:
        return Verdict(False, kind, "", (), str(error))
    except Exception as error:  # malformed values: whatever goes wrong is no confirmation
        return Verdict(False, kind, "", (), f"the certificate is malformed ({type(error).__name__}: {error})")
    finally:
        iv.prec = before


def _confirm(kind: str, claims: dict[str, Any], data: dict[str, Any]) -> list[str]:
    from attnflow.certify.checking.integers import Rejected

    if kind in ("equilibrium", "branch"):
        from attnflow.certify.checking.orbits import check_orbit

        return check_orbit(claims, data, kind == "equilibrium")
    if kind == "circle list":
        from attnflow.certify.checking.lists import check_list

        return check_list(claims, data)
    from attnflow.certify.checking import forms

    others = {
        "dominant degree": forms.check_degree,
        "unstable modes": forms.check_unstable,
        "circle modes": forms.check_modes,
        "stay apart": forms.check_apart,
    }
    if kind in others:
        return others[kind](claims, data)
    raise Rejected(f"the kind {kind!r} is not known")


def _words(kind: str, claims: dict[str, Any], data: dict[str, Any]) -> str:
    """The statement in words, from claims and data alone."""
    if kind == "circle list":
        low, high = claims["beta"]
        names = ", ".join("+".join(map(str, c["sizes"])) + f" (index {c['unstable']})" for c in claims["classes"])
        many = f"exactly {len(claims['classes'])} classes of equilibria of {claims['n']} equal tokens on the circle"
        return f"For every beta in [{low!r}, {high!r}]: {many}: {names}."
    if kind not in ("equilibrium", "branch"):
        return f"{kind}: " + ", ".join(f"{name} = {value}" for name, value in claims.items())
    n, d = len(data["tokens"]), len(data["tokens"][0])
    low, high = claims["beta"]
    counts = "{unstable} unstable, {stable} stable and {rotations} rotational directions".format(**claims)
    if kind == "branch":
        return (
            f"One smooth branch of equilibria of {n} tokens on S^{d - 1} for all beta in [{low!r}, {high!r}]: {counts}."
        )
    near = f"within {claims['distance']:.3g} of the given tokens"
    return f"Exactly one orbit of equilibria of {n} tokens on S^{d - 1} at beta = {low!r} comes {near}: {counts}."
