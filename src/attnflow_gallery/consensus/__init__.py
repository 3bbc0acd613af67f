"""Almost every start ends in one point for beta >= 0; on the circle three clusters can stay apart for beta < -2/3.

Softmax attention (SA) and its gradient-flow variant (USA0) bring iid tokens to consensus with probability 1 for every
beta >= 0: for d >= 3 by Markdahl et al. (2018) and Criscitiello et al. (2024), on the circle by Polyanskiy, Rigollet
and Yao (2025), who cover beta >= -0.16. In an open hemisphere consensus is certain for every real beta, because all
weights are positive; n iid tokens lie in one with the probability of Wendel (1962). On the circle consensus fails for
beta < -2/3 if 3 divides n: three equal clusters at 120 degrees are stable. For other n three clusters are unequal, and
their threshold is lower: -2.21 for n = 4, -1.44 for n = 5, -1.72 for n = 7.

Shown: consensus of many draws, with the exact binomial bound on the probability of anything else; draws in a
hemisphere against Wendel's formula; the linearised flow at the ring of three, by automatic differentiation and by
following a displaced ring, against the closed form; iid tokens on the circle on both sides of the thresholds, n = 3,
4, 5, 7, and the angles of the clusters in which they end. Values of beta near a threshold are left out: relaxation is
slow there. Large beta is followed in log time. Not shown: that the exceptional set is null (a sample cannot show it).
"""

from attnflow.experiments import from_files

PAPERS = (
    "markdahl2018consensus",
    "criscitiello2024synchronization",
    "polyanskiy2025synchronization",
    "geshkovski2025perspective",
    "wendel1962problem",
)
__getattr__ = from_files(__name__)
