"""Attention with a perceptron block gathers tokens in few atoms, at the critical points of one energy.

Unnormalised attention on the circle (USA0) plus the gradient of U(x) = sum_j w_j s(a_j . x + b_j), s' = relu, climbs
E = (1/2 beta) double integral of e^(beta (<x, y> - 1)) + integral of U. A measure is critical when its first variation
Phi = (1/beta) k * mu + U is stationary on the support. A kink of U on the circle forces finitely many atoms, and no
measure has more energy than 1/(2 beta) + max U, the Dirac at the peak of U (arXiv:2601.21366). Without a kink there
are exceptions: for U = u cos a density without atoms is critical up to u* = e^(-beta) I_1(beta)/beta. With the opposite
sign tokens repel each other, E is convex in the measure, and the smallest value of Phi certifies its one minimiser.

Shown: random networks of five units; ends of flows against the equations of critical atoms, solved from the peaks of U
with the masses found; tokens that start around the highest peak and reach the largest energy; the exception, and the
speed beyond its threshold; the minimiser of the repulsive energy, which stays at rest. That no peak of U holds two
atoms is seen, not proved. Not shown: localisation in d >= 3 (the circle only); softmax attention; networks with flat
parts, where tokens stop for times exponential in beta; critical measures that are not stable. Repelling tokens of equal
masses (figure) do not reach the minimum: some are caught in a valley of U.
"""

from attnflow.experiments import from_files

PAPERS = ("alvarez2026perceptrons",)
__getattr__ = from_files(__name__)
