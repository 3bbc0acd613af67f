"""With noise, order sets in below kappa_c: continuously or, for unnormalised attention with beta > beta*, with a jump.

Tokens with noise dX = X[mu] dt + sqrt(2 kappa) dB have the density rho of d rho/dt + div(rho grad Phi) = kappa Lap rho.
A harmonic of degree k of the uniform measure on S^(d-1) grows at the rate lambda_k - kappa k (k+d-2) (lambda_k:
arXiv:2410.23228), and degree 1 grows first, at kappa_c = I_(d/2)(beta)/(beta I_(d/2-1)(beta)) for softmax attention
(SA) and the mean weight times that for unnormalised attention (USA0). Local bifurcations of the uniform measure are
those of arXiv:2510.20094. For USA0 the transition is continuous up to beta* and a jump above beta*, where
I_(d/2+1)(beta*)/I_(d/2)(beta*) = 1/d: beta* = 2.4469 (d = 2), 1.8162 (3), 1.2666 (8). This is a theorem of Mun and
Rosenzweig (arXiv:2606.05140; d = 2: arXiv:2604.16288). On the circle kappa = kappa_c + 2 c m^2 + ... along ordered
states, m = |mean of x|, with c in closed form (`theory.uniform.landau_coefficient`).

Shown: beta* and c by Newton's method; branches of stationary states with their stability; the equation with noise,
which relaxes to them; tokens with noise on both sides of kappa_c: growth of a small order, m^2 = kappa/((kappa -
kappa_c) n) without order, and the ordered state, also between kappa_c and the fold. Not shown: which of two stable
states wins in the end, the switching of finite systems between them, tokens on spheres of higher dimension.

Numbers of seeds and times were chosen so that m^2 is known to about 10 %, from the variance of m^2 and its correlation
time; an error of 20 % in the noise or in m^2 is seen.
"""

from attnflow.experiments import from_files

PAPERS = (
    "mun2026sphere",
    "mun2026circle",
    "balasubramanian2025stationary",
    "bruno2024emergence",
    "geshkovski2025perspective",
)
__getattr__ = from_files(__name__)
