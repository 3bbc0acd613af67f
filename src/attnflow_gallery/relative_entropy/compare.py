"""KL K^2 against integrals, orders in K, and powers of shells."""

import numpy as np
import xarray as xr
from scipy.stats import norm

from attnflow.experiments import Claim, consequence
from attnflow_gallery.relative_entropy.simulate import CENTRES, SPAN, WEIGHTS, WIDTHS, Parameters

CONSTANT = consequence("The sharp constant")
MASSES = consequence("Cells of equal mass")
TAILS = consequence("Tails")


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Constants, orders, equal masses, and the dichotomy."""
    return [*_constants(parameters, data["meshes"]), *_tails(parameters, data["tails"])]


def constants() -> dict[str, float]:
    """lim KL K^2 for equal and for the best cells, by the trapezoidal rule on a fine grid."""
    x = np.linspace(*SPAN, 400_001)
    parts = [w * norm.pdf(x, c, s) for w, c, s in zip(WEIGHTS, CENTRES, WIDTHS, strict=True)]
    density = np.sum(parts, axis=0)
    slope = np.sum([-(x - c) / s**2 * p for c, s, p in zip(CENTRES, WIDTHS, parts, strict=True)], axis=0) / density
    below = np.sum([w * norm.cdf(x, c, s) for w, c, s in zip(WEIGHTS, CENTRES, WIDTHS, strict=True)], axis=0)
    above = np.sum([w * norm.sf(x, c, s) for w, c, s in zip(WEIGHTS, CENTRES, WIDTHS, strict=True)], axis=0)
    source = np.where(below < 0.5, norm.ppf(below), norm.isf(above))
    bend = slope + source * density / norm.pdf(source)  # (log S')', for a normal base
    uniform = (SPAN[1] - SPAN[0]) ** 2 * np.trapezoid(density * bend**2, x) / 24
    return {"uniform": float(uniform), "optimal": float(np.trapezoid((density * bend**2) ** (1 / 3), x) ** 3 / 24)}


def _constants(parameters: Parameters, part: xr.Dataset) -> list[Claim]:
    most = int(part["cells"].values[-1])
    found, wanted, labels = [], [], []
    for mesh, constant in constants().items():
        for way in ("forward", "backward"):
            found.append(float(part[way].sel(mesh=mesh).values[-1]) * most**2 / constant)
            wanted.append(1.0)
            labels.append(f"{mesh}, {way}")
    last = part.isel(cells=slice(-2, None))
    ratio = np.log(last["cells"].values[-1] / last["cells"].values[0])
    order = [float(-np.diff(np.log(last["forward"].sel(mesh=mesh).values))[0] / ratio) for mesh in constants()]
    equal = part["forward"].sel(mesh="quantile") * part["cells"] ** 2
    growth = float(equal.values[-1] / equal.sel(cells=256))
    return [
        Claim.equal(
            f"K = {most}: KL K^2 over its limit, both directions", wanted, found, 0.01,
            "corrections are of order 1/K, with a factor of 20 as seen at K = 256",
            origin=CONSTANT, labels=labels,
        ),
        Claim.equal(
            "order of KL in K", [2.0, 2.0], order, 0.02, "from the last two numbers of cells; corrections of order 1/K",
            origin=CONSTANT, labels=list(constants()),
        ),
        Claim.at_least(
            f"cells of equal mass: KL K^2 grows from K = 256 to {most} by a factor", 2.0, growth, 0.0,
            "the limit of KL K^2, an integral of g^2/rho, is 9,000 times that of the best mesh for this span",
            origin=MASSES,
        ),
        Claim.equal(
            "total mass of the reached density", 1.0, part["mass"].values, 1e-12,
            "Gauss's rule with 20 points in cells up to 3 wide (K = 4)", origin=CONSTANT,
            labels=lambda at: f"{part['mesh'].values[at[0]]}, K = {part['cells'].values[at[1]]}",
        ),
    ]  # fmt: skip


def powers(parameters: Parameters, part: xr.Dataset) -> np.ndarray:
    """The power of R with which the parts of shells grow, from the last ones."""
    last = part.isel(shell=slice(-parameters.fitted, None))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log10(last["part"].values)
    return np.polyfit(last["shell"].values, logs.T, 1)[0]


def _tails(parameters: Parameters, part: xr.Dataset) -> list[Claim]:
    nu = part["degrees"].values
    return [
        Claim.equal(
            "parts of KL on shells of Student targets go like R^(2 - nu)", 2 - nu, powers(parameters, part), 1e-3,
            "shells from 10^9 on; the scale of the map in the tails is below 10^6, corrections are its square over R^2",
            origin=TAILS, labels=[f"nu = {one:g}" for one in nu],
        )
    ]  # fmt: skip
