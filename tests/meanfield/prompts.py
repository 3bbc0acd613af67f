"""What tests of densities with places share."""

import numpy as np

import attnflow as af
from attnflow import meanfield as mf

CIRCLE, ZONAL = mf.CircleBasis(20), mf.ZonalBasis(3, 14)
ONE, TWO = mf.Places(nodes=16), mf.Places((0, 0.25, 1), 8)
"""The same number of nodes, so that one compiled program serves both."""
TIGHT = {"rtol": 1e-12, "atol": 1e-13}


def causal(beta, slope=0.0, **rest):
    return af.Attention(beta, mask=af.Causal(slope=slope), **rest)


def formula(place, theta):
    return 1 + 0.3 * np.cos(theta) + 0.3 * place * np.cos(2 * theta - 1)


def end(field, start, until, **rest):
    return mf.evolve_placed(field, start, until, save=1, **rest).last


def close(one, two, atol):
    np.testing.assert_allclose(one.coefficients, two.coefficients, atol=atol)
