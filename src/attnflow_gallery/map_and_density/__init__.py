"""A diffeomorphism and its density are approximated together: a permutation, a stretching, another permutation.

ReLU flows permute cells exactly (see permutations-by-shears) and stretch along one axis exactly (see relative-entropy).
So the cells of a square are laid in a row, stretched each by its Jacobian, cut into small cells, and carried to where
the map phi has them. Map and log-density converge together. arXiv:2602.08606 proves that phi and its push-forward can
be approximated together, in L^p and in total variation, with eps^(-d) switches; this version with two permutations is
our reading of its summary, since the text could not be read; total variation is not measured.

Shown: errors of the map in L^1 and of the log-density in L^2 for a map of the unit square that bends and stretches; the
first falls like elements^(-1/2), the second like elements^(-1/4). So an error eps of the map costs eps^(-2) units in
the plane, and an error eps of the log-density eps^(-4). In L^2 a few points in a million, which are caught in rims of
cells and end up far away, would spoil the error of the map; with thinner rims rounding does. L^1 was chosen after a run
in L^2 had shown this; salts 21 to 23 are fresh.

Not shown: that this is a good way to approximate smooth maps. Shears and splittings need 10 to 1,000 times fewer units.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2026constructive",)
__getattr__ = from_files(__name__)
