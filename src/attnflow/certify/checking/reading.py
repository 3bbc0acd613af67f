"""What a certificate looks like: strict JSON, and for every kind its claims and data, name by name.

A proof is about what is written, so that nothing is guessed: names that are missing, doubled or not known, texts and
truth values in the place of numbers, NaN, infinity and integers that no float holds are rejected.
"""

import json
import math
from collections.abc import Callable
from typing import Any

from attnflow.certify.checking.integers import Rejected, need

Shape = Callable[[str, Any], None]
"""Rejects a value that does not fit; the text is the name of its place."""


def read(text: str) -> Any:
    """The values of a JSON text; a name that stands twice, NaN and infinity are rejected."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        need(len(set(names)) == len(names), "a name stands twice in an object of the file")
        return dict(pairs)

    def constant(name: str) -> Any:
        raise Rejected(f"{name} is no number")

    return json.loads(text, object_pairs_hook=once, parse_constant=constant)


def number(name: str, x: Any) -> None:
    """A finite float, or an integer that a float holds exactly."""
    fits = math.isfinite(x) if type(x) is float else type(x) is int and abs(x) <= 2**53
    need(fits, f"{name} is {str(x)[:40]!r}, not a finite number")


def whole(name: str, x: Any) -> None:
    """An integer; true and 1.0 are none."""
    need(type(x) is int and abs(x) <= 2**53, f"{name} is {str(x)[:40]!r}, not an integer")


def interval(name: str, x: Any) -> None:
    """Two numbers, the smaller first."""
    need(type(x) is list and len(x) == 2, f"{name} is no interval")
    for end in x:
        number(name, end)
    need(x[0] <= x[1], f"{name} is reversed")


def model(name: str, x: Any) -> None:
    """The clock of a flow."""
    need(x in ("SA", "USA0"), f"{name} is neither SA nor USA0")


def many(shape: Shape) -> Shape:
    """A list of at least one value."""

    def check(name: str, x: Any) -> None:
        need(type(x) is list and len(x) > 0, f"{name} is no list with entries")
        for k, one in enumerate(x):
            shape(f"{name}[{k}]", one)

    return check


def some(shape: Shape) -> Shape:
    """A list, which may be empty."""
    return lambda name, x: None if x == [] else many(shape)(name, x)


def maybe(shape: Shape) -> Shape:
    """A value, or nothing."""
    return lambda name, x: None if x is None else shape(name, x)


def exactly(**shapes: Shape) -> Shape:
    """An object with these names and no others."""

    def check(name: str, x: Any) -> None:
        need(type(x) is dict, f"{name} is no object")
        odd = sorted({*x} ^ {*shapes})
        need(not odd, f"{name} should have {', '.join(sorted(shapes))}; {', '.join(odd)} is missing or too much")
        for key, shape in shapes.items():
            shape(f"{name}.{key}", x[key])

    return check


NUMBERS, TABLE = many(number), many(many(number))
BOX = exactly(beta=interval, middle=number, radius=number, centre=maybe(NUMBERS), slope=maybe(NUMBERS))
PLACES = exactly(
    tokens=TABLE,
    masses=NUMBERS,
    frames=many(TABLE),
    slices=some(some(number)),
    planes=some(many(whole)),
    boxes=many(BOX),
)
COUNTS = {"beta": interval, "unstable": whole, "stable": whole, "rotations": whole}
CLASS = exactly(sizes=many(whole), unstable=whole, labelled=whole)
SLICE = exactly(beta=interval, roots=many(NUMBERS), radii=NUMBERS)
PATH = exactly(angles=NUMBERS, masses=NUMBERS, times=NUMBERS, order=whole)
START = {"beta": interval, "model": model, "ball": number}

KINDS: dict[str, tuple[Shape, Shape]] = {
    "equilibrium": (exactly(**COUNTS, distance=number), PLACES),
    "branch": (exactly(**COUNTS), PLACES),
    "circle list": (exactly(n=whole, beta=interval, classes=many(CLASS), euler=whole), exactly(slices=many(SLICE))),
    "circle flow": (exactly(**START, until=number, end=NUMBERS, radius=number), PATH),
    "consensus": (exactly(**START, time=number), PATH),
    "dominant degree": (exactly(beta=interval, d=whole, degree=whole), exactly()),
    "unstable modes": (exactly(beta=interval, d=whole, noise=number, degree=whole, modes=whole), exactly()),
    "circle modes": (exactly(beta=interval, modes=whole), exactly(angles=NUMBERS, start=number)),
    "stay apart": (
        exactly(beta=interval, model=model, gap=number, time=number),
        exactly(tokens=TABLE, masses=NUMBERS, groups=many(whole), centres=TABLE),
    ),
}
"""For every kind the shapes of its claims and of its data."""


def parts(certificate: Any) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """(kind, claims, data) of a certificate whose values all have their shapes."""
    need(type(certificate) is dict, "the file is no object of JSON")
    need(type(certificate.get("format")) is int and certificate["format"] == 1, "the format is not 1")
    known = {"format", "kind", "statement", "assumes", "claims", "data", "enclosures"}
    need({*certificate} == known, f"the names are {sorted(certificate)}, not {sorted(known)}")
    kind, rest = certificate["kind"], (certificate["assumes"], certificate["enclosures"])
    need(type(rest[0]) is list and type(rest[1]) is dict, "assumes is no list, or enclosures no object")
    need(type(kind) is str and kind in KINDS, f"the kind {kind!r} is not known")
    for name, shape in zip(("claims", "data"), KINDS[kind], strict=True):
        shape(name, certificate[name])
    return kind, certificate["claims"], certificate["data"]
