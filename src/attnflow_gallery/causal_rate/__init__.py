"""A causal prompt approaches its limit of many tokens at the rate N^(-1/2) in W_2, with a larger constant than others.

Every token of a causal prompt sees the tokens before it, and iid tokens have the same law of large numbers with and
without the mask. The mask shows in what is left at N tokens. On the circle, from a uniform start, W_2^2 of a small
perturbation is its norm in H^(-1), and N E W_2^2 tends to 2 sum_k e^(2 a_k t) I_0(2 a_k t)/k^2; without a mask the
factor I_0 is absent. From another start the mean of the prompt has a bias. Without a mask the bias is of order 1/N;
with it, N times the bias still grows at all N that were tried: the first tokens see few others, and what they get wrong
is handed on.

Shown: N E W_2^2 against the exact sum of the linear theory for N tokens, extrapolated in 1/N, and above the constant
without a mask; N times the bias for growing N, with the mask and without it. Not shown: the form of the growth of the
bias (about log N at t = 0.5, which is not derived); d >= 3, where W_2 of iid points is larger than N^(-1/2).

The probability that chance fails a claim is below 1e-6, by Student's test with Bonferroni's bound.
"""

from attnflow.experiments import from_files

PAPERS = ("duerinckx2026kinetic",)
__getattr__ = from_files(__name__)
