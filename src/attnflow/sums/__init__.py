"""Sums over all tokens: S(x; y, charges) = sum_j m_j e^(log weight of (x, y_j)) charge_j, in bounded memory."""

from attnflow.sums.tiled import Tiled, over_pairs

__all__ = ["Tiled", "over_pairs"]
