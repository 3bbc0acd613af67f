"""The histogram of all pair distances goes from the Beta distribution to atoms; its transform at beta only rises.

The distances r = |x_i - x_j| of iid uniform tokens follow a Beta distribution: (1 + s)/2 with s = 1 - r^2/2 is
Beta((d-1)/2, (d-1)/2). As tokens attract each other, the histogram changes at order 1/n by a closed sum over the
growth rates of all degrees: at beta = 4 pairs are taken from the shoulder at s = 0.3 to 0.6, not from the far side.
After condensation it is a sum of atoms, 2 m_a m_b at the distances of clusters and sum m_a^2 at 0. The transform of
the histogram by e^(-beta r^2/2) is the energy, at the beta of the model: softmax and unnormalised attention never let
it fall. For another beta it may fall.

Shown: the first change on S^2 by Monte Carlo at several n, extrapolated to 1/n -> 0; atoms of tokens that condense at
an octahedron and a cube, and that the histogram of a seed of even degree is symmetric in s; the transform along flows
from random starts, at beta and at another beta where it falls. Formulas are derived here; that the energy rises is in
arXiv:2312.10794. Not shown: one run alone, whose histogram fluctuates at order 1/n too.

The probability that chance fails a claim is below 1e-6, by Student's test with Bonferroni's bound. Beta and time of
the Monte Carlo were lowered after a first look, at beta = 4 and t = 1/2 and other random numbers, where 64 tokens are
too few for a line in 1/n.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2025perspective", "bruno2024emergence")
__getattr__ = from_files(__name__)
