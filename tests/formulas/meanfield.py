"""Oracles of `meanfield`."""

import functools

import mpmath as mp
import numpy as np

import attnflow as af
from attnflow import meanfield as mf
from tests.formulas.measures import as_tokens, exact, measure
from tests.formulas.oracle import oracle

PROCEDURES = {
    "as_model": "reads the numbers of the equation off a field",
    "bifurcation": "solves for stationary states by Newton's method, at two amplitudes",
    "branch": "follows stationary states step by step",
    "carried_noise": "reads the frames of `fluctuations`",
    "evolve": "evolves a density",
    "evolve_cells": "evolves the masses of cells",
    "evolve_placed": "evolves a density with places",
    "expected_distance": "reads the frames of `fluctuations` and draws samples",
    "expected_observable": "reads the frames of `fluctuations`",
    "fluctuations": "evolves a density and the tangent flow along it",
    "from_function": "builds a density from its values on the grid of a basis",
    "from_tokens": "builds a density",
    "hand_over": "makes tokens, at random directions for d > 3",
    "linearised": "builds a matrix by derivatives of the rate of a model and diagonalises it",
    "linearised_distance": "reads the frames of `fluctuations`",
    "mixture": "builds a density",
    "perturbed": "builds a density",
    "placed": "builds a density with places",
    "placed_pieces": "builds a density with places",
    "quadrature": "makes tokens from the grid of a basis",
    "quiet": "draws tokens",
    "sample": "draws tokens",
    "stability": "builds and diagonalises matrices, sector by sector, until nothing grows",
    "stationary": "runs Newton's method",
    "uniform": "builds a density",
    "von_mises_fisher": "builds a density",
    "watson": "builds a density",
}


def multiplier(beta, d, k):
    """Funk and Hecke's integral, as a Bessel function."""
    beta, half = mp.mpf(beta), mp.mpf(d) / 2
    if beta == 0:
        return mp.mpf(k == 0)
    return mp.gamma(half) * (2 / beta) ** (half - 1) * mp.exp(-beta) * mp.besseli(k + half - 1, beta)


def betas(rng):
    return float(rng.choice([0.0, 1e-300, 1e-12, 1e-3, 0.5, 9.0, 1e3, 1e6, 1e10, 10 ** rng.uniform(-2, 3)]))


@oracle(
    "meanfield.multipliers",
    draws={"beta": betas, "d": lambda rng: int(rng.choice([2, 513])), "degree": lambda rng: 70},
    cases=({"beta": 1e10, "d": 3, "degree": 0},),
    result=lambda multipliers: [multipliers[k] for k in (0, 1, 2, 5, 31, 70) if k < len(multipliers)],
    quick=8,
)
def multipliers(beta, d, degree):
    return [multiplier(beta, d, k) for k in (0, 1, 2, 5, 31, 70) if k <= degree]


@oracle(
    "meanfield.needed_degree",
    draws={
        "beta": lambda rng: float(rng.choice([0.0, 1e-10, 10 ** rng.uniform(-3, 3)])),
        "d": lambda rng: int(rng.choice([2, 3, 4, 7, 64, 1000])),
        "tol": lambda rng: float(10 ** -rng.choice([0.1, 1, 3, 8, 16, 100, 240])),
    },
    count=16,
)
def needed_degree(beta, d, tol):
    """Degrees are left out from the last one on, as long as what they carry is at most `tol`."""
    with mp.workdps(300):
        weights, beta = [], mp.mpf(beta)
        while not weights or weights[-1] > mp.mpf(tol) * mp.mpf(10) ** -30 or len(weights) < beta / 2:
            k, size = len(weights), (mp.binomial(len(weights) + d - 1, d - 1))
            size -= mp.binomial(k + d - 3, d - 1) if k > 1 else 0
            weights.append(size * multiplier(beta, d, k))
        degrees, beyond = len(weights), mp.mpf(0)
        while degrees > 1 and beyond + weights[degrees - 1] <= tol:
            beyond += weights[degrees - 1]
            degrees -= 1
        return degrees - 1


@oracle(
    "meanfield.check_degree",
    draws={
        "basis": lambda rng: {"kind": "circle", "d": 2, "degree": int(rng.choice([1, 6, 40]))},
        "beta": lambda rng: float(rng.choice([0.0, 1e-10, 10 ** rng.uniform(-2, 1.5)])),
        "tol": lambda rng: float(10 ** -rng.choice([1.0, 3, 8, 16, 100])),
    },
    arguments=lambda description: arguments_from(description),
    result=lambda nothing: [],
    count=16,
)
def check_degree(basis, beta, tol):
    """Refused where the degrees beyond the basis carry more."""
    return None if needed_degree(beta, basis["d"], tol) > basis["degree"] else []


def arguments_from(description):
    """Arguments with what they are in the place of what JSON keeps of them."""
    return {key: BUILDERS[key](value) if key in BUILDERS else value for key, value in description.items()}


def as_basis(description):
    if description["kind"] == "zonal":
        return mf.ZonalBasis(description["d"], description["degree"])
    return (
        mf.CircleBasis(description["degree"])
        if description["kind"] == "circle"
        else mf.SphereBasis(description["degree"])
    )


def as_density(description):
    """1 + sum a h with [degree, order, a] of harmonics h of sup norm 1."""
    basis = as_basis(description["basis"])
    waves = sum(a * basis.harmonic(degree, order) for degree, order, a in description["waves"])
    return mf.Density(basis, mf.uniform(basis).coefficients + waves)


def as_cells(description):
    return (
        mf.zonal_cells(description["d"], description["count"])
        if description["kind"] == "zonal"
        else mf.circle_cells(description["count"])
    )


def as_field(description):
    field = af.Attention(description["beta"], normaliser=description["model"])
    return (
        field + af.Potential([[1.0, 0.5]], [0.2], [description["weight"]], "tanh") if description["weight"] else field
    )


BUILDERS = {"basis": as_basis, "density": as_density, "cells": as_cells, "field": as_field, "tokens": as_tokens}


def any_basis(rng, kinds=("circle", "sphere", "zonal"), largest=12):
    kind = str(rng.choice(kinds))
    d = {"circle": 2, "sphere": 3}.get(kind) or int(rng.choice([2, 3, 5]))
    return {"kind": kind, "d": d, "degree": int(rng.choice([3, largest]))}


def waves(rng, basis, count=2):
    """At most `count` waves whose sup norms sum to at most 1; sines on the circle as well."""
    count = int(rng.integers(count + 1))
    sizes = rng.dirichlet(np.ones(count)) * rng.choice([1e-9, 0.5, 1.0]) if count else []
    orders = rng.choice([0, -1] if basis["kind"] == "circle" else [0], count)
    degrees = 1 + rng.choice(basis["degree"], count, replace=False)
    return [[int(k), int(order), float(a)] for k, order, a in zip(degrees, orders, sizes, strict=True)]


def any_density(rng, **options):
    count = options.pop("count", 2)
    basis = any_basis(rng, **options)
    return {"basis": basis, "waves": waves(rng, basis, count)}


def number_of_harmonics(k, d):
    return int(mp.binomial(k + d - 1, d - 1) - (mp.binomial(k + d - 3, d - 1) if k > 1 else 0))


def gegenbauer(n, order, s):
    """C_n of this order, by its powers of s."""
    with mp.workdps(60 + n):
        powers = range(n // 2 + 1)
        terms = [(-1) ** j * mp.rf(order, n - j) / mp.factorial(j) / mp.factorial(n - 2 * j) for j in powers]
        return mp.fsum(term * (2 * s) ** (n - 2 * j) for j, term in zip(powers, terms, strict=True))


def legendre(k, d, s):
    """P_k in dimension d, 1 at s = 1."""
    if d == 2:
        return mp.cos(k * mp.acos(s))
    return gegenbauer(k, mp.mpf(d) / 2 - 1, s) / mp.binomial(k + d - 3, k)


def surface(k, m, x):
    """The cosine and the sine of order m and degree k on S^2, of mean square 1: derivatives of Legendre's P_k."""
    size = mp.sqrt((2 if m else 1) * (2 * k + 1) * mp.factorial(k - m) / mp.factorial(k + m)) * mp.fac2(2 * m - 1)
    turn = mp.mpc(x[0], x[1]) ** m if m else mp.mpc(1)
    return size * gegenbauer(k - m, m + mp.mpf(1) / 2, x[2]) * turn


def harmonics(basis, x):
    """All harmonics of a basis at a unit vector, as nested lists; 0 where there is no coefficient."""
    degrees = range(basis["degree"] + 1)
    if basis["kind"] == "circle":
        powers = [mp.sqrt(2) * mp.mpc(*x) ** k for k in degrees[1:]]
        return [mp.mpf(1), *(z.real for z in powers), *(z.imag for z in powers)]
    if basis["kind"] == "zonal":
        return [mp.sqrt(number_of_harmonics(k, basis["d"])) * legendre(k, basis["d"], x[-1]) for k in degrees]
    table = [[surface(k, m, x) if m <= k else mp.mpc(0) for k in degrees] for m in degrees]
    return [[[z.real for z in row] for row in table], [[z.imag for z in row] for row in table]]


def flat(nested):
    return [entry for part in nested for entry in flat(part)] if isinstance(nested, list) else [nested]


def degrees_of(basis):
    """The degree of every coefficient, flat."""
    k = list(range(basis["degree"] + 1))
    return {"circle": k + k[1:], "zonal": k, "sphere": k * (2 * len(k))}[basis["kind"]]


def atoms(basis, tokens):
    """sum_i m_i Y(x_i), flat."""
    rows, masses = exact(tokens)
    table = [flat(harmonics(basis, x)) for x in rows]
    return [mp.fsum(m * row[j] for m, row in zip(masses, table, strict=True)) for j in range(len(table[0]))]


ATOMS = {
    "draws": {"basis": any_basis, "tokens": lambda rng: measure(rng, most=4, largest=5)},
    "relation": lambda a: a["basis"]["d"] == len(a["tokens"]["positions"][0]),
    "arguments": arguments_from,
    "count": 16,
}


@oracle("meanfield.empirical", **ATOMS)
def empirical(basis, tokens):
    return atoms(basis, tokens)


@oracle(
    "meanfield.observable_distance",
    draws={
        "tokens": ATOMS["draws"]["tokens"],
        "density": any_density,
        "degree": lambda rng: int(rng.choice([1, 4, 12])),
    },
    relation=lambda a: a["density"]["basis"]["d"] == len(a["tokens"]["positions"][0]),
    arguments=arguments_from,
    count=14,
    fresh=2,
    quick=6,
)
def observable_distance(tokens, density, degree):
    basis = density["basis"] | {"degree": degree}
    d, differences = basis["d"], atoms(basis, tokens)
    for k, order, a in density["waves"]:
        if k <= degree:
            place = k + degree if order < 0 else k
            differences[place] -= a / mp.sqrt(number_of_harmonics(k, d))
    pairs = zip(degrees_of(basis), differences, strict=True)
    return mp.sqrt(mp.fsum(c**2 / (k * (k + d - 2)) for k, c in pairs if k))


@oracle(
    "meanfield.quadrature_error",
    draws={"density": lambda rng: any_density(rng, kinds=("circle",), largest=400)},
    arguments=arguments_from,
    cases=({"density": {"basis": {"kind": "circle", "d": 2, "degree": 400}, "waves": [[400, -1, 1.0]]}, "grid": 2},),
)
def quadrature_error(density, grid):
    h = 2 * mp.pi / grid
    return mp.fsum(mp.mpf(a) * (h**2 * k / 12 + h**4 * mp.mpf(k) ** 3 / 384) for k, _, a in density["waves"])


@functools.cache
def turned_surface(degree):
    """(places in the flat array, values at points, derivatives): of -(e_i x x) . grad for every harmonic of S^2."""
    basis, places = {"kind": "sphere", "degree": degree}, []
    for part in range(2):
        for m in range(part, degree + 1):
            places += [(part * (degree + 1) + m) * (degree + 1) + k for k in range(max(m, 1), degree + 1)]
    rng = np.random.default_rng(5)
    points = [[mp.mpf(c) for c in x] for x in rng.standard_normal((len(places), 3))]
    points = [[c / mp.norm(x) for c in x] for x in points]
    values = mp.matrix([[flat(harmonics(basis, x))[j] for j in places] for x in points])
    slopes = []
    for axis in range(3):
        i, j = (axis + 1) % 3, (axis + 2) % 3

        def harmonics_after(t, x, i=i, j=j):
            y = list(x)  # rotated clockwise: the function turns counterclockwise
            y[i], y[j] = mp.cos(t) * x[i] + mp.sin(t) * x[j], mp.cos(t) * x[j] - mp.sin(t) * x[i]
            return flat(harmonics(basis, y))

        h = mp.mpf(10) ** -12
        rows = []
        for x in points:
            shifted = [harmonics_after(step * h, x) for step in (-2, -1, 1, 2)]  # of fourth order: off by 1e-47
            rows.append(
                [(shifted[0][p] - 8 * shifted[1][p] + 8 * shifted[2][p] - shifted[3][p]) / (12 * h) for p in places]
            )
        slopes.append(mp.matrix(rows))
    return places, values, slopes


def coefficients(rng):
    """Of degree 3, on the circle, on S^2 or for zonal functions."""
    shape = [(7,), (4,), (2, 4, 4)][int(rng.integers(3))]
    numbers = rng.standard_normal(shape) * 10.0 ** rng.choice([0, 0, -200, 100])
    return (numbers * mf.SphereBasis(3).mask if len(shape) == 3 else numbers).tolist()


@oracle(
    "meanfield.rotations",
    draws={"basis": lambda rng: any_basis(rng, largest=3), "coefficients": coefficients},
    relation=lambda a: len(a["coefficients"]) == {"circle": 7, "sphere": 2, "zonal": 4}[a["basis"]["kind"]],
    arguments=arguments_from,
    count=16,
)
def rotations(basis, coefficients):
    numbers = [mp.mpf(c) for c in flat(coefficients)]
    if basis["kind"] == "zonal":
        return []
    if basis["kind"] == "circle":
        return [[k * numbers[k + 3] for k in (1, 2, 3)] + [-k * numbers[k] for k in (1, 2, 3)]]
    places, values, slopes = turned_surface(3)
    function = mp.matrix([numbers[p] for p in places])
    return [list(mp.lu_solve(values, slope * function)) for slope in slopes]


def read_cells(cells):
    """What stands at a few cells and edges."""
    count = cells.count
    few_cells, inner_edges = [0, 1, count // 2, count - 1], [1, count // 2]
    return [
        cells.edges[inner_edges],
        cells.log_measure[few_cells],
        cells.log_area[inner_edges],
        cells.centroids[few_cells],
    ]


COUNTS = (8, 9, 33, 400)


@oracle("meanfield.circle_cells", draws={"count": lambda rng: int(rng.choice(COUNTS))}, result=read_cells, count=8)
def circle_cells(count):
    some, inner = [0, 1, count // 2, count - 1], [1, count // 2]
    return [
        [2 * mp.pi * i / count for i in inner],
        [-mp.log(count)] * 4,
        [-mp.log(2 * mp.pi)] * 2,
        [2 * mp.pi * (i + mp.mpf(1) / 2) / count for i in some],
    ]


@oracle(
    "meanfield.zonal_cells",
    draws={
        "dim": lambda rng: int(rng.choice([2, 3, 4, 64, 1000, 10**6])),
        "count": lambda rng: int(rng.choice(COUNTS)),
    },
    cases=({"dim": 10**6, "count": 8}, {"dim": 10**4, "count": 9}),
    result=read_cells,
    count=10,
    fresh=1,
)
def zonal_cells(dim, count):
    """By quadrature with double exponentials, on panels that grow from the end where the sine is greater."""
    power, some, inner = dim - 2, [0, 1, count // 2, count - 1], [1, count // 2]
    logs, centroids = {}, {}
    log_total = mp.log(mp.pi) / 2 + mp.loggamma(mp.mpf(power + 1) / 2) - mp.loggamma(mp.mpf(power) / 2 + 1)
    for cell in {min(i, count - 1 - i) for i in some}:
        low, high = mp.pi * cell / count, min(mp.pi * (cell + 1) / count, mp.pi / 2)
        step = 1 / max(1, power * mp.cot(high), mp.sqrt(power))
        cuts = [high]
        while cuts[-1] - step > low and len(cuts) < 9:
            cuts.append(cuts[-1] - step)
            step *= 2
        cuts = [*reversed(cuts)] if len(cuts) == 9 else [low, *reversed(cuts)]
        with mp.workdps(30):
            weight = lambda x, high=high: mp.exp(power * mp.log(mp.sin(x) / mp.sin(high)))  # noqa: E731
            mass = mp.quad(weight, cuts)
            centroids[cell] = mp.quad(lambda x, weight=weight: x * weight(x), cuts) / mass
        whole = mass * (2 if 2 * cell + 1 == count else 1)
        centroids[cell] = mp.pi / 2 if 2 * cell + 1 == count else centroids[cell]
        logs[cell] = mp.log(whole) + power * mp.log(mp.sin(high)) - log_total
    mirrored = [(min(i, count - 1 - i), i > count - 1 - i) for i in some]
    return [
        [mp.pi * i / count for i in inner],
        [logs[cell] for cell, _ in mirrored],
        [power * mp.log(mp.sin(mp.pi * i / count)) - log_total for i in inner],
        [mp.pi - centroids[cell] if beyond else centroids[cell] for cell, beyond in mirrored],
    ]


def any_cells(rng):
    kind = str(rng.choice(["circle", "zonal"]))
    return {"kind": kind, "d": 2 if kind == "circle" else int(rng.choice([2, 3, 5])), "count": int(rng.choice(COUNTS))}


@oracle(
    "meanfield.cells_from_density",
    draws={"cells": any_cells, "density": lambda rng: any_density(rng, kinds=("circle", "zonal"), largest=200)},
    relation=lambda a: all(a["cells"][key] == a["density"]["basis"][key] for key in ("kind", "d")),
    arguments=arguments_from,
    result=lambda masses: [masses[i] for i in (0, 1, len(masses) // 2, len(masses) - 1)],
    cases=(
        {
            "cells": {"kind": "zonal", "d": 3, "count": 8},
            "density": {"basis": {"kind": "zonal", "d": 3, "degree": 200}, "waves": [[200, 0, 1.0]]},
        },
    ),
    count=16,
    quick=6,
)
def cells_from_density(cells, density):
    """Differences of primitives: of Sturm and Liouville's equation for P_k."""
    d, count = cells["d"], cells["count"]
    if cells["kind"] == "circle":

        def primitive(i):
            theta = 2 * mp.pi * i / count
            tilts = [
                a * (mp.sin(k * theta) if order == 0 else -mp.cos(k * theta)) / k for k, order, a in density["waves"]
            ]
            return (theta + mp.fsum(tilts)) / (2 * mp.pi)

    else:
        total = mp.sqrt(mp.pi) * mp.gamma(mp.mpf(d - 1) / 2) / mp.gamma(mp.mpf(d) / 2)

        def primitive(i):
            theta = mp.pi * i / count
            s = mp.cos(theta)
            measure = mp.quad(lambda x: mp.sin(x) ** (d - 2), [0, theta])
            tilts = []
            for k, _, a in density["waves"]:
                # P_k' in dimension d is a multiple of P_{k-1} in dimension d + 2
                slope = mp.mpf(k * (k + d - 2)) / (d - 1) * legendre(k - 1, d + 2, s)
                tilts.append(a * mp.sin(theta) ** (d - 1) * slope / (k * (k + d - 2)))
            return (measure + mp.fsum(tilts)) / total

    return [primitive(i + 1) - primitive(i) for i in (0, 1, count // 2, count - 1)]


def energy_field(rng):
    beta = float(rng.choice([0.0, 1e-300, 1e-6, 1.1e-6, 1e-3, 2.0, 20.0]))
    return {"beta": beta, "model": str(rng.choice(["SA", "USA0", "USA"])), "weight": float(rng.choice([0.0, 0.0, 0.8]))}


@oracle(
    "meanfield.free_energy",
    draws={
        "field": energy_field,
        "density": lambda rng: any_density(rng, count=1),
        "kappa": lambda rng: float(rng.choice([0.0, 1e-9, 0.3, 1e6])),
    },
    relation=lambda a: not a["field"]["weight"] or a["density"]["basis"]["kind"] == "circle",
    # two integrals over S^2 differ where the density touches 0
    may_refuse=lambda a: a["density"]["basis"]["kind"] == "sphere" and a["density"]["waves"][0][2] == 1.0,
    arguments=arguments_from,
    cases=(
        {
            "field": {"beta": 2.0, "model": "USA0", "weight": 0.0},
            "density": {"basis": {"kind": "circle", "d": 2, "degree": 24}, "waves": [[2, 0, 1.0]]},
            "kappa": 0.3,
        },
        {
            "field": {"beta": 2.0, "model": "USA0", "weight": 0.0},
            "density": {"basis": {"kind": "sphere", "d": 3, "degree": 12}, "waves": [[3, 0, 1.0]]},
            "kappa": 0.3,
        },
        {
            "field": {"beta": 20.0, "model": "USA", "weight": 0.0},
            "density": {"basis": {"kind": "zonal", "d": 5, "degree": 12}, "waves": [[4, 0, 1.0]]},
            "kappa": 0.3,
        },
    ),
    count=16,
    fresh=2,
    quick=6,
)
def free_energy(field, density, kappa):
    d, beta, wave = density["basis"]["d"], mp.mpf(field["beta"]), [*density["waves"], [1, 0, 0.0]][0]
    k, order, a = wave[0], wave[1], mp.mpf(wave[2])
    with mp.workdps(700):
        share = a**2 / number_of_harmonics(k, d)
        if beta:
            pairs = (multiplier(beta, d, 0) - 1 + share * multiplier(beta, d, k)) / (2 * beta)
        else:
            pairs = ((share / d if k == 1 else 0) - 1) / mp.mpf(2)
    factor = mp.exp(beta) if field["model"] == "USA" else 1

    def disorder(s):
        rho = 1 + a * legendre(k, d, s)
        return rho * mp.log(rho) if rho > 0 else mp.mpf(0)

    total = mp.sqrt(mp.pi) * mp.gamma(mp.mpf(d - 1) / 2) / mp.gamma(mp.mpf(d) / 2)
    cuts = [mp.pi * i / (2 * k) for i in range(2 * k + 1)]
    if d == 2:
        root = mp.sqrt(1 - a**2)
        entropy = mp.log((1 + root) / 2) + 1 - root
    else:
        with mp.workdps(30):
            entropy = mp.quad(lambda x: disorder(mp.cos(x)) * mp.sin(x) ** (d - 2), cuts) / total if a else mp.mpf(0)
    outer = mp.mpf(0)
    if field["weight"]:

        def height(theta):
            wave = mp.cos(k * theta) if order == 0 else mp.sin(k * theta)
            slope = mp.cos(theta) + mp.cos(theta - mp.pi / 2) / 2 + mp.mpf(0.2)
            return (1 + a * wave) * mp.log(mp.cosh(slope))

        with mp.workdps(30):
            outer = mp.mpf(field["weight"]) * mp.quad(height, [2 * mp.pi * i / 12 for i in range(13)]) / (2 * mp.pi)
    return factor * pairs + outer - mp.mpf(kappa) * entropy
