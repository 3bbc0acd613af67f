"""Rows of `theory.causal`."""

import functools
import math

import mpmath as mp

from attnflow.theory import causal as room
from tests.degenerate.row import DISTANCES, EPS, NEAR, Row, m
from tests.degenerate.uniform import rate


def ratio(place, source, slope):
    p, s, lam = m(place), m(source), m(slope)
    return mp.log(p / s) if lam == 0 else mp.log(mp.expm1(lam * p) / mp.expm1(lam * s))


def hops(c, y):
    return m(c) * mp.hyp0f1(2, m(c) * m(y))


def graphon(place, source, slope):
    p, s, lam = m(place), m(source), m(slope)
    return 1 / p if lam == 0 else lam * mp.exp(-lam * (p - s)) / -mp.expm1(-lam * p)


def early(c, y):
    """P(N_c > N_y) for Poisson variables."""
    c, y = m(c), m(y)

    def term(k):
        below = mp.nsum(lambda j: mp.exp(-y) * y**j / mp.factorial(j), [0, k - 1])
        return mp.exp(-c) * c**k / mp.factorial(k) * below

    return mp.fsum(term(k) for k in range(1, 60))


def cap(angle, d):
    half = m(d - 1) / 2
    return mp.betainc(half, half, 0, mp.sin(m(angle) / 2) ** 2, regularized=True)


def centres(n, angle, d):
    v = cap(angle, d)
    return -mp.expm1(n * mp.log1p(-v)) / v if v < 1 else m(1)


ROWS = [
    *(
        Row(
            "causal.log_place_ratio",
            f"source -> place, slope = {slope:g}",
            lambda e, slope=slope: room.log_place_ratio(0.7, 0.7 - e, slope),
            lambda e, slope=slope: ratio(0.7, 0.7 - e, slope),
            16 * EPS,
        )
        for slope in (0.0, 1e-8, 50.0)
    ),
    Row(
        "causal.log_place_ratio",
        "slope -> 0",
        lambda e: room.log_place_ratio(0.7, 0.3, e),
        lambda e: ratio(0.7, 0.3, e),
        16 * EPS,
    ),
    Row(
        "causal.graphon",
        "slope -> 0, and source = place",
        lambda e: [room.graphon(0.7, 0.3, e), room.graphon(0.7, 0.7, 3.0)],
        lambda e: [graphon(0.7, 0.3, e), graphon(0.7, 0.7, 3.0)],
        16 * EPS,
    ),
    Row(
        "causal.hop_sum",
        "y -> 0 and c -> 0, where I_1(z)/z is 0/0",
        lambda e: [room.hop_sum(2.0, e), room.hop_sum(e, 2.0)],
        lambda e: [hops(2.0, e), hops(e, 2.0)],
        64 * EPS,
    ),
    Row(
        "causal.log_hop_sum",
        "y -> 0",
        lambda e: room.log_hop_sum(2.0, e),
        lambda e: mp.log(hops(2.0, e)),
        64 * EPS,
    ),
    Row(
        "causal.hop_ratios",
        "y -> 0: c/k",
        lambda e: room.hop_ratios(2.0, e, 2)[1],
        lambda e: hops_slope(2.0, e),
        16 * EPS,
    ),
    *(
        Row(
            f"causal.{name}",
            f"source -> place, slope = {slope:g}",
            lambda e, log=log, slope=slope: (room.log_correlation if log else room.correlation)(
                2.0, 0.7, 0.7 - e, slope=slope
            ),
            lambda e, log=log, slope=slope: (mp.log if log else m)(
                graphon(0.7, 0.7 - e, slope) * hops(2.0, ratio(0.7, 0.7 - e, slope))
            ),
            64 * EPS,
        )
        for name, log in (("correlation", False), ("log_correlation", True))
        for slope in (0.0, 1e-12, 3.0)
    ),
    Row(
        "causal.pair_correlation",
        "source -> place, slope -> 0: one number",
        lambda e: [
            room.pair_correlation(1.0, 0.5, 0.5 * (1 - e), slope=e),
            room.pair_correlation(1.0, 0.5 * (1 - e), 0.5, slope=e),
        ],
        lambda e: [pairs_at_one_place()] * 2,
        1e-4 + 1e-12,
        at=(0.0, 1e-12),
    ),
    *(
        Row(
            f"causal.{name}",
            "share -> place: c against y = 0",
            lambda e, name=name: getattr(room, name)(1.3, 1 - e),
            lambda e, log=log, scale=scale: log(scale * early(1.3, mp.log(1 / m(1 - e)))),
            64 * EPS,
            at=NEAR,
        )
        for name, log, scale in (
            ("early_share", m, 1),
            ("early_signal", m, mp.exp(m(1.3))),
            ("log_early_signal", lambda x: mp.log(x), mp.exp(m(1.3))),
        )
    ),
    *(
        Row(
            f"causal.{name}",
            "c -> 0, where all of the signal is late",
            lambda e, name=name: getattr(room, name)(e, 0.5),
            lambda e, log=log: log(mp.exp(m(e)) * (1 - early(e, mp.log(2)))),
            64 * EPS,
            16 * EPS,
        )
        for name, log in (("late_signal", lambda x: x), ("log_late_signal", lambda x: mp.log(x)))
    ),
    Row(
        "causal.takeover_time",
        "share -> place: log 2 (1 + y)",
        lambda e: room.takeover_time(1 - e),
        lambda e: mp.log(2) * (1 + mp.log(1 / m(1 - e))),
        64 * EPS,
        4 * EPS,
        at=(1e-16, 1e-12),
    ),
    *(
        Row(
            f"causal.{name}",
            "beta -> 0",
            lambda e, name=name, log=log: getattr(room, name)(1, e, 3, model="grad"),
            lambda e, log=log: log(rate(1, e, 3) * (mp.sinh(m(e)) if e else m(0))),
            64 * EPS,
            at=NEAR if name == "log_rates" else DISTANCES,
        )
        for name, log in (("rates", lambda x: x), ("log_rates", lambda x: mp.log(x)))
    ),
    *(
        Row(
            f"causal.{name}",
            "beta -> 0: a token weighs as much as another",
            lambda e, name=name: getattr(room, name)(e, 3),
            lambda e, log=log: log(mp.exp(m(e)) * m(e) / mp.sinh(m(e)) if e else m(1)),
            16 * EPS,
            2 * EPS,  # the logarithm is e to absolute accuracy
        )
        for name, log in (("softmax_dilution", lambda x: x), ("log_softmax_dilution", lambda x: mp.log(x)))
    ),
    *(
        Row(
            "causal.strong_centres",
            f"angle -> {end}, d = {d}",
            lambda e, at=at, d=d: room.strong_centres(n=3, angle=at(e), d=d),
            lambda e, at=at, d=d: centres(3, at(e), d),
            64 * EPS,
        )
        for d in (2, 3, 8)
        for end, at in (
            ("pi/2", lambda e: math.pi / 2 + e),
            ("pi", lambda e: math.pi - e),
            ("0", lambda e: max(e, 1e-100)),
        )
    ),
    Row(
        "causal.renyi_centres",
        "angle -> 2 pi/3, where M has a kink, and pi, where it jumps",
        lambda e: [room.renyi_centres(2 * math.pi / 3 - e - 1e-13), room.renyi_centres(math.pi - e - 1e-13)],
        lambda e: [2 + mp.mpf(0), 2],
        1e-15,
        1e-3,
        at=(0.0, 1e-12, 1e-8, 1e-4),
    ),
    Row(
        "causal.recency_threshold",
        "slope -> 0",
        lambda e: room.recency_threshold(e),
        lambda e: -2 * mp.expm1(-m(e)),
        4 * EPS,
    ),
    Row(
        "causal.last_middle_time",
        "slope -> 0: as `recency_threshold`",
        lambda e: room.last_middle_time(e),
        lambda e: -2 * mp.expm1(-m(e)),
        1e-9,
        at=(1e-8, 1e-4),
    ),
]


def hops_slope(c, y):
    """psi'/psi = c 0F1(3, cy)/(2 0F1(2, cy))."""
    c, y = m(c), m(y)
    return c / 2 * mp.hyp0f1(3, c * y) / mp.hyp0f1(2, c * y)


@functools.cache
def pairs_at_one_place():
    """g + the integral of g(p, v)^2 over v < p at p = 1/2, slope 0, c = 1."""
    inner = mp.quad(lambda y: mp.exp(-y) * hops(1.0, y) ** 2, [0, 4, 16, 64])
    return 2 * hops(1.0, 0.0) + 2 * inner
