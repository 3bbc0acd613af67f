"""The law of the first merge of 8 random tokens on the sphere S^2, simulated and in theory."""

import os

import matplotlib.pyplot as plt
import numpy as np

import attnflow as af

n, betas, seeds = (8, [30, 100], 20) if os.environ.get("ATTNFLOW_SMALL") else (8, [30, 100, 300], 400)
tokens = af.uniform(af.Sphere(3), n=n, seed=range(seeds))
merges = af.merge_times(af.Attention(af.Along("beta", betas)), tokens, until=1e12)
for colour, beta in enumerate(betas):
    law = merges.survival(left=n - 1, beta=beta)
    at = np.linspace(1, np.log(1e12), 400)
    share, low, high = law(at)
    plt.step(at, share, where="post", color=f"C{colour}", label=rf"$\beta = {beta}$, {seeds} seeds")
    plt.fill_between(at, low, high, step="post", color=f"C{colour}", alpha=0.2, lw=0)
    plt.plot(at, 1 - af.theory.merging.first_merge_probability(at, beta, 3, n=n), "k--", lw=0.9)
plt.plot([], [], "k--", lw=0.9, label="theory: the nearest two, as if alone")
plt.gca().set(xlabel=r"$\log t$", ylabel="share of systems before the first merge", title=rf"{n} tokens on $S^2$")
plt.legend()
plt.savefig("first_merge.png", dpi=200)
