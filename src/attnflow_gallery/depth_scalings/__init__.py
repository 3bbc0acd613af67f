"""Depth acts through tau = eta^2 L/H: networks at initialisation freeze, diffuse, or follow an ODE.

L layers of H heads with fresh Gaussian weights, x <- N(x + (eta/H) sum_h V_h m_h(x)), have the clock tau = eta^2 L/H
(arXiv:2604.01978). With eta = L^(-1/2), or with eta = 1 and H in proportion to L, tokens diffuse and share their noise;
with eta = 1/L they stay where they are, unless E V = v I: then they follow the ODE of attention at speed v.

Shown, for 4 orthonormal tokens in R^8 with d_k = 8 and b = 1: means of their overlap at tau = 1 for several (eta, H,
L), which agree with the diffusion, simulated for itself, up to a bias of O(eta^2/H); the frozen network, whose overlap
is of order 1/(L H), with its constant and its spread; the ODE, and fluctuations around it of order (L H)^(-1/2), with
their constant. Layers on vectors and layers on Gram matrices have the same distribution (at b = 4; overlaps of 4 tokens
hardly depend on b, so that this comparison would not notice another b).

Not shown: the rates of these limits (the error terms of the paper), convergence of whole paths, and E V that is not a
multiple of the identity. Of the paper we could read the abstract and a third-party transcription of its statements.
"""

from attnflow.experiments import from_files

PAPERS = ("koubbi2026homogenized",)
__getattr__ = from_files(__name__)
