"""What experiments are made of besides `Study` and `Claim`: starts, statistics, rows of claims, lettered panels.

`Study.parts` and `Study.refined` carry parts out; `Rows` collects comparisons for a claim; `panels` draws.
"""

from attnflow.experiments.claim import share_interval
from attnflow.experiments.kit import sampling_noise
from attnflow.experiments.kit.clouds import atoms, cloud
from attnflow.experiments.kit.convergence import left_of_order, orders
from attnflow.experiments.kit.film import Film
from attnflow.experiments.kit.leading import EPS, leaders, rates
from attnflow.experiments.kit.panels import LINES, MARKS, Panels, looks, panels, powers_of_two
from attnflow.experiments.kit.ragged import ragged
from attnflow.experiments.kit.rows import Rows
from attnflow.experiments.kit.sampling_noise import follow
from attnflow.experiments.kit.spans import in_span, pair_overlaps, with_overlaps
from attnflow.experiments.kit.squares import draw_board, draw_errors_at
from attnflow.experiments.kit.statistics import (
    CONFIDENCE,
    LEVEL,
    averaged,
    counted,
    fit,
    log_rms,
    many_tokens,
    mean_error,
    reduced,
    refusal_bound,
    share_of,
    student,
)
from attnflow.experiments.kit.steering import followed, planned
from attnflow.experiments.kit.trained import correlations, lower_ends, numbers_of, passages, reactions, texts_for
from attnflow.lazy import listing

__all__ = [
    "CONFIDENCE",
    "EPS",
    "LEVEL",
    "LINES",
    "MARKS",
    "Film",
    "Panels",
    "Rows",
    "atoms",
    "averaged",
    "cloud",
    "correlations",
    "counted",
    "draw_board",
    "draw_errors_at",
    "fit",
    "follow",
    "followed",
    "in_span",
    "leaders",
    "left_of_order",
    "log_rms",
    "looks",
    "lower_ends",
    "many_tokens",
    "mean_error",
    "numbers_of",
    "orders",
    "pair_overlaps",
    "panels",
    "passages",
    "planned",
    "powers_of_two",
    "ragged",
    "rates",
    "reactions",
    "reduced",
    "refusal_bound",
    "sampling_noise",
    "share_interval",
    "share_of",
    "student",
    "texts_for",
    "with_overlaps",
]
__dir__ = listing(__all__)
