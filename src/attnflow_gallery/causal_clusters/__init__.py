"""Causal attention gathers tokens around its centres, and in the end all of them at the first token.

With V = I and a causal mask the first token does not move, and all others converge to it for almost every start
(arXiv:2411.04990). Long before that, at large beta, tokens wait in clusters around centres: tokens that no earlier
token (strong), or no earlier centre (Renyi's parking), is closer to than delta = c beta^(-1/2).

Shown: tokens on S^2 under softmax end at x_1(0); token 2 follows the integral of a scalar equation; near consensus the
p-th forward difference at the first token decays at the rate p/(p+1), for every beta. Numbers of strong and of Renyi
centres of uniform starts against their formulas. On the circle, at t = 20: strong centres with delta = 4 beta^(-1/2)
have not moved and are in different clusters, most tokens sit at Renyi centres, the number of clusters over sqrt(beta)
does not depend on beta, and it is near the number of Renyi centres with the same delta. Not shown: a derivation of the
number 4, which was read off other random numbers at this time and grows slowly with it; a proof that every start
converges; energies, of which causal attention has none.

The level is 0.001 for each claim with random numbers, by Student's test with Bonferroni's bound for its entries.
"""

from attnflow.experiments import from_files

PAPERS = ("karagodin2024causal",)
__getattr__ = from_files(__name__)
