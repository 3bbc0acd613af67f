"""A beta that grows with depth selects the number of clusters and can freeze them; a V with a skew part laps them.

Under beta = r t from a near-uniform start on the circle mode k has grown by e^(F_k(beta)/r), F_k the integral of its
rate. The winner depends on r log(A/eps) alone: slow ramps give one cluster whatever the last beta is. Two clusters
under beta_0 + r t never merge if r exceeds a critical rate: attention gets sharp faster than they close. V = I + omega
J, J the rotation by 90 degrees, is not a rotating frame: unnormalised clusters turn at speeds proportional to their
masses, so that unequal ones lap each other and no plateau lasts; under softmax the drift is exponentially small too.

Shown: winners of seeded modes; two clusters just below and just above the critical rate; times to merge under
V = I + omega J, both models. Not shown: numbers of clusters under ramps from iid tokens, logarithmic annealing, gains
that change with depth (these are other Q, K, V on a fixed sphere).
"""

from attnflow.experiments import from_files

PAPERS = ("bruno2024emergence", "geshkovski2024metastability")
__getattr__ = from_files(__name__)
