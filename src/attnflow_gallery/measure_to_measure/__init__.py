"""One schedule of attention and perceptrons carries N different measures on a sphere to N targets.

Theorem 1.1 of arXiv:2411.04551: with attention, layer norm and perceptrons one choice of piecewise-constant parameters
steers N given measures to N targets, whichever of them the network is shown. The builder `match_measures` makes the
parameters: a boost away from a free point, attention at beta = 0 until the measures are separate clouds, a boost that
spreads them, then gates that cut and carry, each of which moves one piece of one measure and leaves all else fixed.
Cuts and paths, and spheres of dimension 3 and more, are ours.

Shown: every measure is followed alone under the one schedule, and its distance from its target is W_2 < 10^-3, on S^2,
S^3 and S^7, for up to 20 measures and up to 4 atoms. Attention is needed: what two measures share stays together
without it, so that W_1 + W_1' is at least the shared mass times the distance of the targets; the same schedule without
its attention obeys this bound. And attention cannot be undone for long: backwards it amplifies errors like e^t.

Not shown: diffuse targets (they are quantised first), and that this is learning, which it is not; see
interpolation-is-not-learning.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2024measure",)
__getattr__ = from_files(__name__)
