"""Two weighted clusters merge at the time and at the point that the two-body formulas give.

Clusters of masses m and 1 - m at an angle close up on their great circle. For softmax attention (SA) and for its
gradient-flow variant (USA0) the time to the angle 0.01 is a one-dimensional integral (in exponential integrals for
USA0 and for equal masses), growing like e^(beta (1 - cos angle)); the point where they meet is the mass mean for USA0
and approaches the mean weighted by squares of masses for SA as beta grows (arXiv:2410.06833, arXiv:2312.10794).

Shown: simulated pairs on the circle and on the sphere, in plain time, against the integrals; at beta = 1000 and 2000,
on the coordinate log t, the growth of the time and the first correction to its leading term. Not shown: clusters of
finite size, or more than two of them (see merge-times); in plain time, pairs so far apart that their speed nears
round-off (beta (1 - cos angle) above 14).

The flow knows no formula: the crossing of the angle is searched for in saved frames. An error of angle at one step
shifts the crossing by that error over the closing speed, which gives the tolerances.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2024metastability", "geshkovski2025perspective")
__getattr__ = from_files(__name__)
