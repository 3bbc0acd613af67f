"""Measures in a cap contract between two explicit curves; W_2 grows at most at 0.45 without softmax, like beta with it.

Unnormalised attention (USA0) on the circle lets the distance W_2 of two measures grow at most at the rate omega <= 2
e^(-3/2) = 0.446, beta >= 1, and two tokens at one angle attain it. Softmax divides by the weight that a token sees,
which may be small: a massless token between two half masses has the derivative beta + 1/(4 beta), the largest of all.
A measure of diameter D in a cap, with atoms, densities or both, stays between e^(-t) D and the curve of an explicit
equation, for softmax and USA0 and every beta: it contracts, and no atom forms in finite time. A narrow Gaussian cloud
under softmax has the variance of Lambert's function, log v + beta v = const - 2t.

Shown: largest expansion of tokens on the circle, of the pair and of random starts; the derivative at the massless
token; diameters of random measures of atoms and densities on arcs shorter than pi and in caps on S^2 narrower than
pi/2, at every frame; two atoms, which follow the upper curve; the spread of a cloud at beta = 1000. All bounds are
derived here. Not shown: the sharp constant on S^2 for small beta, and caps on S^2 wider than pi/2, where no uniform
rate is known.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2025perspective",)
__getattr__ = from_files(__name__)
