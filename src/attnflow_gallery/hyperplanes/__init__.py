"""Without layer norm, a simple leading eigenvalue of V draws rescaled tokens onto at most three parallel hyperplanes.

Tokens in R^d follow dx_i/dt = sum_j A_ij V x_j with A the softmax of <x_i, x_j>. Let lambda > 0 be a simple eigenvalue
of V, larger than the real parts of all others, phi its eigenvector and phi* the dual one. For z = e^(-tV) x the leading
coordinate y = phi*(z) obeys dy_i/dt = lambda sum_j A_ij (y_j - y_i), so its extremes close in, and it takes at most
three limits: the largest y, the smallest, and 0 (arXiv:2305.05465). Other coordinates are free; where V has negative
eigenvalues they grow.

Two exact solutions. Clusters at x and -x with tokens at 0 move as x(t) = e^(sV) x(0): they lag behind the linear flow
by a delay t - s that has a limit, and the tokens at 0 stay there, so that all three planes occur. A token of no mass
near 0 leaves the middle plane doubly exponentially fast, so the third plane needs tokens that are exactly there.

Shown: the example V = [[1, 0.3], [0, -0.4]], random V and starts, and both solutions. A token near the middle plane may
attend to itself alone for a while, longer the larger the second eigenvalue mu of V (see the derivation). So random V
have mu < 0.3, and tokens count as on one plane within e^(-t/3) of the initial range; both numbers were chosen after a
start with mu = 0.49 had a token that left the middle plane at t = 6 only. Rounding errors push the tokens
at 0 away as well. They are looked at in the last frame with |x|^2 < 40: rounding errors have not grown beyond 1e-6, and
above |x|^2 = 25 the clusters have reached their limits to 1e-11. Tokens come near their plane like e^(-lambda t) if
<u, Vu> > 0 for all u; otherwise they may stay at a tie between a leader and themselves, and come more slowly: there no
rate is claimed. Not shown: Q and K other than the identity, and <Q phi, K phi> < 0.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2023emergence",)
__getattr__ = from_files(__name__)
