"""Rows of `theory.merging`."""

import math

import mpmath as mp
import numpy as np

from attnflow.theory import merging as room
from tests.degenerate.row import EPS, NEAR, Row, m


def closing(theta, beta, masses):
    """The closing speed of a pair of SA."""
    m1, m2 = masses
    q = mp.exp(-m(beta) * 2 * mp.sin(theta / 2) ** 2)
    return (m2 * q / (m1 + m2 * q) + m1 * q / (m2 + m1 * q)) * mp.sin(theta)


def time(angle, until, beta, masses=(1, 1)):
    """The time of a pair of SA, by quadrature in log tan."""
    first, last = (mp.log(mp.tan(m(a) / 2)) for a in (until, angle))

    def slowness(z):
        theta = 2 * mp.atan(mp.exp(z))
        return mp.sin(theta) / closing(theta, beta, [m(x) for x in masses])

    return mp.quad(slowness, mp.linspace(first, last, 3))


def meeting(angle, beta, masses):
    m1, m2 = (m(x) for x in masses)

    def share(t):
        q = mp.exp(-2 * m(beta) * mp.sin(t / 2) ** 2)
        return m2 * (m2 + m1 * q) / (m1**2 + m2**2 + 2 * m1 * m2 * q)

    return mp.quad(share, mp.linspace(0, m(angle), 5))


def arc(angle, masses):
    """The path at beta = 0, where both models move by the masses of the others."""
    m1, m2 = (m(x) for x in masses)
    return m(angle) * mp.sqrt(m1 * m2 / (m1 + m2))


def next_up(a, e):
    """The angle a (1 + e), or the float after a."""
    return float(np.nextafter(a, 9.0)) if e < 1e-15 else a * (1 + e)


def nearly_opposite(e):
    """Two clusters at the angle pi - e on a great circle, of masses 0.6 and 0.4."""
    return np.array([[1.0, 0.0], [-math.cos(e), math.sin(e)]])


ROWS = [
    *(
        Row(
            f"merging.{name}",
            f"until -> angle = {angle}, masses {masses}",
            lambda e, log=log, angle=angle, masses=masses: (room.log_merge_time if log else room.merge_time)(
                next_up(angle, e), 9.0, masses=masses, until=angle
            ),
            lambda e, log=log, angle=angle, masses=masses: (mp.log if log else m)(
                time(next_up(angle, e), angle, 9.0, masses)
            ),
            64 * EPS,
            at=NEAR,
        )
        for name, log in (("merge_time", False), ("log_merge_time", True))
        for angle, masses in ((0.5, (0.5, 0.5)), (3.0, (0.5, 0.5)), (1.0, (0.3, 0.7)))
    ),
    Row(
        "merging.merge_time",
        "equal masses, where the closed form of unequal ones is not used",
        lambda e: room.merge_time(1.2, 9.0, masses=(0.5, 0.5 * (1 + e)), until=1e-3),
        lambda e: time(1.2, 1e-3, 9.0, (0.5, 0.5 * (1 + e))),
        64 * EPS,
    ),
    Row(
        "merging.merge_time",
        "beta -> 0, where exponential integrals are logarithms",
        lambda e: room.merge_time(1.2, e, until=1e-3),
        lambda e: time(1.2, 1e-3, e),
        64 * EPS,
    ),
    Row(
        "merging.merge_time",
        "angle -> pi, an equilibrium",
        lambda e: room.merge_time(math.pi - e, 2.0, until=1.0),
        lambda e: time(math.pi - e, 1.0, 2.0),
        # pi - e carries the rounding of pi, and the time log(1/e): what is asked is the time of this float
        64 * EPS,
        at=(1e-15, 1e-12, 1e-8, 1e-4),
    ),
    Row(
        "merging.meeting_point",
        "beta -> 0: the mean of the masses; angle -> 0; a mass -> 0",
        lambda e: [
            room.meeting_point(1.2, e, masses=(0.3, 0.7)),
            room.meeting_point(max(e, 1e-20), 9.0, masses=(0.3, 0.7)),
            room.meeting_point(1.2, 9.0, masses=(1.0, max(e, 1e-20))),
        ],
        lambda e: [
            meeting(1.2, e, (0.3, 0.7)),
            meeting(max(e, 1e-20), 9.0, (0.3, 0.7)),
            meeting(1.2, 9.0, (1.0, max(e, 1e-20))),
        ],
        64 * EPS,
    ),
    Row(
        "merging.meeting_point_limit",
        "equal masses, and a mass -> 0",
        lambda e: [
            room.meeting_point_limit(1.0, masses=(1, 1 + e)),
            room.meeting_point_limit(1.0, masses=(1, max(e, 1e-100))),
        ],
        lambda e: [m(1 + e) ** 2 / (1 + m(1 + e) ** 2), m(max(e, 1e-100)) ** 2 / (1 + m(max(e, 1e-100)) ** 2)],
        16 * EPS,
    ),
    Row(
        "merging.merge_arc_length",
        "beta -> 0 and angle -> 0",
        lambda e: [room.merge_arc_length(1.2, e, (0.3, 0.7)), room.merge_arc_length(max(e, 1e-20), 9.0, (0.3, 0.7))],
        lambda e: [arc(1.2, (0.3, 0.7)), arc(max(e, 1e-20), (0.3, 0.7))],
        64 * EPS,
        at=(0.0, 1e-16),  # beyond, the exact length has a term of the first order in beta
    ),
    Row(
        "merging.log_closing_time",
        "end -> start",
        lambda e: room.log_closing_time(
            lambda t: (0 * t, t, 2.5 + 0 * t), (0.3, 0.7, 0.0), start=next_up(1.0, e), end=1.0, beta=9.0, model="SA"
        ),
        lambda e: mp.log(time(next_up(1.0, e), 1.0, 9.0, (0.3, 0.7))),
        64 * EPS,
        at=NEAR,
    ),
    Row(
        "merging.log_asymmetry_growth",
        "start -> end: 0, by the rate over the speed",
        lambda e: room.log_asymmetry_growth(next_up(1.0, e), 1.0, 2.0, outer=0.3, middle=0.4, model="USA0"),
        lambda e: (
            -(m(next_up(1.0, e)) - 1)
            * (0.6 + m(0.4))
            * (mp.cos(1) - 2 * mp.sin(1) ** 2)
            / (m(0.4) * mp.sin(1) + m(0.3) * mp.exp(-2 * (mp.cos(1) - mp.cos(2))) * mp.sin(2))
        ),
        1e-3,  # the integrand is taken at the end
        at=NEAR,
    ),
    Row(
        "merging.log_pair_escape_rate",
        "the angle at which the closing stops to grow, cos = beta sin^2",
        lambda e: room.log_pair_escape_rate(float(room_inflection(9.0)) * (1 + e), 9.0, (0.5, 0.5), model="USA0"),
        lambda e: mp.log(9 * mp.sin(angle_at(e)) ** 2 - mp.cos(angle_at(e))) - 9 * 2 * mp.sin(angle_at(e) / 2) ** 2,
        1e-11,  # a difference of numbers of size 1 that is 1e-3; nearer, where digits are lost, it is refused
        at=(1e-3, 1e-2),
    ),
    Row(
        "merging.neighbour_balance",
        "equal neighbours at a small angle",
        lambda e: room.neighbour_balance(max(e, 1e-7), max(e, 1e-7), (1.0, 1.0, 1.0), beta=1e18).angle,
        lambda e: max(e, 1e-7),
        8 * EPS,
        at=(0.0, 1e-6, 1e-4),
    ),
    Row(
        "merging.pair_angle_probability",
        "angle -> 0, pi/2 and pi",
        lambda e: [room.pair_angle_probability(a, 4) for a in (e, math.pi / 2 + e, math.pi - e)],
        lambda e: [share_of_pairs(a) for a in (e, math.pi / 2 + e, math.pi - e)],
        16 * EPS,
    ),
    Row(
        "merging.nearest_angle_probability",
        "angle -> 0, on the circle and in four dimensions",
        lambda e: [room.nearest_angle_probability(e, 2, n=5), room.nearest_angle_probability(e, 4, n=5)],
        lambda e: [1 - (1 - 5 * m(e) / (2 * mp.pi)) ** 4, -mp.expm1(10 * mp.log1p(-share_of_pairs(e)))],
        32 * EPS,
    ),
    Row(
        "merging.nearest_angle",
        "probability -> 0, on the circle and in three dimensions",
        lambda e: [room.nearest_angle(e, 2, n=5), room.nearest_angle(e, 3, n=5)],
        lambda e: [
            2 * mp.pi / 5 * (1 - (1 - m(e)) ** (m(1) / 4)),
            2 * mp.asin(mp.sqrt(1 - (1 - m(e)) ** (m(1) / 10))),
        ],
        32 * EPS,
    ),
    Row(
        "merging.pair_time_probability",
        "the shortest time: only pairs closer than `until`",
        lambda e: room.pair_time_probability(float(room.log_merge_time(0.5, 4.0, until=0.1)), 4.0, 3, until=0.1),
        lambda e: mp.sin(m(0.25)) ** 2,
        1e-8,  # interpolated, as it says
        at=(0.0,),
    ),
    Row(
        "merging.cap_overlap",
        "size -> 0, and where caps touch",
        lambda e: [room.cap_overlap(e), room.cap_overlap((2 - math.sqrt(2)) / 4 * (1 - e))],
        lambda e: [4 * (1 - 2 * m(s)) * mp.sqrt(m(s) * (1 - m(s))) for s in (e, (2 - math.sqrt(2)) / 4 * (1 - e))],
        16 * EPS,
    ),
    Row(
        "merging.limit_staircase",
        "nearly antipodal clusters meet on their great circle",
        lambda e: room.limit_staircase(nearly_opposite(e), [0.6, 0.4]).points[0],
        lambda e: [mp.cos(way(e)), mp.sin(way(e))],
        1e-12 / 1e-8,  # the direction is that of two floats whose sum is e
        1e-3,
        at=(1e-8, 1e-4),
    ),
    Row(
        "merging.three_clusters",
        "equal counts, beyond the border beta = -2/3: 120 degrees",
        lambda e: room.three_clusters((2, 2, 2), -2 / 3 - 1e-3 - e)[0],
        lambda e: [2 * mp.pi / 3] * 3,
        1e-9,  # bisection and the bracket of 2,000 points
        at=(0.0, 1e-4),
    ),
    Row(
        "merging.third_cluster_delay",
        "a third cluster of no weight adds nothing",
        lambda e: room.third_cluster_delay(0.8, 2.0, (0.5, 0.5, max(e, 1e-300)), beta=9.0, until=1e-3).value,
        lambda e: 0,
        0,
        1e-3,
        at=(1e-16, 1e-12, 1e-8),
    ),
    Row(
        "merging.coarse_graining_error",
        "a cluster of no extent, and angles 0 and pi",
        lambda e: [room.coarse_graining_error(4.0, a, e) for a in (0.0, math.pi)],
        lambda e: [m(e) * 13 / 2] * 2,
        1e-12,
    ),
    Row(
        "merging.log_plateau_bound",
        "beta -> 1, and too few degrees of freedom: no statement",
        lambda e: room.log_plateau_bound([1 + e, 5.0], 1.0, 10),
        lambda e: [math.nan, math.nan],
        0,
    ),
    Row(
        "merging.slow_motion_time",
        "overlap -> -1",
        lambda e: room.slow_motion_time(50.0, -1 + e, 0.01, n=2),
        lambda e: m(0.01) / 2 * mp.exp(50 * (1 - m(-1 + e))),
        256 * EPS,  # the rounding of an exponent of 100
    ),
]


def share_of_pairs(angle):
    """(2 a - sin 2a)/2 pi on S^3."""
    with mp.workdps(100):
        return (2 * m(angle) - mp.sin(2 * m(angle))) / (2 * mp.pi)


def room_inflection(beta):
    """cos = beta sin^2."""
    return 2 * mp.asin(mp.sqrt((1 - 2 * m(beta) / (1 + mp.sqrt(1 + 4 * m(beta) ** 2))) / 2))


def angle_at(e):
    return m(float(room_inflection(9.0)) * (1 + e))


def way(e):
    """What cluster 0 travels of the angle pi - e."""
    return (mp.pi - m(e)) * m(0.4) ** 2 / (m(0.6) ** 2 + m(0.4) ** 2)
