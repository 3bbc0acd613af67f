"""Attention on the sphere with matrices: tight clusters, two antipodal clusters, random starts, energies."""

import dataclasses
import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from attnflow import in_float64
from attnflow.axes import Along
from attnflow.experiments import Salted, Study
from attnflow.fields import Attention
from attnflow.flows import Fixed, Solve
from attnflow.observe import energy_rate, interaction_energy
from attnflow.spaces import Sphere
from attnflow.tokens import Measure, Tokens, stack, uniform

KINDS = ("symmetric", "antisymmetric", "-I", "random heads")
"""Kinds of V for tight clusters."""
SHOWN = ("V = I", "two eigenvalues", "V = -I", "antisymmetric V")
EYE = np.eye(3)
TIGHT = 1e-7
"""Size of tight clusters and of disturbances."""
LONG_STEP = 0.2
"""Of random starts."""


@dataclasses.dataclass(frozen=True)
class Parameters(Salted):
    """What is simulated, on the sphere in R^3."""

    tokens: int = 24
    tight: int = 4
    """Tight clusters of each kind, and starts at beta = 0."""
    pairs: int = 6
    """Random heads with two antipodal clusters."""
    ratio: float = 0.7
    """lambda_2/lambda_1 of V where the end of random starts is looked at."""
    betas: tuple[float, ...] = (0.3, 0.6, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0)
    draws: int = 48
    """Random starts for each beta."""
    until: float = 4.0
    legs: int = 32
    steps: int = 6
    """Per leg; half as long ones are taken too, the difference gives the tolerance."""
    end: float = 80.0
    """Where random starts count as ended."""
    states: int = 300
    """In which the energy of one head, and of two, is looked at."""


QUICK = Parameters(tokens=12, tight=1, pairs=2, betas=(0.3, 2.0), draws=6, states=200, legs=16, steps=12)


class Case(NamedTuple):
    """One system: beta, the matrices of two heads, and positions."""

    kind: str
    beta: float
    query: np.ndarray
    key: np.ndarray
    value: np.ndarray
    x: np.ndarray
    frame: np.ndarray = EYE
    """Eigenvectors of both V_h, as columns, and their eigenvalues; for two antipodal clusters."""
    spectra: np.ndarray = np.ones((2, 3))


def cases(parameters: Parameters) -> list[Case]:
    """All systems: two heads each, equal ones where a single head is meant. Those of the kind "start" come last."""
    rng, n = parameters.rng(0), parameters.tokens
    made: list[Case] = []

    def add(kind: str, beta: float, value: Any, x: Any, query: Any = EYE, key: Any = EYE, *pair: Any) -> None:
        q, k, v = (np.broadcast_to(matrix, (2, 3, 3)) for matrix in (query, key, value))
        made.append(Case(kind, beta, q, k, v, x / np.linalg.norm(x, axis=1, keepdims=True), *pair))

    for _, kind in itertools.product(range(parameters.tight), KINDS):
        value = rng.standard_normal((2, 3, 3)) / np.sqrt(3)
        if kind == "-I":
            value = -np.eye(3)
        elif kind != "random heads":
            value = value[0] + (1 if kind == "symmetric" else -1) * value[0].T
        x = rng.standard_normal(3) + np.zeros((n, 1))
        near = x / np.linalg.norm(x, axis=1, keepdims=True) + TIGHT * rng.standard_normal((n, 3))
        add(kind, rng.uniform(0.5, 4.0), value, near, *rng.standard_normal((2, 2, 3, 3)))
    for _ in range(parameters.tight):
        heads = rng.standard_normal((3, 2, 3, 3)) / np.sqrt(3)
        add("beta = 0", 0.0, heads[0], rng.standard_normal((n, 3)), heads[1], heads[2])
    for k in range(parameters.pairs + len(parameters.betas)):
        frame = np.linalg.qr(rng.standard_normal((3, 3)))[0]
        spectra, (query, key) = rng.uniform(-1.0, 1.0, (2, 3)), rng.standard_normal((2, 2, 3, 3)) / np.sqrt(3)
        beta = rng.uniform(0.5, 3.0)
        if k >= parameters.pairs:
            spectra, query, key = np.array([[1.0, *[parameters.ratio] * 2]] * 2), np.eye(3), np.eye(3)
            beta = parameters.betas[k - parameters.pairs]
        half = np.where(np.arange(n) < n // 2, 1.0, -1.0)[:, None]
        x = half * frame[:, 0] + TIGHT * (frame[:, 1] + half * frame[:, 2])
        add("pair", beta, np.einsum("ik,hk,jk->hij", frame, spectra, frame), x, query, key, frame, spectra)
    turning = np.cross(np.eye(3), [0.3, 0.5, 1.0])
    start = rng.standard_normal((n, 3))
    for kind, value in zip(SHOWN, (np.eye(3), np.diag([1.0, 0.5, 0.5]), -np.eye(3), turning), strict=True):
        add(kind, 4.0, value, start)
    for beta, _ in itertools.product(parameters.betas, range(parameters.draws)):
        add("start", beta, np.diag([1.0, parameters.ratio, parameters.ratio]), rng.standard_normal((n, 3)))
    return made


def of_kind(known: list[Case], *kinds: str) -> list[int]:
    """Numbers of the cases of these kinds."""
    return [k for k, case in enumerate(known) if case.kind in kinds]


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Frames of all cases, short ones and those of random starts, and rates of the energy."""
    known, step = cases(parameters), parameters.until / (parameters.legs * parameters.steps)
    first = len(known) - len(of_kind(known, "start"))
    short = _flow(known[:first], parameters.until, parameters.legs, step, {"chords": chords, "pair": pair})
    others: dict[str, Any] = {
        "long": _flow(known[first:], parameters.end, 8, LONG_STEP),
        "energy": (_energies, parameters),
    }
    found: dict[str, xr.Dataset] = {}
    for name in study.along(("short", "others")):
        found |= {name: study.refined(name, short)} if name == "short" else study.parts(others)
    return found


def _flow(known: list[Case], until: float, frames: int, step: float, observe: Any = None) -> Solve:
    numbers = range(len(known))
    batch: dict[str, Any] = {
        name: Along("case", [getattr(case, name) for case in known], labels=numbers)
        for name in ("beta", "query", "key", "value")
    }
    tokens = stack("case", numbers, [Tokens(case.x) for case in known])
    how: Any = {"save": frames, "method": Fixed(step), "observe": observe, "keep": ("positions",)}
    return Solve(Attention(**batch), tokens, until, **how)


def chords(mu: Measure) -> Any:
    """|x_i - x_(i-k)| around the tokens, for k = 1 and 2."""
    x = mu.positions
    return jnp.stack([jnp.linalg.norm(x - jnp.roll(x, k, axis=0), axis=-1) for k in (1, 2)])


def pair(mu: Measure) -> Any:
    """Sum and difference of the first and the last token, which are in opposite clusters if there are two."""
    first, last = mu.positions[0], mu.positions[-1]
    return jnp.stack([first + last, first - last])


def _energies(parameters: Parameters) -> xr.Dataset:
    """Rates of the log of the energy, V_h = Q_h^T K_h symmetric, in random states: one head, and two different ones.

    Three tokens on the circle and large matrices: how often the energy of two heads falls depends much on that.
    """
    tokens = uniform(Sphere(2), n=3, seed=parameters.seeds(range(parameters.states)))
    heads = 3 * parameters.rng(0, 1).standard_normal((parameters.states, 2, 2, 2))
    heads = (heads + np.swapaxes(heads, 2, 3)) / 2

    def rate(matrices: Any, x: Any) -> Any:
        here, energy = Measure(x), Attention(2.0, key=matrices, value=matrices)
        return energy_rate(energy, here) / interaction_energy(energy, here)

    found = in_float64(jax.jit(jax.vmap(rate)))
    rates = [found(kind, np.asarray(tokens.positions)) for kind in (one_head(heads), two_heads(heads))]
    return xr.Dataset({"rate": (("kind", "state"), np.array(rates))})


def one_head(heads: np.ndarray) -> np.ndarray:
    """The first head of every state, twice: as good as once."""
    return heads[:, [0, 0]]


def two_heads(heads: np.ndarray) -> np.ndarray:
    """Both heads of every state."""
    return heads
