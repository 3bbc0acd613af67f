"""What experiments are made of besides `Study` and `Claim`: starts, statistics, rows of claims, lettered panels.

`Study.parts` and `Study.refined` carry parts out; `Rows` collects comparisons for a claim; `panels` draws.
"""

from attnflow.experiments.claim import share_interval
from attnflow.experiments.kit import sampling_noise
from attnflow.experiments.kit.clouds import atoms, cloud
from attnflow.experiments.kit.convergence import left_of_order, orders
from attnflow.experiments.kit.effects import Effects
from attnflow.experiments.kit.film import Film
from attnflow.experiments.kit.leading import EPS, leaders, rates
from attnflow.experiments.kit.pairs import crossing, pair_angle
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
from attnflow.experiments.kit.trained import (
    NETWORK,
    BesideNulls,
    activations,
    correlations,
    differences,
    draw_beside_nulls,
    end_over_draws,
    lower_ends,
    network_of,
    numbers_of,
    of_draws,
    opened,
    part_name,
    passages,
    reactions,
    texts_for,
    upper_ends,
)
from attnflow.lazy import listing
from attnflow.probe.cases import shuffled

__all__ = [
    "CONFIDENCE",
    "EPS",
    "LEVEL",
    "LINES",
    "MARKS",
    "NETWORK",
    "BesideNulls",
    "Effects",
    "Film",
    "Panels",
    "Rows",
    "activations",
    "atoms",
    "averaged",
    "cloud",
    "correlations",
    "counted",
    "crossing",
    "differences",
    "draw_beside_nulls",
    "draw_board",
    "draw_errors_at",
    "end_over_draws",
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
    "network_of",
    "numbers_of",
    "of_draws",
    "opened",
    "orders",
    "pair_angle",
    "pair_overlaps",
    "panels",
    "part_name",
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
    "shuffled",
    "student",
    "texts_for",
    "upper_ends",
    "with_overlaps",
]
__dir__ = listing(__all__)
