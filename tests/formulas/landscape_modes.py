"""Oracles of `theory.landscape`: modes of kernel densities."""

import mpmath as mp

from tests.formulas.oracle import oracle


@oracle("landscape.circle_points", cases=tuple({"angles": angle} for angle in (3.141592653589793, 1e22, 1e308, 6e5)))
def circle_points(angles):
    with mp.workdps(400):
        angle = mp.mpf(angles)
        return [mp.cos(angle), mp.sin(angle)]


@oracle("landscape.two_point_modes")
def two_point_modes(beta):
    """2 less the chance that two samples are less than 2 beta^{-1/2} apart, an integral of the normal density."""
    if beta == 0:
        return mp.mpf(1)
    apart = min(2 / mp.sqrt(mp.mpf(beta)), mp.mpf(40))
    return 2 - mp.quad(lambda u: mp.exp(-(u**2) / 4), mp.linspace(0, apart, 9)) / mp.sqrt(mp.pi)


@oracle("landscape.expected_modes", cases=tuple({"beta": beta} for beta in (1e-8, 9.0, 1e5, 1e154, 1.7e308)))
def expected_modes(beta):
    """From integrals of f'^2 and f''^2 of f = e^{beta cos t}."""
    if beta == 0:
        return mp.mpf(1)
    b, root = mp.mpf(beta), mp.sqrt(1 + mp.mpf(beta))

    def integral(height):
        """Over t = s/root; heights are of order 1, as `quad` stops at an absolute error."""
        return mp.quad(
            lambda s: height(s / root) * mp.exp(-4 * b * mp.sin(s / root / 2) ** 2),
            mp.linspace(0, min(mp.pi * root, 13), 4),
        )

    curved = integral(lambda t: (b * mp.sin(t) ** 2 - mp.cos(t)) ** 2)
    return root * mp.sqrt(curved / integral(lambda t: (root * mp.sin(t)) ** 2))
