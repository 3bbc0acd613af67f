"""One ReLU unit at a time: random choice has order 1/2, and better orders of the units have 1, 3/2 and 2.

A wide field sum_j w_j (<a_j, x> + b_j)_+ is replaced by K units that act one after the other. Independent draws with
probabilities p_j ~ |w_j||a_j| (Maurey) have an error K^(-1/2) in the map, for any number of units and any dimension. A
summary of arXiv:2602.08606 has a theorem with 1/eps^2 switches by this argument; the abstract does not say so, and the
text could not be read. If K exceeds the number n of units, taking all units in turn has order 1 (Lie and Trotter), in a
fresh random order each time 3/2, and there and back order 2 (Strang).

Shown: the four orders of the map at d = 2, 10 and 50 with sum |w_j||a_j| = 4, that the error of Maurey's draws does not
grow with d, and that the log-density is not better than order 1 for any of them: the log-determinant of every element
is a step function of x, and steps are misplaced by the error of the map.

Not shown: that maps of interest have such a representation with a small sum (in the same summary).
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2026constructive",)
__getattr__ = from_files(__name__)
