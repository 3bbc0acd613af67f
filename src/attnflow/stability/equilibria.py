"""Equilibria: found by Newton's method, followed in a parameter, collected and classified."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from attnflow.checks import generator
from attnflow.errors import InvalidInput
from attnflow.fields import AbstractField, Attention, Unnormalised
from attnflow.fields.argument_checks import checked_arguments
from attnflow.observe import Clusters, clusters, energy, overlaps
from attnflow.spaces import Sphere
from attnflow.stability.hessian import Spectrum, jacobian, spectrum
from attnflow.stability.operators import tangent_bases
from attnflow.tokens import Tokens

SAME = 1e-6


@dataclasses.dataclass(frozen=True)
class Equilibrium:
    """A configuration at which every velocity vanishes."""

    tokens: Tokens
    residual: float
    """Largest speed left."""
    iterations: int
    spectrum: Spectrum

    @property
    def clusters(self) -> Clusters:
        """Groups of coinciding tokens."""
        return clusters(self.tokens, scale=1e-4)

    @property
    def is_consensus(self) -> bool:
        """Whether all tokens coincide."""
        return self.clusters.count == 1

    @property
    def is_strict_saddle(self) -> bool:
        """Whether a small push grows: the flow leaves it from almost every nearby start."""
        return self.spectrum.unstable


@checked_arguments
def find_equilibrium(
    field: AbstractField, tokens: Tokens, *, tol: float = 1e-12, most: int = 200
) -> Equilibrium | None:
    """The equilibrium that a damped Newton iteration reaches from `tokens`; None when it does not settle.

    Each step solves (J^T J + damping) v = -J^T F on the tangent spaces and moves by retraction; the damping (Levenberg
    and Marquardt) deals with the neutral directions that rotations always give.
    """
    now, damping = tokens, 1e-2
    force = _force(field, now)
    for step in range(most):
        size = float(np.linalg.norm(force))
        if np.abs(force).max() <= tol:
            return Equilibrium(now, float(np.abs(force).max()), step, spectrum(field, now))
        matrix = jacobian(field, now)
        normal = matrix.T @ matrix
        for _ in range(30):
            try:
                move = -np.linalg.solve(normal + damping * size * np.eye(len(normal)), matrix.T @ force)
            except np.linalg.LinAlgError:
                damping *= 10
                continue
            there = _moved(now, move)
            then = _force(field, there)
            if np.linalg.norm(then) < size:
                now, force, damping = there, then, max(damping / 10, 1e-14)
                break
            damping *= 10
        else:
            return None
    return None


def continue_equilibrium(
    make: Callable[[float], AbstractField], tokens: Tokens, values: Iterable[float]
) -> Iterator[Equilibrium]:
    """Follow an equilibrium through the parameter `values`; stops where Newton's method no longer settles nearby."""
    now = tokens
    for value in values:
        found = find_equilibrium(make(value), now)
        if found is None:
            return
        yield found
        now = found.tokens


def find_equilibria(*, n: int, d: int, beta: float, starts: int = 100, seed: int = 0) -> list[Equilibrium]:
    """The critical points of the energy of n equal tokens on S^{d-1} that Newton's method finds from random starts.

    Starts are iid tokens and iid clusters of coinciding tokens. Configurations that differ by a rotation or a
    permutation count once; they are sorted by energy, consensus last. Nothing proves that the list is complete. SA and
    USA have the same equilibria; the spectra are those of USA0.
    """
    if n < 2 or starts < 1:
        raise InvalidInput(f"`n` is {n} and `starts` {starts}; give at least two tokens and one start.")
    space, field, rng = Sphere(d), Attention(beta, normaliser=Unnormalised()), generator(seed)
    found: list[tuple[np.ndarray, Equilibrium]] = []
    for k in range(starts):
        distinct = n if k % 2 == 0 else int(rng.integers(1, n + 1))
        points = space.sample(rng, distinct)
        choice = np.concatenate([np.arange(distinct), rng.integers(0, distinct, n - distinct)])
        one = find_equilibrium(field, Tokens(points[choice], space=space))
        if one is None:
            continue
        # the sorted spectrum of the Gram matrix and its sorted row sums see neither rotations nor permutations
        gram = overlaps(one.tokens)
        mark = np.concatenate([np.linalg.eigvalsh(gram), np.sort(gram.sum(axis=1)), np.sort(gram.ravel())])
        if all(np.abs(mark - other).max() > SAME for other, _ in found):
            found.append((mark, one))
    return sorted((e for _, e in found), key=lambda e: float(energy(e.tokens, beta)))


def _force(field: AbstractField, tokens: Tokens) -> np.ndarray:
    v = field.velocity(tokens)
    return np.einsum("nad,nd->na", tangent_bases(tokens), v).ravel()


def _moved(tokens: Tokens, move: np.ndarray) -> Tokens:
    frames = tangent_bases(tokens)
    step = np.einsum("na,nad->nd", move.reshape(frames.shape[:2]), frames)
    return tokens.moved(np.asarray(tokens.space.retract(np.asarray(tokens.positions) + step)))
