"""Where a network normalises sets how tokens collapse: exponentially (post, nGPT), like t^-2 (pre, peri, mix) or t^-1.

With x = r theta and A the softmax average of the directions, directions turn as theta' = P A/s, and a placement chooses
s: 1 (Post-LN), r (Pre-LN), r |A| (Peri-LN), |A|/alpha (nGPT), 1 then r (Mix-LN), r sqrt(1+t) (LN-scaling).
Radii of Pre-LN, Peri-LN and Mix-LN grow like t, those of LN-scaling like 2 sqrt(t), so the gap 1 - rho to consensus
falls like e^(-2t), t^-2, t^-2, e^(-2 alpha t), t^-2 and t^-1 in this order (arXiv:2510.22026).

Shown: the flow of every placement from orthonormal tokens against the two scalar equations for rho and r, which hold
for equal overlaps, and the exponents at late times, from orthonormal tokens and from iid ones in a cone (root mean
square of their distances). Iid tokens of the whole sphere may stay in two clusters longer than the experiment lasts: an
earlier version used them and failed for one salt of five. Not shown: gains, LayerNorm's subtraction of the mean,
matrices; with the identity as values |A| -> 1.

Rates fall like 1/t where radii grow, so a step in proportion to t is as accurate late as early: a few hundred steps
reach t = 10^4. Every flow is done with a step and with half of it, and the difference is the tolerance.
"""

from attnflow.experiments import from_files

PAPERS = ("karagodin2025normalization",)
__getattr__ = from_files(__name__)
