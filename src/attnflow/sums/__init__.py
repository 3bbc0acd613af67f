"""Sums over all tokens: S(x; y, charges) = sum_j m_j e^(log weight of (x, y_j)) charge_j, in bounded memory."""

from attnflow.lazy import listing
from attnflow.sums.base import AbstractSum, Case, Offer, Use
from attnflow.sums.choose import Choice, choose, consider
from attnflow.sums.circle import Circle
from attnflow.sums.cutoff import Cutoff
from attnflow.sums.dense import Dense
from attnflow.sums.fused import Fused
from attnflow.sums.harmonics import Harmonics
from attnflow.sums.series import needed_degree
from attnflow.sums.sht import FastSphere
from attnflow.sums.tiled import Tiled, over_pairs
from attnflow.sums.weights import Arguments, Charges, Columns, Moments, Weights

__all__ = [
    "AbstractSum",
    "Arguments",
    "Case",
    "Charges",
    "Choice",
    "Circle",
    "Columns",
    "Cutoff",
    "Dense",
    "FastSphere",
    "Fused",
    "Harmonics",
    "Moments",
    "Offer",
    "Tiled",
    "Use",
    "Weights",
    "choose",
    "consider",
    "needed_degree",
    "over_pairs",
]
__dir__ = listing(__all__)
