"""As beta grows, 2 beta E0 against (log t)/beta becomes a staircase that geometry alone determines.

Clusters on the sphere merge one pair at a time, the pair at u = 1 - cos(angle) after a time e^(beta u) up to powers of
beta: in the clock s = (log t)/beta the k-th merge comes at s_k, the largest of the smallest u so far, and the level
2 beta E0 = sum M^2 jumps by 2 M_p M_q. USA0 gets there like log(beta)/beta. SA clusters of unequal masses meet where
beta tells them to, so that from the second merge on SA gets there like beta^(-1/2) only, and may even change the order
of merges on the way: four clusters do so at a beta that a balance of two pulls gives (arXiv:2410.06833).

Shown: flows from beta = 12 to 10,000 and times up to e^18,000 against a cascade of pairs. In a cascade every pair is
alone: it merges in the time, and at the point, of the two-body formulas, and the next pair starts from there. Other
pairs use up the share T/T' of their own time T' meanwhile, and that, to first order, is what the cascade misses. Where
it may change log t by more than 0.1 (beta below 100 or so) nothing is claimed. Coefficients are fitted from beta = 400
on. The random start is the first one whose closest pair has u >= 0.05, whose s_k are at least 0.02 apart, and whose
cascade is known to 0.05 from beta = 400 on. These limits were chosen, not derived. Against arc length the limit is a
staircase too. Not shown: pairs that are equally close in the limit, and many clusters.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2024metastability", "geshkovski2025perspective")
__getattr__ = from_files(__name__)
