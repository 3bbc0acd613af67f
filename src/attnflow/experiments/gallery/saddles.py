"""Every equilibrium but consensus is a saddle for beta > 0, and that is why almost every start reaches consensus.

Equilibria of attention are critical points of its energy, the same ones for softmax attention (SA) and its variant, the
gradient flow (USA0). If all but consensus have an unstable direction, the starts that end in one of them form a null
set (arXiv:2312.10794, arXiv:2507.22857). For few tokens the equilibria can be listed.

Shown: the equilibria of n = 3, ..., 6 equal tokens on the circle and on the sphere that Newton's method finds, up to
rotations, reflections and permutations, with their Morse indices. Topology checks the list: labelled equilibria modulo
rotations, counted with the sign (-1)^index, must add up to an Euler characteristic, and Morse's inequalities must hold.
(That is necessary, not sufficient, for a complete list.) On the circle rotations act freely and the quotient is the
torus T^(n-1). On the sphere collinear configurations keep a rotation; there the equivariant series is used,

    sum over others t^index + (sum over collinear ones t^index - (1 + t^2)^(n-1))/(1 - t^2) = (1 + t) Q(t), Q >= 0.

What "almost every" means is shown with iid starts. Two antipodal groups are the slowest saddle found: their d - 1
unstable directions grow at the rate e^(-2 beta) (USA0), so a start passes within r of the saddle with a probability of
order r^(d-1), and the share of starts that have not left by time t falls like e^(-(d-1) e^(-2 beta) t). Not shown:
beta = 0, where equilibria come in families, and lists for larger n.
"""

import dataclasses
import functools
import itertools
import math
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.experiments.claim import Claim
from attnflow.experiments.gallery.consensus import bounded
from attnflow.experiments.study import Study
from attnflow.fields import Attention, Unnormalised
from attnflow.flows import Fixed, advance
from attnflow.observe import energy, overlaps
from attnflow.plots.style import PAGE, styled
from attnflow.spaces import Sphere
from attnflow.stability import Equilibrium, find_equilibria, spectrum
from attnflow.tokens import Tokens, uniform

PAPERS = ("arXiv:2312.10794", "arXiv:2507.22857")

NEUTRAL = 1e-8
"""Eigenvalues below this are neutral: equilibria are found to 1e-12, and the slowest rate here is e^(-8) = 3e-4."""
STEP, SPAN = 0.25, 1.0
"""Step and frames of flows."""
LATE = 0.1
"""The share of starts that make up the tail."""


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is looked for and simulated."""

    cases: tuple[tuple[int, int], ...] = ((3, 2), (4, 2), (5, 2), (6, 2), (3, 3), (4, 3), (5, 3), (6, 3))
    """Numbers of tokens and dimensions."""
    betas: tuple[float, ...] = (1.0, 4.0)
    starts: int = 8
    """Of Newton's method in one batch, for three tokens; three times as many for each token more."""
    batches: int = 24
    """At most; the search ends when the Euler characteristic comes out and a batch has added nothing."""
    dims: tuple[int, ...] = (2, 3)
    n: int = 4
    """Tokens of iid starts."""
    beta: float = 1.0
    seeds: int = 8000
    bends: tuple[float, ...] = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
    """How far two antipodal groups are from being antipodal, in angle."""
    until: float = 150.0


QUICK = Parameters(cases=((4, 3),), betas=(1.0,), dims=(3,), seeds=400, bends=(1e-2, 1e-4), until=80.0)


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Equilibria with their spectra, and exit times of iid and of bent starts."""
    found = {}
    jobs = [(n, d, beta) for n, d in parameters.cases for beta in parameters.betas]
    for k, (n, d, beta) in enumerate(jobs):
        study.progress(f"equilibria of {n} tokens on S^{d - 1}, beta = {beta:g}", 0.8 * k / len(jobs))
        found[_name(n, d, beta)] = study.part(_name(n, d, beta), functools.partial(_list, parameters, n, d, beta))
    for k, d in enumerate(parameters.dims):
        study.progress(f"iid starts on S^{d - 1}", 0.8 + 0.1 * k)
        found[f"starts-S{d - 1}"] = study.part(f"starts-S{d - 1}", functools.partial(_starts, parameters, d))
    return found


def _name(n: int, d: int, beta: float) -> str:
    return f"{n}-S{d - 1}-beta{beta:g}"


def _list(parameters: Parameters, n: int, d: int, beta: float) -> xr.Dataset:
    """The equilibria that batches of starts find, lowest energy first."""
    rows: list[dict[str, Any]] = []
    for batch in range(parameters.batches):
        before = len(rows)
        for one in find_equilibria(n, d, beta, starts=parameters.starts * 3 ** (n - 3), seed=batch):
            if all(np.abs(_mark(one.tokens.positions) - _mark(row["positions"])).max() > 1e-6 for row in rows):
                rows.append(_describe(one, d, beta))
        part = _table(rows).assign_attrs(n=n, d=d, beta=beta, starts=(batch + 1) * parameters.starts * 3 ** (n - 3))
        predicted, measured = euler(part)
        if len(rows) == before and predicted == measured:
            break
    return part.assign_attrs(last=len(rows) - before).sortby("energy")


def _table(rows: list[dict[str, Any]]) -> xr.Dataset:
    dims: dict[str, tuple[str, ...]] = {"rates": ("mode",), "rates_SA": ("mode",), "positions": ("token", "dim")}
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return xr.Dataset({name: (("equilibrium", *dims.get(name, ())), column) for name, column in columns.items()})


def _mark(positions: Any) -> np.ndarray:
    """Numbers that see neither rotations nor the order of tokens."""
    gram = np.asarray(positions) @ np.asarray(positions).T
    return np.concatenate([np.linalg.eigvalsh(gram), np.sort(gram.sum(axis=1)), np.sort(gram.ravel())])


def _describe(found: Equilibrium, d: int, beta: float) -> dict[str, Any]:
    tokens, gram = found.tokens, overlaps(found.tokens)
    softmax = Attention(beta)
    rates = np.sort(found.spectrum.eigenvalues.real)[::-1]
    rank = int(np.sum(np.linalg.eigvalsh(gram) > 1e-6))
    return {
        "positions": np.asarray(tokens.positions),
        "rates": rates,
        "rates_SA": np.sort(spectrum(softmax, tokens).eigenvalues.real)[::-1],
        "speed": float(np.abs(softmax.velocity(0.0, None, tokens)).max()),
        "index": int(np.sum(rates > NEUTRAL)),
        "labelled": labelled(gram, rank == d),
        "rank": rank,
        "clusters": found.clusters.count,
        "energy": float(energy(tokens, beta)),
    }


def labelled(gram: np.ndarray, whole: bool) -> int:
    """Number of labelled configurations with this Gram matrix up to the order of tokens, modulo rotations.

    Permutations that keep the Gram matrix are isometries of the configuration; one that spans the `whole` space differs
    from its mirror image.
    """
    orders = np.array(list(itertools.permutations(range(len(gram)))))
    same = np.abs(gram[orders[:, :, None], orders[:, None, :]] - gram).max(axis=(1, 2)) < 1e-5
    return math.factorial(len(gram)) // int(same.sum()) * (2 if whole else 1)


def _starts(parameters: Parameters, d: int) -> xr.Dataset:
    """When all overlaps have become positive, to one frame; infinite if they have not. USA0."""
    seeds = range(d * parameters.seeds, (d + 1) * parameters.seeds)
    iid = np.asarray(uniform(Sphere(d), n=parameters.n, seed=seeds).positions)
    bent = np.array([_groups(parameters.n, d, bend) for bend in parameters.bends])
    tokens = Tokens(np.concatenate([iid, bent]), dims=("member",))
    field = Attention(parameters.beta, normaliser=Unnormalised())
    left = np.full(len(iid) + len(bent), np.inf)
    for frame in range(1, math.ceil(parameters.until / SPAN) + 1):
        tokens = advance(field, tokens, 0.0, SPAN, Fixed(STEP))
        left = np.minimum(left, np.where(overlaps(tokens).min(axis=(-1, -2)) > 0, frame * SPAN, np.inf))
        if np.isfinite(left).all():
            break
    return xr.Dataset(
        {"left": ("seed", left[: len(iid)]), "bent": ("bend", left[len(iid) :])}, {"bend": list(parameters.bends)}
    )


def _groups(n: int, d: int, bend: float) -> np.ndarray:
    """Two groups of n/2 tokens at the angle pi - bend."""
    positions = np.zeros((n, d))
    positions[: n // 2, 0] = 1.0
    positions[n // 2 :, 0], positions[n // 2 :, 1] = -math.cos(bend), math.sin(bend)
    return positions


def split_rates(n: int, d: int, first: int, beta: float) -> np.ndarray:
    """Eigenvalues of USA0 at two antipodal groups, `first` tokens in one (all: consensus); closed form, largest first.

    A token is pulled by a displacement v_j of its own group with m_j (v_j - v_i), of the other one with
    m_j e^(-2 beta) (v_j + v_i); m = 1/n. So groups of masses a and b turn towards each other at the rate e^(-2 beta),
    together at 0, and tokens of the first group leave each other at -a + b e^(-2 beta).
    """
    a, b, far = first / n, 1 - first / n, math.exp(-2 * beta)
    rates = [0.0, *[-a + b * far] * (first - 1)]
    if first < n:
        rates += [far, *[-b + a * far] * (n - first - 1)]
    return np.sort(np.repeat(rates, d - 1))[::-1]


def ring_rates(n: int, d: int, beta: float) -> np.ndarray:
    """Eigenvalues of USA0 at n equispaced tokens on a great circle: `theory` within the circle, and out of it.

    Out of it, z_i' = (1/n) sum_j e^(-beta (1 - cos a_ij)) (z_j - cos(a_ij) z_i).
    """
    modes, angles = np.arange(n), 2 * np.pi * np.arange(n) / n
    within = theory.ring_growth_rates(beta, n, modes, model="USA0")
    weights = np.exp(-beta * (1 - np.cos(angles))) / n
    out = [np.sum(weights * (np.cos(k * angles) - np.cos(angles))) for k in modes]
    return np.sort(np.concatenate([within, *[out] * (d - 2)]))[::-1]


def morse(part: xr.Dataset) -> tuple[int, np.ndarray]:
    """(defect, Q): (1 + t) Q(t) + defect is the series of all equilibria minus that of the configuration space."""
    from numpy.polynomial import polynomial as poly

    n, d, circle = part.attrs["n"], part.attrs["d"], part.attrs["d"] == 2
    line = part["rank"].values == 1
    free, fixed = np.zeros(n * d), np.zeros(n * d)
    np.add.at(free, part["index"].values[~line | circle], part["labelled"].values[~line | circle])
    if circle:
        free = poly.polysub(free, poly.polypow([1, 1], n - 1))
    else:
        np.add.at(fixed, part["index"].values[line], part["labelled"].values[line])
        whole, rest = poly.polydiv(poly.polysub(fixed, poly.polypow([1, 0, 1], n - 1)), [1, 0, -1])
        free = poly.polyadd(free, whole)
        if np.abs(rest).max() > 0:
            return int(np.abs(rest).max()), np.array([-1])
    quotient, rest = poly.polydiv(free, [1, 1])
    return round(float(np.atleast_1d(rest)[0])), np.rint(quotient).astype(int)


def euler(part: xr.Dataset) -> tuple[int, int]:
    """(predicted, measured): the sum of (-1)^index, collinear configurations of the sphere on the predicting side."""
    n, line = part.attrs["n"], part["rank"].values == 1
    index, count = part["index"].values, part["labelled"].values
    signed = count * (-1) ** index
    if part.attrs["d"] == 2:
        return 0, int(signed.sum())
    return int(np.sum(count[line] * index[line]) // 2 - (n - 1) * 2 ** (n - 2)), int(signed[~line].sum())


def known(part: xr.Dataset) -> tuple[float, int]:
    """(error, count): equilibria whose spectrum has a closed form, and the largest error of an eigenvalue of theirs."""
    n, d, beta = (part.attrs[name] for name in ("n", "d", "beta"))
    errors = []
    for k in range(part.sizes["equilibrium"]):
        positions, rates = part["positions"].values[k], part["rates"].values[k]
        gram = positions @ positions.T
        if part["rank"][k] == 1:
            errors.append(np.abs(rates - split_rates(n, d, int(np.sum(gram[0] > 0)), beta)).max())
        elif np.abs(np.sort(gram, axis=1) - np.sort(np.cos(2 * np.pi * np.arange(n) / n))).max() < 1e-6:
            errors.append(np.abs(rates - ring_rates(n, d, beta)).max())
    return float(np.max(errors)), len(errors)


def tail_rate(left: np.ndarray) -> tuple[float, float]:
    """Rate of the exponential tail of exit times that are known to one frame, and its standard error.

    Of the last starts, `LATE` of all, the excesses over the last frame before are geometric; the estimate is that of
    largest likelihood.
    """
    begin = float(np.quantile(left, 1 - LATE))
    waits = np.round((left[left > begin] - begin) / SPAN)
    rate = -math.log1p(-1 / waits.mean()) / SPAN
    return rate, rate / math.sqrt(len(waits))


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """The list of equilibria, its completeness, and what saddles do to iid starts."""
    parts = [data[_name(n, d, beta)] for n, d in parameters.cases for beta in parameters.betas]
    made = _saddle_claims(parts)
    for d in sorted({d for _, d in parameters.cases}):
        sums = [(part, *euler(part)) for part in parts if part.attrs["d"] == d]
        part, predicted, measured = max(sums, key=lambda row: (abs(row[1] - row[2]), row[0].attrs["n"]))
        case = f"n = {part.attrs['n']}, β = {part.attrs['beta']:g}, {part.attrs['starts']} starts"
        made.append(
            Claim.equal(
                f"S^{d - 1}: equilibria modulo rotations, each with (-1)^index, add up to the Euler characteristic "
                f"(worst of {len(sums)}: {case})",
                predicted, measured, 0.0, f"integers; the search goes on for it, at most {parameters.batches} batches",
            )
        )  # fmt: skip
    last = sum(int(part.attrs["last"]) for part in parts)
    made.append(
        Claim.true(
            "the last batch of starts finds no equilibrium that is not in the list", last == 0,
            f"{last} new in {len(parts)} cases, {sum(part.attrs['starts'] for part in parts)} starts in all", "counted",
        )
    )  # fmt: skip
    series = [morse(part) for part in parts]
    made.append(
        Claim.true(
            "Morse's inequalities hold", all(defect == 0 and (q >= 0).all() for defect, q in series),
            f"{sum(len(q) for _, q in series)} coefficients of Q in {len(series)} cases, the smallest "
            f"{min(int(q.min()) for _, q in series)}", "integers",
        )
    )  # fmt: skip
    return made + _start_claims(parameters, {d: data[f"starts-S{d - 1}"] for d in parameters.dims})


def _saddle_claims(parts: list[xr.Dataset]) -> list[Claim]:
    others = [part.isel(equilibrium=part["clusters"].values > 1) for part in parts]
    total = sum(part.sizes["equilibrium"] for part in others)
    slowest = np.min([part["rates"].values.max(axis=1).min() * math.exp(2 * part.attrs["beta"]) for part in others])
    neutral = [np.sum(np.abs(part["rates"].values) <= NEUTRAL, axis=1) for part in parts]
    # all rotations move a configuration, but on the sphere a collinear one stays under those about its line
    turns = [np.ones_like(p["rank"]) if p.attrs["d"] == 2 else np.minimum(p["rank"] + 1, 3) for p in parts]
    alike = [np.sum(part["rates_SA"].values > NEUTRAL, axis=1) == part["index"].values for part in parts]
    still = float(np.max([part["speed"].values.max() for part in parts]))
    errors, close = [known(part) for part in parts], "found to 1e-12, so that an eigenvalue is off by less than 1e-8"
    return [
        Claim.at_least(
            f"the largest growth rate at each of {total} equilibria but consensus, in units of e^(-2β): the least",
            1.0, slowest, NEUTRAL * math.exp(2 * max(part.attrs["beta"] for part in parts)),
            close,
        ),
        Claim.true(
            "no equilibrium has neutral directions other than rotations",
            all((a == b).all() for a, b in zip(neutral, turns, strict=True)),
            f"{sum(len(a) for a in neutral)} equilibria", f"eigenvalues below {NEUTRAL:g}",
        ),
        Claim.at_most(
            f"error of an eigenvalue at {sum(count for _, count in errors)} rings, antipodal groups and consensus", 0.0,
            float(np.max([error for error, _ in errors])), NEUTRAL, close,
        ),
        Claim.true(
            "SA stands still at the equilibria of USA0, and with the same Morse index",
            bool(all(a.all() for a in alike) and still < NEUTRAL),
            f"{sum(int(a.sum()) for a in alike)} of {sum(len(a) for a in alike)}, speeds at most {still:.0e}",
            f"speeds and eigenvalues against {NEUTRAL:g}",
        ),
    ]  # fmt: skip


def _start_claims(parameters: Parameters, parts: dict[int, xr.Dataset]) -> list[Claim]:
    beta, where = parameters.beta, f"USA0, β = {parameters.beta:g}, {parameters.n} tokens"
    left = np.concatenate([part["left"].values for part in parts.values()])
    made = [
        Claim.true(
            f"{where} on {', '.join(f'S^{d - 1}' for d in parts)}: every iid start has left the saddles by "
            f"t = {parameters.until:g}",
            bool(np.isfinite(left).all()), bounded(np.isfinite(left)), "counted; exact binomial bound",
        )
    ]  # fmt: skip
    for d, part in parts.items():
        rate, error = tail_rate(part["left"].values)
        made.append(
            Claim.equal(
                f"{where} on S^{d - 1}: rate at which the share that lingers falls, (d-1) e^(-2β)",
                (d - 1) * math.exp(-2 * beta), rate, 4 * error,
                f"4 standard errors, the last {LATE:.0%} of {parameters.seeds} starts",
            )
        )  # fmt: skip
    exits = [
        (_merge(bend, beta), float(time) - SPAN / 2, f"S^{d - 1}, bent by {bend:.0e}")
        for d, part in parts.items()
        for bend, time in zip(parameters.bends, part["bent"].values, strict=True)
    ]
    predicted, measured, label = max(exits, key=lambda row: abs(row[0] - row[1]))
    made.append(
        Claim.equal(
            f"{where}: exit time of two groups that are almost antipodal (worst of {len(exits)}: {label})",
            predicted, measured, SPAN / 2 * (1 + 1e-6), "half the time between frames",
        )
    )  # fmt: skip
    return made


def _merge(bend: float, beta: float) -> float:
    """Closed form of the time that two groups need from the angle pi - bend to pi/2."""
    return float(theory.merge_time(math.pi - bend, beta, (0.5, 0.5), math.pi / 2, "USA0"))


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Equilibria of equal tokens and what they do to iid starts.

    (a) Energy and Morse index of the equilibria of the largest n, first beta. (b) How many there are of an index, with
    labelled tokens and modulo rotations; bars: Betti numbers of the torus, which the counts on the circle cannot be
    below. (c) Share of iid starts that have not left the saddles (USA0), against time; dashed: slope of theory; in the
    legend the rate of the tail with its standard error, and theory. (d) Exit time of two almost antipodal groups.
    """
    from attnflow.experiments.gallery import _saddles_figure as panels

    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 4.8))
        axes = fig.subplots(2, 2)
        beta = parameters.betas[0]
        largest = {d: max(n for n, e in parameters.cases if e == d) for d in sorted({d for _, d in parameters.cases})}
        chosen = [data[_name(n, d, beta)] for d, n in largest.items()]
        panels.draw_indices(axes[0, 0], chosen)
        panels.draw_counts(axes[0, 1], chosen)
        panels.draw_tails(axes[1, 0], parameters, data)
        panels.draw_exits(axes[1, 1], parameters, data, _merge)
        for letter, one in zip("abcd", axes.flat, strict=True):
            one.set_title(f"({letter})", loc="left", fontweight="bold")
        return fig
