"""Certificates whose statements are false, or whose proofs lack a hypothesis: the checker rejects every one of them.

Each is small, made by hand, and has the words of its claims, so that only the proof can reject it. Together with the
mutated checkers of mutants.py they show what every line of the checker is for.
"""

import math
from typing import Any

from tests.certify.false import statement

PI, THIRD = math.pi, 2 * math.pi / 3
EMPTY = {"format": 1, "assumes": [], "enclosures": {}}


def certificate(kind: str, claims: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    return EMPTY | {"kind": kind, "statement": statement(kind, claims, data), "claims": claims, "data": data}


def degree(beta, d, k):
    return certificate("dominant degree", {"beta": beta, "d": d, "degree": k}, {})


def unstable(beta, d, noise, k, modes):
    claims = {"beta": beta, "d": d, "noise": noise, "degree": k, "modes": modes}
    return certificate("unstable modes", claims, {})


def density(beta, angles, modes, start=0.1):
    return certificate("circle modes", {"beta": beta, "modes": modes}, {"angles": angles, "start": start})


def direction(angle):
    return [math.cos(angle), math.sin(angle)]


def apart(beta, model, gap, time, angles, *, masses=None, groups=None, centres=None):
    """Groups on the circle; one token a group where nothing else is said."""
    data = {
        "tokens": [direction(angle) for angle in angles],
        "masses": masses or [1.0] * len(angles),
        "groups": groups or list(range(len(angles))),
        "centres": [direction(angle) for angle in centres or angles],
    }
    return certificate("stay apart", {"beta": [beta, beta], "model": model, "gap": gap, "time": time}, data)


def path(angles, times, order, masses=None):
    return {"angles": angles, "masses": masses or [1.0] * len(angles), "times": times, "order": order}


def flow(angles, beta, times, order, end, radius, *, until=None, ball=0.0, model="USA0", masses=None):
    beta = beta if isinstance(beta, list) else [beta, beta]
    until = times[-1] if until is None else until
    claims = {"beta": beta, "model": model, "ball": ball, "until": until, "end": end, "radius": radius}
    return certificate("circle flow", claims, path(angles, times, order, masses))


def consensus(angles, beta, *, ball=0.0, masses=None):
    claims = {"beta": [beta, beta], "model": "USA0", "ball": ball, "time": 0.0}
    return certificate("consensus", claims, path(angles, [0.0], 2, masses))


def box(beta, radius, centre, *, slope=None, middle=None):
    middle = sum(beta) / 2 if middle is None else middle
    return {"beta": beta, "middle": middle, "radius": radius, "centre": centre, "slope": slope or [0.0] * len(centre)}


def orbit(angles, index, boxes, *, distance=None, masses=None, scale=1.0, rotations=1, beta=None):
    """Tokens on the circle with frames of the length `scale`; an equilibrium if there is a distance, else a branch."""
    n = len(angles)
    data = {
        "tokens": [direction(angle) for angle in angles],
        "masses": masses or [1.0] * n,
        "frames": [[[-scale * math.sin(angle), scale * math.cos(angle)]] for angle in angles],
        "slices": [[1 / math.sqrt(n)]] * n,
        "planes": [[0, 1]],
        "boxes": boxes,
    }
    claims = {"beta": beta or [boxes[0]["beta"][0], boxes[-1]["beta"][1]], "unstable": index[0], "stable": index[1]}
    claims["rotations"] = rotations
    if distance is not None:
        claims["distance"] = distance
    return certificate("branch" if distance is None else "equilibrium", claims, data)


def still(angles, beta, index, *, radius=1e-9, distance=1e-10, middle=None, centre=None, **rest):
    """An equilibrium at one beta, in one box around its tokens."""
    place = {"beta": [beta, beta], "middle": beta if middle is None else middle, "radius": radius}
    return orbit(angles, index, [place | {"centre": centre, "slope": None}], distance=distance, **rest)


def equilibria(slices, classes, *, beta=None, euler=None):
    """A list for three tokens; slices are (beta, roots, radius)."""
    parts = [{"beta": part, "roots": roots, "radii": [radius] * len(roots)} for part, roots, radius in slices]
    total = sum(entry["labelled"] * (-1) ** entry["unstable"] for entry in classes)
    claims = {
        "n": 3,
        "beta": beta or [slices[0][0][0], slices[-1][0][1]],
        "classes": classes,
        "euler": total if euler is None else euler,
    }
    return certificate("circle list", claims, {"slices": parts})


def of(sizes, unstable, labelled):
    return {"sizes": sizes, "unstable": unstable, "labelled": labelled}


ONE, TWO, THREE = of([3], 0, 1), of([2, 1], 1, 3), of([1, 1, 1], 2, 2)
"""Consensus, antipodal clusters and the triangle at beta = 1/2: the list there."""
TRIANGLE, LEFT, RIGHT = [THIRD, THIRD], [0.0, PI], [PI, 0.0]
HALF, ROOTS = [0.5, 0.5], [TRIANGLE, LEFT, RIGHT]


def at_half(roots, classes, **rest):
    return equilibria([(HALF, roots, 0.3)], classes, **rest)


def with_radii(certificate_, *radii):
    certificate_["data"]["slices"][0]["radii"] = list(radii)
    return certificate_


TRIPLE = [0.0, THIRD, 2 * THIRD]
BASE, JUMP = [0.0, 0.9, -0.9], -0.8 + 1e-6
STAR = [math.tan(math.remainder(a - b, 2 * PI)) for a, b in zip([0.0, THIRD, -THIRD], BASE, strict=True)]
HEAP = [math.tan(math.remainder(-b, 2 * PI)) for b in BASE]
BETWEEN = [(a - b) / (1.0 - JUMP) for a, b in zip(HEAP, STAR, strict=True)]
PAIRED = [[-1.5948207414990623, 0.5870646075672733, 1.0077561339317895]]
PAIRED += [[-0.09950056092220647, 7.746668650807923, -7.647168089885699]]

ASIDE = [(a - b) / 1.00005 for a, b in zip(*PAIRED, strict=True)]

PEAK = 0.6748888455860064
"""Where two tokens at beta = 2 attract each other most: the second derivative of their motion vanishes there."""

ISOSCELES = [0.0, 1.9020684618245876, 4.092626884502087]
"""The equilibrium of three tokens at beta = 1 of which the third has 1.5 times the mass."""
NEAR = 0.0070051
"""How far, in the charts of the triangle, the tokens of an isosceles equilibrium are from it at beta = -0.66."""
BROKEN = still([0.0, PI], 1.0, (1, 0))
BROKEN["data"]["frames"] = [[[0.0, 1.0]], [[0.0]]]

HELD = orbit(
    [0.6, 2.3, -0.5728746633802771],
    (2, 0),
    [box([1.0, 1.0001], 1e-3, [-0.6841368083416923, -0.42279321873816167, -2.104054239744335])],
    masses=[1e-3] * 3,
)
HELD["data"]["slices"] = [[0.2742136091193393], [0.9216986845841262], [-0.2743691517092216]]
"""No equilibrium: a multiplier, as small as the masses, holds the tokens. All of them turn orthogonally to the slice."""

ADVERSARIES = {
    # the switching thresholds on the circle are 1.044, 3.165 and 6.211
    "degree 3 from 1": degree([1.0, 6.0], 2, 3),
    "degree 3 up to 8": degree([5.0, 8.0], 2, 3),
    "degree 1 at 5": degree([5.0, 5.0], 2, 1),
    "degree 2 at 1": degree([1.0, 1.0], 2, 2),
    "degree of no sphere": degree([1.0, 1.0], 0, 1),
    "degree at 0": degree([0.0, 1.0], 2, 1),
    # degrees 1 to 6 grow
    "7 degrees grow": unstable([9.0, 9.0], 3, 0.01, 7, 63),
    "5 degrees grow": unstable([9.0, 9.0], 3, 0.01, 5, 35),
    "49 modes grow": unstable([9.0, 9.0], 3, 0.01, 6, 49),
    "modes from 9 to 20": unstable([9.0, 20.0], 3, 0.01, 6, 48),
    "no mode at -9": unstable([-9.0, -9.0], 3, 0.01, 0, 0),
    "modes of two points": unstable([1.0, 1.0], 1, 0.3, 1, 1),
    "-1 degrees": unstable([9.0, 9.0], 4, 0.2, -1, -1),
    # I_1(1)/I_0(1) = 0.44638996589...; noise above it by 1e-10 and 1e-7 of it, and above I_16(20)/I_0(20)/20 by a tenth
    "1e-10 too much noise": unstable([1.0, 1.0], 2, 0.44638996593985, 1, 2),
    "1e-7 too much noise": unstable([1.0, 1.0], 2, 0.44639001053463, 1, 2),
    "degree 16 grows": unstable([20.0, 20.0], 2, 1.0738e-4, 16, 32),
    "modes from 1 to 9": density([1.0, 9.0], [0.3, 1.0, 4.0], 2),
    "one mode of a constant": density([0.0, 0.0], [0.3], 1),
    "no mode": density([1.0, 1.0], [0.3], 0),
    "two modes of one angle": density([1.0, 1.0], [0.3], 2),
    "the mode after the start twice": density([1.0, 1.0], [0.3], 2, start=0.26),
    "curvatures for slopes": density([1.0, 1.0], [1.0, 2.0, 4.0], 2),
    "half of the circle": density([9.0, 9.0], [1.0, 4.0], 1, start=0.0),
    "two near modes as one": density([2000.0, 2000.0], [1.0, 1.08], 1),
    "two modes in the first piece": density([2e4, 2e4], [1.0, 1.025], 1, start=0.996),
    # two point masses come from 1.5 to 0.5 in 225.28 under USA0, to 1.2 in 197.7, and twice as fast under SA
    "225.28 is 225.5": apart(8.0, "USA0", 0.5, 225.5, [0.0, 1.5]),
    "225.28 is 290": apart(8.0, "USA0", 0.5, 290.0, [0.0, 1.5]),
    "SA is as slow as USA0": apart(8.0, "SA", 1.2, 170.0, [0.0, 1.5]),
    "shares of 1.4": apart(8.0, "USA0", 0.5, 290.0, [0.0, 1.5], masses=[0.5, 0.9]),
    "a group without a centre": apart(8.0, "USA0", 0.5, 110.0, [0.0, 1.5, 0.1], centres=[0.0, 1.5]),
    "a negative mass": apart(8.0, "USA0", 0.5, 67.0, [0.0, 1.5, 4.0], masses=[2.0, 2.0, -3.0]),
    "a cap of two tokens": apart(8.0, "USA0", 0.5, 200.0, [0.0, 0.3, 1.5], groups=[0, 0, 1], centres=[0.0, 1.5]),
    "the farthest of three pairs": apart(8.0, "USA0", 0.5, 900.0, [0.0, 1.5, 3.8]),
    "a light and a heavy token": apart(8.0, "SA", 1.45, 11.68, [0.0, 1.5, 3.1, 4.75], masses=[0.05, 0.55, 0.2, 0.2]),
    "centres opposite": apart(8.0, "USA0", 0.5, 290.0, [0.0, 1.5], centres=[PI, 1.5 + PI]),
    "repulsion": apart(-8.0, "USA0", 3.0, 1.4239e-7, [0.0, 3.1]),
    "below the peak (no proof)": apart(8.0, "USA0", 0.2, 110.0, [0.0, 1.5]),
    "beyond a hemisphere (no proof)": apart(
        1.5, "USA0", 0.8, 0.05, [-1.4, 1.4, 3.0], groups=[0, 0, 1], centres=[0.0, 3.0]
    ),
    "a wide cap under SA (no proof)": apart(
        8.0, "SA", 0.6, 0.5, [-0.5, 0.5, 2.0], groups=[0, 0, 1], centres=[0.0, 2.0]
    ),
    # radii below the distance of the end from where these tokens, or tokens in the ball, come
    "a step of order 1": flow([0.0, 2.0], 2.0, [0.0, 0.5], 1, [0.013384324498856836, 1.9866156755011433], 4.2e-4),
    "quotients of the first order": flow(
        [0.0, 2.0], 2.0, [0.0, 0.25], 6, [0.013000674074223164, 1.9869993259257768], 6e-10, model="SA"
    ),
    "a step from the peak": flow([0.0, PEAK], 2.0, [0.0, 0.25], 1, [0.050378259810798576, 0.6245105857752078], 3e-4),
    "a step through the peak": flow([0.0, 0.8635344542537498], 2.0, [0.0, 1.0], 1, [0.18864560866774333, PEAK], 7.3e-3),
    "unequal masses": flow(
        [0.0, 2.5],
        1.0,
        [0.0, 0.75],
        1,
        [0.14868347952538774, 2.4765852422595547],
        2.5e-2,
        model="SA",
        masses=[1.0, 3.0],
    ),
    "a ball of unequal masses": flow(
        [0.0, 2.8],
        0.5,
        [0.0, 0.5, 1.0],
        6,
        [0.24626513147436216, 2.747399131051845],
        2.3e-3,
        ball=1e-3,
        model="SA",
        masses=[1.0, 3.0],
    ),
    "a wide ball": flow(
        [0.0, 2.0], 2.0, [0.0, 0.5, 1.0], 8, [0.028539446588813196, 1.9714605534111869], 0.1165, ball=0.1
    ),
    "a ball across the right angle": flow(
        [0.0, 1.65], 0.0, [0.0, 0.125], 4, [0.0624499518072016, 1.5875500481927982], 0.204, ball=0.2
    ),
    "growth along a step": flow(
        [0.0, 1.5], 4.0, [0.0, 2.0], 12, [0.0268709073957022, 1.4731290926042977], 1.22e-6, ball=1e-6
    ),
    "tokens that rest": flow([0.0, 2.0], 2.0, [0.0, 0.5], 1, [0.0, 2.0], 5e-3),
    "nearly no mass": flow([0.0, 2.5], 60.0, [0.0, 0.125], 4, [0.0, 2.5], 1e-2, model="SA", masses=[1e-300, 1.0]),
    "the other model": flow([0.0, 2.0], 2.0, [0.0, 0.5], 1, [0.025280209599568924, 1.974719790400431], 1.1e-2),
    "half as fast": flow([0.0, 2.0], 2.0, [0.0, 0.5], 1, [0.006692162249428418, 1.9933078377505715], 7e-3),
    "rough steps": flow([0.0, 3.0], 0.5, [0.0, 0.25, 0.5, 0.75, 1.0], 6, [0.24609375, 2.75244140625], 0.2, ball=1e-3),
    "a quarter of the time": flow(
        [0.0, 2.0], 1.0, [0.0, 0.25], 5, [0.028662316015307856, 1.9713376839846921], 1e-3, until=1.0
    ),
    "a late start": flow([0.0, 2.0], 1.0, [0.5, 1.0], 5, [0.05967380394870202, 1.940326196051298], 1e-3),
    "an interval of beta": flow([0.0, 1.5], [2.0, 9.0], [0.0, 0.25], 6, [0.0183, 1.4817], 1e-2),
    # the ends to which flows of other fields lead: with terms left out, other masses, at half of beta
    "weights of another slope": flow(
        [0.0, 2.0], 2.0, [0.0, 1.0], 6, [0.056742203781935806, 1.9432577962180642], 1.45e-3, ball=1e-3, model="SA"
    ),
    "slopes of a constant normaliser": flow(
        [0.0, 1.5], 4.0, [0.0, 0.25], 4, [0.006055286032911284, 1.4939447139670887], 6.58e-8, model="SA"
    ),
    "no normaliser": flow(
        [0.0, 2.8], 0.5, [0.0, 0.5], 3, [0.034865167482289114, 2.7651348325177105], 6.62e-4, model="SA"
    ),
    "sines for cosines": flow(
        [0.0, 1.5],
        4.0,
        [0.0, 1 / 3, 1.0],
        4,
        [0.07700477986002535, 1.4902764083803706],
        2.94e-3,
        ball=1e-3,
        model="SA",
        masses=[1.0, 3.0],
    ),
    "a polynomial without its time": flow(
        [0.0, 1.5],
        4.0,
        [0.0, 1.0],
        6,
        [1.6947315512618534e-08, -5.649105170872844e-09],
        0.144,
        ball=0.05,
        masses=[1.0, 3.0],
    ),
    "no growth": flow(
        [0.0, 2.0], 2.0, [0.0, 1 / 3, 1.0], 4, [0.057013031698062, 1.942986968301938], 0.0578, ball=0.05, model="SA"
    ),
    "a step at its start alone": flow(
        [0.0, 2.8], 0.5, [0.0, 0.25, 0.5], 2, [0.03486212743229552, 2.7651378725677045], 0.0553, ball=0.05
    ),
    "a defect of one order less": flow(
        [0.0, 2.0],
        2.0,
        [0.0, 0.5],
        3,
        [0.020993965153871946, 1.993002011615376],
        1.26e-3,
        ball=1e-3,
        masses=[1.0, 3.0],
    ),
    "slopes of order 1 alone": flow(
        [0.0, 1.5],
        4.0,
        [0.0, 1 / 3, 1.0],
        4,
        [0.07884732810698711, 1.4905680536692107],
        2.06e-4,
        model="SA",
        masses=[1.0, 3.0],
    ),
    "cosines that grow with sines": flow(
        [0.0, 2.5], 1.0, [0.0, 0.25], 3, [0.02157250356195126, 2.478427496438049], 3e-6, model="SA"
    ),
    "equal shares": flow(
        [0.0, 1.5],
        4.0,
        [0.0, 1 / 3, 1.0],
        4,
        [0.026089460128602405, 1.4739105398713976],
        0.112,
        ball=0.05,
        model="SA",
        masses=[1.0, 3.0],
    ),
    "half of beta": flow([0.0, 1.0], 1.0, [0.0, 0.25, 0.5], 2, [0.1303407075094305, 0.8696592924905695], 2.54e-3),
    "a polynomial without its first term": flow(
        [0.0, 2.0], 2.0, [0.0, 2.0], 12, [0.03064831584027062, -0.03064831584027062], 3.3e-3, ball=1e-3
    ),
    "equal masses": flow(
        [0.0, 1.0],
        1.0,
        [0.0, 0.25, 0.5],
        2,
        [0.13384934505258225, 0.8661506549474177],
        9.87e-3,
        ball=1e-3,
        masses=[1.0, 3.0],
    ),
    # two antipodal tokens in a ball part slowly at first; those at its border have met by then
    "an error beyond its tube": flow([0.0, PI], 4.0, [0.0, 5224.219], 2, [0.0, PI], 0.5, ball=0.05),
    "growth on half of the tube": flow([0.0, PI], 8.0, [0.0, 146190.0], 2, [0.0, PI], 0.5994, ball=0.4),
    "the second token elsewhere": flow([0.0, 2.0], 2.0, [0.0, 0.5], 6, [0.013, 2.5], 1e-2),
    "USA is USA0": flow([0.0, 2.0], 2.0, [0.0, 0.5], 6, [0.013, 1.987], 1e-2, model="USA"),
    "masses that are true": flow([0.0, 2.0], 2.0, [0.0, 0.5], 6, [0.013, 1.987], 1e-2, masses=[True, True]),
    "a triangle": consensus([0.0, 2.1, 4.2], 2.0),
    "a triangle in another order": consensus([0.0, 4.2, 2.1], 2.0),
    "a triangle in two turns": consensus([0.0, 2.1, 4.2 + 2 * PI], 2.0),
    "a ball over a half circle": consensus([0.0, 1.0, 3.1], 2.0, ball=0.05),
    "a negative beta (no proof)": consensus([0.0, 1.0, 2.0], -2.0),
    "tokens that repel": consensus([0.0, 0.2, 1.5], 50.0, masses=[1.0, 1.0, -3.0]),
    # two antipodal tokens: one unstable direction; the triangle: two unstable ones above beta = -2/3, two stable below
    "a stable pair": still([0.0, PI], 1.0, (0, 1)),
    "-1 stable directions": still([0.0, PI], 1.0, (2, -1)),
    "two rotations": still([0.0, PI], 1.0, (1, 0), rotations=2),
    "1e-4 aside": still([0.0, PI - 1e-4], 1.0, (1, 0), radius=1e-3, distance=1e-9),
    "1e-4 aside, long frames": still([0.0, PI - 1e-4], 1.0, (1, 0), radius=1e-5, distance=1e-6, scale=100.0),
    "two tokens 2 apart": still([0.0, 2.0], 1.0, (1, 0), radius=1e-6, distance=1e-7),
    "all of the circle": still([0.0, PI], 1.0, (1, 0), radius=1e-3, distance=1.5),
    "a zero elsewhere": still([0.0, 2.0], 1.0, (1, 0), centre=[-math.tan(PI / 2 - 1), math.tan(PI / 2 - 1)]),
    "one mass repels": still([0.0, PI], 1.0, (0, 1), masses=[2.0, -1.0]),
    "a stable triangle": still(TRIPLE, -0.66, (0, 2)),
    "a proof at -0.66 for -1": still(TRIPLE, -1.0, (2, 0), middle=-0.66),
    "isosceles ones near by": still(TRIPLE, -0.66, (2, 0), radius=0.2, distance=0.04),
    "a branch to -0.7": orbit(TRIPLE, (2, 0), [box([-0.65, -0.649], 1e-6, [0.0] * 3)], beta=[-0.7, -0.649]),
    "a branch over -2/3": orbit(TRIPLE, (2, 0), [box([-0.66675, -0.66657], 1e-6, [0.0] * 3, middle=-0.6666)]),
    "a branch over -2/3, late": orbit(TRIPLE, (2, 0), [box([-0.66675, -0.66657], 1e-6, [0.0] * 3, middle=-0.66659)]),
    "a branch aside": orbit([0.0, PI - 1e-2], (1, 0), [box([1.0, 1.01], 1e-6, [0.0] * 2)]),
    "a branch off its centre": orbit([0.0, PI], (1, 0), [box([1.0, 1.01], 1e-6, [-0.1, 0.1])]),
    "a branch that moves": orbit([0.0, PI], (1, 0), [box([1.0, 1.01], 1e-6, [0.0] * 2, slope=[-1.0, 1.0])]),
    "from the triangle to consensus": orbit(
        BASE,
        (0, 2),
        [box([-0.8, JUMP], 1e-4, STAR), box([1 - 5e-7, 1 + 5e-7], 1e-3, HEAP, slope=BETWEEN)],
    ),
    "another token alone": orbit(
        [0.0, 1.6, -1.8], (1, 1), [box([1.0, 1.0001], 1e-3, PAIRED[0]), box([1.0001, 1.0002], 1e-3, PAIRED[1])]
    ),
    # far from the tokens of the data, where unit vectors and tangents differ from what they are nearby
    "two tokens that are not antipodal": orbit([0.0, PI], (1, 0), [box([1.0, 1.0001], 1e-4, [2**0.5, -(2**0.5)])]),
    "two tokens that exchange places": orbit(
        [0.0, 1.0], (0, 1), [box([1.0, 1.0001], 1e-4, [math.tan(1.0), -math.tan(1.0)])]
    ),
    "a light triangle": still(TRIPLE, 1.0, (2, 0), masses=[1.0, 1.0, 1.5]),
    "off the slice (no proof)": orbit([0.0, PI], (1, 0), [box([1.0, 1.0001], 1e-4, [0.1, 0.1])]),
    "two of three together": still([0.0, PI, 0.0], 1.0, (2, 0)),
    "one between two": still([0.0, PI / 2, -PI / 2], 1.0, (2, 0)),
    "a branch that moves in a wide box": orbit(
        [0.0, PI], (1, 0), [box([1.0, 1.01], 2e-3, [0.0] * 2, slope=[-1.0, 1.0])]
    ),
    "a branch that stays": orbit(
        ISOSCELES, (2, 0), [box([1.0, 1.25], 2e-4, [0.0] * 3, middle=1.0)], masses=[1.0, 1.0, 1.5]
    ),
    "a distance beyond what is near (no proof)": still([0.0, PI], 1.0, (1, 0), radius=0.1, distance=0.03),
    "frames that do not fit": BROKEN,
    "held by a multiplier": HELD,
    "a branch over -2/3, in the middle": orbit(
        TRIPLE, (2, 0), [box([-0.6667, -0.6665], 1e-6, [0.0] * 3, middle=-0.6666)]
    ),
    # in their frames the two tokens meet; in that of the first alone they would be antipodal
    "consensus as a pair": orbit([0.0, 2.0], (1, 0), [box([1.0, 1.0001], 1e-3, [math.tan(1.0), -math.tan(1.0)])]),
    "a path off the slice (no proof)": orbit([0.0, PI], (1, 0), [box([1.0, 1.01], 1e-3, [0.0] * 2, slope=[2.0, 2.0])]),
    "off the slice in a wide box (no proof)": orbit([0.0, PI], (1, 0), [box([1.0, 1.0001], 0.08, [0.1, 0.1])]),
    "another token alone, at beta = 0": orbit(
        [0.0, 1.6, -1.8],
        (1, 1),
        [box([1.0, 1.0001], 1e-3, PAIRED[0], slope=ASIDE), box([1.0001, 1.0002], 1e-3, PAIRED[1])],
    ),
    "a narrow branch off its centre": orbit([0.0, PI], (1, 0), [box([1.0, 1.0001], 1e-3, [-0.1, 0.1])]),
    "a pair without index": still([0.0, PI], 1.0, (0, 0)),
    "a branch after its first box": orbit(
        TRIPLE, (0, 2), [box([-0.7, -0.699], 1e-6, [0.0] * 3), box([-0.699, -0.6], 1e-6, [0.0] * 3)]
    ),
    # two zeros 0.007 apart in boxes of 0.5, each alone in a smaller one
    "from one isosceles triangle to another": orbit(
        TRIPLE,
        (1, 1),
        [
            box([-0.66, -0.659999], 0.5, [0.0, NEAR, -NEAR]),
            box([-0.659999, -0.659998], 0.5, [-NEAR, 0.0, NEAR]),
        ],
    ),
    "stable pairs": still([0.0, 0.0, PI, PI], 1.0, (2, 1)),
    "a stable pair and one": still([0.0, 0.0, PI], 1.0, (0, 2)),
    "a pair that repels and one": still([0.0, 0.0, PI], -0.5, (1, 1)),
    "no triangle": at_half([LEFT, RIGHT], [ONE, TWO]),
    "no triangle, for beta from 0.45": equilibria([([0.45, 0.55], [LEFT, RIGHT], 0.3)], [ONE, TWO]),
    "no pair of clusters": at_half([TRIANGLE], [ONE, THREE]),
    "another index": at_half(ROOTS, [ONE, TWO, of([1, 1, 1], 0, 2)]),
    "other numbers": at_half(ROOTS, [ONE, of([2, 1], 1, 1), of([1, 1, 1], 2, 1)]),
    "another sum": at_half(ROOTS, [ONE, TWO, THREE], euler=5),
    "a list from -0.8": at_half(ROOTS, [ONE, TWO, THREE], beta=[-0.8, 0.5]),
    "a list up to 0.75 (no proof)": at_half(ROOTS, [ONE, TWO, THREE], beta=[0.5, 0.75]),
    "a list with a hole (no proof)": equilibria([(HALF, ROOTS, 0.3), ([0.6, 0.6], ROOTS, 0.3)], [ONE, TWO, THREE]),
    "a list over a bifurcation": equilibria([([-0.8, 1.8], ROOTS, 0.3)], [ONE, TWO, THREE]),
    "consensus as a root": with_radii(at_half([[0.0, 0.0], *ROOTS], [ONE, ONE, TWO, THREE]), 0.05, 0.3, 0.3, 0.3),
    "a root that is none": with_radii(
        at_half([*ROOTS, [1.0, 2.0]], [ONE, TWO, THREE, of([1, 1, 1], 2, 12)]), 0.3, 0.3, 0.3, 1e-3
    ),
    "isosceles ones in the box": with_radii(
        equilibria([([-0.5, -0.5], ROOTS, 0.1)], [ONE, of([2, 1], 2, 3), THREE]), 0.99, 0.1, 0.1
    ),
    "three clusters for two": at_half(
        [TRIANGLE, [0.01, PI - 0.005], RIGHT], [ONE, of([1, 1, 1], 1, 6), of([1, 1, 1], 2, 2)]
    ),
    "one root as two": with_radii(
        at_half([LEFT, [0.0, PI + 1e-3], TRIANGLE, RIGHT], [ONE, TWO, TWO, THREE]), 1e-12, 0.3, 0.3, 0.3
    ),
    "two roots as one": at_half(ROOTS, [ONE, of([1, 1, 1], 2, 2)]),
    "six triangles": at_half(ROOTS, [ONE, TWO, of([1, 1, 1], 2, 6)]),
    "both hands of a symmetric one": at_half(ROOTS, [ONE, of([2, 1], 1, 6), of([1, 1, 1], 2, 4)]),
    "tokens that are told apart": at_half(ROOTS, [ONE, of([2, 1], 1, 9), of([1, 1, 1], 2, 6)]),
    "a cluster of one for two": at_half(ROOTS, [ONE, of([1, 1], 1, 6), THREE]),
    "clusters of no end": at_half(ROOTS, [of([1], 2, 2), of([2], 1, 3), ONE]),
    "a class twice": at_half(ROOTS, [ONE, TWO, TWO, THREE]),
    "four tokens": at_half(ROOTS, [ONE, of([3, 1], 1, 1), of([2, 1, 1], 2, 1)]),
    "classes that differ by a shift": at_half(ROOTS, [ONE, of([2, 1], 1, 2), of([2, 1], 1, 1), THREE]),
    "a cluster that begins with its second token": at_half(ROOTS, [ONE, of([1, 1], 1, 6), of([1, 1], 2, 2)]),
    "consensus twice": at_half(ROOTS, [of([3], 0, 2), TWO, THREE]),
    "the first root alone": at_half(ROOTS, [ONE, THREE]),
    "indices that are one more": at_half(ROOTS, [ONE, of([2, 1], 2, 3), of([1, 1, 1], 3, 2)]),
    "the first eigenvalue alone": at_half(ROOTS, [ONE, TWO, of([1, 1, 1], 1, 2)]),
    "every one is stable": at_half(ROOTS, [ONE, of([2, 1], 0, 3), of([1, 1, 1], 0, 2)]),
    "tokens in another order": at_half([*ROOTS, [-THIRD, 2 * THIRD]], [ONE, TWO, THREE, of([1, 1, 1], 2, 6)]),
    "a last gap of its own": at_half(ROOTS, [ONE, of([2, 1], 1, 6), of([1, 1, 1], 2, 6)]),
    "4 degrees grow": unstable([9.0, 9.0], 3, 0.01, 4, 24),
    "the nearest pair is the last": apart(8.0, "USA0", 0.5, 290.0, [0.0, 2.3, 3.8]),
    "degree true": degree([1.0, 1.0], 2, True),
    "beta true": degree([True, True], 2, 1),
    "one more claim": degree([1.0, 1.0], 2, 1) | {"claims": {"beta": [1.0, 1.0], "d": 2, "degree": 1, "besides": 1}},
    "one more name": degree([1.0, 1.0], 2, 1) | {"besides": 1},
    "another format": degree([1.0, 1.0], 2, 1) | {"format": 2},
    "assumptions that are no list": degree([1.0, 1.0], 2, 1) | {"assumes": {}},
    "other words": degree([5.0, 6.0], 2, 3) | {"statement": "Degree 4 grows fastest."},
}
"""Name: certificate. Statements are false; those marked "no proof" may be true, but a hypothesis of the proof fails."""

UNEQUAL = flow([0.0, 1.5], 2.0, [0.0, 0.5], 6, [0.02, 1.48], 1.0, masses=[1.0, 2.0])
ADVERSARIES["masses that are not equal"] = UNEQUAL | {
    "statement": UNEQUAL["statement"].replace("with the given masses", "of equal mass")
}
