"""Observables as functions of (t, measure), for `solve(..., observe=...)` and for specifications."""

from typing import Any

import equinox as eqx
import numpy as np

from attnflow.checks import ABOVE_ZERO, number
from attnflow.observe import shape
from attnflow.observe.clusters import clusters


def order_parameter(t: Any, measure: Any) -> Any:
    """|sum_i m_i x_i|."""
    return shape.order_parameter(measure)


def effective_rank(t: Any, measure: Any) -> Any:
    """Exp of the entropy of the eigenvalues of the second moment."""
    return shape.effective_rank(measure)


def spread(t: Any, measure: Any) -> Any:
    """The largest distance of a token to the mean."""
    return shape.spread(measure)


class ClusterCount(eqx.Module):
    """The number of clusters when tokens within the angle `scale` are linked (see `clusters`)."""

    scale: float = eqx.field(static=True, converter=lambda v: number("scale", v, low=ABOVE_ZERO))

    def __call__(self, t: Any, measure: Any) -> Any:
        """Runs on the host."""
        return np.int64(clusters(measure, scale=self.scale).count)
