"""Sums over all tokens: S(x; y, charges) = sum_j m_j e^(log weight of (x, y_j)) charge_j, in bounded memory."""

from attnflow.sums.base import AbstractSum, Arguments, Charges, Columns, Moments, Use, Weights, log_weight
from attnflow.sums.choose import Choice, Option, choose
from attnflow.sums.circle import Circle
from attnflow.sums.cutoff import Cutoff
from attnflow.sums.dense import Dense
from attnflow.sums.fused import Fused
from attnflow.sums.harmonics import Harmonics
from attnflow.sums.sht import FastSphere
from attnflow.sums.tiled import Tiled, over_pairs

__all__ = [
    "AbstractSum",
    "Arguments",
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
    "Option",
    "Tiled",
    "Use",
    "Weights",
    "choose",
    "log_weight",
    "over_pairs",
]
