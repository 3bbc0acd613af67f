"""On the line, without layer norm, every row of the attention matrix but at most one becomes a single 1.

Tokens on the line follow dx_i/dt = sum_j A_ij V x_j with A the softmax of QK x_i x_j, V > 0 and QK > 0, and grow like
e^(Vt). In the end a token sees nobody but the outermost token on its own side of 0: sorted by position, the rows of A
are (1, 0, ..., 0), then at most one that may be anything, then (0, ..., 0, 1). So A has the rank 2, or 1 if all tokens
are on one side (arXiv:2305.05465). The gaps D between tokens that follow one leader freeze, while x goes on growing:
what is left of the other weights, e^(-QK x_i D), dies doubly exponentially.

Clusters at a and -a of equal masses are exactly soluble: u = x^2 obeys du/dt = 2 V u tanh(QK u), the weight on the
other cluster is 1/(1 + e^(2 QK u)), and z = e^(-Vt) x tends to a exp(-int_{a^2}^infinity (coth(QK u) - 1)/(2u) du).

Shown: random starts, the example of six tokens, and pairs for several V and QK. The row that may be anything belongs
to a token that stays at 0; random starts have none. Not shown: V < 0, where tokens collapse and A becomes uniform.
"""

import dataclasses
import functools
import itertools
import math
from typing import Any

import numpy as np
import xarray as xr

from attnflow.axes import Along
from attnflow.experiments.claim import Claim, worst
from attnflow.experiments.gallery._frames import frames
from attnflow.experiments.study import Study
from attnflow.fields import Attention, Rescaled
from attnflow.observe import attention_matrix, boolean_rows, leaders
from attnflow.plots.style import COLOURS, INK, PAGE, styled
from attnflow.spaces import Euclidean
from attnflow.tokens import Tokens, stack

PAPERS = ("arXiv:2305.05465",)

LINE = (-1.3, -0.4, -0.05, 0.2, 0.7, 1.9)
BOOLEAN = 1e-6
"""Up to which a weight counts as 0 or 1."""
DECIDED = 25.0
"""Gaps count as frozen where all weights but the leader's are below e^(-25)."""
SMALLEST = 650.0
"""Weights below e^(-650) near the end of floating-point numbers."""


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is simulated."""

    sizes: tuple[int, ...] = (6, 24)
    """Numbers of tokens."""
    starts: int = 120
    """Random ones of each size, Gaussian, V = QK = 1 (units of time and length); every third has all tokens > 0."""
    radii: tuple[float, ...] = (0.4, 0.7, 1.2)
    """Of pairs."""
    values: tuple[float, ...] = (0.5, 1.0, 2.0)
    products: tuple[float, ...] = (0.5, 2.0)
    """QK of pairs."""
    until: float = 14.0
    legs: int = 28
    steps: int = 50
    """Per leg; half as long ones are taken for comparison."""
    look: float = 6.0
    """When the decay of weights is looked at, for the length of one leg."""
    looks: tuple[float, ...] = (0.5, 1.0, 2.0)
    """When pairs are looked at."""
    seed: int = 2


QUICK = Parameters(
    sizes=(6,), starts=12, radii=(0.7,), values=(0.5, 2.0), products=(2.0,), until=13.0, legs=26, steps=25
)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Frames, and attention matrices at some of them, for each number of tokens."""
    return {
        f"n{n}": study.part(f"n{n}", functools.partial(_follow, parameters, k, n, study))
        for k, n in enumerate(parameters.sizes)
    }


def _pairs(parameters: Parameters) -> list[tuple[float, float, float]]:
    return list(itertools.product(parameters.radii, parameters.values, parameters.products))


def _follow(parameters: Parameters, index: int, n: int, study: Study) -> xr.Dataset:
    rng = np.random.default_rng([parameters.seed, n])
    x = rng.standard_normal((parameters.starts, n))
    x[::3] = np.abs(x[::3])
    if n == len(LINE):
        x[1] = LINE
    pairs = _pairs(parameters)
    half = np.where(np.arange(n) < n // 2, -1.0, 1.0)
    x = np.concatenate([np.sort(x, axis=1), [a * half for a, _, _ in pairs]])
    value = np.concatenate([np.ones(parameters.starts), [v for _, v, _ in pairs]])
    product = np.concatenate([np.ones(parameters.starts), [k for _, _, k in pairs]])
    tokens = stack("start", range(len(x)), [Tokens(one[:, None], space=Euclidean(1)) for one in x])
    field = Rescaled(
        Attention(1.0, query=Along("start", product[:, None, None]), value=Along("start", value[:, None, None]))
    )
    found = frames(
        field, tokens, parameters.until, parameters.legs, parameters.steps,
        lambda share: study.progress(f"{len(x)} starts of {n} tokens", (index + share) / len(parameters.sizes)),
    )  # fmt: skip
    fine, coarse = found.fine[..., 0], found.coarse[..., 0]

    def matrices(time: float, starts: Any) -> np.ndarray:
        frame = _frame(found.time, time)
        grown = np.exp(value * found.time[frame])[:, None] * fine[frame]
        raw = {k: Tokens(grown[k][:, None], space=Euclidean(1)) for k in starts}
        return np.array([attention_matrix(Attention(product[k]), one) for k, one in raw.items()])

    random, rest = range(parameters.starts), range(parameters.starts, len(x))
    leg = parameters.until / parameters.legs
    story = np.array([matrices(t, [1])[0] for t in found.time[found.time <= 8.0]])
    return xr.Dataset(
        {
            "fine": (("frame", "start", "token"), fine),
            "coarse": (("frame", "start", "token"), coarse),
            "error": (("frame", "start"), found.error),
            "end": (("random", "query", "key"), matrices(parameters.until, random)),
            "later": (("random", "query", "key"), matrices(parameters.look + leg, random)),
            "pair": (("look", "pair", "query", "key"), np.array([matrices(t, rest) for t in parameters.looks])),
            "story": (("early", "query", "key"), story),
            "time": (("frame",), found.time),
        },
    )


def _frame(times: np.ndarray, time: float) -> int:
    return int(np.argmin(np.abs(times - time)))


def pair_square(time: float, radius: float, value: float, product: float) -> float:
    """u = x^2 at `time`: t = int_{a^2}^u du/(2 V u tanh(QK u)), the integral over log u."""
    from scipy.integrate import quad
    from scipy.optimize import brentq

    begin = 2 * math.log(radius)

    def late(s: float) -> float:
        excess = quad(lambda q: 2 / math.expm1(min(2 * product * math.exp(q), 700.0)), begin, s, epsabs=1e-13)[0]
        return float((s - begin + excess) / (2 * value) - time)

    return math.exp(brentq(late, begin, begin + 2 * value * time + 1e-9, xtol=1e-13))


def pair_limit(radius: float, product: float) -> float:
    """Where z = e^(-Vt) x of a pair ends; the integral over log u, up to QK u = 20."""
    from scipy.integrate import quad

    ends = 2 * math.log(radius), math.log(20 / product)
    excess = quad(lambda q: 2 / math.expm1(2 * product * math.exp(q)), *ends, epsabs=1e-13)[0]
    return radius * math.exp(-excess / 2)


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """For each number of tokens: the matrix at the end, the decay of weights, and pairs."""
    made = []
    for n in parameters.sizes:
        part = data[f"n{n}"]
        made += [*_at_the_end(n, parameters, part), _decay(n, parameters, part), *_of_pairs(n, parameters, part)]
    return made


def _at_the_end(n: int, parameters: Parameters, part: xr.Dataset) -> list[Claim]:
    free, strange, rank, wrong = [], 0, 0, 0
    z = part["fine"].values[-1, : parameters.starts]
    one_side = part["fine"].values[0, : parameters.starts].min(axis=1) > 0
    for k, matrix in enumerate(part["end"].values):
        rows = boolean_rows(matrix, BOOLEAN)
        free.append(int(np.sum(~rows)))
        followed = np.where(z[k] > 0, np.argmax(z[k]), np.argmin(z[k]))
        strange += int(np.sum(rows & (np.argmax(matrix, axis=1) != followed)))
        count = len(leaders(matrix, BOOLEAN))
        rank += int(np.linalg.matrix_rank(matrix, tol=math.sqrt(BOOLEAN)) != count + (~rows).sum())
        wrong += int(one_side[k] and count != 1)
    sides = int(one_side.sum())
    words, counted = f"n = {n}, {parameters.starts} random starts", f"counted; weights are 0 or 1 up to {BOOLEAN:g}"
    return [
        Claim.at_most(f"{words}: rows that are not Boolean, at most", 1, max(free), 0, counted),
        Claim.equal(f"{words}: rows that follow another than the outermost on their side", 0, strange, 0, counted),
        Claim.equal(f"{words}: starts of another rank than there are leaders", 0, rank, 0, counted),
        Claim.equal(f"n = {n}, {sides} starts on one side of 0: those with several leaders", 0, wrong, 0, counted),
    ]


def decay(n: int, parameters: Parameters, part: xr.Dataset) -> xr.Dataset:
    """-log of the weight that rows give to others than their leader, one leg after `look`: measured and predicted.

    The prediction takes positions at `look` and lets the leader grow by e^leg and the gaps stay.
    """
    frame, leg = _frame(part["time"].values, parameters.look), parameters.until / parameters.legs
    found: dict[str, list[float]] = {"measured": [], "predicted": [], "tolerance": [], "before": []}
    for k, matrix in enumerate(part["later"].values):
        x, rough = (np.exp(parameters.look) * part[name].values[frame, k] for name in ("fine", "coarse"))
        for side in (x > 0, x < 0):
            if side.sum() < 2:
                continue
            now, then, other = (
                _exponents(np.abs(p[side]), f) for p, f in ((x, 1.0), (x, np.exp(leg)), (rough, np.exp(leg)))
            )
            if now.min() < DECIDED:
                continue
            left = np.where(np.arange(n) == np.flatnonzero(side)[np.argmax(np.abs(x[side]))], 0.0, matrix[side]).sum(
                axis=1
            )
            keep = (then < SMALLEST) & (left > 0)
            measured = -np.log(np.where(keep, left, 1.0))
            # a gap moves by at most n e^(-25) max |x| in a leg, and logits round by a few eps x^2
            grown = np.exp(leg) * np.abs(x).max()
            slack = np.abs(other - then) + grown**2 * (n * math.exp(-DECIDED) + 64 * np.finfo(float).eps)
            for name, row in zip(found, (measured, then, slack, now), strict=True):
                found[name] += list(row[keep])
    return xr.Dataset({name: ("row", np.array(values)) for name, values in found.items()})


def _exponents(size: np.ndarray, factor: float) -> np.ndarray:
    """-log sum_k e^(-x_i D_k) over all but the leader, whose position has grown by `factor` while the gaps D stay."""
    gaps = np.max(size) - size
    grown = factor * np.max(size) - gaps
    rest = np.delete(gaps, np.argmax(size))
    return -np.logaddexp.reduce(-np.multiply.outer(grown, rest), axis=1)


def _decay(n: int, parameters: Parameters, part: xr.Dataset) -> Claim:
    rows = decay(n, parameters, part)
    count = rows.sizes["row"]
    if count == 0:
        rows = xr.Dataset({name: ("row", [np.nan if name == "measured" else 1.0]) for name in rows})
    (at,) = worst(np.abs(rows["measured"].values - rows["predicted"].values), rows["tolerance"].values)
    leg = parameters.until / parameters.legs
    return Claim.equal(
        f"n = {n}: -log of the weights on others, {leg:g} after gaps froze (worst of {count} rows)",
        float(rows["predicted"][at]), float(rows["measured"][at]), float(rows["tolerance"][at]),
        "change by halving the steps; motion of gaps, below e^(-25); rounding of logits",
    )  # fmt: skip


def _of_pairs(n: int, parameters: Parameters, part: xr.Dataset) -> list[Claim]:
    weights, limits = [], []
    for k, (radius, value, product) in enumerate(_pairs(parameters)):
        start, label = parameters.starts + k, f"a = {radius:g}, V = {value:g}, QK = {product:g}"
        for j, time in enumerate(parameters.looks):
            frame = _frame(part["time"].values, time)
            square = pair_square(float(part["time"][frame]), radius, value, product)
            if 2 * product * square > SMALLEST:
                continue
            measured = -math.log(part["pair"].values[j, k, 0, n // 2 :].sum())
            z = abs(part["fine"].values[frame, start, 0])
            slack = 4 * product * square * float(part["error"][frame, start]) / z + 1e-11 * (1 + 4 * product * square)
            weights.append((np.logaddexp(0.0, 2 * product * square), measured, slack, f"{label}, t = {time:g}"))
        end = part["fine"].values[-1, start, -1]
        rest = math.exp(-2 * product * min(end**2 * math.exp(2 * value * parameters.until), 300.0))  # of coth - 1
        limits.append((pair_limit(radius, product), end, float(part["error"][-1, start]) + 1e-11 + end * rest, label))
    made = []
    for rows, words in ((weights, "-log of the weight on the other cluster"), (limits, "limit of z")):
        predicted, measured, slack = np.array([row[:3] for row in rows]).T
        (at,) = worst(np.abs(measured - predicted), slack)
        made.append(
            Claim.equal(
                f"pairs, {n} tokens: {words} (worst of {len(rows)}: {rows[at][3]})", predicted[at], measured[at],
                slack[at], "change by halving the steps; error of the integral; what it still lacks at the end",
            )
        )  # fmt: skip
    return made


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Tokens on the line without layer norm; in (a) to (c) the six tokens of the example, V = QK = 1.

    (a) Their attention matrix at four times: white is 0, dark is 1. (b) Rescaled positions. (c) -log of the weight that
    a row gives to others than its leader, measured (dots) and from gaps that are frozen at t = 2 (lines, growing like
    e^t). (d) How far pairs of clusters have shrunk in the end, against QK a^2 (colours: QK), and the integral (line).
    """
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 4.4))
        top, bottom = fig.subfigures(2, 1, height_ratios=(1, 1.45))
        first = data[f"n{parameters.sizes[0]}"]
        shades = top.subplots(1, 4)
        for axes, time in zip(shades, (0.0, 0.5, 1.0, 8.0), strict=True):
            frame = min(_frame(first["time"].values, time), first.sizes["early"] - 1)
            image = axes.imshow(first["story"].values[frame], cmap="Blues", vmin=0, vmax=1)
            axes.set_xlabel("key")
            axes.set_xticks([]), axes.set_yticks([])
            axes.set_title(f"$t = {first['time'].values[frame]:g}$")
        shades[0].set_ylabel("query")
        shades[0].set_title("(a)", loc="left", fontweight="bold")
        top.colorbar(image, ax=list(shades), label="weight", shrink=0.8)
        panels = bottom.subplots(1, 3)
        _draw_paths(panels[0], first)
        _draw_decay(panels[1], first)
        _draw_pairs(panels[2], parameters, data)
        for letter, one in zip("bcd", panels, strict=True):
            one.set_title(f"({letter})", loc="left", fontweight="bold")
        return fig


def _draw_paths(axes: Any, part: xr.Dataset) -> None:
    shown = part["time"].values <= 8.0
    z = part["fine"].values[shown, 1]
    for k, path in enumerate(z.T):
        axes.plot(part["time"].values[shown], path, color=COLOURS[k % len(COLOURS)], lw=1.0)
    axes.axhline(0.0, color=INK, lw=0.6, ls=":")
    axes.set_xlabel("time $t$")
    axes.set_ylabel("$z_i = e^{-t} x_i$")


def _draw_decay(axes: Any, part: xr.Dataset) -> None:
    times = part["time"].values[: part.sizes["early"]]
    story, begin = part["story"].values, _frame(times, 2.0)
    x = np.exp(times[begin]) * part["fine"].values[begin, 1]
    followed = np.argmax(story[-1], axis=1)
    for k, leader in enumerate(followed):
        left = np.delete(story[:, k], leader, axis=1).sum(axis=1)
        seen = left > 1e-280
        colour = COLOURS[k % len(COLOURS)]
        axes.plot(times[seen], -np.log(left[seen]), "o", ms=3.5, mfc="white", mec=colour, mew=0.9)
        side = np.flatnonzero(np.sign(x) == np.sign(x[leader]))
        at = int(np.flatnonzero(side == k)[0])
        later = np.linspace(times[begin], 6.0, 50)
        line = [_exponents(np.abs(x[side]), math.exp(t - times[begin]))[at] for t in later] if len(side) > 1 else []
        if len(line):
            axes.plot(later, line, color=colour, lw=1.0)
    axes.set_yscale("log")
    axes.set_ylim(0.1, 900)
    axes.set_xlim(0, 6.0)
    axes.set_xlabel("time $t$")
    axes.set_ylabel(r"$-\log\sum_{j \neq \mathrm{leader}} A_{ij}$")


def _draw_pairs(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    part = data[f"n{parameters.sizes[0]}"]
    squares = np.geomspace(0.05, 5.0, 80)
    axes.plot(squares, [pair_limit(1.0, float(q)) for q in squares], color=INK, lw=1.0)
    marks = dict(zip(parameters.values, "os^Dv", strict=False))
    for k, (radius, value, product) in enumerate(_pairs(parameters)):
        end = part["fine"].values[-1, parameters.starts + k, -1]
        colour = COLOURS[parameters.products.index(product) % len(COLOURS)]
        axes.plot(product * radius**2, end / radius, marks[value], ms=4, mfc="none", mec=colour, mew=0.9)
    for value, mark in marks.items():
        axes.plot([], [], mark, ms=4, mfc="none", mec=INK, mew=0.9, label=f"$V = {value:g}$")
    axes.set_xscale("log")
    axes.set_ylim(0, 1.03)
    axes.set_xlabel("$QK a^2$")
    axes.set_ylabel("$z_\\infty / a$")
    axes.legend(loc="lower right")
