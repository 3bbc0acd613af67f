"""One attention layer collapses a long context unless beta grows like log n: the threshold is log n/(1 - rho).

One softmax layer on n unit tokens of common overlap rho with beta = c log n makes outputs of cosine -> 1 for
c < 1/(1 - rho), rho for c > 1/(1 - rho) and 4 rho/(1 + 3 rho) at the threshold, where a token weighs itself like all
others together (arXiv:2510.05554). For rho = 0 the threshold is 1/2, because the mean of the others vanishes.

Shown: (1) outputs of n tokens with exactly equal overlaps, which need dimension n, against the exact cosine. (2) The
same up to n = 10^12: the n - 2 tokens that are not looked at are replaced by their mean, carrying their mass, which
changes no output, since all of them have the same overlap with those that are looked at; against the exact cosine and,
with bounds, against the limits. The approach is a power of n with the exponent |c (1 - rho) - 1|, so the transition is
as wide as 1/log n. (3) iid tokens around a direction (overlaps rho + O(d^(-1/2))), against their mean-field cosine, in
which fluctuations of the overlaps add to the weight of the others and move the threshold up. Not shown: residual
connection, several layers, matrices.
"""

import dataclasses
import functools
from typing import Any

import numpy as np
import xarray as xr

from attnflow import theory
from attnflow.axes import Along
from attnflow.experiments.claim import Claim, worst
from attnflow.experiments.study import Study
from attnflow.fields import Attention
from attnflow.plots.style import COLOURS, GREY, INK, PAGE, styled
from attnflow.spaces import Euclidean, Sphere
from attnflow.tokens import Tokens, equiangular

PAPERS = ("arXiv:2510.05554", "arXiv:2512.01868")

QUERIES = 4
"""Tokens whose outputs are looked at, where there are all of them."""
ERRORS = 4.0
"""Standard errors that a random number may be off."""
EPS = float(np.finfo(float).eps)


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What is simulated."""

    overlaps: tuple[float, ...] = (0.2, 0.5)
    places: tuple[float, ...] = (0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 1.75)
    """c in units of the threshold; 1 is looked at in any case."""
    counts: tuple[int, ...] = (16, 256, 4096)
    """n with all tokens there."""
    large: tuple[float, ...] = (1e2, 1e4, 1e6, 1e8, 1e12)
    """n with the others replaced by their mean."""
    iid_count: int = 16384
    iid_dim: int = 128
    iid_seeds: int = 16


QUICK = Parameters(overlaps=(0.5,), places=(0.5, 0.9, 1.1, 1.5), counts=(256,), large=(1e4, 1e12), iid_count=4096,
                   iid_dim=64, iid_seeds=8)  # fmt: skip


def run(parameters: Parameters, study: Study) -> dict[str, xr.Dataset]:
    """Cosines of outputs: all tokens, lumped tokens, iid tokens."""
    found = {}
    for k, n in enumerate(parameters.counts):
        study.progress(f"{n} tokens in dimension {n}", k / (len(parameters.counts) + 2))
        found[f"all-{n}"] = study.part(f"all-{n}", functools.partial(_all, parameters, n))
    study.progress("others replaced by their mean", 0.7)
    found["lumped"] = study.part("lumped", functools.partial(_lumped, parameters))
    study.progress(f"{parameters.iid_count} iid tokens", 0.75)
    found["iid"] = study.part("iid", functools.partial(_iid, parameters, study))
    return found


def scan(parameters: Parameters, overlap: float) -> np.ndarray:
    """Values of c: places around the threshold of this overlap, the threshold among them; around 1/2 for overlap 0."""
    unit = float(theory.long_context_threshold(overlap)) if overlap else 0.5
    return unit * np.unique([*parameters.places, 1.0])


def cosines(field: Attention, queries: np.ndarray, tokens: Tokens) -> np.ndarray:
    """Cosine of the outputs at the first two queries; the field is that of the library, before any projection."""
    free = Tokens(tokens.positions, tokens.masses, space=Euclidean(tokens.dim), dims=tokens.dims)
    drive = np.asarray(field.velocity(0.0, queries, free))
    unit = drive / np.linalg.norm(drive, axis=-1, keepdims=True)
    return np.asarray(np.sum(unit[..., 0, :] * unit[..., 1, :], axis=-1))


def _all(parameters: Parameters, n: int) -> xr.Dataset:
    """All n tokens of equal overlaps in R^n; all c in one call."""
    rows = []
    for overlap in parameters.overlaps:
        tokens = equiangular(Sphere(n), n=n, overlap=overlap)
        c = scan(parameters, overlap)
        field = Attention(Along("c", c * np.log(n)))
        rows.append(cosines(field, np.asarray(tokens.positions)[:QUERIES], tokens))
    return xr.Dataset({"cosine": (("overlap", "place"), np.array(rows))}, {"overlap": list(parameters.overlaps)})


def _lumped(parameters: Parameters) -> xr.Dataset:
    """Two tokens, and the mean of all others with their mass; overlap 0 too."""
    overlaps = (0.0, *parameters.overlaps)
    found = np.zeros((len(overlaps), len(parameters.large), len(scan(parameters, 0.0))))
    for i, overlap in enumerate(overlaps):
        for j, n in enumerate(parameters.large):
            # <others, x> = overlap and |others|^2 = (1 + (n-3) overlap)/(n-2)
            pair = np.array([[1.0, 0.0, 0.0], [overlap, np.sqrt(1 - overlap**2), 0.0]])
            inside = overlap / (1 + overlap) * (pair[0] + pair[1])
            rest = (1 + (n - 3) * overlap) / (n - 2) - inside @ inside
            others = inside + np.array([0.0, 0.0, np.sqrt(max(rest, 0.0))])
            tokens = Tokens([*pair, others], [1 / n, 1 / n, 1 - 2 / n], space=Euclidean(3))
            field = Attention(Along("c", scan(parameters, overlap) * np.log(n)))
            found[i, j] = cosines(field, pair, tokens)
    return xr.Dataset(
        {"cosine": (("overlap", "n", "place"), found)}, {"overlap": list(overlaps), "n": list(parameters.large)}
    )


def _iid(parameters: Parameters, study: Study) -> xr.Dataset:
    """x_j = sqrt(rho) e + sqrt(1 - rho) u_j, u_j iid uniform and orthogonal to e; the queries are u_1 = -u_2.

    (A pair of queries at a fixed angle leaves no randomness but that of the others.)
    """
    n, d, overlap = parameters.iid_count, parameters.iid_dim, parameters.overlaps[-1]
    c = scan(parameters, overlap)
    field = Attention(Along("c", c * np.log(n)))
    found = []
    for seed in range(parameters.iid_seeds):
        study.progress(f"{n} iid tokens, seed {seed}", 0.75 + 0.25 * seed / parameters.iid_seeds)
        rng = np.random.default_rng(seed)
        u = rng.standard_normal((n, d - 1))
        u[1] = -u[0]
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        x = np.concatenate([np.full((n, 1), np.sqrt(overlap)), np.sqrt(1 - overlap) * u], axis=1)
        found.append(cosines(field, x[:2], Tokens(x, space=Sphere(d))))
    return xr.Dataset({"cosine": (("seed", "place"), np.array(found))}, attrs={"overlap": overlap})


def mean_field(c: np.ndarray, n: float, d: float, overlap: float) -> np.ndarray:
    """Cosine of the outputs at u_1 = -u_2 for iid u in R^(d-1), without the noise of the sums over the others.

    With b = beta (1-rho) and M(b) = E e^(b xi), xi = <u_1, u>: the others weigh W = (n-2) e^(-b) M(b) and point to
    sqrt(rho) e + sqrt(1-rho) (M'/M) u_1, a token itself weighs 1 and its opposite e^(-2b).
    """
    b = c * np.log(n) * (1 - overlap)
    mean, slope = moments(b, d)
    others = (n - 2) * np.exp(-b) * mean
    along = 1 + others + np.exp(-2 * b)
    across = 1 - np.exp(-2 * b) + others * slope
    ratio = (1 - overlap) * across**2 / (overlap * along**2)
    return np.asarray((1 - ratio) / (1 + ratio))


def moments(b: np.ndarray, d: float) -> tuple[np.ndarray, np.ndarray]:
    """M(b) = E e^(b xi) and M'/M for xi = <u_1, u>, u uniform on the sphere of R^(d-1): Bessel functions."""
    from scipy.special import gammaln, ive

    if np.isinf(d):
        return np.ones_like(b), np.zeros_like(b)
    nu = (d - 1) / 2 - 1
    mean = np.exp(gammaln(nu + 1) + nu * np.log(2 / b) + np.log(ive(nu, b)) + b)
    return np.asarray(mean), np.asarray(ive(nu + 1, b) / ive(nu, b))


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Exact cosines to rounding; limits to the first terms of their approach; iid tokens to their scatter."""
    made = []
    for n in parameters.counts:
        found = data[f"all-{n}"]["cosine"]
        error, tolerance = _worst(parameters, found.expand_dims(n=[n], axis=1), lambda n: n)
        made.append(
            Claim.at_most(f"{n} tokens: |cosine - exact cosine|, worst of {found.size} (c, ρ)", 0.0, error, tolerance,
                          "sums of n terms in logits and outputs are off by at most n eps; beta times that in weights")
        )  # fmt: skip
    lumped = data["lumped"]["cosine"]
    error, tolerance = _worst(parameters, lumped, lambda n: 3)
    made.append(
        Claim.at_most(f"others replaced by their mean: |cosine - exact cosine|, worst of {lumped.size} (c, n, ρ)",
                      0.0, error, tolerance, "sums of 3 terms in logits and outputs; beta times that in weights")
    )  # fmt: skip
    largest = max(parameters.large)
    for overlap in parameters.overlaps:
        made += _limit_claims(
            overlap, largest, scan(parameters, overlap), lumped.sel(overlap=overlap, n=largest).values
        )
    made += _zero_claims(largest, scan(parameters, 0.0), lumped.sel(overlap=0.0, n=largest).values)
    return [*made, _iid_claim(parameters, data["iid"])]


def _worst(parameters: Parameters, found: xr.DataArray, terms: Any) -> tuple[float, float]:
    """The error that is largest relative to its tolerance, and this; sums have `terms(n)` terms."""
    errors, tolerances = [], []
    for overlap in found["overlap"].values:
        for n in found["n"].values:
            c = scan(parameters, float(overlap))
            exact = theory.long_context_overlap(c, n, overlap)
            errors.append(np.abs(found.sel(overlap=overlap, n=n).values - exact))
            # relative errors of weights pass to the cosine with a factor of at most 4
            tolerances.append(4 * EPS * (1 + c * np.log(n)) * (8 + terms(n)))
    used = np.concatenate(errors) / np.concatenate(tolerances)
    k = worst(used)[0]
    return float(np.concatenate(errors)[k]), float(np.concatenate(tolerances)[k])


def _limit_claims(overlap: float, n: float, c: np.ndarray, found: np.ndarray) -> list[Claim]:
    """With y = n^(1 - c(1-rho)) the cosine is (rho + X)/(1 + X), X = rho (2y + y^2) up to O(1/n)."""
    y = n ** (1 - c * (1 - overlap))
    limit = theory.long_context_limit(c, overlap)
    threshold = float(theory.long_context_threshold(overlap))
    off, made = np.abs(found - limit), []
    for words, where, bound, source in (
        ("below", y > 1 + 1e-9, (1 - overlap) / (overlap * y**2), "(1-ρ)/(ρ y²)"),
        ("above", y < 1 - 1e-9, 3 * overlap * (1 - overlap) * y / (1 - y / n) ** 2, "3 ρ(1-ρ) y"),
    ):
        share = float(np.max((off / (bound + 32 * EPS * c * np.log(n)))[where]))
        made.append(
            Claim.at_most(f"ρ = {overlap:g}, n = {n:.0e}, {words} the threshold: |cosine - limit| over its bound", 1.0,
                          share, 0.01, f"{source}, y = n^(1-c(1-ρ)), and rounding; 1% for terms O(1/n)")
        )  # fmt: skip
    at = int(np.argmin(np.abs(c - threshold)))
    made.append(
        Claim.equal(f"ρ = {overlap:g}, n = {n:.0e}, at the threshold c = {threshold:g}: cosine", float(limit[at]),
                    found[at], 4 / n + 32 * EPS * c[at] * np.log(n), "terms O(1/n), at most 4/n, and rounding")
    )  # fmt: skip
    return made


def _zero_claims(n: float, c: np.ndarray, found: np.ndarray) -> list[Claim]:
    """Orthogonal tokens: X = 2 n^-c + n^(1-2c) up to O(n^-c), so the threshold is 1/2, with the cosine 1/2 there."""
    x = 2 * n**-c + n ** (1 - 2 * c)
    off, tolerance = np.abs(found - x / (1 + x)), 4 * n**-c * x / (1 + x) ** 2 + 32 * EPS * c * np.log(n)
    k = int(np.argmax(off / tolerance))
    return [
        Claim.equal(f"ρ = 0, n = {n:.0e}: cosine at c = {c[k]:.3g} (worst of {len(c)}) is X/(1+X), X = n^(1-2c)+2n^-c",
                    float((x / (1 + x))[k]), found[k], float(tolerance[k]),
                    "twice the first order of the terms left out, 2n^-c X of X; rounding"),
    ]  # fmt: skip


def _iid_claim(parameters: Parameters, iid: xr.Dataset) -> Claim:
    n, d, overlap = parameters.iid_count, parameters.iid_dim, float(iid.attrs["overlap"])
    c, found = scan(parameters, overlap), iid["cosine"].values
    predicted = mean_field(c, n, d, overlap)
    spread = found.std(axis=0, ddof=1)
    off, error = np.abs(found.mean(axis=0) - predicted), spread / np.sqrt(len(found))
    # the mean of a smooth function of a fluctuating sum is off by half its second derivative times the variance
    tolerance = ERRORS * error + spread**2 + 2 / n + shot(c, n, d, overlap)
    k = int(np.argmax(off / tolerance))
    return Claim.equal(
        f"{n} iid tokens in dimension {d}, ρ = {overlap:g}: cosine at c = {c[k]:.3g} (worst of {len(c)})",
        float(predicted[k]), float(found.mean(axis=0)[k]), float(tolerance[k]),
        f"{ERRORS:g} standard errors of {len(found)} draws, their variance, and the noise of the sum over the others",
    )  # fmt: skip


def shot(c: np.ndarray, n: float, d: int, overlap: float) -> np.ndarray:
    """What the noise of the sums over the others adds to squared lengths: (1-rho) n e^(-2b) M(2b), over the length."""
    b = c * np.log(n) * (1 - overlap)
    others = (n - 2) * np.exp(-b) * moments(b, d)[0]
    return np.asarray(2 * (1 - overlap) * n * np.exp(-2 * b) * moments(2 * b, d)[0] / (overlap * (1 + others) ** 2))


def draw(parameters: Parameters, data: dict[str, xr.Dataset]) -> Any:
    """Cosine of two outputs of one attention layer with beta = c log n.

    (a) Tokens of equal overlap: all of them (full marks), others replaced by their mean (open marks), exact cosine
    (lines), limit (grey). (b) Against the distance to the threshold times log n all n fall on one curve for each
    overlap (lines: limit for large n). (c) iid tokens (bars: standard deviation of draws), their mean field (line), and
    the same in infinite dimension (dashed): fluctuations of overlaps move the threshold up.
    """
    with styled() as figure:
        fig = figure.Figure(figsize=(PAGE, 2.7))
        axes = fig.subplots(1, 3)
        _draw_scan(axes[0], parameters, data)
        _draw_collapse(axes[1], parameters, data)
        _draw_iid(axes[2], parameters, data["iid"])
        for letter, one in zip("abc", axes, strict=True):
            one.set_title(f"({letter})", loc="left", fontweight="bold")
        return fig


def _draw_scan(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    overlap = parameters.overlaps[-1]
    c = scan(parameters, overlap)
    fine = np.linspace(0.6 * c[0], 1.05 * c[-1], 300)
    threshold = float(theory.long_context_threshold(overlap))
    axes.plot([fine[0], threshold, threshold, fine[-1]], [1, 1, overlap, overlap], color=GREY, lw=0.8, zorder=0)
    axes.plot(threshold, float(theory.long_context_limit(threshold, overlap)), "D", ms=5, mfc="none", mec=GREY, mew=0.8)
    sizes: list[tuple[float, Any, bool]] = [(n, data[f"all-{n}"]["cosine"], True) for n in parameters.counts]
    sizes += [(n, data["lumped"]["cosine"].sel(n=n), False) for n in (parameters.large[-1],)]
    for (n, found, full), colour in zip(sizes, COLOURS, strict=False):
        axes.plot(fine, theory.long_context_overlap(fine, n, overlap), color=colour, lw=0.9)
        label = f"$n = {n}$" if full else rf"$n = 10^{{{round(np.log10(n))}}}$"
        face = colour if full else "white"
        axes.plot(c, found.sel(overlap=overlap), "o", ms=3.2, mec=colour, mfc=face, mew=0.8, label=label)
    axes.set_xlabel(r"$c = \beta/\log n$")
    axes.set_ylabel(rf"cosine of outputs   ($\rho = {overlap:g}$)")
    axes.legend(loc="upper right", handletextpad=0.1)


def _draw_collapse(axes: Any, parameters: Parameters, data: dict[str, xr.Dataset]) -> None:
    reach = 6.0
    for overlap, colour in zip(parameters.overlaps, COLOURS, strict=False):
        z = np.linspace(-reach, reach, 200)
        x = overlap * (2 * np.exp(-z) + np.exp(-2 * z))
        axes.plot(z, (overlap + x) / (1 + x), color=colour, lw=0.9, label=rf"$\rho = {overlap:g}$")
        for n in parameters.large:
            c = scan(parameters, overlap)
            found = data["lumped"]["cosine"].sel(overlap=overlap, n=n)
            place = (c * (1 - overlap) - 1) * np.log(n)
            keep = np.abs(place) < reach
            axes.plot(place[keep], found.values[keep], "o", ms=3.2, mec=colour, mfc="white", mew=0.8)
        limit = float(theory.long_context_limit(1 / (1 - overlap), overlap))
        axes.plot(0.0, limit, "D", ms=5, mfc="none", mec=GREY, mew=0.8)
    first, last = (round(np.log10(n)) for n in (parameters.large[0], parameters.large[-1]))
    axes.plot(
        [],
        [],
        "o",
        ms=3.2,
        mec=INK,
        mfc="white",
        mew=0.8,
        label=rf"$n = 10^{{{first}}}, \ldots, 10^{{{last}}}$",
    )
    axes.set_xlabel(r"$(c(1 - \rho) - 1)\,\log n$")
    axes.set_ylabel("cosine of outputs")
    axes.legend(loc="lower left", borderaxespad=0.1)


def _draw_iid(axes: Any, parameters: Parameters, iid: xr.Dataset) -> None:
    overlap = float(iid.attrs["overlap"])
    n, d, c, found = parameters.iid_count, parameters.iid_dim, scan(parameters, overlap), iid["cosine"].values
    fine = np.linspace(0.6 * c[0], 1.05 * c[-1], 300)
    axes.plot(fine, mean_field(fine, n, d, overlap), color=COLOURS[2], lw=0.9, label="mean field")
    axes.plot(fine, mean_field(fine, n, np.inf, overlap), "--", color=GREY, lw=0.9, label=r"$d \to \infty$")
    axes.errorbar(
        c,
        found.mean(axis=0),
        found.std(axis=0, ddof=1),
        fmt="o",
        ms=3.2,
        color=COLOURS[2],
        lw=0.8,
        label=f"$n = {n}$,\n$d = {d}$",
    )
    axes.axvline(float(theory.long_context_threshold(overlap)), color=GREY, lw=0.7)
    axes.set_xlabel(r"$c = \beta/\log n$")
    axes.set_ylabel(r"cosine of outputs at $u$ and $-u$")
    axes.legend(loc="lower left")
