"""Two, three and four clusters merge when and where closed forms say, at any beta: up to times of e^19000.

Weighted clusters are followed by `solve_long`, on the coordinate log t. Two of them close up in a time that is a
one-dimensional integral, of the order e^(beta (1 - cos angle)), and meet at the mass mean (USA0) or nearer to the
heavier one (SA). A third cluster changes the time of the first merge by a share e^(-beta (u_3 - u_1)), with u = 1 - cos
of the angles, and the merged cluster then meets the third as a pair again. Three clusters at equal distances close up
on the middle one; there a small offset of the middle cluster grows by a factor that is an integral as well. For large
beta it exceeds 10^13, so that rounding decides which pair merges, and `solve_long` has to say so (arXiv:2410.06833,
arXiv:2312.10794).

Shown: pairs on S^1 and S^7 at beta from 1 to 10,000 on the clocks SA, USA0 and USA; triples on the circle, symmetric
ones with random offsets; four clusters on the circle against merge times computed by SciPy alone
(tests/reference/four_clusters.py). Not shown: clusters of finite size.

Two clusters count as met at the chord 0.001 (pairs, offsets), or 0.0001/beta (triples), and the formulas end at the
same angle. The offsets are chosen so small that the middle cluster is off by a thousandth of the distance at the end.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2024metastability", "geshkovski2025perspective")
__getattr__ = from_files(__name__)
