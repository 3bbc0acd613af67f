"""Three clusters on the circle that attract each other and yet stay apart: possible for negative beta only."""

import itertools
import math

import numpy as np

from attnflow.errors import InvalidInput
from attnflow.special.formula import Integers, Reals, formula
from attnflow.special.numbers import ArrayLike
from attnflow.special.roots import root
from attnflow.wording import shown


@formula(counts=Integers(1, 10**6), beta=Reals(-1e6, 0.0, ends="left", scalar=True), relative=1e-11)
def three_clusters(counts: ArrayLike, beta: float) -> np.ndarray:
    """Stable equilibria of three clusters of `counts` equal tokens on the circle: angles opposite them, (states, 3).

    Clusters of masses m_1, m_2, m_3 balance iff g(a_k)/m_k is the same for the three angles a_k in (0, pi), a_k that
    between the other two clusters, with sum a_k = 2 pi and the pull g(a) = e^{beta (cos a - 1)} sin a. SA and USA0
    have the same equilibria. Stable means: all three rates of the clusters but that of rotations are negative, and so
    is the rate -m_k - sum_l m_l g'(angle of k and l) at which tokens leave a cluster of more than one. Equal clusters
    at 120 degrees are stable iff beta < -2/3 (arXiv:2507.22857).

    With t_k = g'(a_k)/m_k a state is stable iff sum t_k > 0 and sum_k<l t_k t_l > 0: at most one t_k is negative. g
    rises to a peak and falls more steeply, so that only the angle of the heaviest cluster can be beyond the peak, and
    there is one stable state at most.
    """
    if counts.shape != (3,):
        raise InvalidInput(f"`counts` is {shown(counts.tolist())}; give the numbers of tokens in three clusters.")
    masses = counts / counts.sum()
    state = _balanced(masses, beta)
    if state is None or not _is_stable(state, masses, counts, beta):
        return np.empty((0, 3))
    return state[None]


@formula(n=Integers(3, 100, scalar=True), tol=Reals(1e-9, 0.1, scalar=True), absolute="tol")
def three_cluster_threshold(n: int, *, tol: float = 1e-4) -> float:
    """The beta below which n equal tokens on the circle have a stable state of three clusters, within `tol`.

    -2/3 if 3 divides n; -2.2124 for 4, -1.4429 for 5 and -1.7169 for 7 tokens. Every way to share n tokens has one such
    beta; the largest is found by bisection of those that are stable where all before them are not.
    """
    if n % 3 == 0:
        return -2 / 3
    splits = [(a, b, n - a - b) for a in range(1, n // 3 + 1) for b in range(a, (n - a) // 2 + 1)]
    largest = -3.0
    for split in reversed(splits):  # nearly equal ones first, which are stable up to a larger beta
        if split == splits[-1] or len(three_clusters(split, largest)):
            largest = _switch(split, largest)
    return largest


def _switch(split: tuple[int, int, int], low: float) -> float:
    """The beta above which clusters of these counts are not stable."""
    return float(root(lambda beta: len(three_clusters(split, float(beta))) - 0.5, low, -2 / 3, largest=-1e-3))


def _balanced(masses: np.ndarray, beta: float) -> np.ndarray | None:
    """The angles that balance and can be stable, if there are such.

    In x = pi - a, whose sum is pi, log g is log sin x - 2 b sin^2(x/2) + 2 b, b = -beta, and the peak is at cos x =
    b sin^2 x. Lighter clusters are beyond it. The heaviest is at or beyond it, where the sum grows with its x; or it is
    before it, where the sum has one minimum and the states that can be stable are between that and the peak.
    """
    b, heaviest = -beta, int(np.argmax(masses))
    quotient = (1 + math.sqrt(1 + 4 * b * b)) / 2
    peak = 2 * math.asin(math.sqrt(1 / (quotient + b) / 2))  # cos x = b/quotient

    def log_pull(x: float) -> float:
        return math.log(math.sin(x)) - 2 * b * math.sin(x / 2) ** 2

    def places(x: float) -> np.ndarray:
        """All x at which the pulls are as the masses: the heaviest cluster at `x`, lighter ones beyond the peak."""
        level, xs = log_pull(x), np.full(3, x)
        for k in np.flatnonzero(masses < masses[heaviest]):
            target = level + math.log(masses[k] / masses[heaviest])
            # in the logarithm of pi - x; sin(e)/e does not underflow
            end = root(
                lambda w, target=target: (
                    w + math.log(np.sinc(math.exp(w) / math.pi)) - 2 * b * math.cos(math.exp(w) / 2) ** 2 - target
                ),
                target - 1.0,
                math.log(math.pi - peak),
                largest=math.log(math.pi - peak),
            )
            xs[k] = math.pi - math.exp(end)
        return xs

    def excess(x: float) -> float:
        return float(places(x).sum()) - math.pi

    def growth(log_x: float) -> float:
        """The derivative of the sum in x, where the heaviest cluster is before the peak."""
        x = math.exp(log_x)
        steepness = [1 / math.tan(y) - b * math.sin(y) for y in places(x)]
        return 1 + sum(steepness[heaviest] / steep for k, steep in enumerate(steepness) if k != heaviest)

    if excess(peak) <= 0:
        x = float(root(excess, peak, math.pi / 3))
    else:
        first = -2 * b - 40  # before it the derivative is constant
        if np.sum(masses == masses[heaviest]) > 1 or first < -700 or growth(first) >= 0:
            return None
        lowest = math.exp(float(root(growth, first, math.log(peak))))
        if excess(lowest) >= 0:
            return None
        x = float(root(excess, lowest, peak))
    unknowns = np.append(places(x), log_pull(x) - math.log(masses[heaviest]))
    for _ in range(3):  # Newton's method on log g - log m = const and the sum: the peak costs no digits
        xs = unknowns[:3]
        matrix = np.zeros((4, 4))
        matrix[range(3), range(3)] = 1 / np.tan(xs) - b * np.sin(xs)
        matrix[:3, 3], matrix[3, :3] = -1.0, 1.0
        pulls = np.log(np.sin(xs)) - 2 * b * np.sin(xs / 2) ** 2 - np.log(masses) - unknowns[3]
        try:
            unknowns = unknowns - np.linalg.solve(matrix, np.append(pulls, xs.sum() - math.pi))
        except np.linalg.LinAlgError:
            return None  # a rate is 0
    return math.pi - unknowns[:3]


def _is_stable(angles: np.ndarray, masses: np.ndarray, counts: np.ndarray, beta: float) -> bool:
    """True if all rates are negative; in units of the common g(a)/m."""
    slopes, matrix = masses * (1 / np.tan(angles) - beta * np.sin(angles)), np.zeros((3, 3))
    for i, j in itertools.permutations(range(3), 2):
        matrix[i, j] = masses[j] * slopes[3 - i - j]
        matrix[i, i] -= masses[j] * slopes[3 - i - j]
    # the eigenvalue of rotations is 0; the other two have this sum and product
    trace = float(np.trace(matrix))
    minors = sum(matrix[i, i] * matrix[j, j] - matrix[i, j] * matrix[j, i] for i, j in ((0, 1), (0, 2), (1, 2)))
    # g'(0) = 1
    unit = math.exp(-beta * (math.cos(angles[0]) - 1)) * masses[0] / math.sin(angles[0])
    leaving = np.diag(matrix) - masses * unit
    return bool(trace < 0 and minors > 0 and (leaving[counts > 1] < 0).all())
