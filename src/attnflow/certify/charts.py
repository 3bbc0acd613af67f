"""The energy of tokens in charts of the sphere, in balls: gradient, Hessian, and the directions of rotations.

Token i stands at x = y/|y|, y = c + B u, with c its given position and B a float frame, exact numbers both; u has d - 1
coordinates. With w_ij = e^{beta (<x_i, x_j> - 1)} the gradient is G_ia = m_i sum_j m_j w_ij <x_j, t_ia>, t_ia the
derivative of x_i in u_ia. Its zeros are the equilibria of SA, USA and USA0, and the inertia of its derivative at a zero
is the same for the three and in every chart (Sylvester). The scale of the masses does not matter.
"""

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from attnflow.certify.balls import flint


@dataclass(frozen=True)
class Problem:
    """Tokens (n, d), masses, frames (n, d - 1, d) and slice directions T (n (d - 1), r), all exact floats."""

    tokens: np.ndarray
    masses: np.ndarray
    frames: np.ndarray
    slices: np.ndarray
    planes: tuple[tuple[int, int], ...]
    """The r rotations that T stands for, by their coordinate planes."""

    @property
    def n(self) -> int:
        return self.tokens.shape[0]

    @property
    def d(self) -> int:
        return self.tokens.shape[1]

    @property
    def size(self) -> int:
        """The number of coordinates."""
        return self.n * (self.d - 1)

    @cached_property
    def inverses(self) -> list[Any]:
        """The inverses of the matrices with columns c_i and B_i."""
        module = flint()
        found = []
        for i in range(self.n):
            rows = np.vstack([self.tokens[i], self.frames[i]]).T
            found.append(module.arb_mat([[module.arb(float(a)) for a in row] for row in rows]).inv())
        return found


def make_problem(tokens: np.ndarray, masses: np.ndarray) -> Problem:
    """Frames and slices for these tokens: floats, whose rounding does not matter because they are read exactly.

    Of the d (d - 1)/2 rotations those are left out that move the tokens no differently from the others.
    """
    n, d = tokens.shape
    frames = np.empty((n, d - 1, d))
    for i, x in enumerate(tokens):
        frames[i] = np.linalg.svd(x[None, :])[2][1:]
    moves, planes = np.zeros((n * (d - 1), 0)), []
    for a, b in itertools.combinations(range(d), 2):
        turned = np.zeros_like(tokens)
        turned[:, a], turned[:, b] = -tokens[:, b], tokens[:, a]
        move = np.einsum("nad,nd->na", frames, turned).ravel()
        rest = move - moves @ (moves.T @ move)
        if np.linalg.norm(rest) > 1e-6 * np.sqrt(n):
            moves = np.column_stack([moves, rest / np.linalg.norm(rest)])
            planes.append((a, b))
    return Problem(tokens, masses, frames, moves, tuple(planes))


def _dot(a: Any, b: Any) -> Any:
    return sum((p * q for p, q in zip(a[1:], b[1:], strict=True)), a[0] * b[0])


@dataclass(frozen=True)
class Place:
    """A box of configurations in the charts, with what gradient and Hessian are made of."""

    problem: Problem
    u: list[list[Any]]
    x: list[list[Any]]
    s: list[Any]
    t: list[list[list[Any]]]
    p: list[list[Any]]

    @classmethod
    def at(cls, problem: Problem, flat: list[Any]) -> "Place":
        """The configurations with these coordinates, one ball each."""
        arb = flint().arb
        k = problem.d - 1
        us, xs, ss, ts, ps = [], [], [], [], []
        for i in range(problem.n):
            u = flat[i * k : (i + 1) * k]
            frame = [[arb(float(a)) for a in row] for row in problem.frames[i]]
            y = [arb(float(c)) for c in problem.tokens[i]]
            y = [one + _dot(u, [row[e] for row in frame]) for e, one in enumerate(y)]
            s = _dot(y, y).sqrt()
            x = [one / s for one in y]
            p = [_dot(x, row) for row in frame]
            us.append(u)
            xs.append(x)
            ss.append(s)
            ts.append([[(b - one * p[a]) / s for b, one in zip(row, x, strict=True)] for a, row in enumerate(frame)])
            ps.append(p)
        return cls(problem, us, xs, ss, ts, ps)

    def weights(self, beta: Any) -> dict[tuple[int, int], tuple[Any, Any]]:
        """For pairs i < j: m_i m_j w_ij, and <x_i, x_j> - 1 = -|x_i - x_j|^2/2, which keeps its sign."""
        arb, found = flint().arb, {}
        masses = [arb(float(m)) for m in self.problem.masses]
        for i, j in itertools.combinations(range(self.problem.n), 2):
            apart = -sum(((a - b) * (a - b) for a, b in zip(self.x[i], self.x[j], strict=True)), arb(0)) / 2
            found[i, j] = masses[i] * masses[j] * (beta * apart).exp(), apart
        return found

    def gradient(self, weights: dict[tuple[int, int], tuple[Any, Any]], order: int = 0) -> list[Any]:
        """The derivative of G in beta of this order, G itself at 0."""
        arb, k = flint().arb, self.problem.d - 1
        found = [arb(0)] * self.problem.size
        for (i, j), (w, apart) in weights.items():
            factor = w
            for _ in range(order):  # a power of a ball that touches 0 is not a number to FLINT
                factor *= apart
            for a in range(k):
                found[i * k + a] += factor * _dot(self.x[j], self.t[i][a])
                found[j * k + a] += factor * _dot(self.x[i], self.t[j][a])
        return found

    def hessian(
        self, weights: dict[tuple[int, int], tuple[Any, Any]], beta: Any, by_beta: bool = False
    ) -> list[list[Any]]:
        """The derivative of G in u, symmetric; or the derivative of that in beta.

        The second derivative of x in u_a and u_b is -(t_b p_a + t_a p_b)/s - x <t_a, t_b>, with s = |y| and
        p_a = <x, B_a>.
        """
        arb, k = flint().arb, self.problem.d - 1
        h = [[arb(0)] * self.problem.size for _ in range(self.problem.size)]
        for (i, j), (weight, apart) in weights.items():
            # w (A + beta B) has the derivative w apart (A + (beta + 1/apart) B), written without the quotient
            w, steep = (weight * apart, weight * (1 + beta * apart)) if by_beta else (weight, weight * beta)
            mine = [_dot(self.x[j], self.t[i][a]) for a in range(k)]
            yours = [_dot(self.x[i], self.t[j][a]) for a in range(k)]
            for here, reach in ((i, mine), (j, yours)):
                t, p, s = self.t[here], self.p[here], self.s[here]
                for a in range(k):
                    for b in range(a, k):
                        bend = -(reach[b] * p[a] + reach[a] * p[b]) / s - (1 + apart) * _dot(t[a], t[b])
                        h[here * k + a][here * k + b] += w * bend + steep * reach[a] * reach[b]
            for a in range(k):
                for b in range(k):
                    h[i * k + a][j * k + b] = w * _dot(self.t[i][a], self.t[j][b]) + steep * mine[a] * yours[b]
        for a in range(self.problem.size):
            for b in range(a):
                h[a][b] = h[b][a]
        return h

    def rotations(self) -> list[list[Any]]:
        """How the coordinates move when all tokens turn, a row for each plane: u' = p - p_0 u, (p_0, p) = (c B)^-1 A
        y.
        """
        module = flint()
        rows: list[list[Any]] = []
        for a, b in self.problem.planes:
            row: list[Any] = []
            for i, inverse in enumerate(self.problem.inverses):
                y = [module.arb(0)] * self.problem.d
                y[a], y[b] = -self.x[i][b] * self.s[i], self.x[i][a] * self.s[i]
                moved = inverse * module.arb_mat([[one] for one in y])
                row += [moved[1 + e, 0] - moved[0, 0] * u for e, u in enumerate(self.u[i])]
            rows.append(row)
        return rows
