"""One layer of attention with many heads misses the even part of every map; maps of flows are approximated.

Problem 1 of the lecture notes asks whether one layer with H -> oo heads, matrices alone, approximates every map of
prompts that commutes with permutations. The answer is no. Heads without a bias are odd, f(-X) = -f(X), so that for
every H the error is at least the norm of the even part: f = e_1 is missed entirely. A constant coordinate (a bias)
removes this obstruction. On the diagonal f(x, ..., x) is linear in x (derived here).

Shown by least squares over the values of random heads, with errors on fresh prompts: even targets, and sums of odd and
even ones, with and without a bias; the diagonal; n = 2, where the odd map |mean|^2 mean is approximated to many digits;
the same map for n = 4, where errors stall; flow maps of attention, whose errors fall; averages of independent heads,
whose error falls like H^(-1/2).

Not shown: more than four tokens; that the stall is a floor. It is a measurement with random heads; no proof is known
to us. Rates depend on the target, and there is no common exponent. Deep networks, perceptrons and positions are another
question; universality is reported for them (arXiv:1912.10077, arXiv:2408.01367, of which we read the abstracts).
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2025perspective", "yun2019transformers", "furuya2024transformers")
__getattr__ = from_files(__name__)
