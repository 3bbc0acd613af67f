"""Without layer norm and with V = I, rescaled tokens end at the vertices of a polytope.

Tokens in R^d follow dx_i/dt = sum_j A_ij x_j with A the softmax of <Qx_i, Kx_j>, and grow like e^t. For z = e^(-t) x
every token is pulled towards a mean of the others, so the convex hull of z never grows. With B = Q^T K positive
definite it shrinks to a polytope, and every token tends to its boundary or to 0 (arXiv:2305.05465). Logits grow like
e^(2t), so each token soon attends to one token alone, its leader, and approaches the leader like e^(-t). A limit c
leads itself: <Bc, c> >= <Bc, c'> for every other limit c'.

Shown: random starts in the plane and in space, half of them with a random B, and regular polytopes against an integral.
The polytope may be a single point; this happens to about one random start in 500 in the plane. So distances are
measured in units of the initial positions. Tokens count as one limit if they are closer than e^(-t/2) of that, which is
true of all tokens that chose a leader before t/2. This unit was chosen after looking at starts with a single limit. At
t = 12 tokens of one limit are closer than 1e-4 and different limits are farther apart than 1e-2.

Not shown: B that is not symmetric. The theorem admits limits that are not vertices: 0, and the feet of perpendiculars
from 0 on faces. Tokens leave them doubly exponentially fast, so random starts do not show them.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2023emergence",)
__getattr__ = from_files(__name__)
