"""The density of random tokens has some sqrt(beta log beta) modes on the line and sqrt(3 beta/2) on the circle.

Attention smooths the tokens with a kernel of width beta^(-1/2) and moves them uphill, so that clusters begin at the
modes of the density. On the line, for n standard normal samples and n^c <= beta <= n^(2-c), their expected number is of
the order of sqrt(beta log beta) (arXiv:2412.09080). Derived here: for two samples it is exactly 1 + erfc(beta^(-1/2));
in the middle of the line Kac and Rice's formula for a Gaussian field gives the number; on the circle, for uniform
samples and n to infinity, it is sqrt(sum k^4 I_k^2 / sum k^2 I_k^2), near sqrt(3 beta/2).

Shown: Monte-Carlo counts against these. The order is checked as an exponent in beta along beta = n and beta = n^(3/2),
where it differs from that of sqrt(beta) by about 1/(2 log beta). Not shown: the constant (the figure has a heuristic
one); the exponent along beta = n^(1/2) is only drawn, because up to 30,000 samples it is still far from its limit. The
tolerance of the exponent was derived after a first look at the counts along beta = n^(3/2).

On the line the sign of the derivative is looked at on a grid of beta^(-1/2)/16, on the circle the sign of the velocity
of test particles in attention itself, which is the slope of the log density. A grid misses pairs of critical points
between two of its points, in proportion to the square of its step; so what halving the step changes, three times what
is still missed, is part of the tolerances. Each claim fails by chance with probability 0.001. What is seen: 2 % of beta
for two samples, 15 % in the middle of the line, 5 % on the circle.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2024modes",)
__getattr__ = from_files(__name__)
