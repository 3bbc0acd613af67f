"""Overlaps and rates against closed forms, ends of random starts against a bound."""

import numpy as np
import xarray as xr
from scipy.stats import binom

from attnflow import theory
from attnflow.experiments import Claim, consequence, observed
from attnflow.experiments.kit import EPS, LEVEL, Rows, share_of
from attnflow_gallery.places.simulate import SMALL, SPAN, Parameters

WORDS = consequence("Additive places")
MODES = consequence("Modes of rotary attention")
ENDS = observed("Other equilibria")
SHARE = 0.28
"""Three standard errors below 14 of 24, the share of starts at rest elsewhere in a program of its own."""
REST = 1e-8
"""Largest speed of a start at rest."""


def claims(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    """Additive places, then rotary ones."""
    return [words(parameters, data), *_modes(parameters, data), _ends(parameters, data["rotary"])]


def words(parameters: Parameters, data: dict[str, xr.Dataset]) -> Claim:
    """Overlaps within and across words."""
    rows, found = Rows(), data["words"]["overlap"].values
    for k, size in enumerate(parameters.sizes):
        known = theory.uniform.placed_overlaps(
            parameters.times, parameters.word_beta, size, words=parameters.words, copies=parameters.copies
        )
        # order 4: what is left is 1/15 of the change by the last halving; twice that, and rounding of 600 steps
        off = 2 * np.abs(found[k, 1] - found[k, 0]) / 15 + 1e4 * EPS
        labels = [f"{kind}, size {size:g}, t = {t:g}" for kind in ("one word", "two words") for t in parameters.times]
        rows.add(np.array(known), found[k, 1], off, labels)
    return rows.equal(
        "words with additive places: overlaps within and across words", "from halving the step", origin=WORDS
    )


def _modes(parameters: Parameters, data: dict[str, xr.Dataset]) -> list[Claim]:
    modes, consensus = Rows(), Rows()
    # rounding of angles over amplitude and span; 16 steps of RK4 with rates of order 1; squares of the amplitude
    off = 20 * EPS / SMALL / SPAN + 1e-7
    for k, beta in enumerate(parameters.betas):
        known = theory.uniform.rotary_growth_rates(beta, k=parameters.degrees)
        labels = [f"β = {beta:g}, degree {one}" for one in parameters.degrees]
        modes.add(known, data["modes"]["rate"].values[k], off, labels)
        known = theory.uniform.rotary_consensus_rates(beta, q=parameters.orders)
        labels = [f"β = {beta:g}, order {one}" for one in parameters.orders]
        consensus.add(known, data["consensus"]["rate"].values[k], off, labels)
    reason = "rounding over the amplitude; 16 steps of order 4"
    return [
        modes.equal("rotary places: growth rate of cos(kθ + (k-1)p) is (k/2) I_{k-1}/I_0", reason, origin=MODES),
        consensus.equal("rotary places: deviations cos(qp) from consensus fall at 1 - I_q/I_0", reason, origin=MODES),
    ]


def elsewhere(part: xr.Dataset) -> np.ndarray:
    """Which starts are at rest, attract their neighbourhood, and are no consensus."""
    return (part["order"].values < 0.99) & (part["speed"].values < REST) & (part["rate"].values < -1e-3)


def _ends(parameters: Parameters, part: xr.Dataset) -> Claim:
    hits = elsewhere(part)
    return Claim.at_least(
        f"random tokens with rotary places, β = {parameters.beta:g}: starts at rest in a stable state, no consensus",
        float(binom.ppf(LEVEL, parameters.starts, SHARE)),
        float(hits.sum()),
        0.0,
        f"exact binomial test, level {LEVEL:g}, of a share of at least {SHARE:g}, from 14 of 24 other starts",
        origin=ENDS,
        level=LEVEL,
        detail=f"{share_of(hits)}; consensus {share_of(part['order'].values >= 0.99)}",
    )
