"""The time at which iid tokens in high dimension collapse is a curve in the (t, beta) plane, and it is predicted.

For d much larger than n, all overlaps of iid tokens go from about 0 to 1 at about one time, which depends on beta.
When the common overlap gamma(t) of orthonormal tokens passes a level has a closed form: that is the transition curve
(Geshkovski et al. 2025, section 6).

Shown: maps of the mean overlap for a small, a middling and a large d, SA, with the curve overlaid; and how far the
measured curve is from the predicted one. To first order only the mean overlap at the start matters, of variance 2/(n
(n-1) d), and a shift of gamma at 0 is a shift of time by that over gamma'(0). So the time of one draw is off by about
d^(-1/2), with a known constant; the same theory started from the measured mean overlap should be off by 1/d only. The
constant and the second exponent are claims; the exponent -1/2 is contained in the constant, which is measured at all
d. Random claims have a level of 1e-6, and 6 standard deviations for the farthest of all draws; with 200
draws per d they would see a constant that is off by 10 %. Not shown: what replaces the transition when d is small
(metastable clusters: the map for the smallest d shows that the curve is wrong there), and other initial distributions.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2025perspective",)
__getattr__ = from_files(__name__)
