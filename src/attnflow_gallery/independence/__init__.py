"""Exchangeable tokens become correlated at order 1/n: pairs by e^(2 lambda t) - 1, triples with a sign of the model.

Tokens start iid and uniform, without a mask. Propagation of chaos says that they stay independent as n grows. What is
left is of order 1/n for two tokens, n E P_k(<x_1, x_2>) -> e^{2 lambda_k t} - 1 with the growth rates lambda_k of the
uniform measure, and of order 1/n^2 for three: on the circle n^2 E cos(theta_1 + theta_2 - 2 theta_3) has a closed
limit. It is positive for unnormalised attention, whose forces act in pairs, and negative for softmax at early times:
the normaliser is a three-body force. A token's own weight in the softmax dilutes the correlations of few tokens.

Shown: pairs at one time and at two times, degrees 1 and 2, and triples, on the circle by Monte Carlo at several n,
extrapolated to 1/n -> 0; both signs; softmax on S^2 at beta = 4, where most of the deviation at finite n is the token's
own weight. All formulas are derived here, the rates are those of arXiv:2410.23228. Not shown: times at which
e^{2 lambda t} is not small against n; triples on other spheres.

The probability that chance fails a claim is below 1e-6, by Student's test with Bonferroni's bound. Sizes and
the rule for the next order were fixed after a look at the quick version, before the full one.
"""

from attnflow.experiments import from_files

PAPERS = ("bruno2024emergence", "geshkovski2025perspective", "chaintron2022chaos")
__getattr__ = from_files(__name__)
