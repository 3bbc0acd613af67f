"""Inputs near degenerate ones, whose truth is known otherwise: none of them may give a false certificate."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np

from attnflow import certify

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.certify.shapes import ring


def adversaries(rng: np.random.Generator, count: int, fixed: bool) -> dict[str, Any]:
    """Inputs near degenerate ones: certificates, undecided answers, and false certificates; `fixed` adds named ones."""
    tally: dict[str, dict[str, int]] = {}
    false: list[str] = []

    def note(name: str, found: Any, truth: Callable[[dict[str, Any]], bool]) -> None:
        row = tally.setdefault(name, {"proved": 0, "undecided": 0})
        proved = isinstance(found, certify.Certificate)
        row["proved" if proved else "undecided"] += 1
        if proved and not truth(found.claims):
            false.append(f"{name}: {found.statement}")

    for _ in range(int(0.3 * count)):  # the index of the triangle changes at -2/3, which is no float
        beta = float(-2 / 3 + rng.choice([-1, 1]) * 10 ** rng.uniform(-17, -1))
        index = 2 if 3 * mpmath.mpf(beta) > -2 else 0
        note("triangle", certify.equilibrium(ring(3, 2), beta), lambda c, index=index: c["unstable"] == index)
    for _ in range(
        int(0.2 * count)
    ):  # a ring with noise: equilibria have equal gaps, the tokens may be off by `distance`
        n = int(rng.integers(3, 7))
        noise = 10 ** rng.uniform(-16, -3) * rng.standard_normal(n)
        angles = 2 * np.pi * np.arange(n) / n + noise
        off = float(np.abs(np.diff(noise, append=noise[0])).max())
        found = certify.equilibrium(np.column_stack([np.cos(angles), np.sin(angles)]), 2.0)
        note(
            "ring with noise",
            found,
            lambda c, off=off, n=n: c["unstable"] == n - 1 and off < 2.1 * c["distance"] + 1e-14,
        )
    for _ in range(int(0.3 * count)):  # two angles have two modes if beta sin^2 h > cos h, exactly
        low, high = 1.0, float(1.0 + rng.uniform(0.2, 2.5))
        with mpmath.workdps(60):
            h = (mpmath.mpf(high) - mpmath.mpf(low)) / 2
            edge = mpmath.cos(h) / mpmath.sin(h) ** 2
            beta = float(edge * (1 + int(rng.choice([-1, 1])) * mpmath.mpf(10) ** float(rng.uniform(-16, -1))))
            modes = 2 if beta * mpmath.sin(h) ** 2 > mpmath.cos(h) else 1
        if beta > 0:
            note("two angles", certify.circle_modes([low, high], beta), lambda c, m=modes: c["modes"] == m)
    edges = {(k, d): certify.switching_threshold(k, d) for k in (1, 2, 3) for d in (2, 3, 5)}
    for _ in range(int(0.2 * count)):
        k, d = list(edges)[int(rng.integers(len(edges)))]
        edge = edges[k, d]
        beta = float(edge.mid * (1 + rng.choice([-1, 1]) * 10 ** rng.uniform(-17, -1.5)))
        degree = k if edge.arb > beta else k + 1
        low = float(beta - abs(rng.choice([0.0, 1e-3])))
        same = degree == k or bool(edge.arb < low)
        note("degree", certify.dominant_degree((low, beta), d), lambda c, g=degree, s=same: s and c["degree"] == g)
    if not fixed:
        return {"cases": tally, "false": false}
    for beta in (-1e-9, 0.0, 1e-9):
        note(
            "square near 0",
            certify.equilibrium(ring(4, 2), beta),
            lambda c, b=beta: c["unstable"] == (3 if b > 0 else 2) and b != 0,
        )
    note("four tokens at 0", certify.circle_equilibria(n=4, beta=0.0), lambda c: False)
    for beta in (0.15, 0.19, 0.2, 0.21, 0.3):  # 3+1+1 exists for beta > log(3/2)/2 = 0.20273
        found = certify.circle_equilibria(n=5, beta=beta)
        note("five tokens", found, lambda c, b=beta: len(c["classes"]) == (7 if b > 0.20274 else 6) and c["euler"] == 0)
    return {"cases": tally, "false": false}
