"""Attention climbs its energy at the rate of its squared speeds; several softmax heads may descend, USA heads never do.

For E = (1/2 beta) sum_ij m_i m_j e^(beta (<x_i, B x_j> - 1)) and V = B = B^T unnormalised attention (USA0) is a
gradient flow, dE/dt = sum_i m_i |v_i|^2, and softmax attention (SA) climbs too, dE/dt = sum_i m_i Z_i |v_i|^2 with its
denominators Z_i (Geshkovski et al. 2025, section 3). Heads add their energies. USA heads still follow the gradient of
the sum; softmax heads divide every gradient by a denominator of its own, and the sum may go down.

Shown: the energy gained along flows with B = I against the integral of the right-hand sides, at every fourth frame;
for random symmetric matrices the rate of E under the field of the library, by automatic differentiation, against the
formula, and how often it is negative; one flow of two softmax heads that descends. The share of descending states
belongs to one distribution (three tokens of random masses on the circle, beta = 2, B_h = s times a symmetrised Gaussian
matrix) and depends much on it, so that no claim is made of it. Not shown: V different from B.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2025perspective", "rigollet2025meanfield")
__getattr__ = from_files(__name__)
