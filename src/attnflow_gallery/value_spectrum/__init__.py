"""The spectrum of V decides whether tokens on the sphere cluster, where, and whether two clusters can last for ever.

The model is dx_i/dt = P (1/H) sum_h sum_j A^h_ij V_h x_j. It is seldom a gradient flow, but four things are exact, for
all Q_h and K_h, with V the mean of the V_h:

- Tokens at one point x stay together and follow dx/dt = P V x: x(t) = e^(tV) x(0), normalised. So consensus goes to the
  leading eigenvector of a symmetric V, and turns with an antisymmetric one.
- Near consensus, chords grow by 1/|e^(tV) x(0)|, at the rate -<x, Vx>: V = I contracts, V = -I disperses, an
  antisymmetric V does neither, and random heads contract in the end if the leading eigenvalue of V has a real part > 0.
- At beta = 0 all tokens move by one Moebius map of the sphere, and cross-ratios of chords never change.
- If all V_h are symmetric with an eigenvector phi, clusters of equal masses at phi and -phi are in equilibrium. Bending
  both towards another eigenvector (lambda_2) grows at the mean over heads of lambda_2 - lambda_1 tanh(beta b), turning
  them both at that of (lambda_2 - lambda_1) tanh(beta b), b = <Q phi, K phi>. So two clusters last for ever where
  tanh(beta b) > lambda_2/lambda_1, and for V = I never.

The energy of one head with V = Q^T K symmetric never falls (arXiv:2312.10794); that of two softmax heads may.

Shown: these against simulations. Measured, with no theory: how often random starts end in two clusters where two
clusters are stable. Chosen by hand: a start ended in two clusters if tokens have coordinates above 0.9 and below -0.9
along phi at t = 80. Not shown: weights that change with depth.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2025perspective",)
__getattr__ = from_files(__name__)
