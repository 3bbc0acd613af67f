"""The tables of `theory` against enclosures: rates, dominant degrees, thresholds, merge times, overlaps, expected modes.

What is printed in tests/theory has six to ten digits; enclosures have thirty. The floats of theory are asked to be
within 1e-12 of them, relative: sums and quotients of some hundred terms, each rounded to 1.1e-16.
"""

import itertools
from fractions import Fraction

import flint
import numpy as np

from attnflow import certify, theory
from attnflow.certify import Ball

NEAR = 1e-12
BETAS = (0.5, 1.0, 2.0, 5.0, 9.0, 20.0, 100.0)
DEGREES = {
    2: (1, 1, 2, 3, 4, 6, 14, 45, 141),
    3: (1, 1, 2, 3, 4, 6, 14, 44, 141),
    4: (1, 1, 1, 2, 3, 5, 13, 44, 140),
    8: (1, 1, 1, 1, 2, 4, 11, 42, 138),
    64: (1, 1, 1, 1, 1, 1, 3, 23, 114),
}
THRESHOLDS = {
    2: "1.044457 3.165434 6.211298 10.228483 15.236277 21.240452 28.242957 36.244583",
    3: "1.816155 4.425293 7.962380 12.477433 17.984894",
    4: "2.528520 5.655823 9.698786 14.717612 20.727556",
}
MODES = {1: "1.284403", 2: "1.724570", 5: "2.721468", 9: "3.659448", 20: "5.466463", 100: "12.242402"}


def near(ball, value):
    """Whether a float is near all numbers of a ball, which is narrow itself."""
    assert ball.rad < 1e-14 * abs(ball.mid)
    return abs(float(value) - ball.mid) <= NEAR * abs(ball.mid)


def test_growth_rates():
    """k (k + d - 2) I_{k+nu}(beta)/(beta I_nu(beta)), nu = d/2 - 1."""
    for d, beta in itertools.product((2, 3), BETAS):
        found = theory.uniform.growth_rates(beta, d, k=np.arange(1, 7))
        with flint.ctx.workprec(128):
            b, nu = flint.arb(beta), flint.arb(d - 2) / 2
            for k, value in enumerate(found, 1):
                exact = k * (k + d - 2) * b.bessel_i(k + nu) / (b * b.bessel_i(nu))
                assert near(Ball(exact), value)


def test_dominant_degrees():
    for d, degrees in DEGREES.items():
        for beta, degree in zip((*BETAS, 1000.0, 10000.0), degrees, strict=True):
            found = certify.dominant_degree(beta, d)
            assert found.claims["degree"] == degree == theory.uniform.dominant_degree(beta, d)


def test_thresholds():
    for d, digits in THRESHOLDS.items():
        for k, text in enumerate(digits.split(), 1):
            ball = certify.switching_threshold(k, d, digits=20)
            assert f"{ball.mid:.6f}" == text
            assert near(ball, theory.uniform.switching_threshold(k, d))


def test_merge_times():
    """From angles 0.5 to 3 down to 0.01; and their logarithms at beta = 1000."""
    for beta, angle in itertools.product((1, 5, 10, 20), (0.5, 1.0, 1.5, 2.0, 3.0)):
        for model in ("USA0", "SA"):
            ball = certify.merge_time(angle, beta, until=0.01, model=model)
            assert near(ball, theory.merging.merge_time(angle, beta, until=0.01, model=model))
    for angle, text in ((0.5, "116.9877509"), (1.0, "453.1366788")):
        exact = certify.merge_time(angle, 1000, until=0.01, model="USA0").arb
        with flint.ctx.workprec(128):
            log = Ball(exact.log())
        assert f"{log.mid:.7f}" == text
        assert near(log, theory.merging.log_merge_time(angle, 1000, masses=(0.5, 0.5), until=0.01, model="USA0"))


def equiangular_time(overlap, beta, n):
    """(J + (n - 1) L)/(2n), the time from overlap 0 under SA; L = log((1 + (n - 1) g)/(1 - g)), J of Ei and E_1."""
    with flint.ctx.workprec(192 + 4 * beta):
        arb = flint.arb
        g, b = arb(overlap), arb(beta)
        way = ((1 + (n - 1) * g) / (1 - g)).log()
        if not beta:
            return Ball(way / 2)
        small = b / (n - 1)
        far = -(-small).ei() + (-small * (1 + (n - 1) * g)).ei()
        j = b.ei() - (b * (1 - g)).ei() + (b * n / (n - 1)).exp() * far
        return Ball((j + (n - 1) * way) / (2 * n))


def test_equiangular_times():
    for n, beta in itertools.product((8, 32, 128), (0, 1, 2, 4, 6, 9)):
        assert near(equiangular_time(0.99, beta, n), theory.uniform.equiangular_time(0.99, beta, n))
    for n, beta in itertools.product((8, 128), (20, 1000)):
        with flint.ctx.workprec(128):
            log = Ball(equiangular_time(0.99, beta, n).arb.log())
        assert near(log, theory.uniform.log_equiangular_time(0.99, beta, n))


def test_expected_modes_and_jumps():
    for beta, text in MODES.items():
        ball = certify.expected_modes(Fraction(beta))
        assert f"{ball.mid:.6f}" == text
        assert near(ball, theory.landscape.expected_modes(beta))
    for d in (2, 3, 8):
        assert near(certify.jump_threshold(d), theory.uniform.jump_threshold(d))
