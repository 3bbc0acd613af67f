"""On S^2 a Platonic seed of one degree condenses into a Platonic solid; before that its skewness grows as predicted.

Near the uniform measure all 2l+1 harmonics of degree l grow at the same rate: linear growth selects nothing inside a
degree. The first selection is quadratic, h' = lambda_l (h + kappa Pi_l(h^2)) with kappa = (1 - b_l)/2 for softmax and
1/2 without a normaliser. For even l it bends every pattern towards peaks: with the direction u of h, mean square 1,
the skewness w = mean(u^3) grows by 3 kappa (|Pi_l u^2|^2 - w^2) per unit of amplitude. For odd l it vanishes. The flow
keeps every symmetry of the seed. So seeds with the symmetry of a solid condense into 2, 4, 6 or 12 clusters (sign +),
or into 8 and 20 (sign -), at the vertices of a Platonic solid. Even degrees keep mu(-A) = mu(A): clusters come in
antipodal pairs and there is no consensus.

Shown: tokens with the masses of a seeded density on Gauss nodes, solids in general position to the grid; counts and
places at t = 15; antipodal symmetry from random seeds; the slope of the skewness, SA and USA0; spectra of equal
clusters at the vertices of the five solids, those of the tetrahedron in closed form. Formulas are derived here. Not
shown, and not true: that random seeds of degree l give the regular solid. Their polyhedra are distorted, and their
number of clusters varies (it is drawn).
"""

from attnflow.experiments import from_files

PAPERS = ("bruno2024emergence", "geshkovski2025perspective")
__getattr__ = from_files(__name__)
