"""Where the uniform measure loses its stability as the noise falls, and which way the ordered states go from there."""

import dataclasses

import numpy as np

from attnflow.axes import scalar
from attnflow.checks import ABOVE_ZERO, number, whole
from attnflow.errors import InvalidInput
from attnflow.fields import AbstractField
from attnflow.meanfield.basis import ZonalBasis
from attnflow.meanfield.linearised import linearised
from attnflow.meanfield.model import as_model
from attnflow.meanfield.multipliers import needed_degree
from attnflow.meanfield.stationary import Problem
from attnflow.special import bessel_ratios, degree_weights


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


def critical_noise(beta: float, d: int, *, softmax: bool = True, degree: int | None = None) -> float:
    """The noise kappa_c = max_k lambda_k/(k (k+d-2)) below which the uniform measure on S^(d-1) is unstable.

    lambda_k is the growth rate of degree k without noise, so this is max_k a_k/beta (over a_0 for softmax; the clock
    USA0 otherwise). The a_k decrease in k, so degree 1 always decides, whichever degree grows fastest:
    kappa_c = I_{d/2}(beta)/(beta I_{d/2-1}(beta)) for softmax, 1/d at beta = 0. With `degree` the noise at which that
    degree becomes neutral.
    """
    beta = float(scalar("beta", low=0.0)(beta))
    top = 2 + int(4 * np.sqrt(beta)) if degree is None else whole("degree", degree, 1)
    onsets = _onsets(beta, whole("d", d, 2), top, softmax)
    return float(np.max(onsets) if degree is None else onsets[-1])


def bifurcation(field: AbstractField, d: int, degree: int = 1, *, amplitude: float = 0.05) -> Bifurcation:
    """Where harmonics of `degree` lose their decay at the uniform measure on S^(d-1), and where their branch goes.

    Measured: the eigenvalue of the linearised operator at that noise, and the noise of the states whose coefficient of
    the zonal harmonic is +-s, for s = `amplitude` and s/2, extrapolated to s = 0 (error of the order amplitude^4).
    """
    model = as_model(field)
    number("amplitude", amplitude, low=ABOVE_ZERO, high=1.0)
    least = max(32, 12 * whole("degree", degree, 1))
    basis = ZonalBasis(whole("d", d, 2), max(least, needed_degree(float(model.beta), d, 1e-8)))
    onset = float(model.clock_factor) * critical_noise(float(model.beta), d, softmax=model.softmax, degree=degree)
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


def _onsets(beta: float, d: int, top: int, softmax: bool) -> np.ndarray:
    """lambda_k/(k (k+d-2)) at the uniform measure for k = 1, ..., top, by quotients a_{k+1}/a_k, finite at beta = 0."""
    ratios = bessel_ratios(d / 2 - 1, beta, max(top, 2))
    steps = np.concatenate([[1 / (d + beta * ratios[1])], ratios[1:]])[:top]
    return np.asarray(np.cumprod(steps) * (1.0 if softmax else degree_weights(beta, d)[0]))
