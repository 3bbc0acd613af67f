"""On the circle gates keep the cyclic order of measures; skew attention turns each by its own speed and changes it.

The flow of a perceptron on the circle is an increasing map, so it keeps the cyclic order of points. The theorem of
arXiv:2411.04551 steers N measures to N targets under one schedule on spheres of dimension 2 and more. On the circle,
outside of it, attention at beta = 0 with V = J, the rotation by a right angle, reorders measures (ours): a measure with
the density of a Poisson kernel and a mean of length r keeps r and turns at the speed (1 + r^2)/2.

Shown: the speed and the constancy of r for tokens at quantiles of Poisson kernels, which have the right mean up to r^n;
and whole plans for random inputs whose order is not that of their targets, each measure followed alone by a solver that
knows no closed forms; refusals of the builder are counted. With 8 boosts to try, the builder found no plan for one of
the inputs of salt 22 and one of salt 23. It tries 40 since; salts 31 to 33 are fresh.

Not shown: inputs that are rotated copies of each other, which turn alike; a boost before, which the builder tries,
tells them apart.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2024measure", "lipton2019kuramoto")
__getattr__ = from_files(__name__)
