"""ReLU flows reach a density on the line with an error in relative entropy that has a sharp constant.

A schedule of K + 3 ReLU units carries a normal density to the linear interpolant of the monotone rearrangement onto a
mixture of three normal densities. arXiv:2412.19366 shows that ReLU flows can approximate densities in relative entropy
with a bounded number of switches; the construction on the line, its constant and the best mesh are ours (of the paper
we could read the abstract and the first page).

Shown: the part of KL K^2 in a fixed span, in both directions, against an integral over the span, for equal cells and
for the best cells (outside of the span 1.5e-10 is left whatever K, so that KL K^2 itself has no limit); that cells of
equal mass have the order 2 too, but a constant 9,000 times as large, which they approach so late that at K = 2048 the
local order is nearer to 1; and a dichotomy. Maps of ReLU flows are affine at infinity, so KL(target || reached) is
infinite for every schedule if the target has no second moment, and finite otherwise: on shells of Student targets with
nu degrees of freedom its part grows or decays like R^(2 - nu). The densities are those that the schedule itself gives,
by its inverse and its log-determinant.

Not shown: more than one dimension, and training. Optimising the knots gains a factor of 4 at K = 4 and 1.5 at K = 16.
"""

from attnflow.experiments import from_files

PAPERS = ("alvarez2025constructive",)
__getattr__ = from_files(__name__)
