"""Every harmonic of a nearly uniform density grows exponentially over decades, at the rate of the spectrum.

The density 1 + a h on S^(d-1), h a spherical harmonic of degree k, solves the continuity equation of attention with
a' = lambda_k a while a is small. Under softmax attention (SA)
lambda_k = k (k+d-2) I_(k+d/2-1)(beta) / (beta I_(d/2-1)(beta)); its gradient-flow variant (USA0) has the mean weight
times that. The rates and the degree k_max with the largest one are in arXiv:2410.23228 (see also arXiv:2312.10794).

Shown: the continuity equation, solved in harmonics, on the circle, on S^2 (harmonics that are not zonal) and for zonal
densities on higher spheres, from a = 1e-9 up by decades. Starts with +a and -a are combined: half their difference
keeps the odd powers of a. The other half shows the term of second order, which one start alone is off by. On the circle
the terms of third order, by which the growth begins to bend, are compared too. Both orders are derived here.
Not shown: what becomes of the mode once a is of order 1 (only drawn), or tokens (see uniform-spectrum).

No random numbers are drawn. The amplitudes 1e-9, 1e-4 and 0.1, between which lines and bends are compared, were chosen
so that each term stands out from the next order and from round-off.
"""

from attnflow.experiments import from_files

PAPERS = ("bruno2024emergence", "geshkovski2025perspective")
__getattr__ = from_files(__name__)
