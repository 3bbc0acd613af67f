"""Oracles of `observe`."""

import math

import mpmath as mp
import numpy as np

from tests.formulas.measures import attention, chord2, dot, exact, made, measure, velocities
from tests.formulas.oracle import oracle

PROCEDURES = {"slow_motion_along": "reads the frames of a flow; its columns are those of `slow_motion`"}
BETAS = (0.0, 1e-300, 1e-12, 1e-3, 0.5, 2.0, 9.0, 81.0, 1e4, 1e8, -1e-3, -2.0, -100.0)
FRAME = {"arguments": made, "count": 14, "quick": 10}


def system(rng):
    return measure(rng, shape=(4, 3))


def circle(rng):
    return measure(rng, shape=(4, 2), families=("random", "arc", "coincident"))


def sphere_points(drawn):
    """Rows of a measure as they are, not moved onto the sphere: formulas of distances take them so."""
    rows = [[mp.mpf(c) for c in row] for row in drawn["positions"]]
    masses = [mp.mpf(mass) for mass in drawn["masses"]]
    return rows, [mass / mp.fsum(masses) for mass in masses]


def pair_mean(drawn, value):
    """sum_ij m_i m_j value(|x_i - x_j|^2/2)."""
    rows, masses = sphere_points(drawn)
    pairs = [
        (a * b, chord2(x, y) / 2) for x, a in zip(rows, masses, strict=True) for y, b in zip(rows, masses, strict=True)
    ]
    return mp.fsum(weight * value(drop) for weight, drop in pairs)


def renormalised(drawn, beta):
    beta = mp.mpf(beta)
    if beta == 0:
        return -pair_mean(drawn, lambda drop: drop) / 2
    return pair_mean(drawn, lambda drop: mp.expm1(-beta * drop)) / (2 * beta)


def any_beta(rng):
    return float(rng.choice(BETAS))


def positive_beta(rng):
    return abs(any_beta(rng)) or 1.0


@oracle("observe.energy", draws={"tokens": system, "beta": any_beta}, **FRAME)
def energy(tokens, beta):
    return renormalised(tokens, beta)


def exponential(tokens, beta):
    return pair_mean(tokens, lambda drop: mp.exp(-mp.mpf(beta) * drop)) / (2 * mp.mpf(beta))


@oracle("observe.energy0", draws={"tokens": system, "beta": lambda rng: any_beta(rng) or 1.0}, **FRAME)
def energy0(tokens, beta):
    return exponential(tokens, beta)


@oracle("observe.log_energy", draws={"tokens": system, "beta": positive_beta}, **FRAME)
def log_energy(tokens, beta):
    return beta + mp.log(exponential(tokens, beta))


FIELDS = {"draws": {"field": attention, "tokens": system}, **FRAME}
TIMED = {"draws": {"field": attention, "tokens": system, "t": lambda rng: 0.0}, **FRAME}


@oracle("observe.total_energy", **FIELDS)
def total_energy(field, tokens):
    return renormalised(tokens, field["beta"])


def climb(field, tokens):
    """sum m <v, g>, g the gradient of the energy over the mass."""
    _, masses, _, v, g = velocities(tokens, field)
    return mp.fsum(m * dot(a, b) for m, a, b in zip(masses, v, g, strict=True))


@oracle("observe.dissipation", **FIELDS)
def dissipation(field, tokens):
    return climb(field, tokens)


HOT = TIMED | {
    "draws": TIMED["draws"] | {"field": lambda rng: attention(rng, ("SA",))},
    "relation": lambda a: a["field"]["beta"] > 0,
}


@oracle("observe.interaction_energy", **HOT)
def interaction_energy(field, tokens, t):
    return exponential(tokens, field["beta"])


@oracle("observe.energy_rate", **HOT)
def energy_rate(field, tokens, t):
    return climb(field, tokens)


@oracle("observe.speed", **TIMED)
def speed(field, tokens, t):
    return [mp.norm(v) for v in velocities(tokens, field)[3]]


@oracle("observe.attention_matrix", **(TIMED | {"draws": TIMED["draws"] | {"limit": lambda rng: 10}, "count": 10}))
def attention_matrix(field, tokens, t, limit):
    rows, masses = exact(tokens)
    beta, matrix = mp.mpf(field["beta"]), []
    for x in rows:
        row = [mass * mp.exp(-beta * chord2(x, y) / 2) for y, mass in zip(rows, masses, strict=True)]
        scale = mp.fsum(row) if field["model"] == "SA" else mp.mpf(1)
        matrix.append([weight / scale for weight in row])
    return matrix


@oracle("observe.overlaps", draws={"tokens": system, "limit": lambda rng: 4}, arguments=made, count=8)
def overlaps(tokens, limit):
    rows, _ = sphere_points(tokens)
    return [[dot(x, y) for y in rows] for x in rows]


@oracle(
    "observe.overlap_histogram",
    draws={
        "tokens": lambda rng: measure(rng, most=6, largest=4),
        "bins": lambda rng: int(rng.choice([1, 2, 7, 20])),
        "block": lambda rng: int(rng.choice([1, 2, 1000])),
    },
    arguments=made,
    result=lambda pair: [*pair[0], *pair[1]],
    count=16,
)
def overlap_histogram(tokens, bins, block):
    rows, masses = exact(tokens)
    counts, pairs = [mp.mpf(0)] * bins, [(i, j) for i in range(len(rows)) for j in range(i)]
    for i, j in pairs:
        overlap = dot(rows[i], rows[j]) + mp.mpf(10) ** -13
        counts[max(0, min(bins - 1, int(mp.floor((overlap + 1) * bins / 2))))] += masses[i] * masses[j]
    total = mp.fsum(counts)
    edges = [mp.mpf(2) * k / bins - 1 for k in range(bins + 1)]
    return [*(count / (total or 1) * bins / 2 for count in counts), *edges]


@oracle("observe.order_parameter", draws={"tokens": system}, **FRAME)
def order_parameter(tokens):
    rows, masses = sphere_points(tokens)
    return mp.norm([mp.fsum(m * row[k] for m, row in zip(masses, rows, strict=True)) for k in range(3)])


@oracle("observe.spread", draws={"tokens": system}, **FRAME)
def spread(tokens):
    rows, masses = sphere_points(tokens)
    mean = [mp.fsum(m * row[k] for m, row in zip(masses, rows, strict=True)) for k in range(3)]
    return max(mp.sqrt(chord2(row, mean)) for row, mass in zip(rows, masses, strict=True) if mass > 0)


@oracle("observe.effective_rank", draws={"tokens": system}, **FRAME)
def effective_rank(tokens):
    rows, masses = sphere_points(tokens)
    d = len(rows[0])
    moments = mp.matrix(d, d)
    for i in range(d):
        for j in range(d):
            moments[i, j] = mp.fsum(m * row[i] * row[j] for m, row in zip(masses, rows, strict=True))
    values = [value for value in mp.eigsy(moments, eigvals_only=True) if value > mp.mpf(10) ** -45]
    total = mp.fsum(values)
    return mp.exp(-mp.fsum(value / total * mp.log(value / total) for value in values))


def components(distance, scale):
    """The smallest index of each component of the graph of pairs at a distance of at most `scale`."""
    names = list(range(len(distance)))
    for _ in names:
        for i in range(len(names)):
            for j in range(i):
                if distance[i][j] <= scale:
                    names[i] = names[j] = min(names[i], names[j])
    return names


def angle(x, y):
    return 2 * mp.atan2(mp.sqrt(chord2(x, y)), mp.sqrt(chord2(x, [-c for c in y])))


def grouped(tokens, scale):
    rows, masses = exact(tokens)
    names = components([[angle(x, y) for y in rows] for x in rows], mp.mpf(scale))
    return rows, masses, names


CLUSTERS = {
    "draws": {
        "tokens": system,
        "scale": lambda rng: float(rng.choice([1e-300, 1e-9, 1e-3, 0.1, 0.3, 0.7])),
        "share": lambda rng: 1.0,
    },
    "arguments": made,
    "count": 14,
    "quick": 12,
}


def of_every_token(found):
    """Number of clusters, and mass and radius of the cluster of every token."""
    return [found.count, *found.masses[found.labels], *found.radii[found.labels]]


@oracle("observe.clusters", result=of_every_token, **CLUSTERS)
def clusters(tokens, scale, share):
    rows, masses, names = grouped(tokens, scale)
    total, radius = {}, {}
    for name in set(names):
        members = [k for k in range(len(rows)) if names[k] == name]
        total[name] = mp.fsum(masses[k] for k in members)
        weights = [masses[k] if total[name] > 0 else mp.mpf(1) for k in members]
        mean = [mp.fsum(w * rows[k][c] for w, k in zip(weights, members, strict=True)) for c in range(len(rows[0]))]
        mean = [c / mp.norm(mean) for c in mean]
        radius[name] = max(angle(rows[k], mean) for k in members)
    return [len(total), *(total[name] for name in names), *(radius[name] for name in names)]


@oracle("observe.cluster_count", **CLUSTERS)
def cluster_count(tokens, scale, share):
    return len(set(grouped(tokens, scale)[2]))


@oracle("observe.cluster_scale")
def cluster_scale(beta):
    return mp.mpf(0.5) if beta <= 4 else 1 / mp.sqrt(mp.mpf(beta))


def maxima(tokens, beta):
    """The heights of the maxima of sum_j m_j e^(beta (cos(theta - theta_j) - 1)), by scanning its derivative."""
    rows, masses = exact(tokens)
    places, beta = [mp.atan2(y, x) for x, y in rows], mp.mpf(beta)

    def slope(theta):
        return -mp.fsum(
            m * mp.sin(theta - a) * mp.exp(beta * (mp.cos(theta - a) - 1)) for m, a in zip(masses, places, strict=True)
        )

    grid = np.linspace(-np.pi, np.pi, 4001) + 1e-4
    angles, sizes = np.array(places, float), np.array(masses, float)
    coarse = -np.sum(
        sizes * np.sin(grid[:, None] - angles) * np.exp(float(beta) * (np.cos(grid[:, None] - angles) - 1)), axis=1
    )
    tops = []
    for k in np.flatnonzero((coarse[:-1] > 0) & (coarse[1:] <= 0)):
        theta = mp.findroot(slope, (mp.mpf(grid[k]), mp.mpf(grid[k + 1])), solver="anderson", tol=1e-60)
        tops.append(mp.fsum(m * mp.exp(beta * (mp.cos(theta - a) - 1)) for m, a in zip(masses, places, strict=True)))
    return sorted(tops, reverse=True)


MODES = {
    "draws": {
        "tokens": lambda rng: {**circle(rng), "masses": rng.uniform(0.5, 1, 4).tolist()},
        "beta": lambda rng: float(rng.choice([0.5, 2.0, 20.0, 60.0, 200.0])),
        "starts": lambda rng: None,
        "tol": lambda rng: 1e-9,
        "iterations": lambda rng: 20000,
    },
    "arguments": made,
    "count": 12,
    "quick": 6,
    "fresh": 2,
}


@oracle("observe.modes", result=lambda found: [found.count, *found.heights], **MODES)
def modes(tokens, beta, starts, tol, iterations):
    tops = maxima(tokens, beta)
    return [len(tops), *tops]


@oracle(
    "observe.mode_count", **(MODES | {"draws": {key: MODES["draws"][key] for key in ("tokens", "beta")}, "quick": 4})
)
def mode_count(tokens, beta):
    return len(maxima(tokens, beta))


def cloud(rng):
    """Points in general position, on a line through the origin, or all at one place."""
    n, d, family = int(rng.integers(1, 7)), int(rng.integers(1, 4)), int(rng.integers(0, 4))
    points = rng.standard_normal((n, d)) * 10.0 ** rng.choice([-6, 0, 6])
    if family == 1:
        points = rng.standard_normal((n, 1)) * points[:1]
    if family == 2 and n > 1:
        points[1:] = points[0]
    return points.tolist()


def determinant(rows):
    return mp.det(mp.matrix(rows)) if len(rows) > 1 else rows[0][0]


@oracle("observe.convex_hull", draws={"points": cloud}, result=lambda hull: [hull.volume], count=14)
def convex_hull(points):
    """A facet is a set of d points with all others on one side; it adds a cone about the mean."""
    import itertools

    rows = [[mp.mpf(c) for c in row] for row in points]
    d, n = len(rows[0]), len(rows)
    if d == 1:
        return [max(row[0] for row in rows) - min(row[0] for row in rows)]
    middle = [mp.fsum(row[k] for row in rows) / n for k in range(d)]
    volume = mp.mpf(0)
    for facet in itertools.combinations(range(n), d):
        base = rows[facet[0]]

        def side(point, facet=facet, base=base):
            edges = [[a - b for a, b in zip(rows[k], base, strict=True)] for k in facet[1:]]
            return determinant([*edges, [a - b for a, b in zip(point, base, strict=True)]])

        sides = [side(rows[k]) for k in range(n) if k not in facet]
        if all(value > 0 for value in sides) or all(value < 0 for value in sides):
            volume += abs(side(middle)) / math.factorial(d)
    return [volume]


def rows_of_attention(rng):
    """Rows that are near unit vectors, to the last bits of the tolerance too."""
    rows = rng.dirichlet(np.ones(3), 4)
    for k in range(4):
        if rng.random() < 0.7:
            rest = float(rng.choice([0.0, 1e-16, 1e-6 * (1 - 1e-3), 1e-6 * (1 + 1e-3), 0.3]))
            rows[k] = np.roll([1 - rest, rest, 0.0], rng.integers(3))
    return rows.tolist()


TOLERANCES = {
    "matrix": rows_of_attention,
    "tol": lambda rng: float(rng.choice([0.0, 1e-15, 1e-6, 0.1])),
}


@oracle("observe.leaders", draws=TOLERANCES)
def leaders(matrix, tol):
    return [j for j in range(3) if any(1 - mp.mpf(row[j]) <= mp.mpf(tol) for row in matrix)]


@oracle("observe.boolean_rows", draws=TOLERANCES)
def boolean_rows(matrix, tol):
    units = [[int(i == j) for i in range(3)] for j in range(3)]
    return [
        int(any(max(abs(mp.mpf(a) - b) for a, b in zip(row, unit, strict=True)) <= mp.mpf(tol) for unit in units))
        for row in matrix
    ]


def near_diagonal(rng):
    d = int(rng.integers(1, 4))
    return (np.diag([2.0, 1.0, -3.0][:d]) + 0.2 * rng.uniform(-1, 1, (d, d))).tolist()


@oracle(
    "observe.hyperplane_coordinates",
    draws={"points": lambda rng: rng.standard_normal((3, int(rng.integers(1, 4)))).tolist(), "value": near_diagonal},
    relation=lambda a: len(a["points"][0]) == len(a["value"]),
    count=14,
)
def hyperplane_coordinates(points, value):
    """Left and right eigenvectors as limits of powers of a shifted matrix."""
    d = len(value)
    matrix = mp.matrix(value) + 10 * mp.eye(d)
    power = mp.eye(d)
    for _ in range(12):  # to the power 2^12
        matrix = matrix / mp.mnorm(matrix, 1)
        matrix = matrix * matrix
    power = matrix / mp.mnorm(matrix, 1)  # phi times phi*, up to a factor
    column = max(range(d), key=lambda j: mp.norm([power[i, j] for i in range(d)]))
    phi = [power[i, column] for i in range(d)]
    phi = [c / mp.norm(phi) for c in phi]
    first = next(c for c in phi if abs(c) > mp.mpf(10) ** -12)
    phi = [c * mp.sign(first) for c in phi]
    row = max(range(d), key=lambda i: mp.norm([power[i, j] for j in range(d)]))
    dual = [power[row, j] for j in range(d)]
    scale = mp.fdot(dual, phi)
    return [mp.fdot(dual, [mp.mpf(c) for c in point]) / scale for point in points]


@oracle(
    "observe.distinct",
    draws={
        "points": lambda rng: (
            rng.integers(0, 3, (5, int(rng.integers(1, 3)))) + 1e-7 * rng.uniform(0, 1, (5, 1))
        ).tolist(),
        "tol": lambda rng: float(rng.choice([0.0, 1e-6, 1e-3, 0.5, 1.3])),
    },
)
def distinct(points, tol):
    rows = [[mp.mpf(c) for c in row] for row in points]
    names = components([[mp.sqrt(chord2(x, y)) for y in rows] for x in rows], mp.mpf(tol))
    means = []
    for name in sorted(set(names)):
        members = [row for row, other in zip(rows, names, strict=True) if other == name]
        means.append([mp.fsum(row[k] for row in members) / len(members) for k in range(len(rows[0]))])
    return sorted(means)


@oracle(
    "observe.plateaus",
    draws={
        "time": lambda rng: [float(rng.choice([0.0, 1e-3])), *np.cumsum(10.0 ** rng.uniform(-3, 3, 9)).tolist()],
        "count": lambda rng: sorted(rng.integers(1, 4, 10).tolist(), reverse=True),
        "condensed": lambda rng: [k > 0 for k in sorted(rng.integers(0, 3, 10).tolist())],
        "energy": lambda rng: np.sort(rng.standard_normal(10)).tolist(),
    },
    arguments=lambda a: {key: np.array(value) if isinstance(value, list) else value for key, value in a.items()},
    result=lambda plateaus: [list(plateau) for plateau in plateaus],
    count=14,
)
def plateaus(time, count, condensed, energy, factor):
    """Runs of equal counts of condensed frames: they last from their first positive time, or are the final consensus."""
    runs, start = [], 0
    for k in range(1, len(time) + 1):
        if k == len(time) or (count[k], condensed[k]) != (count[start], condensed[start]):
            runs.append(range(start, k))
            start = k
    stretches = []
    for run in runs:
        times = [mp.mpf(time[k]) for k in run]
        positive = [t for t in times if t > 0]
        lasts = bool(positive) and positive[-1] >= factor * positive[0]
        final = run[-1] == len(time) - 1 and count[run[0]] == 1
        if condensed[run[0]] and (lasts or final):
            energies = sorted(mp.mpf(energy[k]) for k in run)
            half = len(energies) // 2
            middle = energies[half] if len(energies) % 2 else (energies[half - 1] + energies[half]) / 2
            logs = [mp.log(t) if t > 0 else -mp.inf for t in (times[0], times[-1])]
            stretches.append([*logs, count[run[0]], middle])
    return stretches


def normal(confidence):
    """How many deviations hold a normal number with this probability on both sides."""
    return mp.sqrt(2) * mp.erfinv(mp.mpf(confidence))


def level(rng):
    return float(rng.choice([1e-9, 0.5, 0.95, 1 - 1e-9]))


SHARES = (0.1, 0.5, 0.77)


def binomial(k, n, q):
    """P(B <= k) of a binomial number."""
    return mp.fsum(mp.binomial(n, i) * q**i * (1 - q) ** (n - i) for i in range(int(k) + 1))


@oracle(
    "observe.exit_distribution",
    draws={
        "log_times": lambda rng: (
            (rng.standard_normal(int(rng.integers(1, 13))) * 10.0 ** rng.choice([-3, 0, 3])).tolist()
            + [math.inf] * int(rng.choice([0, 0, 2]))
        ),
        "confidence": level,
        "until": lambda rng: math.inf,
    },
    result=lambda e: [e.n, e.exits, e.mean, e.standard_error, e.band, *e.survival([0.1])[:3], *e.quantile(SHARES)],
    count=14,
    quick=6,
)
def exit_distribution(log_times, confidence, until):
    times, n = sorted(mp.mpf(t) for t in log_times), len(log_times)
    finite = [t for t in times if t < mp.inf]
    mean = mp.fsum(times) / n if len(finite) == n else mp.nan
    error = mp.sqrt(mp.fsum((t - mean) ** 2 for t in times) / (n - 1) / n) if len(finite) == n > 1 else mp.nan
    tail = (1 - mp.mpf(confidence)) / 2
    band = mp.sqrt(mp.log(1 / tail) / (2 * n))
    share = mp.mpf(sum(t > mp.mpf(0.1) for t in times)) / n
    columns = [[], [], []]
    padded = [-mp.inf, *times, mp.inf]
    for q in SHARES:
        q = mp.mpf(q)
        columns[0].append(padded[int(mp.ceil(n * q - mp.mpf(10) ** -13))])
        columns[1].append(padded[min(k for k in range(n + 1) if binomial(k, n, q) >= tail)])
        columns[2].append(padded[min(k for k in range(n + 1) if 1 - binomial(k, n, q) <= tail) + 1])
    return [n, len(finite), mean, error, band, share, max(share - band, 0), min(share + band, 1), *columns]


@oracle(
    "observe.survival",
    draws={
        "times": lambda rng: rng.integers(1, 9, 8).astype(float).tolist() + [math.inf] * int(rng.integers(0, 4)),
        "until": lambda rng: float(rng.choice([8.0, 10.5])),
        "confidence": level,
    },
    result=lambda s: [*s([0.5, 3.0, 6.5]), s.quantile(0.4).value, *s.mean(7.5), *s.exponential_mean()[:2]],
    count=14,
)
def survival(times, until, confidence):
    width = normal(confidence)
    seen = sorted({mp.mpf(t) for t in times if t < mp.inf})
    value, variance, steps = mp.mpf(1), mp.mpf(0), [(mp.mpf(0), mp.mpf(1), mp.mpf(1), mp.mpf(1))]
    increments = []
    for t in seen:
        risk, events = sum(mp.mpf(u) >= t for u in times), sum(mp.mpf(u) == t for u in times)
        value *= 1 - mp.mpf(events) / risk
        if risk > events:
            variance += mp.mpf(events) / (risk * (risk - events))
        increments.append(mp.mpf(events) / (risk * (risk - events)) if risk > events else mp.mpf(0))
        if value > 0:
            spread = width * mp.sqrt(variance) / -mp.log(value)
            steps.append((t, value, value ** mp.exp(spread), value ** mp.exp(-spread)))
        else:
            steps.append((t, value, mp.mpf(0), steps[-1][3]))
    at = [max((step for step in steps if step[0] <= t), key=lambda step: step[0]) for t in (0.5, 3.0, 6.5)]
    first = next((step[0] for step in steps[1:] if step[1] <= 1 - mp.mpf(0.4) + mp.mpf(10) ** -14), mp.inf)
    to = mp.mpf(7.5)

    def area(start):
        marks = [start, *(step[0] for step in steps if start < step[0] < to), to]
        heights = [max((step for step in steps if step[0] <= mark), key=lambda step: step[0])[1] for mark in marks]
        return mp.fsum(h * (b - a) for h, a, b in zip(heights, marks, marks[1:], strict=False))

    mean, count = area(mp.mpf(0)), sum(t < mp.inf for t in times)
    error = mp.sqrt(
        mp.fsum(area(t) ** 2 * grown for t, grown in zip(seen, increments, strict=True) if t < to) * count / (count - 1)
    )
    total = mp.fsum(mp.mpf(t) if t < mp.inf else mp.mpf(until) for t in times)
    rows = [[step[k] for step in at] for k in (1, 2, 3)]
    return [
        *rows,
        first,
        mean,
        error,
        mean - width * error,
        mean + width * error,
        total / count,
        total / mp.mpf(count) ** 1.5,
    ]


def in_groups(rng):
    """Six tokens about three centres, two for each, at distances from 1e-6 on; sometimes the very same place."""
    centres = rng.standard_normal((3, 3))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    size = float(rng.choice([0.0, 1e-5, 1e-3, 0.1, 0.3]))
    rows = np.repeat(centres, 2, axis=0) + size * rng.uniform(-1, 1, (6, 3))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return {"positions": rows.tolist(), "masses": rng.uniform(0.2, 1, 6).tolist(), "space": "sphere"}


@oracle(
    "observe.slow_motion",
    draws={
        "tokens": in_groups,
        "labels": lambda rng: [0, 0, 7, 7, 2, 2],
        "beta": lambda rng: float(rng.choice([1e-3, 1.0, 9.0, 50.0])),
    },
    arguments=made,
    result=list,
    count=14,
)
def slow_motion(tokens, labels, beta):
    rows, masses = exact(tokens)
    centres, totals, places = [], [], {}
    for name in dict.fromkeys(labels):
        members = [k for k in range(len(rows)) if labels[k] == name]
        mean = [mp.fsum(masses[k] * rows[k][c] for k in members) for c in range(3)]
        places[name] = len(centres)
        centres.append([c / mp.norm(mean) for c in mean])
        totals.append(mp.fsum(masses[k] for k in members))
    collapsed = [centres[places[name]] for name in labels]

    def energy_and_slope(points, sizes):
        b = mp.mpf(beta)
        total, square = mp.mpf(0), mp.mpf(0)
        for x, m in zip(points, sizes, strict=True):
            weights = [w * mp.exp(-b * chord2(x, y) / 2) for y, w in zip(points, sizes, strict=True)]
            total += m * mp.fsum(weights) / (2 * b)
            pull = [mp.fsum(w * y[c] for w, y in zip(weights, points, strict=True)) for c in range(3)]
            along = dot(pull, x)
            square += m * mp.fsum((p - along * c) ** 2 for p, c in zip(pull, x, strict=True))
        return -total, mp.sqrt(square)

    upper, gradient = energy_and_slope(rows, masses)
    lower, _ = energy_and_slope(collapsed, masses)
    _, slope = energy_and_slope(centres, totals)
    gap = upper - lower
    square = mp.fsum(m * chord2(x, c) for m, x, c in zip(masses, rows, collapsed, strict=True))
    if square < mp.mpf(10) ** -60:
        return [mp.mpf(0), mp.mpf(0), slope, slope, mp.nan, mp.nan, min(totals)]
    return [mp.sqrt(square), gap, gradient, slope, 2 * gap / square, gradient**2 / (2 * gap), min(totals)]
