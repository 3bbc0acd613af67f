"""Lists against arrangements, topology and Newton's method; indices against closed forms and floats."""

import itertools
import math

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments import NUMERICS, Claim, consequence, observed
from attnflow.experiments.kit import Rows
from attnflow_gallery.certified_equilibria.simulate import NEUTRAL, Parameters, name

EXACT = "integers"
PATTERN = observed("One equilibrium for each arrangement")
MISSING = consequence("Below the threshold")
TOPOLOGY = consequence("Counting with topology")
RINGS = consequence("Indices of rings")
OPTIMA = consequence("Universal optima")
UNIVERSAL = ("tetrahedron", "octahedron", "icosahedron")


def arrangements(n: int) -> set[str]:
    """Cyclic arrangements of cluster sizes up to reflection."""
    found = set()
    for k in range(1, n + 1):
        for cuts in itertools.combinations(range(1, n), k - 1):
            sizes = [b - a for a, b in itertools.pairwise((0, *cuts, n))]
            every = [one[k:] + one[:k] for one in (sizes, sizes[::-1]) for k in range(len(sizes))]
            found.add("+".join(map(str, max(every))))
    return found


def threshold(n: int) -> float:
    """The beta above which (n-2)+1+1 exists, for n > 3."""
    return 0.5 * math.log((n - 2) / 2)


def case(part: xr.Dataset) -> str:
    """A list in words."""
    n, low, high = (part.attrs[key] for key in ("n", "low", "high"))
    return f"n = {n}, β = {low:g}" if low == high else f"n = {n}, β from {low:g} to {high:g}"


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Arrangements, indices, topology, Newton's method, the checker, and configurations on S^2."""
    parts = [data[name(n, b, b)] for n, b in parameters.lists] + [data[name(*one)] for one in parameters.intervals]
    above = [part for part in parts if part.attrs["low"] > threshold(part.attrs["n"])]
    below = [part for part in parts if part.attrs["low"] <= threshold(part.attrs["n"])]
    lists, missing, index, euler, labelled, newton = Rows(), Rows(), Rows(), Rows(), Rows(), Rows()
    for part in above:
        sizes = part["sizes"].values.tolist()
        lists.add(0, len(set(sizes) ^ arrangements(part.attrs["n"])) + len(sizes) - len(set(sizes)), 0, case(part))
        clusters = np.array([one.count("+") + 1 for one in sizes])
        index.add(0, float(np.sum(part["index"].values != clusters - 1)), 0, case(part))
        _add_labelled(labelled, part, clusters)
    for part in below:
        n = part.attrs["n"]
        expected = arrangements(n) - {f"{n - 2}+1+1"}
        missing.add(0, len(set(part["sizes"].values.tolist()) ^ expected), 0, case(part))
    for part in parts:
        signs = np.where(part["index"].values % 2, -1, 1)
        euler.add(0, float(np.sum(signs * part["labelled"].values)) if part.attrs["proved"] else 1.0, 0, case(part))
        if "found_sizes" in part:
            proved = set(zip(part["sizes"].values.tolist(), part["index"].values.tolist(), strict=True))
            found = set(zip(part["found_sizes"].values.tolist(), part["found_index"].values.tolist(), strict=True))
            newton.add(0, len(proved ^ found), 0, case(part))
    return [
        lists.equal("arrangements of cluster sizes without a class, and classes beyond them", EXACT, origin=PATTERN),
        index.equal("classes whose index is not the number of clusters - 1", EXACT, origin=PATTERN),
        missing.equal("below the threshold: all arrangements but (n-2)+1+1 have a class", EXACT, origin=MISSING),
        euler.equal("labelled equilibria modulo rotations, each with (-1)^index, add up to 0", EXACT, origin=TOPOLOGY),
        labelled.equal("labelled equilibria with k clusters: (k-1)! S(n, k)", EXACT, origin=TOPOLOGY),
        newton.equal("classes that Newton's method misses, or finds beyond the proved ones", EXACT, origin=NUMERICS),
        *_solids(parts, data["solids"]),
    ]


def _add_labelled(rows: Rows, part: xr.Dataset, clusters: np.ndarray) -> None:
    n = part.attrs["n"]
    for k in range(1, n + 1):
        stirling = sum((-1) ** (k - j) * math.comb(k, j) * j**n for j in range(k + 1)) // math.factorial(k)
        count = int(part["labelled"].values[clusters == k].sum())
        rows.add(math.factorial(k - 1) * stirling, count, 0, f"{case(part)}, {k} clusters")


def _solids(parts: list[xr.Dataset], solids: xr.Dataset) -> list[Claim]:
    rings, optima, floats = Rows(), Rows(), Rows()
    rows = [{key: solids[key].values[k].item() for key in solids} for k in range(solids.sizes["case"])]
    for row in rows:
        words = f"{row['solid']}, β = {row['beta']:g}"
        if row["solid"].endswith("-gon"):
            rates = theory.landscape.ring_spectrum(n=row["n"], d=3, beta=row["beta"])
            rings.add(int(np.sum(rates > NEUTRAL)), row["unstable"], 0, words)
        if row["solid"] in UNIVERSAL:
            optima.add(0, row["stable"], 0, words)
        floats.add(row["found"], row["unstable"], 0, words)
        floats.add(row["found_stable"], row["stable"], 0, words)
    asked = sum(part.attrs["asked"] for part in parts) + len(rows)
    confirmed = sum(part.attrs["confirmed"] for part in parts) + int(solids["confirmed"].values.sum())
    every = all(part.attrs["proved"] for part in parts) and confirmed == asked
    detail = f"{confirmed} of {asked} confirmed, {sum(p.attrs['proved'] for p in parts)} of {len(parts)} lists proved"
    return [
        rings.equal("S^2: index of rings", "integers; rates of the closed form are above 1e-7", origin=RINGS),
        optima.equal("S^2: decaying directions of universal optima", EXACT, origin=OPTIMA),
        floats.equal(
            "S^2: proved numbers of growing and decaying directions are those of floats", EXACT, origin=NUMERICS
        ),
        Claim.true(
            "every list is proved, and the checker confirms what it is asked", every, detail, "counted", origin=NUMERICS
        ),
    ]
