"""The distribution of the first merge of 8 random tokens on the sphere S^2, simulated and in theory.

At low temperature nothing happens until the two nearest tokens meet. How near the nearest two of eight random tokens
are has a known distribution, and how long two tokens need is a closed form: together they predict how long the first
plateau lasts.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import attnflow as af

n, betas, seeds = (8, [30, 100], 20) if os.environ.get("ATTNFLOW_SMALL") else (8, [30, 100, 300], 400)

# %% [markdown]
# Up to ${10}^{12}$ in time, 400 systems at each $\beta$.

# %%
tokens = af.uniform(af.Sphere(3), n=n, seed=range(seeds))
merges = af.merge_times(af.Attention(af.Along("beta", betas)), tokens, until=1e12)

# %% [markdown]
# The share of systems before their first merge, with intervals of 95 %, and the prediction as a dashed line. It
# treats the nearest two as if they were alone, so it is right for large $\beta$ and a little off for small.

# %%
for colour, beta in enumerate(betas):
    survival = merges.survival(left=n - 1, beta=beta)
    at = np.linspace(1, np.log(1e12), 400)
    share, low, high = survival(at)
    plt.step(at, share, where="post", color=f"C{colour}", label=rf"$\beta = {beta}$, {seeds} seeds")
    plt.fill_between(at, low, high, step="post", color=f"C{colour}", alpha=0.2, lw=0)
    plt.plot(at, 1 - af.theory.merging.first_merge_probability(at, beta, 3, n=n), "k--", lw=0.9)
plt.plot([], [], "k--", lw=0.9, label="theory: the nearest two, as if alone")
plt.gca().set(xlabel=r"$\log t$", ylabel="share of systems before the first merge", title=rf"{n} tokens on $S^2$")
plt.legend()
plt.savefig("first_merge.png", dpi=200)
