"""Measures on the sphere for oracles: tokens of degenerate families with masses, and their formulas at 50 digits."""

import mpmath as mp
import numpy as np

import attnflow as af
from tests.formulas.tokens import tokens

MASSES = ("equal", "random", "test particle", "light", "heavy")


def measure(rng, *, shape=None, space="sphere", **options):
    """Positions and masses as JSON keeps them; `shape` (token, dim) fixes both, as compiled code likes it."""
    while True:
        if shape is not None:
            options |= {"most": shape[0], "largest": shape[1]}
        positions = tokens(rng, **options)
        if shape is None or np.shape(positions) == shape:
            break
    masses, family = rng.uniform(0.1, 1, len(positions)), str(rng.choice(MASSES))
    if family == "equal":
        masses[:] = 1.0
    elif family == "test particle":
        masses[-1] = 0.0
    elif family == "light":
        masses[0] = 10.0 ** -rng.choice([6, 12, 30])
    elif family == "heavy":
        masses[0] = 1e6
    return {"positions": positions, "masses": masses.tolist(), "space": space}


def as_tokens(system):
    """The tokens of a measure."""
    dim = np.shape(system["positions"])[1]
    space = af.Sphere(dim) if system["space"] == "sphere" else af.Euclidean(dim)
    return af.Tokens(system["positions"], system["masses"], space=space)


def made(arguments):
    """Arguments with measures as tokens, and fields as attention."""
    return {name: _made(value) for name, value in arguments.items()}


def _made(value):
    if isinstance(value, dict) and "positions" in value:
        return as_tokens(value)
    if isinstance(value, dict) and "beta" in value:
        return af.Attention(value["beta"], normaliser=value["model"])
    return value


def attention(rng, models=("SA", "USA0")):
    """Plain attention as JSON keeps it."""
    beta = float(rng.choice([0.0, 1e-12, 1e-3, 0.5, 2.0, 9.0, 81.0, 1000.0, rng.uniform(0, 20)]))
    return {"beta": beta, "model": str(rng.choice(models))}


def exact(system):
    """(positions, masses) of a measure as numbers of mpmath: unit rows on the sphere, masses that sum to 1."""
    rows = [[mp.mpf(c) for c in row] for row in system["positions"]]
    if system["space"] == "sphere":
        rows = [[c / mp.norm(row) for c in row] for row in rows]
    masses = [mp.mpf(mass) for mass in system["masses"]]
    return rows, [mass / mp.fsum(masses) for mass in masses]


def dot(x, y):
    return mp.fdot(x, y)


def chord2(x, y):
    """|x - y|^2."""
    return mp.fsum((a - b) ** 2 for a, b in zip(x, y, strict=True))


def tangent(x, v):
    """v - <x, v> x."""
    along = dot(x, v)
    return [a - along * b for a, b in zip(v, x, strict=True)]


def pulls(system, beta):
    """(Z_i, gradient of the energy at the token i): sums of m_j e^(beta (<x_i, x_j> - 1)) and of P x_j times it."""
    rows, masses = exact(system)
    beta, levels, gradients = mp.mpf(beta), [], []
    for x in rows:
        weights = [mass * mp.exp(-beta * chord2(x, y) / 2) for mass, y in zip(masses, rows, strict=True)]
        levels.append(mp.fsum(weights))
        pull = [mp.fsum(w * y[k] for w, y in zip(weights, rows, strict=True)) for k in range(len(x))]
        gradients.append(tangent(x, pull))
    return rows, masses, levels, gradients


def velocities(system, field):
    """(masses, Z_i, velocities, gradients of the energy) of plain attention."""
    rows, masses, levels, gradients = pulls(system, field["beta"])
    factor = {"SA": None, "USA0": mp.mpf(1), "USA": mp.exp(mp.mpf(field["beta"]))}[field["model"]]
    speeds = [
        [c / level if factor is None else factor * c for c in g] for g, level in zip(gradients, levels, strict=True)
    ]
    return rows, masses, levels, speeds, gradients


def transport(cost, a, b):
    """The least cost of a plan between the masses a and b, by successive shortest paths, exactly."""
    n, m = len(a), len(b)
    supply, demand, mass = list(a), list(b), {}
    total, tiny = mp.mpf(0), mp.mpf(10) ** -45
    while max(supply) > tiny and max(demand) > tiny:
        distance = {("row", i): mp.mpf(0) for i in range(n) if supply[i] > tiny}
        before = {}
        changed = True
        while changed:  # Bellman and Ford, on pairs and on the way back through masses
            changed = False
            for i in range(n):
                for j in range(m):
                    for start, end, price in (
                        (("row", i), ("column", j), cost[i][j]),
                        (("column", j), ("row", i), -cost[i][j]),
                    ):
                        if start not in distance or (start[0] == "column" and mass.get((i, j), 0) <= tiny):
                            continue
                        if end not in distance or distance[start] + price < distance[end] - tiny:
                            distance[end], before[end], changed = distance[start] + price, start, True
        ends = [j for j in range(m) if demand[j] > tiny]
        end = ("column", min(ends, key=lambda j: distance["column", j]))
        steps, node = [], end
        while node in before and not (node[0] == "row" and supply[node[1]] > tiny and distance[node] == 0):
            steps.append((before[node], node))
            node = before[node]
        moved = min(supply[node[1]], demand[end[1]], *(mass[e[1], s[1]] for s, e in steps if s[0] == "column"))
        for s, e in steps:
            pair = (s[1], e[1]) if s[0] == "row" else (e[1], s[1])
            mass[pair] = mass.get(pair, mp.mpf(0)) + (moved if s[0] == "row" else -moved)
        supply[node[1]] -= moved
        demand[end[1]] -= moved
    for (i, j), moved in mass.items():
        total += moved * cost[i][j]
    return total
