"""Rows of `theory.random_layers`."""

import math

import mpmath as mp
import numpy as np

from attnflow.theory import random_layers as room
from tests.degenerate.row import EPS, NEAR, Row, m


def cosine(r, d):
    """E cos for one Gaussian matrix."""
    d, r = m(d), m(r)
    front = 2 / d * (mp.gamma((d + 1) / 2) / mp.gamma(d / 2)) ** 2
    return front * r * mp.hyp2f1(0.5, 0.5, d / 2 + 1, r * r)


def moments(b, d):
    """(A, B) to the second order in b, of an iid matrix: kappa = b sqrt(U), U ~ chi^2_d, r = kappa/d."""
    return [m(b) ** 2 / d] * 2


def logit(u):
    return mp.log(u / (1 - u))


ROWS = [
    *(
        Row(
            "random_layers.simplex_weights",
            f"hardmax of two tokens, rho -> {sign}",
            lambda e, sign=sign: room.simplex_weights(2, math.inf, sign * (1 - e)),
            lambda e, sign=sign: mp.acos(-m(sign * (1 - e))) / mp.pi,
            1e-8 if sign < 0 else 1e-11,  # absolute 1e-17 of at least 5e-9
            1e-15,
        )
        for sign in (1, -1)
    ),
    Row(
        "random_layers.simplex_weights",
        "rho -> 0 and s -> 0: 1/n; rho -> 1: the single integral",
        lambda e: [
            room.simplex_weights(3, 1.0, e),
            room.simplex_weights(3, e, 1.0),
            room.simplex_weights(3, math.inf, e),
            room.simplex_weights(3, 1.0, 1 - e),
        ],
        lambda e: [m(1) / 3, m(1) / 3, m(1) / 3, float(room.simplex_weights(3, 1.0, 1.0))],
        1e-11,
        at=(0.0, 1e-16, 1e-12),
    ),
    *(
        Row(
            "random_layers.mean_cosine",
            f"overlap -> 1, -1 and 0, d = {d}",
            lambda e, d=d: [room.mean_cosine(r, d) for r in (1 - e, -1 + e, e)],
            lambda e, d=d: [cosine(r, d) for r in (1 - e, -1 + e, e)],
            1e-14,
        )
        for d in (2, 3, 64)
    ),
    Row(
        "random_layers.mean_cosine",
        "overlap -> 1 with few rows: 1",
        lambda e: [room.mean_cosine(1 - e, 8, d_k=keys) for keys in (1, 2, 8)],
        lambda e: [1, 1, 1],
        0,
        1e-6,
        at=(0.0, 1e-16, 1e-14),
    ),
    Row(
        "random_layers.hot_pair_collapse_probability",
        "overlap -> -1, 1 and 0",
        lambda e: [room.hot_pair_collapse_probability(r) for r in (-1 + e, 1 - e, e)],
        lambda e: [mp.acos(-m(r)) / mp.pi for r in (-1 + e, 1 - e, e)],
        4 * EPS,
    ),
    Row(
        "random_layers.hot_mean_square",
        "u0 -> 0 and 1",
        lambda e: [room.hot_mean_square(u, 2.0) for u in (e, 1 - e)],
        lambda e: [m(u) / (m(u) + (1 - m(u)) * mp.exp(-2)) if u else 0 for u in (e, 1 - e)],
        8 * EPS,
    ),
    Row(
        "random_layers.attention_moments",
        "b -> 0, without a matrix of few rows",
        lambda e: np.array(room.attention_moments(e, d=3, d_k=None)),
        lambda e: moments(e, 3),
        1e-8 + 1e-12,
        at=(1e-16, 1e-12, 1e-8),
    ),
    Row(
        "random_layers.attention_moments",
        "b -> infinity: m is a unit vector",
        lambda e: room.attention_moments(1 / e, d=5, d_k=7),
        lambda e: room.attention_moments(math.inf, d=5, d_k=7),
        3e-7,
        at=(1e-12, 1e-8),
    ),
    Row(
        "random_layers.simplex_drift",
        "overlap -> 1: 1 - overlap times gamma (1 - f) + g -> 1",
        lambda e: room.simplex_drift(1 - e, 4, 2.0),
        lambda e: 1 - m(1 - e),
        1e-10,
        at=(0.0, 1e-16, 1e-12),
    ),
    Row(
        "random_layers.simplex_growth",
        "b -> 0: rate 1 - 2/n",
        lambda e: room.simplex_growth(4, e),
        lambda e: [m(1) / 4, m(1) / 2],
        1e-10,
        at=(0.0, 1e-16, 1e-12, 1e-8),
    ),
    Row(
        "random_layers.collapse_time",
        "overlap -> overlap0 and 1, at infinite temperature",
        lambda e: [room.collapse_time(4, 0.0, 0.25 + e, overlap0=0.25), room.collapse_time(4, 0.0, 1 - max(e, 1e-16))],
        lambda e: [
            logit((1 + 3 * m(0.25 + e)) / 4) - logit((1 + 3 * m(0.25)) / 4),
            logit((1 + 3 * m(1 - max(e, 1e-16))) / 4) - logit(m(0.25)),
        ],
        16 * EPS,
    ),
    Row(
        "random_layers.simplex_path",
        "near collapse the gap keeps its digits",
        lambda e: room.simplex_path(4, 0.0, -math.log(e), gap=True),
        lambda e: m(4) / 3 / (1 + mp.exp(m(-math.log(e))) / 3),
        64 * EPS,
        at=NEAR,
    ),
    Row(
        "random_layers.poisson_order_mean",
        "u0 -> 0: u0 e^{tau/4}; u0 -> 1",
        lambda e: [room.poisson_order_mean(e, 2.0), room.poisson_order_mean(1 - e, 2.0)],
        lambda e: [m(e) * mp.exp(0.5), 1],
        1e-8,
        at=(0.0, 1e-16, 1e-12),
    ),
    Row(
        "random_layers.poisson_log_order",
        "u0 -> 1",
        lambda e: room.poisson_log_order(1 - e),
        lambda e: mp.log(m(1 - e)),
        4 * EPS,
    ),
    Row(
        "random_layers.small_logit_products",
        "coincident tokens: 1, whatever b",
        lambda e: room.small_logit_products(np.ones((3, 3)), 0.1),
        lambda e: np.ones((3, 3)),
        8 * EPS,
        at=(0.0,),
    ),
    Row(
        "random_layers.uniform_products",
        "b -> 0: b^2 cos(phi)/2",
        lambda e: room.uniform_products(0.7, e),
        lambda e: m(e) ** 2 * mp.cos(m(0.7)) / 2,
        1e-6,
        at=(0.0, 1e-12, 1e-8, 1e-4),
    ),
    Row(
        "random_layers.one_token_decay",
        "d = 2, tau -> 0",
        lambda e: room.one_token_decay(e, 2),
        lambda e: mp.exp(-m(e) / 4),
        4 * EPS,
    ),
    Row(
        "random_layers.overlap_drift",
        "two equal tokens: no drift",
        lambda e: room.overlap_drift(1.0, 1.0, 1.0, 1.0, d=5),
        lambda e: 0,
        0,
        4 * EPS,
        at=(0.0,),
    ),
    Row(
        "random_layers.overlap_variation",
        "two equal tokens: no noise",
        lambda e: room.overlap_variation(1.0, 1.0, 1.0, 1.0, d=5),
        lambda e: 0,
        0,
        4 * EPS,
        at=(0.0,),
    ),
]
