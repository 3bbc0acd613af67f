"""Ways to break the simulation."""

MUTATIONS = ()
