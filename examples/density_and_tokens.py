r"""A density on the circle beside 100,000 tokens: curve over histogram, energies, and the distance W_1.

With many tokens only their density $\rho$ matters. It solves the continuity equation
$\partial_t\rho+\mathrm{div}(\rho X[\rho])=0$, which `evolve` integrates by harmonics; `solve` follows the tokens
themselves.
"""

import os

import attnflow as af
from attnflow import meanfield as mf

n, until = (500, 2.0) if os.environ.get("ATTNFLOW_SMALL") else (100_000, 6.0)
field = af.Attention(4.0)
start = mf.perturbed(mf.CircleBasis(64), degree=1, amplitude=0.5)

# %% [markdown]
# The same field for both: for a density with 64 harmonics, and for tokens that are sampled from its start.

# %%
density = mf.evolve(field, start, until, save=24)
tokens = mf.sample(start, n, seed=0)
flow = af.solve(field, tokens, until, save=24)
print(density, flow, sep="\n")
print("W_1 at the end:", af.transport.distance(flow[-1], density.density(-1)))

# %% [markdown]
# The distance $W_1$ falls like $n^{-1/2}$. To see a million tokens on the sphere run `attnflow run million`.

# %%
af.plot([density, flow]).savefig("density_and_tokens.png")
