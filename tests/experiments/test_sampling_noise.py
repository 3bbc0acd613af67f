"""The influence of the start, and the energy of tokens."""

import numpy as np
import pytest

from attnflow import observe
from attnflow.experiments import kit
from attnflow.fields import Attention
from attnflow.meanfield import CircleBasis, empirical, quiet
from attnflow.tokens import Tokens
from attnflow_gallery.continuity_equation.simulate import start


def test_the_influence_is_the_change_of_the_observables():
    """Along a direction, against a difference of flows; at time 0 harmonics have the deviations of the density."""
    basis = CircleBasis(48)
    density, field = start(basis, "circle"), Attention(9.0)
    found = kit.sampling_noise.influence(field, density, 4, 0.4, (2, 4))
    way = 1e-4 * np.cos(np.arange(97.0)) * (basis.degrees > 0) / (1 + basis.degrees) ** 3
    up, down = (
        kit.sampling_noise.galerkin(field, density, 4, density.coefficients + s * way, 0.4, (2, 4)) for s in (1, -1)
    )
    # the cubic term: |way|^3 times derivatives of order 1 to 100
    np.testing.assert_allclose(found @ way, (up - down) / 2, atol=1e-9)
    theta, rho = basis.points(), np.asarray(density.values)
    waves = np.sqrt(2) * np.cos(theta)
    variance = np.mean(rho * waves**2) - np.mean(rho * waves) ** 2
    assert kit.sampling_noise.deviations(density, found)[0, 0] == pytest.approx(np.sqrt(variance), rel=1e-10)


def test_the_energy_of_tokens_is_the_sum_over_pairs():
    basis, field = CircleBasis(32), Attention(9.0)
    tokens: Tokens = quiet(start(CircleBasis(48), "circle"), 40)
    found = kit.sampling_noise.observe(field, basis, 1, empirical(basis, tokens)[None])[0, -1]
    # e^{-9} I_33(9) is below 1e-18
    assert found == pytest.approx(float(observe.energy(tokens, 9.0)), abs=1e-13)
