"""Causal attention gathers tokens around its centres, and in the end all of them at the first token.

With V = I and a causal mask the first token does not move, and all others converge to it for almost every start
(arXiv:2411.04990). Long before that, at large beta, tokens wait in clusters around centres: tokens that no earlier
token (strong), or no earlier centre (Renyi's parking), is closer to than delta = c beta^(-1/2).

Shown: tokens on S^2 under softmax end at x_1(0), with Q = K = I and with random Q and K; token 2 follows the integral
of a scalar equation; near consensus the p-th forward difference at the first token decays at the rate p/(p+1), for
every beta. Numbers of strong and of Renyi centres of uniform starts against their formulas. On the circle, at t = 20,
with delta = 4 beta^(-1/2), the value of figure 2 of that paper: strong centres have not moved and are in different
clusters; the number of clusters over sqrt(beta) does not depend on beta. Seen and not derived: the clusters of Renyi
centres hold more tokens than those of as many random tokens, and there are about as many clusters as Renyi centres.
Not shown: a derivation of the number 4, which grows slowly with the time; a proof that every start converges;
energies, of which causal attention has none. The paper itself was not read, only its abstract and summaries by others.

The probability that chance fails a claim is below 1e-6, by Student's test with Bonferroni's bound for its entries.
"""

from attnflow.experiments import from_files

PAPERS = ("karagodin2024causal",)
__getattr__ = from_files(__name__)
