"""Gates on the sphere against a table at 40 digits and more (`gates_reference`), and their derivatives."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.integrate import solve_ivp

import attnflow as af
from attnflow.control import Schedule
from attnflow.fields import ReluUnit
from attnflow.fields.exact.gates import gate_flow
from tests.control import gates_reference as reference
from tests.marks import graded

TABLE = {int(d): np.array(rows) for d, rows in json.loads(reference.FILE.read_text()).items()}
WIDEST = max(reference.DIMS)
FEW = 4
"""Tolerances are FEW * eps * condition: the error of rounding the input a few times. The condition is in the table."""


@functools.cache
def inputs(dtype=np.float64):
    """All rows, with zeros after the last coordinate: a gate leaves the subspace of x, w and a alone."""
    found = [row for d in reference.DIMS for row in reference.rows(d)]

    def padded(k):
        return np.array([np.pad(row[k], (0, WIDEST - len(row[k]))) for row in found], dtype)

    return [row[0] for row in found], (*(padded(k) for k in (1, 2, 3)), *np.array([r[4:] for r in found], dtype).T)


@functools.cache
def expected():
    """(ends, log-determinants in the largest dimension, conditions of both)."""
    ends = np.concatenate([np.pad(rows[:, :-5], ((0, 0), (0, WIDEST + 5 - rows.shape[1]))) for rows in TABLE.values()])
    grown, lost, *conditions = np.concatenate([rows[:, -5:] for rows in TABLE.values()]).T
    at, of_grown, of_lost = conditions
    return ends, grown + (WIDEST - 1) * lost, at, of_grown + (WIDEST - 1) * of_lost


def pushed(arrays):
    def one(x, w, a, b, h):
        end, log_det = gate_flow(x[None], w, a, b, h)
        return end[0], log_det[0]

    return [np.asarray(v, float) for v in af.in_float64(jax.jit(jax.vmap(one)))(*arrays)]


def excess(arrays, eps):
    """Errors of positions and log-determinants, as parts of the tolerances."""
    ends, log_dets, at, of_log = expected()
    found, found_log = pushed(arrays)
    parts = np.abs(found - ends).max(axis=1) / at, np.abs(found_log - log_dets) / of_log
    return [np.nan_to_num(part / (FEW * eps), nan=np.inf) for part in parts]


@pytest.mark.slow
def test_near_the_degenerate_family():
    """a = +-w + eps side, b = +-(1 +- eps)|a|, eps = 0, 1e-16, ... 1e-1, and other gates; S^1 to S^6, both signs of h."""
    names, arrays = inputs()
    eps = np.finfo(float).eps
    for part in excess(arrays, eps):
        assert part.max() < 1, names[int(part.argmax())]
    _, _, at, of_log = expected()
    assert np.mean(FEW * eps * at < 1e-13) > 0.9  # most rows are well conditioned
    assert np.mean(FEW * eps * of_log < 1e-12) > 0.6


@pytest.mark.slow
def test_a_wrong_formula_is_seen(faults):
    """Without its first two forms the integral of t/P loses digits near the family."""

    def mutated(start, slope, curve, end, square):
        first, _ = moments(start, slope, curve, end, square)
        return first, (jnp.log(end / start) - slope * first) / jnp.where(curve == 0, 1.0, 2 * curve)

    moments = faults.replace("inverse moments of a gate", mutated)
    names, arrays = inputs()
    parts = np.maximum(*excess(arrays, np.finfo(float).eps))
    wrong = {name for name, part in zip(names, parts, strict=True) if part > 1e3}
    assert len(wrong) > 10


@pytest.mark.slow
def test_single_precision():
    """The same tolerances with the eps of float32, where they are below 1e-2 and the point is not at the border."""
    names, arrays = inputs()
    _, _, at, of_log = expected()
    x, _, a, b, _ = arrays
    inside = np.abs(np.sum(x * a, axis=1) + b) > 1e-4
    good = inside & (at < 1e3) & (of_log < 1e4)
    assert good.mean() > 0.4
    for part in excess(inputs(np.float32)[1], np.finfo(np.float32).eps):
        assert part[good].max() < 1, np.array(names)[good][part[good].argmax()]


def test_the_table_against_scipy():
    """DOP853 at 1e-13, with the divergence integrated along, on S^3."""
    d = 4
    picked = [k for k, row in enumerate(reference.rows(d)) if TABLE[d][k, -3] < 30 and abs(row[5]) <= 5][::12]
    assert len(picked) > 5
    for k in picked:
        name, x, w, a, b, h = reference.rows(d)[k]

        def rate(_, y, w=w, a=a, b=b):
            x, f = y[:d], max(a @ y[:d] + b, 0.0)
            tangent = w - (w @ x) * x
            divergence = (a @ tangent - (d - 1) * f * (w @ x)) if f > 0 else 0.0
            return [*(f * tangent), divergence]

        found = solve_ivp(rate, (0, h), [*x, 0.0], "DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
        end, (grown, lost) = TABLE[d][k, :d], TABLE[d][k, d : d + 2]
        np.testing.assert_allclose(found[:d], end, atol=1e-10, err_msg=name)
        np.testing.assert_allclose(found[d], grown + (d - 1) * lost, atol=1e-9 * (1 + abs(found[d])), err_msg=name)


def narrow_gaps(count, seed=20261117):
    """Gates whose border is a small cap, or none by little: |b| = |a| (1 - delta), delta of both signs to 1e-8."""
    rng = np.random.default_rng(seed)
    x, w, a = (rng.standard_normal((count, 3)) for _ in range(3))
    for v in (x, w, a):
        v[: count // 2, 2] = 0.0  # half of them on the circle, where no way leads around the gap
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    delta = rng.choice([-1, 1], count) * 10 ** rng.uniform(-8, 0, count)
    b = rng.choice([-1, 1, 1], count) * np.linalg.norm(a, axis=1) * (1 - delta)
    return x, w, a, b, 10 ** rng.uniform(-2, 2.5, count)


@pytest.mark.long
def test_no_point_passes_a_narrow_gap():
    """Two halves of a gate are the gate, and all agree with DOP853: a zero of the height far ahead is never passed."""
    x, w, a, b, h = narrow_gaps(60000)
    whole, log_det = pushed((x, w, a, b, h))
    middle, first = pushed((x, w, a, b, h / 2))
    end, second = pushed((middle, w, a, b, h / 2))
    # the half way is rounded, and the rest of the way multiplies that by a ratio of speeds; the time in a narrow gap
    # between two zeros of the height has a condition of its own, for which three digits are left
    late, early = (np.maximum((y * a).sum(axis=1) + b, 0) * np.linalg.norm(w - (w * y).sum(axis=1, keepdims=True) * y, axis=1)
                   for y in (whole, middle))  # fmt: skip
    gained = late / np.where(early > 0, early, 1.0)
    assert (np.abs(end - whole).max(axis=1) < 1e3 * np.finfo(float).eps * (1 + gained)).all()
    moved = ((x * a).sum(axis=1) + b > 1e-6) & (log_det > -20)  # later the height has no digits left
    np.testing.assert_allclose((first + second)[moved], log_det[moved], rtol=1e-9, atol=1e-9)
    few = slice(0, None, 600)
    x, w, a, b, h = (v[few] for v in (x, w, a, b, h))

    def rate(_s, y):
        y = y.reshape(-1, 3)
        push = (h * np.maximum((y * a).sum(axis=1) + b, 0))[:, None] * w
        return (push - (push * y).sum(axis=1, keepdims=True) * y).ravel()

    reference = solve_ivp(rate, (0, 1), x.ravel(), method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    np.testing.assert_allclose(reference.reshape(-1, 3), whole[few], rtol=0, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(("sign", "height"), [(1.0, 0.90934708), (-1.0, 0.57387344)])
def test_the_gate_without_border(sign, height):
    """(1 +- <e, x>) P_x e, with values of DOP853; a point that the schedule takes forth comes back."""
    e = np.eye(3)[0]
    schedule = Schedule(af.Sphere(3), [(ReluUnit(e, sign * e, 1.0), 1.0)])
    end, _ = schedule.push([[0.0, 1.0, 0.0]])
    np.testing.assert_allclose(end[0, 0], height, atol=5e-9)
    np.testing.assert_allclose(schedule.inverse().push(end)[0], [[0.0, 1.0, 0.0]], atol=1e-15)


LINE = np.array([0.3, -0.5, 0.4]), 0.2, 0.7
"""Derivatives are taken along this change of (a, b, h)."""


def near_the_family():
    """(w, x, columns of a, b and h)."""
    e, side = np.array([0.6, 0.0, 0.8]), np.array([0.0, 1.0, 0.0])
    cases = [(sign * e + tilt * side, 1.0 + shift, h) for sign, h in ((1.0, 1.5), (1.0, -2.0))
             for tilt, shift in ((0, 0), (0, 1e-12), (1e-9, 0), (0, -0.3))]  # fmt: skip
    return e, np.array([2.0, -1.0, 2.0]) / 3, [np.array(c) for c in zip(*cases, strict=True)]


def along_the_line(s, a, b, h):
    e, x, _ = near_the_family()
    end, log_det = gate_flow(x[None], e, a + s * LINE[0], b + s * LINE[1], h + s * LINE[2])
    return jnp.append(end[0], log_det[0])


def slope_of(function):
    return lambda s, *rest: jax.jvp(lambda s: function(s, *rest), (s,), (jnp.ones_like(s),))[1]


def differences(a, b, h, order):
    """The derivative of the given order by differences at 200 digits, whose error is some 1e-24."""
    e, x, _ = near_the_family()
    step = mpf(10) ** -12

    def at(s):
        moved = [mpf(c) + s * mpf(v) for c, v in zip(a, LINE[0], strict=True)], mpf(b) + s * mpf(LINE[1])
        end, grown, lost, *_ = reference.solve(x, e, *moved, mpf(h) + s * mpf(LINE[2]), conditions=False)
        return np.array([*end, grown + 2 * lost])

    with mp.workdps(200):
        if order == 1:
            return ((at(step) - at(-step)) / (2 * step)).astype(float)
        return ((at(step) + at(-step) - 2 * at(mpf(0))) / step**2).astype(float)


@graded(("order", "tol"), [(1, 1e-12), (2, 1e-10)], slow=1)
def test_derivatives_near_the_family(order, tol):
    """First and second derivatives; each differentiation divides by some 0.1, and loses a digit or two."""
    function = along_the_line
    for _ in range(order):
        function = slope_of(function)
    _, _, columns = near_the_family()
    found = af.in_float64(jax.jit(jax.vmap(function)))(np.zeros(len(columns[1])), *columns)
    for row, *case in zip(found, *columns, strict=True):
        true = differences(*case, order)
        assert np.abs(row - true).max() < tol * (1 + np.abs(true).max()), case
