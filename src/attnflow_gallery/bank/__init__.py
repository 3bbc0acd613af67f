"""An ambiguous word joins the topic that a closed form says; clusters that move shift the border.

A word at the angle phi from topic 1 towards topic 2, which is at a right angle, with masses M_1 and M_2 of the topics,
drifts to topic 1 iff M_1/M_2 > cot(phi) e^(beta (sin phi - cos phi)). The formula is exact for a word without mass
between clusters that stand still. In a flow clusters approach each other at speeds of order e^(-beta), and the border
moves.

Shown: the root of the drift in the ratio of the masses, to rounding; the border in flows, by bisection over the ratio,
whose distance from the formula is that of first-order perturbation theory, up to the second order; at a low beta, where
clusters move as fast as the word, the border is far from the formula. Not shown: words with mass; topics made from
texts, whose clusters are wide; more than two topics.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2025perspective",)
__getattr__ = from_files(__name__)
