"""One attention layer collapses a long context unless beta grows like log n: the threshold is log n/(1 - rho).

One softmax layer on n unit tokens of common overlap rho with beta = c log n makes outputs of cosine -> 1 for
c < 1/(1 - rho), rho for c > 1/(1 - rho) and 4 rho/(1 + 3 rho) at the threshold, where the weight that a token gives to
itself equals that of all others together (arXiv:2510.05554). For rho = 0 the threshold is 1/2, because the mean of the
others vanishes.

Shown: (1) outputs of n tokens with exactly equal overlaps, which need dimension n, against the exact cosine. (2) The
same up to n = 10^12: n - 2 tokens are replaced by their mean, which carries their mass. That changes no output of the
other two, because all n - 2 have the same overlap with them. The approach to the limit is a power of n with the
exponent |c (1 - rho) - 1|, so the transition is as wide as 1/log n. (3) iid tokens around a direction (overlaps
rho + O(d^(-1/2))), against their mean-field cosine, in which fluctuations of the overlaps add to the weight of the
others and move the threshold up; chance fails the claim with 1e-6. Not shown: residual connection, several
layers, matrices.
"""

from attnflow.experiments import from_files

PAPERS = ("chen2025critical", "rigollet2025meanfield")
__getattr__ = from_files(__name__)
