"""Tokens near the uniform measure leave it in the gradients of harmonics, at the rates of the spectrum of attention.

Tokens spread evenly over the sphere S^(d-1) are at rest. Displaced along the gradient of a spherical harmonic of degree
k they drift away at the rate lambda_k = k (k+d-2) I_(k+d/2-1)(beta) / (beta I_(d/2-1)(beta)) under softmax attention
(SA), and at the mean weight times that under its gradient-flow variant (USA0). The rates have one peak in k, at k_max,
whose height tends to 2/e for large beta. Rates and k_max are in arXiv:2410.23228 (see also arXiv:2312.10794).

Shown: the linearised field DF at tokens on the circle and on S^2 (nodes of a quadrature; harmonics about random axes;
degrees up to beyond the peak); the degree that grows fastest, next to the inverse temperatures at which it changes; and
modes that grow by decades in the nonlinear flow on S^(d-1). Those flows are zonal: tokens of one meridian move in the
measure of their orbits under rotations about the axis (on the circle: mirror images), again a quadrature.
Not shown: the end of the growth (only drawn), or iid tokens, which seed every mode at once (see cluster-count).

The seed 1e-8 and the end t = 16 of the growth were chosen so that modes stay small and above round-off.
"""

from attnflow.experiments import from_files

PAPERS = ("bruno2024emergence", "geshkovski2025perspective")
__getattr__ = from_files(__name__)
