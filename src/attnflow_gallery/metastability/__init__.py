"""From uniform tokens to consensus a flow rests on plateaus whose lengths the pair that leaves them determines.

Tokens drawn iid from the uniform distribution gather into clusters in a time of order 1 and then stand almost still:
clusters of masses M_q are left alone for at least T_2 = (size/n) e^((1 - overlap) beta) (theorem of arXiv:2410.06833).
Then the fastest pair merges, after the time of the two-body formula, and the next plateau begins, down to consensus. A
plateau is left along its unstable direction, in which this pair approaches, at the escape rate of the pair.

Shown: flows on the circle and on the sphere, for softmax attention (SA) and once for its gradient-flow variant (USA0),
followed to consensus through times up to e^160; each plateau against the theorem, the two-body formulas and its escape
rate. Besides, the hypotheses under which Otto and Reznikoff prove slow motion (used in arXiv:2410.06833), measured
along the fast phase of USA0 from three caps, with their conclusion beside. Not shown: many seeds (see exit-times), the
levels of the energy (see staircase), and the first, fast gathering, for which no formula is at hand.

Two-body formulas are compared where other pairs may change log t by at most 0.1 (lifetimes) or 0.001 (escape rates), to
first order. These limits were chosen, not derived; the tolerance of every plateau is its own first-order bound.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2024metastability", "geshkovski2025perspective", "otto2007slow")
__getattr__ = from_files(__name__)
