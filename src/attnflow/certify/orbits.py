"""Equilibria near a given configuration: exactly one orbit, with its directions; and branches over intervals of beta.

The system G(u) + T omega = 0, T^t u = 0 has a symmetric Jacobian J = (H T; T^t 0). Krawczyk's operator maps a box into
itself: exactly one zero. Rotations R satisfy R^t G = 0, so omega = 0 where R^t T is invertible. Inertia of J, from
Gershgorin's discs of V^t J V, is that of H on the slice plus (r, r).
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from attnflow.certify.balls import below, finite, flint, hull, largest, precision, span
from attnflow.certify.certificates import BALLS, FLOATS, Certificate, Undecided, certified
from attnflow.certify.charts import Place, Problem, make_problem
from attnflow.errors import InvalidInput
from attnflow.spaces import Sphere
from attnflow.stability import Equilibrium
from attnflow.tokens import Tokens, all_present

BITS = 128
RADII = (1e-9, 1e-10, 1e-11, 1e-12)
ROOM = 1.5
"""How much more than the proof needs: the checker has other inverses and eigenvectors, and its intervals are wider."""
ASSUMES = (
    FLOATS,
    BALLS,
    "tokens are read as directions",
    "Krawczyk's operator: a box mapped into its interior holds exactly one zero [neumaier1990interval]",
    "Gershgorin's discs and Sylvester's law of inertia; inertia of bordered matrices [gould1985practical]",
)


def equilibrium(tokens: Tokens | Equilibrium | ArrayLike, beta: float, *, radius: float | None = None) -> Any:
    """A `Certificate` that exactly one orbit of equilibria of attention passes near these tokens, or `Undecided`.

    The certificate counts unstable, stable and rotational directions, which are the same for SA, USA and USA0.
    `tokens` and `beta` are read as exact floats. Tokens are on a sphere; of their masses only the ratios matter, and
    masses that agree to rounding are taken as equal. `radius` is the half width of the box in the charts; left out,
    1e-9 and smaller ones are tried. Nothing is moved: tokens that are not an equilibrium up to the radius give
    `Undecided`. Milliseconds for 3 tokens, seconds for 30.

    An equilibrium is a zero of the tangential part of sum_j m_j e^{beta (<x_i, x_j> - 1)} x_j, for all i; unstable
    directions are those in which the energy sum_ij m_i m_j e^{beta <x_i, x_j>}/(2 beta) bends upwards.

    ```python
    octahedron = [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]]
    found = attnflow.certify.equilibrium(octahedron, 9.0)
    found.statement, found.claims["unstable"]
    ```
    """
    problem, b = _problem(tokens), finite("beta", beta)
    failed = Undecided("no radius was tried")
    zeros = [0.0] * problem.size
    with precision(BITS):
        for rho in RADII if radius is None else (finite("radius", radius),):
            found = prove_slice(problem, (b, b), b, zeros, zeros, rho)
            if isinstance(found, Undecided):
                failed = found
                continue
            # all that is within `distance` of the tokens can be turned into the box; the zero must be within it as well
            distance = 0.499 * _near(problem, found["rotations"], rho)
            if not found["reach"] * np.sqrt(problem.d - 1) < 0.98 * distance:
                failed = Undecided("the equilibrium is too far from the tokens", f"{found['reach']:.2g} in the chart")
                continue
            found |= {"beta": [b, b], "middle": b, "centre": None, "slope": None}
            return _certificate(problem, (b, b), [found], distance)
    return failed


def branch(
    tokens: Tokens | Equilibrium | ArrayLike, beta: tuple[float, float], *, most: int = 2000, least: float = 1e-6
) -> Any:
    """A `Certificate` of one smooth branch of equilibria over an interval of beta, or `Undecided`.

    `tokens` is an equilibrium at the lower end. The branch is covered by at most `most` slanted boxes, each for a slice
    of beta no shorter than `least`; where a slice would have to be shorter, as at a bifurcation, the answer is
    `Undecided` with the place. In coordinates u of the charts a box is u(beta) = c + s (beta - b) + [-rho, rho].

    ```python
    square = [[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0]]
    found = attnflow.certify.branch(square, (1.0, 1.5))
    found.claims["unstable"], len(found.data["boxes"])
    ```
    """
    problem, (low, high) = _problem(tokens), span("beta", beta)
    if not low < high:
        raise InvalidInput(f"`beta` is {beta!r}; give two numbers, the smaller first.")
    slices: list[dict[str, Any]] = []
    at, step = low, (high - low) / 8
    guess = np.zeros(problem.size)
    with precision(BITS):
        while at < high:
            if len(slices) == most or not step >= least:
                return Undecided("a slice of beta would be too short, or there are too many", f"beta = {at!r}")
            end = min(at + step, high)
            middle = at + (end - at) / 2
            centre, slope = _newton(problem, middle, guess)
            found = prove_slice(problem, (at, end), middle, centre, slope, None)
            if not isinstance(found, Undecided):
                found |= {"beta": [at, end], "middle": middle, "centre": centre, "slope": slope}
            if isinstance(found, Undecided) or not _joined(slices, found, at):
                step /= 2
                continue
            if slices and found["index"] != slices[-1]["index"]:
                return Undecided("the index changes", f"beta = {at!r}")
            slices.append(found)
            at, step, guess = end, step * 1.5, np.array(centre) + np.array(slope) * (end - middle)
        return _certificate(problem, (low, high), slices, None)


def prove_slice(
    problem: Problem,
    beta: tuple[float, float],
    middle: float,
    centre: list[float],
    slope: list[float],
    rho: float | None,
) -> Any:
    """Exactly one zero in the slanted box for every beta of the slice, and its inertia; or Undecided.

    The box is centre + slope (beta - middle) + [-rho, rho] in every coordinate, and [-rho, rho] for omega. Left out,
    rho is four times what the residual asks for.
    """
    module = flint()
    arb, r, size = module.arb, problem.slices.shape[1], problem.size
    exact = [arb(c) for c in centre]
    b, ball = arb(middle), hull(*beta)
    tau = ball - b
    path = [c + arb(s) * tau for c, s in zip(exact, slope, strict=True)]
    t = [[arb(float(a)) for a in row] for row in problem.slices]
    start = Place.at(problem, exact)
    residual = start.gradient(start.weights(b))
    residual += [sum((t[a][k] * exact[a] for a in range(size)), arb(0)) for k in range(r)]
    if beta[0] < beta[1]:
        # G_beta over the slice is G_beta(middle) + tau G_beta,beta: where symmetry makes both vanish they nearly do
        along = Place.at(problem, path)
        inside, over = along.weights(b), along.weights(ball)
        turned = module.arb_mat(along.hessian(over, ball)) * module.arb_mat([[arb(s)] for s in slope])
        pushed = zip(along.gradient(inside, 1), along.gradient(over, 2), strict=True)
        drift = [turned[a, 0] + one + tau * two for a, (one, two) in enumerate(pushed)]
        drift += [sum((t[a][k] * arb(slope[a]) for a in range(size)), arb(0)) for k in range(r)]
        residual = [one + d * tau for one, d in zip(residual, drift, strict=True)]
    column = module.arb_mat([[one] for one in residual])
    if rho is None:
        y = _floats(bordered(problem, start, b))[1]
        if y is None:
            return Undecided("the Jacobian is singular to rounding", f"beta = {beta}")
        rho = max(4 * max(map(largest, (_matrix(y) * column).entries())), 1e-13)
        if not rho < 0.1:
            return Undecided("the residual is too large", f"beta = {beta}")
    zone = hull(-rho, rho)
    box = Place.at(problem, [p + zone for p in path])
    j = bordered(problem, box, b)
    v, y = _floats(j)
    if y is None or v is None:
        return Undecided("the Jacobian is singular to rounding, or not finite", f"beta = {beta}, radius {rho:g}")
    # J over the slice is J(middle) + tau J_beta; tau comes last, so that V^t J_beta V keeps what symmetry cancels
    parts = [(arb(1), j)]
    if beta[0] < beta[1]:
        moved = [row + [arb(0)] * r for row in box.hessian(box.weights(ball), ball, by_beta=True)]
        parts.append((tau, module.arb_mat(moved + [[arb(0)] * (size + r)] * r)))
    approximate = _matrix(y)
    rest = module.arb_mat([[int(a == c) for c in range(size + r)] for a in range(size + r)])
    for factor, part in parts:
        rest -= approximate * part * factor
    rest *= module.arb_mat([[zone]] * (size + r))
    newton = approximate * column
    reach = max(largest(rest[a, 0] - newton[a, 0]) for a in range(size + r))
    if not ROOM * reach < rho:
        return Undecided(f"Krawczyk's operator leaves the box ({reach:.2g} of {rho:.2g})", f"beta = {beta}")
    index = _inertia(v, parts)
    if index is None or min(index) < r:
        return Undecided("an eigenvalue may be zero", f"beta = {beta}, radius {rho:g}")
    rows = box.rotations()
    product = module.arb_mat(rows) * module.arb_mat(t) if r else module.arb_mat(0, 0)
    inverse = _inverse(product, r)
    if inverse is None:
        return Undecided("the rotations are not seen by the slice", f"beta = {beta}, radius {rho:g}")
    return {"index": (index[0] - r, index[1] - r), "radius": rho, "reach": reach, "rotations": (rows, inverse)}


def bordered(problem: Problem, place: Place, beta: Any) -> Any:
    """J = (H T; T^t 0)."""
    module = flint()
    r = problem.slices.shape[1]
    t = [[module.arb(float(a)) for a in row] for row in problem.slices]
    h = place.hessian(place.weights(beta), beta)
    below_h = [[t[a][k] for a in range(problem.size)] + [module.arb(0)] * r for k in range(r)]
    return module.arb_mat([row + t[a] for a, row in enumerate(h)] + below_h)


def _inertia(v: np.ndarray, parts: list[tuple[Any, Any]]) -> tuple[int, int] | None:
    """(positive, negative) eigenvalues of all symmetric matrices in sum of factor part; None where a disc touches 0."""
    left, right = _matrix(v.T), _matrix(v)
    found = sum((left * part * right * factor for factor, part in parts[1:]), left * parts[0][1] * right)
    size, signs = found.nrows(), [0, 0]
    for a in range(size):
        around = sum((found[a, c].abs_upper() for c in range(size) if c != a), flint().arb(0))
        if found[a, a] - ROOM * around > 0:
            signs[0] += 1
        elif found[a, a] + ROOM * around < 0:
            signs[1] += 1
        else:
            return None
    return signs[0], signs[1]


def _inverse(product: Any, r: int) -> Any:
    """An enclosure of the inverses of all matrices in a small one; None where FLINT finds none."""
    if r == 0:
        return product
    try:
        found = product.inv()
    except ZeroDivisionError:
        return None
    return found if all(largest(one) < 1e9 for one in found.entries()) else None


def _near(problem: Problem, rotations: tuple[Any, Any], rho: float) -> float:
    """Every configuration within this chart distance of the tokens can be turned into the box and the slice.

    A token within e of the given one has chart coordinates below 1.1 e, so that half of it is a distance for tokens.
    Turn with the velocity v = -(T^t R)^-1 T^t u(0) of the rotations for unit time: T^t u falls to 0 linearly, and u
    moves by at most |R| |(T^t R)^-1| |T^t| |u(0)|.
    """
    rows, inverse = rotations
    arb, r = flint().arb, len(rows)
    if r == 0:
        return rho
    moves = max(sum((row[a].abs_upper() for row in rows), arb(0)) for a in range(problem.size))
    # (T^t R) is the transpose of R^t T = `rows` T: row sums of the transposed inverse are column sums
    back = max(sum((inverse[a, c].abs_upper() for a in range(r)), arb(0)) for c in range(r))
    down = max(sum((abs(arb(float(one))) for one in column), arb(0)) for column in problem.slices.T)
    return below(arb(rho) / (1 + moves * back * down))


def _joined(slices: list[dict[str, Any]], found: dict[str, Any], at: float) -> bool:
    """Whether the zero of one of the two slices lies, where they meet, in the box of the other: it is the same zero."""
    if not slices:
        return True
    arb, last = flint().arb, slices[-1]
    one, two = (arb(at) - arb(part["middle"]) for part in (last, found))
    ends = zip(last["centre"], last["slope"], found["centre"], found["slope"], strict=True)
    gaps = [abs(arb(c) + arb(s) * one - arb(e) - arb(f) * two) for c, s, e, f in ends]
    return any(
        all(largest(gap + ROOM * arb(inner["reach"])) * ROOM < outer["radius"] for gap in gaps)
        for inner, outer in ((last, found), (found, last))
    )


def _newton(problem: Problem, beta: float, guess: np.ndarray) -> tuple[list[float], list[float]]:
    """A float zero on the slice near `guess` and its derivative in beta: a proposal, which needs no proof."""
    arb, r, size = flint().arb, problem.slices.shape[1], problem.size
    u, b = np.array(guess), arb(beta)
    slope = np.zeros(size)
    for _ in range(6):
        place = Place.at(problem, [arb(float(one)) for one in u])
        weights = place.weights(b)
        gradient = np.array([float(one.mid()) for one in place.gradient(weights)])
        pushed = np.array([float(one.mid()) for one in place.gradient(weights, 1)])
        j = _middle(bordered(problem, place, b))
        right = np.column_stack(
            [np.concatenate([gradient, problem.slices.T @ u]), np.concatenate([pushed, np.zeros(r)])]
        )
        move = -np.linalg.lstsq(j, right, rcond=None)[0][:size]
        slope = move[:, 1]
        u = u + move[:, 0]
        if np.abs(move[:, 0]).max() < 1e-15:
            break
    return [float(one) for one in u], [float(one) for one in slope]


def _middle(matrix: Any) -> np.ndarray:
    return np.array([float(one.mid()) for one in matrix.entries()]).reshape(matrix.nrows(), matrix.ncols())


def _floats(j: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Eigenvectors and inverse of the middle of j, in floats; None where there are none."""
    middle = _middle(j)
    if not np.isfinite(middle).all():
        return None, None
    values, vectors = np.linalg.eigh(middle)
    if np.abs(values).min() == 0:
        return None, None
    return vectors, (vectors / values) @ vectors.T


def _matrix(values: np.ndarray) -> Any:
    module = flint()
    return module.arb_mat([[module.arb(float(one)) for one in row] for row in values])


def _problem(tokens: Any) -> Problem:
    flint()
    if isinstance(tokens, Equilibrium):
        tokens = tokens.tokens
    if isinstance(tokens, Tokens):
        tokens.single()
        all_present(tokens, "a certificate")
        if type(tokens.space) is not Sphere:
            raise InvalidInput(f"`tokens` live on {tokens.space}; certificates of equilibria are about spheres.")
        places, masses = np.asarray(tokens.positions, float), np.asarray(tokens.masses, float)
    else:
        places = np.asarray(tokens, dtype=np.float64)
        masses = np.ones(len(places)) if places.ndim else np.ones(0)
    if places.ndim != 2 or places.shape[0] < 2 or places.shape[1] < 2 or not np.isfinite(places).all():
        raise InvalidInput(f"`tokens` have the shape {places.shape}; give at least two finite points, as (n, d).")
    if np.abs(np.sum(places**2, axis=1) - 1).max() > 1e-6 or not (masses > 0).all():
        raise InvalidInput("`tokens` must be unit vectors with positive masses; divide by the lengths first.")
    if np.ptp(masses) <= 1e-14 * masses.max():
        masses = np.ones(len(masses))
    return make_problem(places, masses)


def _certificate(
    problem: Problem, beta: tuple[float, float], slices: list[dict[str, Any]], distance: float | None
) -> Certificate:
    unstable, stable = slices[-1]["index"]
    claims = {"beta": list(beta), "unstable": unstable, "stable": stable, "rotations": len(problem.planes)}
    if distance is not None:
        claims["distance"] = distance
    data = {
        "tokens": problem.tokens.tolist(),
        "masses": problem.masses.tolist(),
        "frames": problem.frames.tolist(),
        "slices": problem.slices.tolist(),
        "planes": [list(plane) for plane in problem.planes],
        "boxes": [{key: part[key] for key in ("beta", "middle", "radius", "centre", "slope")} for part in slices],
    }
    reach = {"coordinates minus those of the centre": [[-part["reach"], part["reach"]] for part in slices]}
    return certified("branch" if distance is None else "equilibrium", ASSUMES, claims, data, reach)
