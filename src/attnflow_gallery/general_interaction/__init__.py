"""General weights keep the uniform measure at every scale only if V B^T is c I plus a skew part; then patterns turn.

Attention with the logits <x, B y> and the values V y moves a token that sees the uniform measure by g(|B^T x|)
P_x V B^T x. The uniform measure is stationary if V B^T = c I + S with S skew and [S, B B^T] = 0, and if it is for all
small multiples of B, the weights have this form. So "B symmetric, V = I" is stationary for B = beta I alone. For
B = beta R and V = (c I + S) R with a rotation R, harmonics grow at closed complex rates: the pattern grows, or decays,
and turns. Turning keys and values together (V = R) leaves the full rate to patterns that are symmetric about the axis.

Shown: rates of change of polynomial moments of tokens that stand for the uniform measure (nodes of a quadrature on the
circle and S^2), zero for weights of this form at three scales of B, and those of the formula for others; growth and
turning of seeded modes in the nonlinear flow, SA and USA, on the circle and S^2. All of this is derived here; the case
R = I, S = 0 is that of arXiv:2410.23228. Not shown: necessity at one fixed scale of B for weights V B^T that are
neither symmetric nor of this form, which is open; modes of weights such as V = B^(-T), whose degrees mix.
"""

from attnflow.experiments import from_files

PAPERS = ("bruno2024emergence", "geshkovski2025perspective")
__getattr__ = from_files(__name__)
