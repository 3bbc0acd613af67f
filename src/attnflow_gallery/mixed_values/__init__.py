"""V with eigenvalues of both signs: closed limits on a polytope times a subspace, Gaussians that whiten or blow up.

Without layer norm, z = e^(-tV) x. For product point sets softmax factorises over coordinates, so each coordinate with
V = 1 has the closed limit c_2 or c_3 (`theory.landscape.pair_limit`), whatever V does to the others: a polytope times a
subspace, as the mixed case of arXiv:2305.05465 has it. Gaussian measures stay Gaussian (arXiv:2501.18322). Covariances
with V > 0 blow up in finite time, and V = -I whitens, t Cov (B + B^T) -> I, for any finite set of tokens too. On the
sphere V = -I descends the energy. Six tokens end in the octahedron; for five the best configuration changes at
beta = 6.886.

Shown: limits of prisms to nine digits, moments of a Gaussian by a quadrature of tokens, whitening of random tokens, the
octahedron, and the beta at which the energies of the two pyramids at rest cross. Not shown: that almost every start of
a general set converges; tokens near the blow-up: a token at x looks at those near (1 + c) x, so that errors of the tail
move inwards, and a finite set stays below the closed form (by 3e-5 at t = 0.3 with 64 nodes, V = 1/2). The third
hyperplane and why float64 loses it are in hyperplanes.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2023emergence", "castin2025transformers", "cohn2007universally")
__getattr__ = from_files(__name__)
