"""Flows on the circle: inside their tubes at 50 digits, confirmed by the checker; wrong bounds are caught by both."""

import itertools

import flint
import mpmath
import numpy as np
import pytest

from attnflow import certify
from attnflow.certify.tubes import Setting, Tube, advance, log_norm
from attnflow.errors import InvalidInput
from tests.certify import reference
from tests.certify.false import changed

START = [0.3, 2.0, 4.5]


def tube(angles, beta, until, *, masses=None, model="SA", digits=14, ball=0.0, order=None, tol=None):
    """The last tube of a flow: exact centres as numbers of mpmath, and the radius."""
    with flint.ctx.workprec(64 + 5 * digits):
        arb = flint.arb
        setting = Setting.of(beta, np.array(masses or [1.0] * len(angles)), model)
        found = Tube([0.0], [arb(float(t)) for t in angles], arb(ball), [ball])
        for _ in advance(setting, found, until, order or digits, tol or 10.0**-digits):
            pass
        with mpmath.workdps(60):
            return [mpmath.mpf(c.str(50, radius=False)) for c in found.centre], found.errors[-1]


@pytest.mark.parametrize(
    ("angles", "beta", "masses", "model"),
    [
        (START, 4.0, [1.0, 2.0, 0.5], "SA"),
        ([0.0, 3.0, 3.2], 3.0, None, "USA0"),
    ],
)
def test_flows_are_inside_their_tubes(angles, beta, masses, model):
    """The tube has a radius below 1e-13; the reference says itself that it is off by less than a hundredth of it.

    Twenty starts at 50 digits are in campaigns/certificates.py.
    """
    centre, radius = tube(angles, beta, 1.0, masses=masses, model=model)
    exact, error = reference.flow(angles, beta, 1.0, masses=masses, softmax=model == "SA", steps=6, rows=9, digits=35)
    assert error < 0.01 * radius
    assert radius < 1e-13
    assert max(abs(a - b) for a, b in zip(centre, exact, strict=True)) <= radius


@pytest.mark.slow
def test_every_corner_of_a_ball_stays_inside_and_the_checker_agrees():
    found = certify.circle_flow(START, 2.0, 1.0, ball=1e-3)
    assert certify.check(found).confirmed
    end, radius = np.array(found.claims["end"]), found.claims["radius"]
    for signs in itertools.product((-1, 1), (-1, 1), (1,)):  # the others are mirrored: the error is nearly odd
        corner = [t + s * 0.000999 for t, s in zip(START, signs, strict=True)]
        exact, error = reference.flow(corner, 2.0, 1.0, steps=4, rows=5, digits=20)
        assert np.abs(np.array(exact, dtype=float) - end).max() + float(error) < radius
    # rotations by the ball are among the starts, so that no smaller radius can be true
    assert radius > 1e-3
    one = found.to_json()
    for change in (
        lambda c: c["claims"].update(radius=9e-4),
        lambda c: c["claims"].update(ball=2e-3),
        lambda c: c["claims"]["end"].__setitem__(0, end[0] + 2 * radius),
        lambda c: c["claims"].update(until=1.5),
        lambda c: c["claims"].update(model="USA0"),
        lambda c: c["claims"].update(beta=[1.0, 1.0]),
        lambda c: c["data"]["masses"].__setitem__(0, 3.0),
        lambda c: c["data"]["angles"].__setitem__(1, 2.1),
        lambda c: c["data"]["times"].__delitem__(0),
        lambda c: c["data"]["times"].__setitem__(1, float("nan")),
    ):
        assert not certify.check(changed(one, change)).confirmed


def test_a_wrong_growth_of_errors_is_caught(faults):
    """Without growth the tube keeps its radius, and corners of the ball leave it: START repels two of its tokens."""
    faults.replace("growth of errors in a tube", lambda setting, places, error: flint.arb(0))
    found = certify.circle_flow([0.0, 1.4, 2.8], 4.0, 4.0, ball=1e-3)
    assert not certify.check(found).confirmed
    end, radius = np.array(found.claims["end"]), found.claims["radius"]
    exact, _ = reference.flow([-0.000999, 1.4, 2.800999], 4.0, 4.0, steps=16, rows=5, digits=20)
    assert np.abs(np.array(exact, dtype=float) - end).max() > radius


def test_a_wrong_defect_is_caught(faults):
    """Without the last coefficient the tube is thinner than the error of the polynomial."""
    whole = faults.replace("defect of a tube", lambda defect, last, h: whole(defect, [flint.arb(0) for _ in last], h))
    centre, radius = tube(START, 2.0, 1.0, order=6, tol=1e-12)
    exact, _ = reference.flow(START, 2.0, 1.0, steps=4, rows=8, digits=30)
    assert max(abs(a - b) for a, b in zip(centre, exact, strict=True)) > radius
    faults.replace("order of a tube", lambda digits, ball: 4)
    found = certify.circle_flow(START, 2.0, 1.0)
    assert not certify.check(found).confirmed


def test_the_bound_of_growth_is_that_of_the_jacobian():
    """Against finite differences of the velocity in NumPy: 1e-6 for a step of 1e-5 and third derivatives below 1e3."""
    rng = np.random.default_rng(2)
    for model, beta in itertools.product(("SA", "USA0"), (0.5, 6.0)):
        theta, masses = rng.uniform(0, 6, 4), rng.uniform(0.5, 2, 4)
        shares = masses / masses.sum()

        def velocity(x, shares=shares, beta=beta, model=model):
            s = x[None, :] - x[:, None]
            w = shares * np.exp(beta * (np.cos(s) - 1))
            return (w * np.sin(s)).sum(axis=1) / (w.sum(axis=1) if model == "SA" else 1)

        step = 1e-5
        jacobian = np.column_stack(
            [(velocity(theta + step * e) - velocity(theta - step * e)) / (2 * step) for e in np.eye(4)]
        )
        off = jacobian - np.diag(np.diag(jacobian))
        norm = (np.diag(jacobian) + np.abs(off).sum(axis=1)).max()
        with flint.ctx.workprec(100):
            arb = flint.arb
            setting = Setting.of(beta, masses, model)
            bound = float(log_norm(setting, [arb(float(t)) for t in theta], arb(0)))
        assert abs(bound - norm) < 1e-6


@pytest.mark.slow
def test_named_starts_and_balls_of_starts_go_to_consensus():
    angles = [0.2, 1.9, 3.3, 5.1]  # no half circle holds them
    assert certify.circle_consensus(angles, 2.0).claims["time"] > 0
    found = certify.circle_consensus(angles, 2.0, ball=1e-3)
    assert certify.check(found).confirmed

    def early(one):  # no half circle yet
        keep = next(k for k, t in enumerate(one["data"]["times"]) if t >= 0.25)
        one["data"]["times"] = one["data"]["times"][: keep + 1]
        one["claims"]["time"] = one["data"]["times"][-1]

    assert not certify.check(changed(found, early)).confirmed
    # an equilibrium stays where it is, and so does the ball around it: nothing is proved
    ring = [0.0, 2 * np.pi / 3, 4 * np.pi / 3]
    assert isinstance(certify.circle_consensus(ring, 2.0, ball=1e-3, until=2.0), certify.Undecided)
    inside = certify.circle_consensus([0.0, 1.0, 3.0], 5.0)
    assert inside.claims["time"] == 0.0


def test_bad_flows_are_refused():
    with pytest.raises(InvalidInput, match="at least two"):
        certify.circle_flow([1.0], 1.0, 1.0)
    with pytest.raises(InvalidInput, match="beta"):
        certify.circle_flow(START, -1.0, 1.0)
    with pytest.raises(InvalidInput, match="ball"):
        certify.circle_flow(START, 1.0, 1.0, ball=2.0)
