"""The weight of the skip connection sets how fast layers cluster tokens, not how far; without one collapse is cubic.

A layer is x <- N(alpha x + softmax attention). For tokens that are near each other 1 - overlap falls by the factor
(alpha/(1+alpha))^2 per layer, whatever n and beta are. Without a skip connection (alpha = 0) its logarithm triples per
layer: it collapses doubly exponentially (arXiv:2103.03404 has the cubic rate). Clusters that are apart merge after
(1 + alpha) T layers, T the merge time of the flow, up to a number that does not grow. So plateaus exist at every alpha,
alpha = 0 included, and depth counts as L/(1 + alpha).

Shown: equiangular tokens layer by layer against the exact map, and its two rates near consensus; random tight clouds;
two clusters layer by layer and their layers to merge; growth of modes of a ring per layer. Not shown: other V,
perceptron blocks, causal masks. The lecture notes name skip connections among what a design can use against
over-clustering; a weaker one clusters sooner and more sharply, and ends in the same place.
"""

from attnflow.experiments import from_files

PAPERS = ("dong2021attention", "geshkovski2025perspective")
__getattr__ = from_files(__name__)
