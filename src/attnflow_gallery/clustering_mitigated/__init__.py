"""Few keys and a low temperature make nearby tokens separate, yet tokens that have collapsed stay together.

In random deep attention two nearby tokens have an exponent: log(1 - R) of their overlap R has the drift
Lambda = [(d-3) B - (d-1) A]/d per unit of tau = step^2 L/H, where A = E|m|^2 and B = E|dm|^2 for the softmax mean m
that they hear and its derivative. For d >= 4 and d_k < d - 1 infinitely many uniform tokens make Lambda negative at a
small logit scale b and positive for b -> inf, so that it changes sign at a b_c (derived here, in the setting of
arXiv:2604.01978; that there is one such b_c only is not proved). Else Lambda is negative at b -> inf, in R^3 for every
d_k. A collapsed population has A = 1 and B = 0 at every temperature: it is stable. Clustering is mitigated, not
impossible. Two tokens alone with Q^T K = I do the same near the antipode, where the sign changes at
cosh(2 beta) = d - 2 (arXiv:2601.21942, of which we read the abstract and a reading note).

Shown: Lambda of nearby tokens in a population that is uniform in every layer, below and above b_c; the exponent of
collapsed tokens; the antipodal exponent and its sign; orthonormal tokens in a high dimension, which collapse later at
b = 8 than at b = 1, against the simplex equation; populations of 64 tokens with few keys, whose overlap is lower at
b = 64 than at b = 1 with the same heads and values; on the circle at infinite temperature, the probability
1/2 + arcsin(R)/pi that two tokens merge rather than become antipodal.

Not shown: that b_c decides for finitely many tokens. The statement needs many more than e^(b sqrt(d)) of them, and a
population that stays uniform, which common noise does not allow for long: hence the population is held uniform for the
exponents, and whole populations are only compared with one another. A true claim fails by chance with probability
1e-6 at most.
"""

from attnflow.experiments import from_files

PAPERS = ("fedorov2026clustering", "koubbi2026homogenized")
__getattr__ = from_files(__name__)
