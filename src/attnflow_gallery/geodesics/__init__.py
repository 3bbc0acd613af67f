"""Equiangular tokens move on geodesics of W_2, and on the circle no two flows of USA separate faster than e^(Lambda t).

Tokens with one common overlap go straight to their mean: every token moves on a great circle, all by the same angle,
and no other plan carries the start to a later time at a smaller cost. So W_2(mu_0, mu_t) is the length of the path. In
W_2 on the circle two flows of unnormalised attention (USA0) separate at most at the rate Lambda = max W'', where W =
e^(beta (cos - 1))/beta is the potential of a pair; two tokens at the angle of the maximum attain the rate at once.

Shown: W_2 by linear programming and the length of the path against the closed form, SA and USA0; the rate of separation
of two pairs of tokens at the extremal angle; the bound for pairs of random starts. Not shown: a bound for d > 2, where
Lambda is not known here. How far random pairs stay below is drawn and not claimed.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2025perspective",)
__getattr__ = from_files(__name__)
