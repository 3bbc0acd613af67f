"""Where the uniform measure loses its stability as the noise falls, and which way the ordered states go from there."""

import dataclasses

import numpy as np

from attnflow.checks import ABOVE_ZERO, number, whole
from attnflow.errors import InvalidInput
from attnflow.fields import AbstractField
from attnflow.meanfield.analysis.linearised import linearised, multipliers_of
from attnflow.meanfield.analysis.stationary import Problem
from attnflow.meanfield.harmonics.basis import ZonalBasis
from attnflow.meanfield.harmonics.densities import uniform
from attnflow.meanfield.harmonics.model import as_model
from attnflow.meanfield.harmonics.multipliers import needed_degree


@dataclasses.dataclass(frozen=True)
class Bifurcation:
    """The branch of zonal states that leaves the uniform measure in one degree: kappa(s) for small amplitudes s."""

    degree: int
    kappa: float
    """The noise at which harmonics of this degree neither grow nor decay."""
    eigenvalue: float
    """What the linearised operator says they do there: 0 up to rounding."""
    slope: float
    """kappa'(0), s the coefficient of the zonal harmonic of the degree; 0 where s and -s are images of each other."""
    curvature: float
    """kappa''(0)/2."""

    @property
    def kind(self) -> str:
        """Where the branch goes: "transcritical", "supercritical" (to less noise, continuous) or "subcritical"."""
        if abs(self.slope) > 1e-6 * self.kappa:
            return "transcritical"
        return "supercritical" if self.curvature < 0 else "subcritical"


def bifurcation(field: AbstractField, d: int, degree: int = 1, *, amplitude: float = 0.05) -> Bifurcation:
    """Where harmonics of `degree` lose their decay at the uniform measure on S^(d-1), and where their branch goes.

    Measured: the eigenvalue of the linearised operator at that noise, and the noise of the states whose coefficient of
    the zonal harmonic is +-s, for s = `amplitude` and s/2, extrapolated to s = 0 (error of the order amplitude^4).
    """
    model = as_model(field)
    number("amplitude", amplitude, low=ABOVE_ZERO, high=1.0)
    least = max(32, 12 * whole("degree", degree, 1))
    basis = ZonalBasis(whole("d", d, 2), max(least, needed_degree(float(model.beta), d, 1e-8)))
    onset = float(model.clock_factor * multipliers_of(model, uniform(basis))[degree])
    problem = Problem(field, "kappa", basis, onset)
    row = np.eye(basis.degree)[degree - 1]
    shifts = []
    for s in (amplitude, amplitude / 2):
        pair = [problem.solve(sign * s * row, onset, row, 0.0, sign * s) for sign in (1, -1)]
        if pair[0] is None or pair[1] is None:
            raise InvalidInput(f"`amplitude` is {amplitude}, too large for Newton's method; lower it.")
        up, down = pair[0].p - onset, pair[1].p - onset
        shifts.append(((up - down) / (2 * s), (up + down) / (2 * s**2)))
    slope, curvature = ((4 * fine - coarse) / 3 for coarse, fine in zip(*shifts, strict=True))
    # every degree from 1 on has harmonics in sector 1
    operator = linearised(field, problem.density(np.zeros(basis.degree)), onset, sector=1)
    weights = np.abs(operator.eigenfunctions[:, degree - 1])
    return Bifurcation(degree, onset, float(operator.growth[np.argmax(weights)]), float(slope), float(curvature))
