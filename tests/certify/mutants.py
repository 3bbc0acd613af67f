"""Mutants of the checker: for each line on which soundness rests a change that confirms an adversary."""

from typing import NamedTuple

Replacement = tuple[str, str, str]


class Mutant(NamedTuple):
    """A replacement in a file of the checker, and the adversary that is confirmed with it."""

    file: str
    old: str
    new: str
    adversary: str
    coarse: tuple[Replacement, ...] = ()
    """Replacements that make the checker faster or coarser, but no less sound: with them alone it rejects as well."""


FEW = (("forms", "PIECES = 400", "PIECES = 20"),)
SHORT = (("forms", "if m > 4 * float(x.b) + 20 and float(term.b) < 1e-40 * float(total.a):", "if m > 4:"),)
BITS = (("__init__", "BITS = 106", "BITS = 20"),)
ROUGH = (("integers", "SCALE = 120", "SCALE = 12"),)
QUICK = (
    ("lists", "SCALE = 700", "SCALE = 64"),
    ("lists", "FINE = 8", "FINE = 3"),
    ("integers", "SCALE = 120", "SCALE = 64"),
    ("lists", "CUBES = 2_000_000", "CUBES = 2_000"),
)
UNIONS = (("lists", "FINE = 8", "FINE = 5"), *(entry for entry in QUICK if entry[1] != "FINE = 8"))
ANY_POLYNOMIAL = (("flows", "p.append(_Balls(speed.mid // (k + 1),", "p.append(_Balls(speed.mid // (k + 2),"),)
ANY_END = (("forms", 'need(before == first and modes == claims["modes"],', 'need(modes == claims["modes"],'),)
ANY_TURN = (("forms", "if not less(iv.mpf(end) - start, turn):", "if False:"),)


def of(file: str, *rows: tuple) -> list[Mutant]:
    return [Mutant(file, *row) for row in rows]


FORMS = of(
    "forms",
    (SHORT[0][1], "if m > 8:", "degree 16 grows"),
    ("return total + iv.mpf([0, (2 * term).b])", "return total", "1e-10 too much noise", SHORT),
    ("need(d >= 2 and k >= 1,", "need(k >= 1,", "degree of no sphere"),
    ("need(0 < low <= high < 1e4,", "need(low <= high < 1e4,", "degree at 0"),
    ("return (j + 1) * (j + d - 1) * ratio / (j * (j + d - 2))", "return ratio", "degree 1 at 5"),
    ("less(quotient(high, k), 1)", "less(quotient(low, k), 1)", "degree 3 up to 8"),
    ("less(1, quotient(low, k - 1))", "less(1, quotient(high, k - 1))", "degree 3 from 1"),
    ("need(k == 1 or", "need(k <= 2 or", "degree 2 at 1"),
    ("need(beta == same and 0 < beta < 1e4 and noise > 0,", "need(0 < beta < 1e4,", "modes from 9 to 20"),
    ("need(beta == same and 0 < beta < 1e4 and noise > 0,", "need(beta == same,", "no mode at -9"),
    ("need(d >= 2 and top >= 0,", "need(top >= 0,", "modes of two points"),
    ("need(d >= 2 and top >= 0,", "need(d >= 2,", "-1 degrees"),
    ("need(less(level, quotient(top)) or top == 0,", "need(True,", "7 degrees grow"),
    ("need(less(quotient(top + 1), level),", "need(True,", "5 degrees grow"),
    ("comb(top + d - 2, d - 1) - 1", "comb(top + d - 2, d - 1)", "49 modes grow"),
    ('need(claims["modes"] == count,', "need(True,", "49 modes grow"),
    ("need(beta == same and beta > 0 and -10 < start < 10,", "need(beta > 0,", "modes from 1 to 9"),
    ("need(beta == same and beta > 0 and -10 < start < 10,", "need(beta == same,", "one mode of a constant"),
    ("first -= sine * w", "first -= sine", "half of the circle"),
    ("second += (b * sine**2 - iv.cos(s)) * w", "second += (b - iv.cos(s)) * w", "two near modes as one"),
    ("return 1 if less(0, x) else -1 if less(x, 0) else 0", "return 1 if x.mid > 0 else -1", "two near modes as one"),
    ("piece = iv.mpf([start, start + width])", "piece = iv.mpf(start)", "two modes in the first piece"),
    ("turn = around + iv.mpf(at) - start", "turn = around + 9", "the mode after the start twice", ANY_END),
    ("while not less(around, iv.mpf(at) - start):", "while less(iv.mpf(at) - start, iv.pi):", "half of the circle"),
    ("iv.mpf([at, at + step]), iv.mpf(at + step / 2)", "iv.mpf(at), iv.mpf(at + step / 2)", "two near modes as one"),
    (ANY_TURN[0][1], "if False:", "the mode after the start twice", ANY_END),
    ("if after and sign(bend):", "if after:", "two near modes as one"),
    (" == sign(slopes(middle)[0] + bend * (piece - middle)):", ":", "two near modes as one"),
    ("modes += before > 0 > after", "modes += before != after", "two modes of one angle"),
    (ANY_END[0][1], ANY_END[0][2], "the mode after the start twice", ANY_TURN),
    ('modes == claims["modes"],', "True,", "no mode"),
    (
        "need(beta == same and 0 < beta < 1e5 and end > 0 and time > 0,",
        "need(beta == same,",
        "repulsion",
        FEW,
    ),
    ("sorted(set(groups)) == list(range(k)) and k > 1", "k > 1", "a group without a centre", FEW),
    ("need(all(less(0, m) for m in masses),", "need(True,", "a negative mass", FEW),
    ("if q == p), iv.mpf(0)) / total", "if q >= p), iv.mpf(0)) / total", "225.28 is 290", FEW),
    ("iv.mpf(0)) / total for p", "iv.mpf(0)) for p", "shares of 1.4", FEW),
    ("radii = [max((", "radii = [min((", "a cap of two tokens", FEW),
    ("- radii[p] - radii[q]).a for", ").a for", "a cap of two tokens", FEW),
    ("start = min((", "start = max((", "the farthest of three pairs", FEW),
    ('pull = [(1 - m) / m if model == "SA" else 1 - m for', "pull = [1 - m for", "SA is as slow as USA0", FEW),
    ("speed = max((", "speed = min((", "a light and a heavy token", FEW),
    (
        "need(less(iv.cos(last), b * iv.sin(last) ** 2) and less(last, iv.pi),",
        "need(True,",
        "below the peak (no proof)",
        FEW,
    ),
    ("need(all(less(r, iv.pi / 2) for r in grown),", "need(True,", "beyond a hemisphere (no proof)", FEW),
    ('if model == "SA":\n        for', 'if model == "USA":\n        for', "a wide cap under SA (no proof)", FEW),
    ("small = less(one * force", "small = not less(one * force", "a wide cap under SA (no proof)", FEW),
    ('need(small, "a cap', 'need(True, "a cap', "a wide cap under SA (no proof)", FEW),
    (
        "iv.log(iv.sin(upper / 2) * iv.cos(lower / 2) / (iv.cos(upper / 2) * iv.sin(lower / 2)))",
        "2 * (upper - lower)",
        "225.28 is 290",
        FEW,
    ),
    ("iv.mpf([lower.a, upper.b])) ** 2 * width).b)", "lower) ** 2 * width).b)", "225.28 is 225.5", FEW),
    ("share = (1 - iv.exp(-fall)) / fall if less(2.0**-10, fall) else 1 - fall", "share = 1", "225.28 is 225.5", FEW),
    ("need(less(time, found),", "need(True,", "225.28 is 225.5", FEW),
    ("return 2 * atan2", "return 2.1 * atan2", "225.28 is 290", FEW),
)

FLOWS = of(
    "flows",
    ("pairs = [ends(x) for x in values]", "pairs = [(sum(ends(x)) // 2,) * 2 for x in values]", "a step through the peak"),
    ("[((high - low) >> 1) + 1 for low, high in pairs]", "[0 for pair in pairs]", "a step through the peak"),
    ("_Balls(self.mid + other.mid, self.rad + other.rad)", "_Balls(self.mid + other.mid, 0 * self.rad)", "a step through the peak"),
    ("spread = abs(self.mid) * other.rad + self.rad *", "spread = self.rad *", "a step through the peak"),
    ("(spread >> SCALE) + 2)", "0 * spread)", "a step through the peak"),
    ("return [iv.mpf([m - r, m + r]) *", "return [iv.mpf(m) *", "a step through the peak"),
    ("need(beta == same and 0 <= beta < 1e4,", "need(0 <= beta < 1e4,", "an interval of beta"),
    ("need(beta == same and 0 <= beta < 1e4,", "need(beta == same,", "a negative beta (no proof)"),
    ("need(len(masses) >= 2 and all(0 < m < 1e300 for m in masses),", "need(True,", "tokens that repel"),
    ('model == "SA"', 'model != "SA"', "the other model"),
    ("apart = [x[j] - x[i] + 2 * around if", "apart = [x[j] - x[i] if", "a wide ball"),
    ("if j != i:\n                    slope", "if j < i:\n                    slope", "a ball of unequal masses"),
    ("if not less(0, slope) else 0", "if less(slope, 0) else 0", "a ball across the right angle"),
    ("worst = iv.mpf(max(worst.b, (2 * row).b))", "worst = iv.mpf((2 * row).b)", "a ball of unequal masses"),
    ("low = (x.numerator << SCALE) // x.denominator", "low = (x.numerator << SCALE) // (9 * x.denominator)", "tokens that rest"),
    ("defect.append(p[-1].scaled(k + 1) - speed)", "defect.append(speed - speed)", "half as fast", ANY_POLYNOMIAL),
    ("t = _Balls(half.mid, half.mid + half.rad + 1)", "t = half", "a step through the peak"),
    ("places = moved if k == 0 else places", "places = p[0]", "growth along a step"),
    ("for k, one in enumerate(sizes)), iv.mpf(0))", "for k, one in enumerate(sizes[:-1])), iv.mpf(0))", "a step of order 1"),
    ("delta = iv.mpf(max(delta.b, size.b))", "delta = iv.mpf(size.b)", "unequal masses"),
    ("found = (error + delta * step) * iv.exp(mu * step)", "found = error + delta * step", "a ball of unequal masses"),
    ("(found + iv.mpf(int(value.rad.max()))", "(iv.mpf(int(value.rad.max()))", "a step of order 1"),
    ("need(times[0] == 0 and times[-1] == until,", "need(times[0] == 0,", "a quarter of the time"),
    ("need(times[0] == 0 and times[-1] == until,", "need(times[-1] == until,", "a late start"),
    ("error = iv.mpf(ball) + iv.mpf(2) ** -SCALE", "error = iv.mpf(2) ** -SCALE", "a wide ball"),
    ("need(less(off, radius),", "need(True,", "a step of order 1"),
    ("need(any(less(iv.pi, gap - 2 * error - 1e-9) for gap in gaps),", "need(True,", "a triangle"),
    ("less(iv.pi, gap - 2 * error - 1e-9)", "less(iv.pi, gap)", "a ball over a half circle"),
    ("int(np.floor(float(a.mid) / (2 * np.pi)))", "0", "a triangle in two turns"),
)

ORBITS = of(
    "orbits",
    ('low == high and not more and box["centre"] is None', "True", "a zero elsewhere"),
    ("need(0 < distance <= near / 2,", "need(0 < distance,", "all of the circle"),
    ("need(reach * 1.01 * (d - 1) ** 0.5 <= distance,", "need(True,", "1e-4 aside"),
    ("need(bool((masses > 0).all()),", "need(True,", "one mass repels"),
    ("need(bool(off <= 1e-5),", "need(True,", "1e-4 aside, long frames"),
    ('need([ends[0][0], ends[-1][1]] == claims["beta"],', "need(True,", "a branch to -0.7"),
    ("need(all(a[1] == b[0] for a, b in itertools.pairwise(ends)),", "need(True,", "from the triangle to consensus"),
    ('need(claims["rotations"] == r,', "need(True,", "two rotations"),
    ('need(index == (claims["unstable"], claims["stable"]),', "need(True,", "a stable pair"),
    ('need(box["beta"][0] <= middle <= box["beta"][1],', "need(True,", "a proof at -0.66 for -1"),
    ('centre = still if box["centre"] is None', "centre = still if True", "a branch off its centre"),
    ('slope = still if box["slope"] is None', "slope = still if True", "a branch that moves"),
    ('b, ball = iv.mpf(middle), interval(*box["beta"])', "b = ball = iv.mpf(middle)", "a branch over -2/3"),
    ("interval(-rho, rho), box[", "interval(0, 0), box[", "isosceles ones near by"),
    ('box["beta"][0] < box["beta"][1]\n', "False\n", "a branch over -2/3"),
    ("for part in parts[1:]:", "for part in []:", "a branch over -2/3"),
    ("residual = [one + tau * move for", "residual = [one for", "a branch that moves"),
    ("near = _turning(rows, t, slices, rho) if r else rho", "near = 9.0", "all of the circle"),
    ("need(less(bound, rho),", "need(True,", "a branch aside"),
    ("worst = max(worst, float(bound.b))", "worst = 0.0", "1e-4 aside"),
    ("signs[0 if matrix.middle[a][a] > 0 else 1] += 1", "signs[0] += 1", "-1 stable directions"),
    ("signs[0 if matrix.middle[a][a] > 0 else 1] += 1", "signs[matrix.middle[a][a] > 0] += 1", "a stable triangle"),
    ("moves = [sum((abs(row[a]).b", "moves = [sum((-0.9999 * abs(row[a]).b", "all of the circle"),
    ("back = [sum((abs(one).b", "back = [sum((-0.9999 * abs(one).b", "all of the circle"),
    ("in moves) * 1.0000001", "in moves) * -0.9999", "all of the circle"),
    ("in back) * 1.0000001", "in back) * -0.9999", "all of the circle"),
    ("in down) * 1.0000001", "in down) * -0.9999", "all of the circle"),
    ("return float(np.nextafter(float(bound.a), 0))", "return 9.0", "all of the circle"),
    ('forth = all(less(gap + reach, two["radius"]) for gap in gaps)', "forth = True", "another token alone"),
    ('back = all(less(gap + next_reach, one["radius"]) for gap in gaps)', "back = True", "another token alone"),
    ("need(forth or back,", "need(True,", "another token alone"),
)

LISTS = [
    mutant if mutant.coarse else mutant._replace(coarse=QUICK)
    for mutant in of(
        "lists",
        ("need(edges[0][0] == low and edges[-1][1] == high,", "need(edges[-1][1] == high,", "a list from -0.8"),
        ("need(edges[0][0] == low and edges[-1][1] == high,", "need(edges[0][0] == low,", "a list up to 0.75 (no proof)"),
        ("need(all(a[1] == b[0] for a, b in itertools.pairwise(edges)),", "need(True,", "a list with a hole (no proof)"),
        ('need(claims["euler"] == sum(', 'need(claims["euler"] != sum(', "another sum"),
        ('need(classes == claims["classes"],', "need(True,", "another index"),
        ("n, interval(low, high)", "n, interval((low + high) / 2, (low + high) / 2)", "a list over a bifurcation"),
        ("self.half = max(map(abs,", "self.half = -max(map(abs,", "no triangle, for beta from 0.45"),
        ("a, b = ends(v, SCALE)", "a, b = ends(v + 1, SCALE)", "no triangle"),
        ("slope = ends(first + self.tau * by_beta, SCALE)", "slope = ends(0 * first, SCALE)", "no triangle"),
        ("reach = (max(abs(slope[0]), abs(slope[1])) * 13 >> (level + 3)) + 1", "reach = 0", "no triangle"),
        ("reach += ((abs(moved)", "reach -= ((abs(moved)", "no triangle, for beta from 0.45"),
        (
            "return (middle - spread) // 2 - reach, (middle + spread + 1) // 2 + reach, *slope",
            "return (middle - spread) // 2, (middle + spread + 1) // 2, *slope",
            "no triangle",
        ),
        ("return min(lows), max(highs)", "return max(lows), max(highs)", "no triangle"),
        ("if i <= c < j] for c", "if i < c < j] for c", "no triangle"),
        ("if sum(windows[e][0] for e in cut) > 0", "if sum(windows[e][1] for e in cut) > 0", "no triangle"),
        ("drift = [(abs(a) + b)", "drift = [-(abs(a) + b)", "no triangle, for beta from 0.45"),
        ("reach = [int(e) * 13 // (8 << level) + 1 for e in", "reach = [0 for e in", "no triangle"),
        ("> h[1, c] + drift[c] + reach[c] for", "> h[1, c] + drift[c] for", "no triangle"),
        ("moves = (abs(y.dot(dh[0]))", "moves = -(abs(y.dot(dh[0]))", "no triangle, for beta from 0.45"),
        ("turns = (abs(y.dot(slopes[0])) + abs(y)", "turns = (abs(y)", "no triangle"),
        ("wide[c] + moves[c] + turns[c] for", "wide[c] + moves[c] for", "no triangle"),
        ("pi = [Fraction(e, 1 << SCALE)", "pi = [Fraction(e, 2 << SCALE)", "no triangle"),
        ("if total + self.n - 1 < least or", "if total + self.n - 1 < 1.4 * least or", "no pair of clusters"),
        ("total + max(one) > most:", "total + max(one) > most * 0.9:", "no triangle"),
        ("if level >= 3 and (_inside(one, scaled) or self.empty(level, one)):", "if level >= 3:", "no triangle"),
        ('raise Rejected(f"a cube at {place}', 'str(f"a cube at {place}', "no triangle"),
        ("1 if radius < 1e-4 else 12", "2; radius = 0.0", "isosceles ones in the box"),
        ("self.slopes(iv.mpf([a.a, b.b]))", "self.slopes(s)", "isosceles ones in the box"),
        ("step = max(float(iv.mpf(int(e[0])).b)", "step = 0 * max(float(iv.mpf(int(e[0])).b)", "a root that is none"),
        ("need(self._reach(centre, y, radius, step) < radius,", "need(True,", "isosceles ones in the box"),
        ("small, tried = self._reach(centre, y, radius, step), max(2 * step, 1e-13)", "small, tried = 0.0, radius", "three clusters for two"),
        ("unstable += bool(turned.middle[a][a] < 0)", "unstable += bool(turned.middle[a][a] > 0)", "another index"),
        ("need(not all(zero),", "need(True,", "consensus as a root"),
        ("worst = max(float((iv.mpf(int(row)) * iv.mpf(2) ** -total.scale * radius + step).b) for row in rows)", "worst = step", "isosceles ones in the box"),
        ("less(abs(a - iv.mpf(float(c))), self.radius) for", "less(abs(a - iv.mpf(float(c))), 9) for", "two roots as one"),
        ("apart = any(less(a, b) or less(b, a) for", "apart = any(True for", "one root as two"),
        ('need(apart, "two', 'need(True, "two', "one root as two"),
        ('"labelled": int(count)})', '"labelled": 1})', "other numbers"),
        ("all(c - radius < a and a + 1 < c + radius for", "all(c - 8 * radius < a and a + 1 < c + 8 * radius for", "no triangle"),
        ("min(one[0], two[0]), max(one[1], two[1])", "one[0], one[1]", "no triangle", UNIONS),
        ("if level < FINE:\n            one, two = self.cell(level + 1, 2 * k), self.cell(level + 1, 2 * k + 1)", "if level < FINE:\n            one = two = self.cell(level + 1, 2 * k)", "no triangle", UNIONS),
        ("slope = iv.mpf([min(p[which].a for p in parts), max(p[which].b for p in parts)])", "slope = parts[len(parts) // 2][which].mid", "isosceles ones in the box"),
    )
]

INTEGERS = of(
    "integers",
    ("if condition is not True:", "if False:", "a stable pair"),
    ("raise Rejected(reason)", "return", "a stable pair"),
    ("(iv.mpf(a)._mpi_[1], iv.mpf(b)._mpi_[0])", "(iv.mpf(a)._mpi_[0], iv.mpf(b)._mpi_[1])", "1e-7 too much noise", BITS),
    ("return iv.atan2(y, x)", "return iv.atan2(x, y)", "centres opposite", FEW),
    ('raise Rejected("a number is infinite or not a number")', "return 0", "nearly no mass"),
    ("    if shift >= 0:\n        return value << shift", "    if shift >= 0:\n        return value", "tokens that rest"),
    ("if up else value >> -shift", "if up else value >> -shift - 1", "rough steps", ROUGH),
    ("pairs = [[ends(x, scale) for x in row] for row in rows]", "pairs = [[(sum(ends(x, scale)) // 2,) * 2 for x in row] for row in rows]", "isosceles ones near by"),
    ("radius = np.array([[high - low for", "radius = np.array([[0 for", "isosceles ones near by"),
    ("low, high = ends(factor)", "low = high = ends(factor)[1]", "a branch over -2/3, late"),
    ("exact.dot(self.middle), abs(exact).dot(self.radius)", "exact.dot(self.middle), 0 * self.radius", "isosceles ones near by"),
    ("if right is not None:\n            exact, scale = fixed(right), scale + 60\n            middle, radius = middle.dot(exact)", "if right is not None:\n            exact, scale = fixed(right), scale + 60\n            middle, radius = -middle.dot(exact)", "a stable pair"),
    ("scale = max(self.scale, other.scale)\n        a, b = 1 << scale - self.scale, 1 << scale - other.scale", "scale = max(self.scale, other.scale)\n        a, b = 1 << scale - self.scale, 0", "a branch over -2/3"),
    ("return abs(self.middle) + self.radius", "return self.radius", "two tokens 2 apart"),
    ("return abs(self.middle) + self.radius", "return abs(self.middle)", "a branch that moves"),
)

WORDS = [
    Mutant("words", "min(masses) == max(masses)", "min(masses) <= max(masses)", "masses that are not equal"),
    Mutant("__init__", 'need(values["statement"] == said,', "need(True,", "other words"),
]

MUTANTS = [*FORMS, *FLOWS, *ORBITS, *LISTS, *INTEGERS, *WORDS]
