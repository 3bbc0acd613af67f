"""The checker of equilibria and branches. It repeats the proof in mpmath.iv and integers; the search is not used.

Chart of token i: x = y/|y|, y = c + B u. The system G(u) + T omega = 0, T^t u = 0 has the Jacobian J = (H T; T^t 0).

The work is bounded: boxes times the cube of the size of J are at most `PRODUCTS`. A certificate that asks for more is
rejected.
"""

import itertools
from typing import Any

import numpy as np
from mpmath import iv

from attnflow.certify.checking.integers import Matrix, bounded, interval, less, need

PRODUCTS = 10**9
"""Products of entries up to a factor; the dodecahedron takes 10^5, a branch of 2,000 boxes may have a J of size 79."""
Pairs = dict[tuple[int, int], tuple[Any, Any]]
LEMMAS = [
    "Krawczyk: the box is mapped into its interior, so it holds exactly one zero",
    "rotations: R^t G = 0 and R^t T is invertible, so the multipliers of the slice vanish",
    "inertia: Gershgorin's discs of V^t J V miss 0; J has the inertia of the slice plus (r, r)",
]


def check_equilibrium(claims: dict[str, Any], data: dict[str, Any]) -> list[str]:
    """Confirm that exactly one orbit of equilibria comes near the tokens; the lemmas that were used, or Rejected."""
    low, high = claims["beta"]
    (box, *more), distance, d = data["boxes"], claims["distance"], len(data["tokens"][0])
    need(
        low == high and not more and box["centre"] is None, "an equilibrium has one beta and one box around the tokens"
    )
    ((reach, near),) = _boxes(claims, data)
    need(0 < distance <= near / 2, "the distance is larger than was proved")
    # |x - c| <= 1.001 |u| with frames that are orthonormal to 1e-5
    need(reach * 1.01 * (d - 1) ** 0.5 <= distance, "the equilibrium may lie further away")
    return [*LEMMAS, "turning: what is near the tokens can be turned into the slice"]


def check_branch(claims: dict[str, Any], data: dict[str, Any]) -> list[str]:
    """Confirm a branch of equilibria over an interval of beta; the lemmas that were used, or Rejected."""
    need(claims["beta"][0] < claims["beta"][1], "a branch needs an interval of beta")
    found = _boxes(claims, data)
    for (one, two), (first, second) in zip(itertools.pairwise(data["boxes"]), itertools.pairwise(found), strict=True):
        _joined(one, first[0], two, second[0])
    return [*LEMMAS, "branch: where two boxes meet they share their zero"]


def _boxes(claims: dict[str, Any], data: dict[str, Any]) -> list[tuple[float, float]]:
    """(reach, near) of every box; all have one zero with the claimed index, and they cover the interval of beta."""
    tokens, masses, frames, slices = (np.array(data[k], float) for k in ("tokens", "masses", "frames", "slices"))
    n, d = tokens.shape
    planes, boxes = [tuple(p) for p in data["planes"]], data["boxes"]
    r, size = len(planes), n * (d - 1)
    slices = slices.reshape(size, r)
    bounded(len(boxes) * (size + r) ** 3, PRODUCTS, "products of matrix entries")
    need(n >= 2 and d >= 2 and masses.shape == (n,) and frames.shape == (n, d - 1, d), "shapes do not fit")
    need(bool((masses > 0).all()), "a mass is not positive")
    need(len(set(planes)) == r and all(0 <= a < b < d for a, b in planes), "planes do not fit")
    gram = np.concatenate([tokens[:, None], frames], axis=1)
    off = np.abs(np.einsum("nad,nbd->nab", gram, gram) - np.eye(d)).max()
    need(bool(off <= 1e-5), "frames are not orthonormal to 1e-5")  # rounding of this sum is below 1e-14
    ends = [box["beta"] for box in boxes]
    need([ends[0][0], ends[-1][1]] == claims["beta"], "the boxes do not cover the interval of beta")
    need(all(a[1] == b[0] for a, b in itertools.pairwise(ends)), "there is a hole between two boxes")
    need(claims["rotations"] == r, "the number of rotations does not fit")
    found = []
    for box in boxes:
        index, reach, near = _box((tokens, masses, frames, slices, planes), box)
        need(index == (claims["unstable"], claims["stable"]), f"the index at beta = {box['beta']} is {index}")
        found.append((reach, near))
    return found


def _dot(a: Any, b: Any) -> Any:
    return sum((p * q for p, q in zip(a, b, strict=True)), iv.mpf(0))


class _Place:
    """A box of configurations: x, |y|, the derivatives t of x, p = <x, B>."""

    def __init__(self, setting: tuple[Any, ...], flat: list[Any]):
        tokens, masses, frames, _, _ = setting
        self.n, self.k = tokens.shape[0], tokens.shape[1] - 1
        self.masses = [iv.mpf(float(m)) for m in masses]
        self.x: list[Any] = []
        self.y: list[Any] = []
        self.s: list[Any] = []
        self.t: list[Any] = []
        self.p: list[Any] = []
        for i in range(self.n):
            u = flat[i * self.k : (i + 1) * self.k]
            frame = [[iv.mpf(float(a)) for a in row] for row in frames[i]]
            y = [iv.mpf(float(c)) + _dot(u, [row[e] for row in frame]) for e, c in enumerate(tokens[i])]
            s = iv.sqrt(_dot(y, y))
            x = [one / s for one in y]
            p = [_dot(x, row) for row in frame]
            self.t.append(
                [[(b - e * q) / s for b, e in zip(row, x, strict=True)] for row, q in zip(frame, p, strict=True)]
            )
            for where, what in ((self.x, x), (self.y, y), (self.s, s), (self.p, p)):
                where.append(what)

    def pairs(self, beta: Any) -> Pairs:
        """m_i m_j e^{beta (<x_i, x_j> - 1)} and <x_i, x_j> - 1 for i < j."""
        found = {}
        for i, j in itertools.combinations(range(self.n), 2):
            apart = -sum(((a - b) ** 2 for a, b in zip(self.x[i], self.x[j], strict=True)), iv.mpf(0)) / 2
            found[i, j] = (self.masses[i] * self.masses[j] * iv.exp(beta * apart), apart)
        return found

    def gradient(self, pairs: Pairs, order: int = 0) -> list[Any]:
        found = [iv.mpf(0) for _ in range(self.n * self.k)]
        for (i, j), (w, apart) in pairs.items():
            factor = w * apart**order
            for here, there in ((i, j), (j, i)):
                for a in range(self.k):
                    found[here * self.k + a] += factor * _dot(self.x[there], self.t[here][a])
        return found

    def hessian(self, pairs: Pairs, beta: Any, by_beta: bool = False) -> list[list[Any]]:
        k, size = self.k, self.n * self.k
        h = [[iv.mpf(0) for _ in range(size)] for _ in range(size)]
        for (i, j), (weight, apart) in pairs.items():
            w = weight * apart if by_beta else weight
            steep = weight * (1 + beta * apart) if by_beta else weight * beta
            reach = {
                i: [_dot(self.x[j], self.t[i][a]) for a in range(k)],
                j: [_dot(self.x[i], self.t[j][a]) for a in range(k)],
            }
            for e in (i, j):
                for a, b in itertools.product(range(k), repeat=2):
                    bend = -(reach[e][b] * self.p[e][a] + reach[e][a] * self.p[e][b]) / self.s[e]
                    bend -= (1 + apart) * _dot(self.t[e][a], self.t[e][b])
                    h[e * k + a][e * k + b] += w * bend + steep * reach[e][a] * reach[e][b]
            for a, b in itertools.product(range(k), repeat=2):
                mixed = w * _dot(self.t[i][a], self.t[j][b]) + steep * reach[i][a] * reach[j][b]
                h[i * k + a][j * k + b] = h[j * k + b][i * k + a] = mixed
        return h


def _box(setting: tuple[Any, ...], box: dict[str, Any]) -> tuple[tuple[int, int], float, float]:
    """(index, reach, near) of one box: Krawczyk, inertia, rotations."""
    tokens, _, _, slices, planes = setting
    size, r = slices.shape
    rho, middle = float(box["radius"]), float(box["middle"])
    need(0 < rho < 1, "a radius is not between 0 and 1")
    # Taylor's remainders in beta are taken from the middle over the slice, and the equilibrium is that of the middle
    need(box["beta"][0] <= middle <= box["beta"][1], "the middle of a box lies outside its beta")
    still = np.zeros(size)
    centre = still if box["centre"] is None else np.array(box["centre"], float)
    slope = still if box["slope"] is None else np.array(box["slope"], float)
    need(centre.shape == slope.shape == (size,), "centre and slope do not fit")
    b, ball = iv.mpf(middle), interval(*box["beta"])
    tau, zone, wide = ball - b, interval(-rho, rho), box["beta"][0] < box["beta"][1]
    t = [[iv.mpf(float(a)) for a in row] for row in slices]
    exact, slopes = [iv.mpf(float(c)) for c in centre], [iv.mpf(float(c)) for c in slope]
    path = [c + s * tau for c, s in zip(exact, slopes, strict=True)]
    start = _Place(setting, exact)
    residual = start.gradient(start.pairs(b)) + [_dot([row[q] for row in t], exact) for q in range(r)]
    if wide:
        along = _Place(setting, path)
        inside, over = along.pairs(b), along.pairs(ball)
        turned = [_dot(row, slopes) for row in along.hessian(over, ball)]
        drift = [
            a + c + tau * e for a, c, e in zip(turned, along.gradient(inside, 1), along.gradient(over, 2), strict=True)
        ]
        drift += [_dot([row[q] for row in t], slopes) for q in range(r)]
        residual = [one + tau * move for one, move in zip(residual, drift, strict=True)]
    place = _Place(setting, [p + zone for p in path])
    nothing = [iv.mpf(0)] * r
    border = [[row[q] for row in t] + nothing for q in range(r)]
    parts = [Matrix.of([h + t[a] for a, h in enumerate(place.hessian(place.pairs(b), b))] + border)]
    if wide:
        moved = [h + nothing for h in place.hessian(place.pairs(ball), ball, by_beta=True)]
        parts.append(Matrix.of(moved + [[iv.mpf(0)] * (size + r)] * r))
    values, v = np.linalg.eigh(parts[0].floats())
    need(bool(np.abs(values).min() > 0), "the Jacobian is singular")
    y = (v / values) @ v.T
    total, turned_j = parts[0].between(y), parts[0].between(v.T, v)
    for part in parts[1:]:
        total = total.plus(part.between(y).times(tau))
        turned_j = turned_j.plus(part.between(v.T, v).times(tau))
    newton = Matrix.of([[one] for one in residual]).between(y)
    reach = _krawczyk(total, newton, rho)
    rows = [[turn for i in range(len(tokens)) for turn in _turn(place, setting, i, a, c)] for a, c in planes]
    near = _turning(rows, t, slices, rho) if r else rho
    positive, negative = _discs(turned_j)
    return (positive - r, negative - r), reach, near


def _krawczyk(total: Matrix, newton: Matrix, rho: float) -> float:
    """The largest |K - centre| <= |Y F| + |I - Y J| rho, which must stay below rho; as a float above it."""
    one = np.array([[int(a == c) << total.scale for c in range(len(total.middle))] for a in range(len(total.middle))])
    rest = Matrix(one.astype(object) - total.middle, total.radius, total.scale).sizes()
    worst = 0.0
    for a, row in enumerate(rest):
        bound = iv.mpf(int(sum(row))) * iv.mpf(2) ** -total.scale * rho
        bound += iv.mpf(int(newton.sizes()[a][0])) * iv.mpf(2) ** -newton.scale
        need(less(bound, rho), "Krawczyk's operator leaves the box")
        worst = max(worst, float(bound.b))
    return float(np.nextafter(worst, 1))


def _discs(matrix: Matrix) -> tuple[int, int]:
    """Positive and negative eigenvalues, by Gershgorin's discs."""
    size, signs = len(matrix.middle), [0, 0]
    for a in range(size):
        around = sum(int(s) for c, s in enumerate(matrix.sizes()[a]) if c != a) + int(matrix.radius[a][a])
        need(abs(int(matrix.middle[a][a])) > around, "an eigenvalue may be zero")
        signs[0 if matrix.middle[a][a] > 0 else 1] += 1
    return signs[0], signs[1]


def _turn(place: _Place, setting: tuple[Any, ...], i: int, a: int, c: int) -> list[Any]:
    """The velocity of the coordinates u of token i when all turn in the plane (a, c)."""
    tokens, _, frames, _, _ = setting
    d = tokens.shape[1]
    moved = [iv.mpf(0)] * d
    moved[a], moved[c] = -place.y[i][c], place.y[i][a]
    columns = [[iv.mpf(float(z)) for z in tokens[i]], *([iv.mpf(float(z)) for z in row] for row in frames[i])]
    p = _solve([[columns[e][f] for e in range(d)] for f in range(d)], moved)
    # y = (c B)(1, u), so that u = (c B)^-1 y without its first entry, which is 1
    u = _solve([[columns[e][f] for e in range(d)] for f in range(d)], place.y[i])[1:]
    return [p[1 + e] - p[0] * u[e] for e in range(d - 1)]


def _solve(matrix: list[list[Any]], right: list[Any]) -> list[Any]:
    """Gaussian elimination in intervals; a pivot that may be zero is doubt."""
    size, rows = len(right), [[*row, one] for row, one in zip(matrix, right, strict=True)]
    for k in range(size):
        best = max(range(k, size), key=lambda e: abs(float(rows[e][k].mid)))
        rows[k], rows[best] = rows[best], rows[k]
        need(less(0, abs(rows[k][k])), "a pivot may be zero")
        rows[k] = [one / rows[k][k] for one in rows[k]]
        for e in range(size):
            if e != k:
                rows[e] = [one - rows[e][k] * two for one, two in zip(rows[e], rows[k], strict=True)]
    return [row[-1] for row in rows]


def _turning(rows: list[list[Any]], t: list[list[Any]], slices: np.ndarray, rho: float) -> float:
    """R^t T is invertible; every configuration within the returned chart distance can be turned into the slice."""
    r, size = len(rows), len(t)
    product = [[_dot(row, [t[a][q] for a in range(size)]) for q in range(r)] for row in rows]
    inverse = [_solve(product, [iv.mpf(int(e == q)) for e in range(r)]) for q in range(r)]  # its columns
    moves = [sum((abs(row[a]).b for row in rows), iv.mpf(0)) for a in range(size)]
    back = [sum((abs(one).b for one in column), iv.mpf(0)) for column in inverse]
    down = [sum((abs(row[q]) for row in t), iv.mpf(0)) for q in range(r)]
    fastest = max(float(m.b) for m in moves) * 1.0000001
    slowest = max(float(m.b) for m in back) * 1.0000001
    widest = max(float(m.b) for m in down) * 1.0000001
    bound = iv.mpf(rho) / (1 + iv.mpf(fastest) * iv.mpf(slowest) * iv.mpf(widest))
    return float(np.nextafter(float(bound.a), 0))


def _joined(one: dict[str, Any], reach: float, two: dict[str, Any], next_reach: float) -> None:
    """Where two slices meet the zero of one lies in the box of the other."""
    at = iv.mpf(one["beta"][1])
    first, second = at - iv.mpf(one["middle"]), at - iv.mpf(two["middle"])
    gaps = [
        abs(iv.mpf(c) + iv.mpf(s) * first - iv.mpf(e) - iv.mpf(f) * second)
        for c, s, e, f in zip(one["centre"], one["slope"], two["centre"], two["slope"], strict=True)
    ]
    forth = all(less(gap + reach, two["radius"]) for gap in gaps)
    back = all(less(gap + next_reach, one["radius"]) for gap in gaps)
    need(forth or back, f"the boxes that meet at beta = {one['beta'][1]} may hold different zeros")
