"""The limit staircase against the flow of clusters at large beta, and the plateau bound against merge times."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq, minimize_scalar

from attnflow.theory import merging
from attnflow.theory.merging import limit_staircase, log_plateau_bound

EPS = np.finfo(float).eps
MODELS = ["SA", "USA0", "USA"]


def circle(angles):
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def random_clusters(k, d, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((k, d))
    masses = rng.uniform(0.5, 1.5, k)
    return unit(x), masses / masses.sum()


def followed(x, masses, beta, model):
    """(log t, pairs, points) of the merges at a finite beta: weighted clusters in the clock dt = e^{beta u_min} dtau.

    A pair is merged at the angle 1e-3 beta^{-1/2}. Independent of the limit: it knows no closest pair but as a scale.
    """
    x, m, names = x.copy(), masses.copy(), list(range(len(masses)))
    log_t, times, pairs, points = -np.inf, [], [], []
    while len(m) > 1:
        k, d = x.shape

        def depth(y):
            u = ((y[:, None] - y[None]) ** 2).sum(axis=-1) / 2
            np.fill_diagonal(u, np.inf)
            return u

        start = depth(x).min()

        def field(_, state, k=k, d=d, m=m, start=start):
            y = unit(state[:-1].reshape(k, d))
            u = depth(y)
            pull = m * np.exp(-beta * (u - u.min()))
            if model == "SA":
                pull = pull / (m + np.exp(-beta * u) @ m)[:, None]
            to = pull @ y - pull.sum(axis=1, keepdims=True) * y
            to = to - (to * y).sum(axis=1, keepdims=True) * y
            return np.append(to.ravel(), np.exp(beta * (u.min() - start)))

        met = lambda _, state, k=k, d=d: depth(unit(state[:-1].reshape(k, d))).min() - 0.5e-6 / beta  # noqa: E731
        met.terminal = True
        way = solve_ivp(field, (0, 1e4), np.append(x.ravel(), 0.0), "DOP853", rtol=1e-8, atol=1e-10, events=met)
        end = way.y_events[0][0]
        x = unit(end[:-1].reshape(k, d))
        log_t = np.logaddexp(log_t, beta * start + np.log(end[-1]))
        p, q = divmod(int(np.argmin(depth(x))), k)
        times.append(log_t - (beta if model == "USA" else 0))
        pairs.append((names[p], names[q]))
        x[p] = (m[p] * x[p] + m[q] * x[q]) / (m[p] + m[q])
        x[p] /= np.linalg.norm(x[p])
        points.append(x[p])
        m[p] += m[q]
        x, m = np.delete(x, q, axis=0), np.delete(m, q)
        del names[q]
    return np.array(times), pairs, np.array(points)


@pytest.mark.parametrize("model", MODELS)
def test_two_clusters(model):
    angle, masses = 1.3, (0.6, 0.2)
    found = limit_staircase(circle([0.4, 0.4 + angle]), masses, model=model)
    share = 0.04 / 0.40 if model == "SA" else 0.25
    np.testing.assert_allclose(found.s, [1 - np.cos(angle) - (model == "USA")], rtol=8 * EPS)
    np.testing.assert_allclose(found.points, circle([0.4 + share * angle]), atol=4 * EPS)
    np.testing.assert_allclose(found.levels, [0.4, 0.64], rtol=4 * EPS)
    assert (found.first, found.second) == (0, 1)
    np.testing.assert_array_equal(found.masses, [masses])
    np.testing.assert_allclose(found.level_at([-5, found.s[0] - 1e-9, found.s[0], 9]), [0.4, 0.4, 0.64, 0.64])
    alone = limit_staircase([[0.0, 1.0]], [0.5])
    assert alone.s.shape == alone.first.shape == (0,)
    assert alone.points.shape == (0, 2)
    assert alone.level_at(3.0) == 0.25


def test_four_clusters_on_the_circle():
    """Angles 0, .9, 2.3, 3.9 by hand: USA0 gathers at the mass means, SA at the points weighted by m^2."""
    x, masses = circle([0, 0.9, 2.3, 3.9]), [0.1, 0.2, 0.3, 0.4]
    usa0 = limit_staircase(x, masses, model="USA0")
    # .6 is 1.7 away from 2.3, which is 1.6 away from 3.9: these merge, at (.3 2.3 + .4 3.9)/.7
    np.testing.assert_allclose(usa0.levels, [0.30, 0.34, 0.58, 1], rtol=8 * EPS)
    last = (0.3 * 2.3 + 0.4 * 3.9) / 0.7
    angles = np.array([0.9, 1.6, last - 0.6])
    np.testing.assert_allclose(usa0.s, 1 - np.cos(angles), rtol=16 * EPS)
    np.testing.assert_allclose(usa0.points, circle([0.6, last, 0.3 * 0.6 + 0.7 * last]), atol=16 * EPS)
    np.testing.assert_array_equal([usa0.first, usa0.second], [[0, 2, 0], [1, 3, 2]])
    # .72 is 1.58 away from 2.3: in the limit of SA the other pair is the next, and the plateau is .52
    sa = limit_staircase(x, masses)
    np.testing.assert_allclose(sa.levels, [0.30, 0.34, 0.52, 1], rtol=8 * EPS)
    np.testing.assert_array_equal([sa.first, sa.second], [[0, 0, 0], [1, 2, 3]])
    np.testing.assert_allclose(sa.points[1], circle([0.72 + 1.58 / 2])[0], atol=16 * EPS)
    # at beta = 12 the first pair meets before .7, at beta = 400 after it
    assert merging.meeting_point(0.9, 12, masses=(0.1, 0.2)) < 0.7 < merging.meeting_point(0.9, 400, masses=(0.1, 0.2))


@pytest.mark.parametrize("model", MODELS)
def test_merge_times_approach_the_staircase(model):
    """(log T)/beta - s = -(log beta)/beta + O(1/beta) for a pair; O(log beta/beta) for later merges of USA0."""
    beta = np.array([1e3, 1e4])
    s = limit_staircase(circle([0, 1.0]), [0.5, 0.5], model=model).s
    error = merging.log_merge_time(1.0, beta, model=model) / beta - s
    np.testing.assert_allclose(error * beta / np.log(beta), -1, atol=1.5 / np.log(1e3))
    x, masses = circle([0, 0.9, 2.3, 3.9]), [0.1, 0.2, 0.3, 0.4]
    found = limit_staircase(x, masses, model="USA0")
    for b in beta:
        times = [
            merging.log_merge_time(a, b, masses=pair, model="USA0")
            for a, pair in zip(np.arccos(1 - found.s), found.masses, strict=True)
        ]
        # the clusters stand where the limit says, and the time of a merge dwarfs those before it;
        # T = e^{beta u}/(M beta sin^2), and 1/(M sin^2) is below e^2.5 here
        assert np.all(np.abs(np.array(times) / b - found.s) < (np.log(b) + 2.5) / b)


@pytest.mark.parametrize(("model", "seed"), [("USA0", 0), ("USA", 1), ("SA", 2), ("SA", 3)])
def test_the_flow_of_clusters_follows_the_staircase(model, seed):
    beta, k = 1e6, 6
    x, masses = random_clusters(k, 3, seed)
    limit = limit_staircase(x, masses, model=model)
    log_t, pairs, points = followed(x, masses, beta, model)
    assert pairs == list(zip(limit.first, limit.second, strict=True))
    # each merge is off by at most (log beta + 4)/beta: the power of beta, and sines and masses above e^{-4}.
    # SA pairs meet off the limit by the integral of share(q) - share(0) < .3 q, q = e^{-beta (1 - cos)}: less than
    # .3 (pi/2) sqrt(pi/(2 beta)) = .6 beta^{-1/2} a merge, and u moves no more than the points do
    drift = 0.6 * (k - 1) / np.sqrt(beta) if model == "SA" else 0.0
    assert np.all(np.abs(log_t / beta - limit.s) < (np.log(beta) + 4) / beta + drift)
    # tolerance of the integration, over a hundred steps
    assert np.all(np.abs(points - limit.points) < 1e-6 + drift)


def test_four_clusters_of_softmax_change_their_order():
    """The order of the limit appears where the first pair meets after .7: not at beta = 12, but at beta = 400."""
    x, masses = circle([0, 0.9, 2.3, 3.9]), np.array([0.1, 0.2, 0.3, 0.4])
    limit = limit_staircase(x, masses)
    assert followed(x, masses, 12.0, "SA")[1][1] == (2, 3)
    assert followed(x, masses, 400.0, "SA")[1][1] == (limit.first[1], limit.second[1]) == (0, 2)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("d", [2, 3, 7])
def test_rotations_permutations_and_levels(model, d):
    k = 12
    x, masses = random_clusters(k, d, 10 + d)
    found = limit_staircase(x, masses, model=model)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((d, d)))[0]
    order = np.random.default_rng(1).permutation(k)
    moved = limit_staircase((x @ turn)[order], masses[order], model=model)
    # every merge adds a few roundings to the points, and sin(angle) >= .1 here enlarges them
    np.testing.assert_allclose(moved.s, found.s, atol=1e3 * EPS)
    np.testing.assert_allclose(moved.points, found.points @ turn, atol=1e3 * EPS)
    np.testing.assert_allclose(moved.levels, found.levels, rtol=1e2 * EPS)
    np.testing.assert_allclose(np.sort(moved.masses), np.sort(found.masses), rtol=1e2 * EPS)
    # names: the smaller number stays, the larger one never comes back; levels are sums of squares of what is left
    now = dict(enumerate(masses))
    for p, q, (mp, mq), level in zip(found.first, found.second, found.masses, found.levels[1:], strict=True):
        assert p < q
        assert now[p] == pytest.approx(mp, rel=16 * EPS)
        now[p] += now.pop(q)
        assert mq < now[p]
        assert level == pytest.approx(sum(m**2 for m in now.values()), rel=64 * EPS)
    assert found.levels[-1] == pytest.approx(1, rel=64 * EPS)
    assert np.all(np.diff(found.s) >= 0)


def test_a_closer_pair_follows_at_once():
    # the third is nearer to the middle of the first two (.09) than these are to each other (.1)
    tent = unit(np.array([[0, 0, 1.0], [0, 0.1, 1], [0.09, 0.05, 1]]))
    both = limit_staircase(tent, [1, 1, 1], model="USA0")
    assert both.s[0] == both.s[1]
    assert both.level_at(both.s[0]) == 9


@pytest.mark.parametrize("beta", [5.0, 30.0, 200.0, 1e4])
@pytest.mark.parametrize("n", [2, 50, 10**6])
def test_the_plateau_bound_is_the_best_size(beta, n):
    angles = np.array([0.05, 0.3, 0.8, 1.5, 2.3, 3.0, np.pi])
    found = log_plateau_bound(beta, angles, n)
    sizes = np.geomspace(1e-14, 1 / 16, 20000)[:-1]
    for angle, best in zip(angles, found, strict=True):
        overlap = np.cos(np.maximum(angle - 2 * np.arccos(1 - 2 * sizes), 0))
        legal = (1 - overlap - 8 * sizes - np.log(2 * n**2 / sizes) / beta > 0) & (overlap < 1)
        if not legal.any():
            assert np.isnan(best)
            continue
        grid = merging.log_slow_motion_time(beta, overlap[legal], sizes[legal], n=n)
        # the formula of the grid, in 1 - 2 size, loses eps/size of the opening angle
        assert grid.max() <= best + 1e-12 * beta + 1e-9
        # the grid is 1.5e-3 fine in log(size): at a maximum it misses the square of that times f'' = O(1), at the edge
        # of the legal sizes, where f' = O(8 size beta), as much as that
        assert best <= grid.max() + 1e-5 + 1.5e-3 * 2 * 8 * sizes[legal].max() * beta


def test_the_best_size_where_it_is_inside():
    """A maximiser that knows the function alone, from the size 1/(2 beta sin)^2 that leading order gives."""
    beta, angle, n = 400.0, 1.2, 30

    def loss(log_size):
        return -np.log(np.exp(log_size) / n) - beta * (1 - np.cos(angle - 2 * np.arccos(1 - 2 * np.exp(log_size))))

    guess = -2 * np.log(2 * beta * np.sin(angle))
    best = minimize_scalar(loss, bounds=(guess - 2, guess + 2), method="bounded", options={"xatol": 1e-9})
    assert log_plateau_bound(beta, angle, n) == pytest.approx(-best.fun, abs=1e-9)
    # with caps shrinking like 1/beta^2 the bound is e^{beta u - 2}/(4 n beta^2 sin^2), up to O(1/beta)
    leading = 400 * (1 - np.cos(angle)) - 2 - np.log(4 * n * beta**2 * np.sin(angle) ** 2)
    assert log_plateau_bound(beta, angle, n) == pytest.approx(leading, abs=10 / beta)


@pytest.mark.parametrize(("beta", "angle", "n"), [(8.0, 1.8012297892959859, 2), (10.0, 2.265201550013073, 50)])
def test_the_best_size_at_the_edge_of_the_legal_ones(beta, angle, n):
    """Just above the threshold the statement ends before the maximum: the bound there, where gamma is 0, by bisection."""

    def bound(a):
        return 2 * np.log(np.sin(a / 2)) - np.log(n) + 2 * beta * np.sin(angle / 2 - a) ** 2

    def gamma(a):
        return (bound(a) - np.log(2 * n)) / beta - 8 * np.sin(a / 2) ** 2

    opening = np.linspace(1e-3, 0.3, 100_000)
    last = opening[gamma(opening) > 0].max()
    edge = brentq(gamma, last, last + 1e-5, xtol=1e-15)
    assert log_plateau_bound(beta, angle, n) == pytest.approx(bound(edge), abs=1e-10)


def test_the_threshold_of_statements():
    # the number of legal betas is an interval: no statement below it, a growing bound in it
    beta = np.linspace(2, 60, 200)
    found = log_plateau_bound(beta, 1.5, 10)
    begin = int(np.argmax(~np.isnan(found)))
    assert 0 < begin < 199
    assert np.isnan(found[:begin]).all()
    assert (np.diff(found[begin:]) > 0).all()
    # at the edge gamma = 0 means T_2 = 2 n e^{8 size beta} > 2 n
    assert found[begin] > np.log(20)
    assert np.isnan(log_plateau_bound([0.0, 1.0], np.pi, 2)).all()
    assert log_plateau_bound([[30.0], [40.0]], [1.0, 2.0, 3.0], 4).shape == (2, 3)


@pytest.mark.parametrize("n", [2, 3, 20, 1000])
def test_two_clusters_outlive_the_plateau_bound(n):
    """A theorem: tokens in two clusters at `angle` have not met before T_2, however the n tokens are shared."""
    beta, angle = np.meshgrid([5.0, 9.0, 15.0, 30.0, 100.0, 1e3], [0.3, 0.6, 1.0, 1.5, 2.0, 2.5, 3.1])
    bound = log_plateau_bound(beta, angle, n)
    stated = ~np.isnan(bound)
    assert stated.any()
    for few in {1, n // 2}:
        masses = (few / n, 1 - few / n)
        for model in ("SA", "USA0"):
            for a, b, log_time in zip(angle[stated], beta[stated], bound[stated], strict=True):
                # nearer than this, one of the two has left its cap, even that of twice the largest size
                until = max(0.01, a - 2 * np.arccos(7 / 8))
                assert log_time < merging.log_merge_time(a, b, masses=masses, until=until, model=model)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: limit_staircase(circle([0, 1, 2]), [1, 1, 1]), "equally close"),
        (lambda: limit_staircase(circle([0, 1.0, 3.0, 4.0]), [1, 1, 1, 1]), "equally close"),
        (lambda: limit_staircase(circle([0, np.pi]), [1, 2]), "antipodal"),
        # the pair at -.1 and .1 meets at 0, and is then opposite to the third
        (lambda: limit_staircase(circle([-0.1, 0.1, np.pi]), [1, 1, 1]), "antipodal"),
        (lambda: limit_staircase(circle([0.3, 0.3]), [1, 1]), "coincide"),
        (lambda: limit_staircase(2 * circle([0, 1]), [1, 1]), "`positions\\[0\\]` has norm 2"),
        (lambda: limit_staircase([0.0, 1.0], [1]), "`positions` has shape"),
        (lambda: limit_staircase([[0.0, np.nan]], [1]), "`positions` has shape"),
        (lambda: limit_staircase(circle([0, 1]), [1, 0]), "`masses` is"),
        (lambda: limit_staircase(circle([0, 1]), [1]), "`masses` is"),
        (lambda: limit_staircase(circle([0, 1]), [1, 1], model="GD"), "`model` is"),
        (lambda: limit_staircase(circle([0, 1]), [1, 1]).level_at(np.nan), "`s` is"),
        (lambda: log_plateau_bound(10.0, 0.0, 4), "`angle` is"),
        (lambda: log_plateau_bound(10.0, 4.0, 4), "`angle` is"),
        (lambda: log_plateau_bound(-1.0, 1.0, 4), "`beta` is"),
        (lambda: log_plateau_bound(10.0, 1.0, 1), "`n` is"),
        (lambda: log_plateau_bound(10.0, 1.0, 2.5), "`n` is"),
    ],
)
def test_what_cannot_be_determined_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
