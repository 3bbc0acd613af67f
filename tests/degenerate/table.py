"""The table: rows of all rooms."""

from tests.degenerate import causal, interaction, landscape, merging, parts, random_layers, uniform

ROWS = [
    *parts.ROWS,
    *merging.ROWS,
    *uniform.ROWS,
    *interaction.ROWS,
    *causal.ROWS,
    *random_layers.ROWS,
    *landscape.ROWS,
]
