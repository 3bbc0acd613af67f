"""Complete lists of the equilibria of n equal tokens on the circle, for one beta or for all beta of an interval."""

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np

from attnflow.certify.balls import flint, largest, precision, span
from attnflow.certify.certificates import BALLS, FLOATS, Undecided, certified
from attnflow.certify.exclusion import search
from attnflow.certify.gap_roots import Root, proposals, prove_root
from attnflow.certify.gap_tables import SIDE, Tables
from attnflow.errors import InvalidInput

DEEPEST = {3: 13, 4: 12, 5: 12, 6: 11}
ROUNDS, MANY = 4, 20_000
LARGEST = 300.0
"""Beyond, e^(-2 beta) sin s comes near to the smallest floats, where relative bounds of rounding do not hold."""
SCOUT = {3: 6, 4: 6, 5: 5, 6: 5}
ASSUMES = (
    FLOATS,
    BALLS,
    "Krawczyk's operator: a box mapped into its interior holds exactly one zero [neumaier1990interval]",
    "tokens in an open half circle are in equilibrium only at consensus: the outermost are pulled inwards",
)


def circle_equilibria(*, n: int, beta: float | tuple[float, float], least: float = 1e-3) -> Any:
    """A `Certificate` that lists all equilibria of n equal tokens on the circle up to symmetry, or `Undecided`.

    n is 3, 4, 5 or 6; `beta` is one number or an interval, which is cut into slices no shorter than `least`.
    Configurations count once that differ by rotations, reflections and permutations. The claims are the classes:
    cluster sizes around the circle, unstable directions, and how many labelled configurations (up to rotation) they
    stand for. The list for n = 3 is complete on every sphere, as equilibria of n tokens span at most n - 1
    dimensions. Seconds for one beta, a minute or two for a long interval.

    In equilibrium sum_j e^{-beta (1 - cos(theta_j - theta_i))} sin(theta_j - theta_i) = 0 for all i. The claim "euler"
    is sum (-1)^index over labelled configurations, which is 0 on a torus.

    ```python
    found = attnflow.certify.circle_equilibria(n=3, beta=(1.0, 1.25))
    found.statement, [(one["sizes"], one["unstable"]) for one in found.claims["classes"]]
    ```
    """
    if type(n) is not int or n not in DEEPEST:
        raise InvalidInput(f"`n` is {n!r}; complete lists are for 3, 4, 5 or 6 tokens.")
    low, high = span("beta", beta)
    if max(abs(low), abs(high)) > LARGEST:
        return Undecided("forces as small as e^(-2 beta) are too near to the end of floats", f"beta in [{low}, {high}]")
    flint()
    slices: list[dict[str, Any]] = []
    classes: list[dict[str, Any]] = []
    at, step, looked = low, min(high - low, 0.25), 0
    while not slices or at < high:
        end = min(at + step, high) if high > low else high
        found = prove_list(n, at, end, [np.array(root) for root in slices[-1]["roots"]] if slices else [])
        if isinstance(found, Undecided) and end > at and step / 2 >= least:
            step /= 2
            continue
        if isinstance(found, Undecided):
            return found
        roots, here, cubes = found
        looked += cubes
        if slices and here != classes:
            return Undecided("the list changes", f"beta = {at!r}")
        classes = here
        slices.append(
            {
                "beta": [at, end],
                "roots": [[float(c) for c in root.centre] for root in roots],
                "radii": [root.radius for root in roots],
            }
        )
        at, step = end, step * 1.5
    claims = {
        "n": n,
        "beta": [low, high],
        "classes": classes,
        "euler": sum(one["labelled"] * (-1) ** one["unstable"] for one in classes),
    }
    enclosures = {"cubes looked at": looked, "slices": len(slices)}
    return certified("circle list", ASSUMES, claims, {"slices": slices}, enclosures)


def prove_list(n: int, low: float, high: float, guesses: list[np.ndarray]) -> Any:
    """(roots, classes, cubes looked at) for all beta of a slice, or Undecided; zeros are sought near the guesses
    first.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite decides nothing
        return _prove_list(n, Tables(low, high), guesses)


def _prove_list(n: int, tables: Tables, guesses: list[np.ndarray]) -> Any:
    low, high = tables.low, tables.high
    where = f"beta in [{low!r}, {high!r}]"
    looked = 0
    if not guesses:
        left, level, looked = search(n, Tables(tables.middle, tables.middle), (), SCOUT[n])
        guesses = list((left + 0.5) * (SIDE / 2**level))
    roots: list[Root] = []
    for _ in range(ROUNDS):  # zeros have boxes, boxes remove cubes, cubes that are left propose zeros
        before = len(roots)
        for centre in proposals(guesses, tables.middle):
            if any(np.abs(centre - root.centre).max() < 1e-6 for root in roots):
                continue
            root = prove_root(_rounded(centre, high > low), tables)
            if isinstance(root, str):
                return Undecided(f"a zero was not enclosed: {root}", f"{where}, gaps {np.round(centre, 6).tolist()}")
            roots.append(root)
        left, level, cubes = search(n, tables, [(root.centre, root.radius) for root in roots], DEEPEST[n])
        looked += cubes
        guesses = list((left + 0.5) * (SIDE / 2**level))
        if not guesses or len(roots) == before or len(guesses) > MANY:
            break
    if guesses:
        gaps = np.round(guesses[0], 4).tolist()
        return Undecided(
            f"{len(guesses)} cubes of gaps are neither empty nor near a known zero", f"{where}, gaps {gaps}"
        )
    with precision(128):
        classes = classify(n, roots)
    if isinstance(classes, str):
        return Undecided(classes, where)
    return roots, classes, looked


def _rounded(centre: np.ndarray, coarse: bool) -> np.ndarray:
    """Fewer digits for slices of beta, where the zero moves anyway: shorter files."""
    return np.round(centre, 7) if coarse else centre


def classify(n: int, roots: list[Root]) -> list[dict[str, Any]] | str:
    """The classes of roots up to the dihedral group, with consensus; or what could not be told apart.

    The image of a zero under a cyclic shift or a reflection of the n gaps is a zero. If it lies in the box of a root
    it is that zero; if its enclosure misses that of the root it is another.
    """
    arb = flint().arb
    two_pi = 2 * arb.pi()
    gaps = []
    for root in roots:
        parts = [
            arb(0) if z else arb(float(c)) + arb(0, root.small) for c, z in zip(root.centre, root.zero, strict=True)
        ]
        gaps.append([*parts, two_pi - sum(parts, arb(0))])
        if not gaps[-1][-1] > 0:
            return "the last gap may vanish"
    label = list(range(len(roots)))
    for a in range(len(roots)):
        for b in range(a + 1):
            for turn, mirror in _dihedral(n):
                image = _image(gaps[a], turn, mirror)
                same = _same(image, roots[b], gaps[b])
                if same is None:
                    return f"two zeros may be images of each other: {roots[a].centre} and {roots[b].centre}"
                if same:
                    label = [label[b] if one == label[a] else one for one in label]
    found = [{"sizes": [n], "unstable": 0, "labelled": 1}]
    for first in sorted(set(label)):
        root, circle = roots[first], gaps[first]
        turns = [same for turn in range(n) if (same := _same(_image(circle, turn, False), root, circle))]
        mirrored = any(_same(_image(circle, turn, True), root, circle) for turn in range(n))
        sizes = _sizes([*root.zero, False])
        # shifts that keep the configuration; with clusters, only shifts of whole clusters can
        alike = math.prod(map(math.factorial, sizes)) * len(turns)
        labelled = Fraction(math.factorial(n) * (1 if mirrored else 2), alike)
        if labelled.denominator != 1:
            return "the symmetry of a configuration does not fit its clusters"
        found.append({"sizes": canonical(sizes), "unstable": root.unstable, "labelled": int(labelled)})
    return sorted(found, key=lambda one: (len(one["sizes"]), one["sizes"], one["unstable"]))


def canonical(sizes: list[int]) -> list[int]:
    """The largest of the shifts and reflections of a cyclic arrangement of cluster sizes."""
    every = [one[k:] + one[:k] for one in (sizes, sizes[::-1]) for k in range(len(sizes))]
    return max(every)


def _sizes(zero: list[bool]) -> list[int]:
    """Cluster sizes around the circle, from which of the n gaps vanish; the last does not."""
    sizes, count = [], 1
    for gone in zero:
        if gone:
            count += 1
        else:
            sizes.append(count)
            count = 1
    return sizes


def _dihedral(n: int) -> list[tuple[int, bool]]:
    return [(turn, mirror) for turn in range(n) for mirror in (False, True)]


def _image(gaps: list[Any], turn: int, mirror: bool) -> list[Any]:
    moved = gaps[turn:] + gaps[:turn]
    return moved[::-1] if mirror else moved


def _same(image: list[Any], root: Root, gaps: list[Any]) -> bool | None:
    """Whether an image of a zero is the zero of this root; None in doubt."""
    arb = flint().arb
    if all(largest(a - arb(float(c))) < root.radius for a, c in zip(image[:-1], root.centre, strict=True)):
        return True
    return None if all(a.overlaps(b) for a, b in zip(image, gaps, strict=True)) else False


def bracelets(n: int) -> int:
    """The number of cyclic arrangements of cluster sizes of n tokens, up to reflection: binary bracelets less one."""
    seen: Counter[tuple[int, ...]] = Counter()
    for bits in range(1, 2**n):
        word = [bool(bits >> k & 1) for k in range(n)]
        turned = word.index(True) + 1
        sizes = _sizes([not one for one in word[turned:] + word[:turned]])
        seen[tuple(canonical(sizes))] += 1
    return len(seen)
