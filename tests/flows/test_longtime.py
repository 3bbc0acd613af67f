"""From tokens to consensus: merge times against closed forms and other integrators, the tree, refusals."""

import math
from types import SimpleNamespace

import diffrax
import numpy as np
import pytest
import xarray as xr
from scipy.cluster.hierarchy import is_valid_linkage
from scipy.integrate import solve_ivp

import attnflow as af
from attnflow import theory
from attnflow.errors import InvalidInput
from attnflow.flows.longtime import ensemble, stepper
from tests.conftest import rotation
from tests.marks import graded

ANGLES = np.array([0.0, 0.9, 2.3, 3.9])
MASSES = np.array([0.1, 0.2, 0.3, 0.4])
MODELS = {"SA": af.Softmax(), "USA0": af.Unnormalised()}
TOL = 1e-6


def circle(angles, masses=None):
    return af.from_array(np.stack([np.cos(angles), np.sin(angles)], axis=1), masses=masses)


def long(field, tokens, until=math.inf, **options):
    return af.solve_long(field, tokens, until, method=af.LongTime(**options))


@pytest.fixture(scope="module", params=list(MODELS))
def eight(request):
    """Eight iid tokens on the sphere at beta = 40, followed to consensus."""
    tokens = af.uniform(af.Sphere(3), n=8, seed=4)
    field = af.Attention(40.0, normaliser=MODELS[request.param])
    return field, tokens, long(field, tokens)


@pytest.mark.parametrize(
    ("name", "times"), [("USA0", [78.8524, 29523.7, 1.09984e9]), ("SA", [14.4023, 10959.3, 3.8739e8])]
)
def test_printed_merge_times_and_plateaus(name, times):
    """Four clusters on the circle at beta = 12, merged at angle 1e-3 beta^(-1/2); six digits were printed."""
    field = af.Attention(12.0, normaliser=MODELS[name])
    flow = long(field, circle(ANGLES, MASSES), angle=1e-3 / math.sqrt(12))
    assert flow.outcome.ending.value == "stopped"
    np.testing.assert_allclose(np.exp(flow.merges["log_time"]), times, rtol=1e-5)
    plateaus = flow.tree.plateaus()
    np.testing.assert_allclose(plateaus["level"], [0.3, 0.34, 0.58], atol=1e-15)
    # measured at the beginning of a plateau: the masses, and the pairs, the nearest of which weighs 2 M_p M_q e^(-beta u)
    u = 1 - np.cos(plateaus["angle"].values)
    rest = 1 + 2 * 12 * plateaus["energy"].values - plateaus["level"].values
    assert np.all((rest > 0) & (rest < 0.5 * np.exp(-12 * u)))
    assert np.diff(flow.merges["evaluations"], prepend=0).max() <= 1000


def test_merges_of_a_direct_integration():
    """LSODA on the angles, until the first pair is at the merging angle and, with that pair as one, the second is."""
    beta, angle = 12.0, 1e-3 / math.sqrt(12.0)
    flow = long(af.Attention(beta, normaliser=MODELS["USA0"]), circle(ANGLES, MASSES), angle=angle)
    t, theta, masses, rtol = 0.0, ANGLES.copy(), MASSES.copy(), 1e-10
    for k, (p, q) in enumerate([(0, 1), (1, 2)]):

        def rate(_, theta):
            apart = theta[:, None] - theta[None, :]
            return -(masses * np.exp(beta * (np.cos(apart) - 1)) * np.sin(apart)).sum(axis=1)  # noqa: B023

        def met(_, theta):
            return theta[q] - theta[p] - angle  # noqa: B023

        met.terminal = True
        direct = solve_ivp(rate, (t, 1e6), theta, "LSODA", events=met, rtol=rtol, atol=1e-12)
        t, theta = direct.t[-1], direct.y[:, -1]
        # theirs: rtol in angles becomes beta rtol per step in log t; ours is the estimate that comes with the merge
        steps = len(direct.t)
        np.testing.assert_allclose(
            flow.merges["log_time"].values[k], np.log(t), atol=beta * steps * rtol + flow.merges["error"].values[k]
        )
        theta[p] = (masses[p] * theta[p] + masses[q] * theta[q]) / (masses[p] + masses[q])
        masses[p] += masses[q]
        theta, masses = np.delete(theta, q), np.delete(masses, q)


@graded("name", ["SA", "USA0"])
def test_positions_of_an_implicit_method(name):
    """Kvaerno 5(4) on the full system passes two merges; the clusters are then where ours are."""
    until, rtol = 1e5, 1e-8
    field = af.Attention(12.0, normaliser=MODELS[name])
    method = af.Adaptive(rtol, 1e-11, solver=diffrax.Kvaerno5())
    flow = af.solve(field, circle(ANGLES, MASSES), until, method=method, save=[until], chunk=1, keep=["positions"])
    ours = long(field, circle(ANGLES, MASSES), until, tol=1e-8)
    np.testing.assert_allclose(float(ours.log_time[-1]), math.log(until), atol=1e-8)
    # errors of steps add up, and perturbations shrink or stay (growth below e of the flow that was followed)
    steps = sum(flow.steps.values())
    assert ours.merges["growth"].values[-1] < 1
    np.testing.assert_allclose(flow.positions.values[-1], ours.positions.values[-1], atol=math.e * steps * rtol)


@pytest.mark.parametrize(
    ("beta", "angle", "printed"), [(1e3, 0.5, 116.9877509), (1e3, 1.0, 453.1366788), (1e4, 1.0, 4588.111961), (1e4, math.pi / 2, 9990.789660)]
)  # fmt: skip
def test_log_merge_times_at_large_beta(beta, angle, printed):
    """Two clusters, down to the merging angle of both."""
    flow = long(af.Attention(beta, normaliser=MODELS["USA0"]), circle(np.array([0.0, angle])))
    want = float(theory.merging.log_merge_time(angle, beta, model="USA0"))
    np.testing.assert_allclose(want, printed, rtol=1e-9)
    np.testing.assert_allclose(flow.merges["log_time"].values[0], want, atol=TOL)
    assert flow.merges["evaluations"].values[0] <= 1000
    assert np.isfinite(flow.log_time.values[1:]).all()


def test_eight_clusters_on_the_sphere_at_beta_10_000():
    """No overflow, few evaluations, and merges where the limit staircase puts them, O(log beta / beta) before."""
    beta, tokens = 1e4, af.uniform(af.Sphere(3), n=8, seed=4)
    flow = long(af.Attention(beta, normaliser=MODELS["USA0"]), tokens)
    assert np.diff(flow.merges["evaluations"], prepend=0).max() <= 1000
    for values in flow.dataset.data_vars.values():
        assert not np.isnan(values.values).any()
    limit = theory.merging.limit_staircase(tokens.positions, tokens.masses, model="USA0")
    np.testing.assert_array_equal(flow.merges["first"], limit.first)
    np.testing.assert_array_equal(flow.merges["second"], limit.second)
    late = limit.s - flow.merges["log_time"].values / beta
    # log T = beta u - log(M beta sin^2) + ...: with M >= 1/4 and the angles at hand within 3 log(beta)/beta
    assert np.all(np.abs(late) < 3 * math.log(beta) / beta)


def test_clocks_are_shifts_of_log_time():
    tokens = circle(ANGLES, MASSES)
    times = {
        clock: long(af.Attention(12.0, normaliser=af.Unnormalised(clock)), tokens).merges["log_time"].values
        for clock in ("USA0", "USA", "grad")
    }
    np.testing.assert_allclose(times["USA"], times["USA0"] - 12.0, atol=1e-12)
    np.testing.assert_allclose(times["grad"], times["USA0"] - 12.0 - np.log(12.0), atol=1e-12)
    fast, slow = (long(af.Attention(500.0, normaliser=af.Unnormalised(clock)), tokens) for clock in ("USA", "USA0"))
    np.testing.assert_allclose(fast.dataset["log_speed"][:-1], slow.dataset["log_speed"][:-1] + 500, atol=1e-9)


def test_errors_are_what_is_reported(eight):
    field, tokens, flow = eight
    fine = long(field, tokens, tol=1e-10, angle=float(1e-3 / 40))  # the merging angle belongs to the definition
    coarse = long(field, tokens, tol=1e-4, angle=float(1e-3 / 40))
    for other, factor in ((flow, 1), (coarse, 1)):
        off = np.abs(other.merges["log_time"] - fine.merges["log_time"]).values
        assert np.all(off <= factor * (other.merges["error"].values + fine.merges["error"].values))


def test_the_tree_turns_and_permutes_with_the_tokens(eight):
    field, tokens, flow = eight
    order = np.random.default_rng(0).permutation(8)
    other = long(field, af.from_array((tokens.positions @ rotation(3, 1))[order]))
    allowed = flow.merges["error"].values + other.merges["error"].values
    assert np.all(np.abs(other.merges["log_time"].values - flow.merges["log_time"].values) <= allowed)
    for k in range(8):
        mine, theirs = flow.tree.labels(k)[order], other.tree.labels(k)
        np.testing.assert_array_equal(mine[:, None] == mine[None, :], theirs[:, None] == theirs[None, :])
    points = other.merges["point"].values @ rotation(3, 1).T
    np.testing.assert_allclose(points, flow.merges["point"].values, atol=allowed.max())


def test_merges_are_a_tree_of_counted_tokens(eight):
    _, _, flow = eight
    table, linkage = flow.merges, flow.tree.linkage()
    assert table.sizes["merge"] == 7
    assert is_valid_linkage(linkage)
    np.testing.assert_array_equal(linkage[-1, 3], 8)
    np.testing.assert_allclose(linkage[:, 2], np.logaddexp(0, table["log_time"]))
    counts = table["masses"].values * 8
    np.testing.assert_array_equal(counts, np.rint(counts))
    for k in range(8):  # every token has a label after every merge, that of the first token of its cluster
        label = flow.tree.labels(k)
        assert len(np.unique(label)) == 8 - k
        for name in np.unique(label):
            assert np.flatnonzero(label == name)[0] == name
    np.testing.assert_array_equal(flow.positions.values[-1], np.broadcast_to(flow.positions.values[-1, 0], (8, 3)))


def test_weights_add_up_after_every_merge():
    masses = np.random.default_rng(3).random(8)
    tokens = af.uniform(af.Sphere(3), n=8, seed=4)
    flow = long(af.Attention(40.0), af.from_array(tokens.positions, masses=masses))
    grown = flow.dataset["masses"].values.copy()
    for k in range(7):
        p, q = int(flow.merges["first"][k]), int(flow.merges["second"][k])
        np.testing.assert_allclose(flow.merges["masses"].values[k], [grown[p], grown[q]], rtol=2 * 8 * 2.3e-16)
        grown[p], grown[q] = grown[p] + grown[q], 0.0
        assert abs(grown.sum() - 1) <= 2 * np.finfo(float).eps * 8


def test_energy_never_drops_beyond_the_tolerance(eight):
    """A step moves tokens by tol/(1 + beta) wrongly, and the level 2 beta E0 has slope at most 2 beta; a merge adds the
    relative error of its forces."""
    _, _, flow = eight
    stairs = flow.tree.staircase
    assert np.diff(stairs["level"]).min() >= -2 * TOL
    assert np.all(np.diff(stairs["arc"]) >= 0)
    np.testing.assert_allclose(stairs["level"].values[-1], 1.0, atol=1e-15)
    assert np.diff(flow.energy.values).min() >= -TOL


def test_how_a_plateau_is_left():
    """A pair at angle a closes at the rate M (beta sin^2 - cos) e^(-beta u), along the great circle between the two."""
    beta, angle = 30.0, 1.1
    for name in MODELS:
        flow = long(af.Attention(beta, normaliser=MODELS[name]), circle(np.array([0.2, 0.2 + angle])))
        way = flow.tree.escape(0)
        closed = np.log(beta * np.sin(angle) ** 2 - np.cos(angle)) - beta * (1 - np.cos(angle))
        if name == "SA":  # derivative of sin/(1 + e^(beta u)) instead
            weight = 1 / (1 + math.exp(beta * (1 - np.cos(angle))))
            closed = np.log(2 * weight * (beta * np.sin(angle) ** 2 * (1 - weight) - np.cos(angle)))
        np.testing.assert_allclose(float(way["log_rate"]), closed, rtol=1e-12)
        expected = np.array([[-math.sin(0.2), math.cos(0.2)], [math.sin(0.2 + angle), -math.cos(0.2 + angle)]])
        np.testing.assert_allclose(way["direction"], expected, atol=1e-12)
        plateau = flow.tree.plateaus()
        assert plateau.sizes["plateau"] == 1
        np.testing.assert_allclose(plateau["angle"], [angle], rtol=1e-14)
        assert float(theory.merging.log_plateau_bound(beta, angle, 2)) < plateau["log_end"].values[0]


def test_symmetric_configurations():
    """An antipodal pair stands still to the last bit; a hexagon is left along its rounding, and that is said."""
    pair = long(af.Attention(8.0), af.from_array(np.array([[1.0, 0], [-1.0, 0]])))
    assert pair.outcome.ending.value == "frozen"
    assert pair.merges.sizes["merge"] == 0
    hexagon = long(af.Attention(8.0), af.tokens.ring(af.Sphere(2), n=6))
    assert hexagon.outcome.ending.value == "stopped"
    assert hexagon.merges["undetermined"].values.all()
    skew = long(af.Attention(8.0), circle(np.array([0.0, 0.7, 1.8, 2.6, 3.7, 4.9])))
    assert not skew.merges["undetermined"].values.any()


def test_triple_merges_and_stragglers():
    """Three tokens symmetric about the middle one meet at once, in the middle; a straggler goes to the nearer side."""
    triple = long(af.Attention(20.0), circle(np.array([-0.8, 0.0, 0.8])))
    times = np.exp(triple.merges["log_time"].values)
    # the first two are one at their middle; the third is then within twice the angle, and comes at the rate 1
    assert times[1] - times[0] < math.log(2)
    np.testing.assert_allclose(triple.merges["point"].values[-1], [1.0, 0.0], atol=1e-6)
    straggler = long(af.Attention(60.0), circle(np.array([0.0, 0.75 - 1e-6, 1.5]), np.array([0.45, 0.1, 0.45])))
    assert set(straggler.tree.labels(1)) == {0, 2}
    assert straggler.merges["growth"].values[0] > 3  # it left an unstable equilibrium


@pytest.mark.long
def test_many_tokens_start_with_fast_steps(faults):
    """Of 60 tokens more than 32 are many here; outside of this test more than 512 are."""
    faults.replace("slots of clusters", (8, 32))
    tokens = af.tokens.clustered(
        af.Sphere(3), centres=af.tokens.simplex(af.Sphere(3), n=4).positions, n=60, spread=0.02, seed=0
    )
    flow = long(af.Attention(30.0), tokens, tol=1e-4)
    assert flow.outcome.ending.value == "stopped"
    assert flow.merges.sizes["merge"] == 59
    assert is_valid_linkage(flow.tree.linkage())
    assert flow.tree.plateaus()["clusters"].values[0] == 4


@pytest.mark.long
def test_ensembles_agree_with_single_flows_and_with_the_closed_form():
    tokens = af.uniform(af.Sphere(2), n=2, seed=range(16))
    betas = np.array([20.0, 0.5, 5.0])
    field = af.Attention(af.Along("beta", betas))
    found = af.merge_times(field, tokens)
    assert found.log_time.dims == ("beta", "seed", "merge")
    angle = np.arccos(np.sum(tokens.positions[:, 0] * tokens.positions[:, 1], axis=-1))
    for k, beta in enumerate(betas):
        far = angle > theory.merging.merging_angle(beta)
        want = theory.merging.log_merge_time(angle[far], beta)  # both end at the merging angle
        np.testing.assert_allclose(found.log_time.sel(left=1).values[k][far], want, atol=20 * TOL)
    one = long(af.Attention(20.0), tokens.member(seed=3), sensitive=False)
    np.testing.assert_allclose(found.log_time.values[0, 3], one.merges["log_time"], atol=1e-9)


@pytest.mark.slow
def test_an_ensemble_may_stop_early():
    tokens = af.uniform(af.Sphere(3), n=8, seed=range(3))
    all_ = af.merge_times(af.Attention(40.0), tokens).log_time.values
    some = af.merge_times(af.Attention(40.0), tokens, until=1e6).log_time.values
    done = all_ < math.log(1e6)
    np.testing.assert_array_equal(some[done], all_[done])
    assert np.isinf(some[~done]).all()


def test_groups_of_tokens_become_clusters_at_their_centres():
    """Two tokens at +-0.1 and one apart: a cluster of both masses between the two, on the circle."""
    x, merges = circle([0.1, -0.1, 2.0]).positions, []
    owner = SimpleNamespace(
        physics=SimpleNamespace(tol=0.0), tokens=SimpleNamespace(n=3), late=0.0, unit=1.0,
        _token_masses=lambda: np.array([0.3, 0.3, 0.4]), _bound=lambda spread: spread,
        _followed=lambda state, points, names, log_time: (points, names),
    )  # fmt: skip
    state = SimpleNamespace(x=x, t=1.0, last=SimpleNamespace(energy=0.0, log_speed=0.0), _replace=lambda **_: state)
    collect = SimpleNamespace(merge=lambda **merge: merges.append(merge), row=lambda state, row, arc, due: state)
    points, names = stepper.ClusterStepper._grouped(owner, state, np.array([0, 0, 1]), collect)
    np.testing.assert_allclose(points, [[1.0, 0.0], x[2]], atol=1e-15)
    np.testing.assert_array_equal(names, [0, 2])
    assert [(one["first"], one["second"]) for one in merges] == [(0, 1)]
    assert merges[0]["bound"] == pytest.approx((2 * np.sin(0.05)) ** 2)


def test_the_table_of_an_ensemble():
    """Merges of a call are entered after the earlier ones of the same members, on the clock of the field."""
    owner = SimpleNamespace(shift=np.array([9.0, 0.5, 0.0]), method=SimpleNamespace(sensitive=False))
    tables = np.full((3, 3), np.inf), np.full((3, 3), np.nan), np.zeros((3, 3), int)
    now = ensemble._Systems(None, *tables, np.array([0, 1, 0]))
    rows = np.zeros((2, ensemble.ROWS))
    first = np.full(rows.shape, -1)
    first[0, :2], first[1, 1], first[1, 7] = 0, 3, 3
    records = SimpleNamespace(first=first, filled=np.array([2, 2]), log_t=rows + [[1.0], [2.0]], evaluations=rows + 7)
    ensemble._Ensemble._read(owner, now, np.array([2, 1]), records)
    np.testing.assert_array_equal(now.log_time, [[np.inf] * 3, [np.inf, 2.5, np.inf], [1.0, 1.0, np.inf]])
    np.testing.assert_array_equal(now.made, [0, 2, 2])


@pytest.mark.long
def test_members_go_as_they_would_beside_others():
    """Bit for bit: in another order, with fewer of them, and cut at an end and continued."""
    tokens, field = af.uniform(af.Sphere(2), n=12, seed=range(4)), af.Attention(af.Along("beta", [2.0, 12.0]))
    all_ = af.merge_times(field, tokens).log_time
    turned = af.stack("seed", [3, 2, 1, 0], [tokens.member(seed=k) for k in (3, 2, 1, 0)])
    np.testing.assert_array_equal(af.merge_times(field, turned).log_time.sel(seed=[0, 1, 2, 3]).values, all_.values)
    short = af.merge_times(field, tokens, until=10.0)
    assert 0.1 < float(np.isinf(short.log_time).mean()) < 0.9
    np.testing.assert_array_equal(short.continued(math.inf).log_time.values, all_.values)


@pytest.mark.long
def test_tokens_in_many_dimensions_move_in_their_span():
    """Six tokens in the first 6 of 40 dimensions, turned: the tree is that of the six dimensions, turned.

    Both integrate with errors of log t of TOL per step; positions then differ by about as much.
    """
    few = af.uniform(af.Sphere(6), n=6, seed=3)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((40, 6)))[0].T
    many = af.from_array(np.asarray(few.positions) @ turn, normalise=True)
    want, found = long(af.Attention(8.0), few), long(af.Attention(8.0), many)
    assert found.positions.sizes["dim"] == 40
    for name in ("first", "second"):
        np.testing.assert_array_equal(found.merges[name], want.merges[name])
    np.testing.assert_allclose(found.merges["log_time"], want.merges["log_time"], atol=20 * TOL)
    np.testing.assert_allclose(found.merges["point"].values, want.merges["point"].values @ turn, atol=20 * TOL)
    np.testing.assert_allclose(np.linalg.norm(found.positions, axis=-1), 1, atol=1e-14)
    both = af.merge_times(af.Attention(8.0), many).log_time
    np.testing.assert_allclose(both, want.merges["log_time"], atol=20 * TOL)


@pytest.mark.parametrize(
    ("field", "tokens", "words"),
    [
        (af.Attention(4.0, mask=af.Causal()), circle(ANGLES), "no log-time form"),
        (af.Attention(4.0, value=np.stack([np.eye(2)] * 2)), circle(ANGLES), "Attention has no log-time form"),
        (af.Attention(-1.0), circle(ANGLES), "attraction"),
        (af.Attention(4.0), circle(ANGLES).astype(np.float32), "float32"),
        (af.Attention(4.0), circle(ANGLES, [1, 1, 0, 1]), "mass 0"),
        (af.Attention(4.0), af.from_array(np.eye(3), space=af.Euclidean(3)), "Sphere"),
        (af.Attention(4.0), af.uniform(af.Sphere(3), n=4, seed=[0, 1]), "merge_times"),
    ],
)
def test_refusals_name_what_works(field, tokens, words):
    with pytest.raises(InvalidInput, match=words):
        long(field, tokens)


def test_other_refusals():
    tokens = circle(ANGLES)
    for options in ({"tol": 1e-20}, {"tol": 1.0}, {"angle": 2.0}, {"frames": 1}):
        with pytest.raises(InvalidInput, match=next(iter(options))):
            af.LongTime(**options)
    with pytest.raises(InvalidInput, match="solve_long"):
        af.solve(af.Attention(4.0), tokens, math.inf)
    with pytest.raises(InvalidInput, match="`method` is LongTime.*solve_long"):
        af.solve(af.Attention(4.0), tokens, 1.0, method=af.LongTime())
    with pytest.raises(InvalidInput, match="solve"):
        af.advance(af.Attention(4.0), tokens, 0.0, 1.0, af.LongTime())
    short = long(af.Attention(12.0), tokens, 20.0)
    assert short.outcome.ending.value == "finished"
    with pytest.raises(InvalidInput, match="linkage"):
        short.tree.linkage()


@pytest.mark.long
def test_an_ensemble_of_more_than_eight_tokens_gives_up_slots_and_says_how_far_it_is():
    """Clusters are kept in 32 slots, then in 8: each member goes on as it would alone."""
    tokens, seen = af.uniform(af.Sphere(2), n=12, seed=range(2)), []
    found = af.merge_times(af.Attention(12.0), tokens, on_progress=seen.append)
    assert [p.frames for p in seen] == sorted(p.frames for p in seen)
    assert seen[-1].frames == seen[-1].of == 22
    assert len(seen) > 1
    for seed in range(2):
        one = long(af.Attention(12.0), tokens.member(seed=seed), sensitive=False)
        np.testing.assert_allclose(found.log_time.values[seed], one.merges["log_time"], atol=1e-6)


def test_an_interrupted_flow_in_memory_keeps_its_frames():
    def stop(progress):
        if progress.frames >= 2:
            raise KeyboardInterrupt

    tokens = af.uniform(af.Sphere(3), n=8, seed=0)
    flow = af.solve_long(af.Attention(20.0), tokens, on_progress=stop)
    assert flow.outcome.ending.value == "interrupted"
    assert flow.positions.sizes["time"] > 1
    assert np.isfinite(flow.positions.values).all()


def test_tables_of_merges_without_ends_are_completed():
    """Four tokens in each of two systems, of which one has not come to consensus by the time 300."""
    log_time = xr.DataArray([[0.0, 1.0, np.inf], [0.0, 1.0, 2.0]], dims=("seed", "merge"))
    work = af.flows.MergeTimes(af.Attention(1.0), af.uniform(af.Sphere(3), n=4, seed=[0, 1]), until=300.0)
    merges = work.result(af.flows.Driven(xr.Dataset({"log_time": log_time}), None, {}))
    np.testing.assert_array_equal(merges.followed.values, [math.log(300.0), np.inf])


@pytest.mark.slow
def test_censoring_reaches_means_and_medians():
    """Followed to a time at which about half are in consensus: they have ends, and quantiles know of them."""
    tokens, field = af.uniform(af.Sphere(3), n=8, seed=range(12)), af.Attention(af.Along("beta", [4.0, 12.0]))
    merges = af.merge_times(field, tokens, until=300.0)
    apart = np.isinf(merges.log_time.sel(left=1))
    assert 0 < int(apart.sum()) < 24
    np.testing.assert_allclose(merges.followed.values[apart.values], math.log(300.0), atol=2 * TOL)
    assert np.isinf(merges.followed.values[~apart.values]).all()
    some = merges.survival(beta=4.0)
    assert some.n == 12
    assert 0 < some.censored == int(apart.sel(beta=4.0).sum()) < 12
    assert some.mean().value > float(merges.log_time.sel(left=1, beta=4.0).where(np.isfinite).mean())
    assert merges.survival().n == 24
    with pytest.raises(InvalidInput, match="they have beta, seed"):
        merges.survival(gamma=1.0)
    with pytest.raises(InvalidInput, match="they have beta, seed"):
        merges.survival(beta=5.0)
    with pytest.raises(InvalidInput, match="`left` is 8"):
        merges.survival(left=8)
