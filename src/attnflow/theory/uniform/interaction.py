"""The uniform measure under general weights: logits <x, B y> with beta inside B, and values V y."""

import numpy as np

from attnflow.errors import InvalidInput
from attnflow.special.formula import MODEL, Other, Reals, formula
from attnflow.special.numbers import ArrayLike
from attnflow.theory.uniform.spectrum import BETA, DIMENSION, GROWING, critical_noise

ENTRIES = Reals(-1e100, 1e100)
MATRIX = Other("a d x d matrix of numbers from -1e+100 to 1e+100")


@formula(
    points=Other("unit vectors on the last axis"),
    interaction=MATRIX,
    value=MATRIX,
    model=MODEL,
    absolute="1e-14 * (1 + np.linalg.norm(interaction)) * np.linalg.norm(value)"
    " * np.exp(np.minimum(np.linalg.norm(interaction), 700.0) if model == 'USA' else 0.0)",
)
def uniform_velocity(points: ArrayLike, interaction: ArrayLike, value: ArrayLike, *, model: str = "SA") -> np.ndarray:
    """The velocity X(x) = g(|B^T x|) P_x V B^T x of tokens at `points` (..., d) that see the uniform measure.

    B is `interaction`, V is `value`, logits are <x, B y>; g(s) = I_{d/2}(s)/(s I_{d/2-1}(s)) for SA, and times the mean
    weight for USA, whose weights are e^{<x, B y>} (von Mises and Fisher; derived here). USA0 is refused: its clock
    needs a beta, which B contains.

    Arguments:
        points: positions of the tokens.
        interaction: the matrix B.
        value: the matrix V.
        model: "SA" or "USA".
    """
    x, (b, v) = Reals().checked("points", points), _matrices(interaction, value)
    if x.shape[-1:] != (len(b),) or np.abs(np.linalg.norm(x, axis=-1) - 1).max(initial=0.0) > 1e-6:
        raise InvalidInput(f"`points` have the shape {x.shape}; give unit vectors with {len(b)} coordinates.")
    if model == "USA0":
        raise InvalidInput("`model` is 'USA0'; B contains beta, so that weights have no largest value: use 'USA'.")
    key = x @ b
    drive = critical_noise(np.linalg.norm(key, axis=-1), len(b), k=1, model=model)[..., None] * (key @ v.T)
    return np.asarray(drive - np.sum(drive * x, axis=-1, keepdims=True) * x)


@formula(
    interaction=MATRIX,
    value=MATRIX,
    absolute="1e-14 * (1 + np.linalg.norm(interaction) * np.linalg.norm(value)"
    " / np.maximum(np.linalg.norm(np.asarray(value) @ np.transpose(interaction)), 1e-300))",
)
def stationarity_defect(interaction: ArrayLike, value: ArrayLike) -> float:
    """How far V B^T is from c I + S, S skew, [S, B B^T] = 0; the uniform measure is stationary if this is 0.

    The sum of |M_s - (tr M/d) I|/|M| and |[M_a, B B^T]|/(|M| |B B^T|), M = V B^T with the symmetric part M_s and the
    skew part M_a, in Frobenius norms; 0 where M = 0. Conversely, a uniform measure that is stationary for all small
    multiples of B has defect 0; at one scale of B this is known for symmetric M and for M = c I + S (derived here).
    """
    b, v = (matrix / (np.abs(matrix).max() or 1.0) for matrix in _matrices(interaction, value))
    m, square = v @ b.T, b @ b.T
    size = np.linalg.norm(m)
    if size == 0:
        return 0.0
    even, skew = (m + m.T) / 2, (m - m.T) / 2
    turned = np.linalg.norm(skew @ square - square @ skew) / np.linalg.norm(square)
    return float((np.linalg.norm(even - np.trace(m) / len(m) * np.eye(len(m))) + turned) / size)


@formula(
    beta=BETA,
    d=DIMENSION,
    k=GROWING,
    angle=Reals(),
    scale=ENTRIES,
    spin=ENTRIES,
    model=MODEL,
    absolute="1e-15 * (5 + np.sqrt(k)) * (k * np.abs(scale) + 2 * np.abs(spin))"
    " * (1 if model == 'SA' else np.minimum(5 + beta, 750))"
    " * np.exp(np.minimum(beta, 700.0) if model == 'USA' else 0.0)",
)
def turning_rates(
    beta: ArrayLike,
    d: int,
    k: ArrayLike,
    *,
    angle: ArrayLike = 0.0,
    scale: ArrayLike = 1.0,
    spin: ArrayLike = 0.0,
    model: str = "SA",
) -> np.ndarray:
    """Complex growth rate of a harmonic Y of degree k at the uniform measure, for B = beta R and V = (c I + S) R.

    R is orthogonal, S skew, and Y belongs to both: Y(R^{-1} x) = e^{-i angle} Y(x), <S x, grad Y> = i spin Y; c is
    `scale`. With b_k = I_{k+d/2-1}/I_{d/2-1} at beta and b_k' its derivative,

        Lambda = c lambda_k e^{-i angle} - i spin ((b_k' + (d-2) b_k/beta) e^{-i angle} + b_1)

    for SA; for USA a_k = a_0 b_k takes the place of b_k, a_0 the mean weight, and for USA0 e^{-beta} a_k. The real part
    is the growth; a pattern that is e^{i m phi} around an axis turns at -Im Lambda/m. On the circle V = R_psi and
    B = beta R_phi have c = cos(psi - phi), spin = k sin(psi - phi) and angle = k phi. All arguments are
    broadcast. Derived here; the real case is `growth_rates` (arXiv:2410.23228).

    Arguments:
        beta: inverse temperatures.
        d: dimension of the space around the sphere.
        k: degrees.
        angle: angles by which R turns the harmonics.
        scale: coefficients c.
        spin: angular velocities of the harmonics under S.
        model: dynamics of the tokens.
    """
    phase = np.exp(-1j * angle)
    first, local, following = (critical_noise(beta, d, k=j, model=model) for j in (np.ones_like(k), k, k + 1))
    radial = beta * following + (k + (d - 2.0)) * local
    if model == "SA":
        radial = radial - (beta * local) * (beta * first)
    growth = k * ((k + (d - 2.0)) * local)
    return np.asarray(scale * growth * phase - 1j * spin * (radial * phase + beta * first))


def _matrices(interaction: ArrayLike, value: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    b, v = (ENTRIES.checked(name, matrix) for name, matrix in (("interaction", interaction), ("value", value)))
    if b.ndim != 2 or b.shape[0] != b.shape[1] or v.shape != b.shape or len(b) < 2:
        raise InvalidInput(
            f"`interaction` and `value` have the shapes {b.shape} and {v.shape}; give two d x d matrices."
        )
    return b, v
