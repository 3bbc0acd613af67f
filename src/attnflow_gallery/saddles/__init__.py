"""Every equilibrium but consensus is a strict saddle for beta > 0, so that almost every start reaches consensus.

Equilibria of attention are critical points of its energy, the same ones for softmax attention (SA) and for its
gradient-flow variant (USA0). If all of them but consensus have a growing direction, the starts that converge to one of
them form a null set. That is a theorem for d >= 3 (Markdahl et al. 2018, Criscitiello et al. 2024) and for the circle
(Polyanskiy et al. 2025). For few tokens the equilibria can be listed.

Shown: the equilibria of n = 3, ..., 6 equal tokens on the circle and on S^2 that Newton's method finds, up to
rotations, reflections and permutations, with their Morse indices (numbers of growing directions). The number of starts
of Newton's method is fixed beforehand. Topology then checks the list: labelled equilibria modulo rotations, counted
with the sign (-1)^index, must add up to an Euler characteristic, and Morse's inequalities must hold. These conditions
are necessary, not sufficient, for a complete list.

Iid starts show what "almost every" means. The slowest saddle is a pair of antipodal groups: its d - 1 growing
directions have the rate e^(-2 beta) (USA0). A start passes within r of the saddle with a probability of the order of
r^(d-1), so the share of starts that are still near a saddle at time t falls like e^(-(d-1) e^(-2 beta) t). The rate is
measured on the last 3 % of the starts. That share was chosen beforehand: the next term of the tail is smaller by a
factor of about share^(2/(d-1)), at most 3 % here, and 4.9 standard errors (level 1e-6) are larger.

Not shown: beta = 0, where equilibria come in families, and lists for larger n.

On the circle the lists are proved complete by another route, with certificates: `attnflow.certify.circle_equilibria`
(docs/proved.md).
"""

from attnflow.experiments import from_files

PAPERS = (
    "markdahl2018consensus",
    "criscitiello2024synchronization",
    "polyanskiy2025synchronization",
    "geshkovski2025perspective",
)
__getattr__ = from_files(__name__)
