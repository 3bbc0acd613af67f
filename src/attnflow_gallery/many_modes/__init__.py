"""A nearly uniform density chooses from sqrt(3 beta/2) to k_max clusters, the more the smaller its fluctuation is.

n iid uniform tokens on the circle have the harmonics of a density 1 + eps W, W white noise and eps = n^(-1/2). Degree k
grows like e^(lambda_k t), fastest at k_max near sqrt(2 beta): for vanishing fluctuations k_max clusters form
(arXiv:2410.23228). While eps e^(lambda t) is small the expected number of modes of K * mu, K = e^(beta cos), is

    M(t) = sqrt(sum k^4 I_k^2 e^(2 lambda_k t) / sum k^2 I_k^2 e^(2 lambda_k t)),

near sqrt(3 beta/2) at t = 0 and k_max for large t. Neighbours of k_max grow slower by only about 2/(e beta), so that
k_max wins only from fluctuations far below e^(-beta/2): those of far more than e^beta tokens. For Gaussian samples on
the line, Kac and Rice's formula is applied to kernel density estimators in arXiv:2412.09080. The count M(t) on the
circle, its growth in time, and the size of fluctuation that k_max needs are derived here.

Shown: the continuity equation of softmax attention from white noise, solved in harmonics until the first cluster is too
sharp for them; modes and clusters are maxima of K * mu. Not shown: how the clusters merge (see staircase), or tokens
themselves (see kde-modes, cluster-count); tokens serve here for one start.

White noise is cut where the kernel has fallen to 1e-8. A time counts as linear while the root mean square of rho - 1 is
at most 0.2; the cut, this bound and the sizes 1e-2 to 1e-100 were chosen on other seeds. Each claim fails by chance
with probability 0.001; a mean of 40 runs that is off by 0.9 modes early, or by 0.16 from noise of size 1e-100, is seen,
and 0.07 modes at t = 0 by 4000 draws.
"""

from attnflow.experiments import from_files

PAPERS = ("bruno2024emergence", "geshkovski2024modes", "geshkovski2025perspective")
__getattr__ = from_files(__name__)
