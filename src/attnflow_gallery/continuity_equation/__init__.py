"""Many tokens move as the density that solves the continuity equation, up to the sampling noise that the flow carries.

As n grows the tokens of attention become a density rho with d rho/dt + div(rho X[rho]) = 0 (arXiv:2312.10794). Tokens
drawn from the density at the start miss its harmonics and its energy by a standard error n^(-1/2) times a constant
that grows with time, for attention amplifies the noise; the constant comes from the linearised equation. Tokens spread
quietly over the density (quantiles) miss it by far less: on the circle by no more than the steps in time do.

Shown: softmax attention (SA) and unnormalised attention (USA0) on the circle and on S^2, from a smooth start: the
measure of the tokens solves the equation, sampling noise included; iid and quiet tokens against the density; finite
volumes against harmonics; and clusters, beyond the time at which harmonics resolve the density, by tokens and by cells.
Not shown: the rate in n (see propagation-of-chaos), noise on the tokens, clusters on S^2.

Times of USA0 are in units of the inverse of the largest K * rho at the start, where USA0 then is as fast as SA. The
level of the claim about iid tokens was chosen beforehand: 1e-4 for all observables, times and models together.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2025perspective", "chaintron2022chaos")
__getattr__ = from_files(__name__)
