r"""Time to consensus against beta: medians with intervals of 95 %; systems that are still apart count as censored.

Tokens that start iid and uniform on the sphere end in one point, and the time they need grows exponentially with
$\beta$. Runs must end somewhere, so the slowest systems are only known to need longer than the simulation.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import attnflow as af

small = os.environ.get("ATTNFLOW_SMALL")
n, betas, seeds, until = (8, [1, 4, 6], 8, 1e3) if small else (64, [1, 2, 3, 4, 5, 6, 8, 10], 20, 1e6)

# %% [markdown]
# One call follows all seeds at all $\beta$. `merge_times` records when clusters merge and leaps over plateaus, so
# that an end at $t={10}^6$ costs little more than one at $t={10}^3$.

# %%
tokens = af.uniform(af.Sphere(3), n=n, seed=range(seeds))
merges = af.merge_times(af.Attention(af.Along("beta", betas)), tokens, until)

# %% [markdown]
# `survival` is the Kaplan-Meier estimate of the share of systems that are not in consensus yet. Its quantiles have
# intervals that know what censoring hides: an upper end may be infinite.

# %%
end = np.log(until)
median, low, high = np.array([merges.survival(beta=beta).quantile(0.5) for beta in betas]).T
middle, top = np.minimum(median, end), np.minimum(high, end)  # what is not known is later than the end
x, is_open = np.array(betas), np.isinf(high)
plt.errorbar(x, middle, (middle - np.minimum(low, end), top - middle), fmt="none", color="C0", capsize=3)
plt.plot(x[median < end], median[median < end], "o", color="C0", label=f"median of {seeds} seeds, interval of 95 %")
plt.plot(x[is_open], top[is_open], "^", color="C0", mfc="w", label="open above: seeds were still apart (censored)")
plt.axhline(end, color="0.6", ls=":", label="end of the simulation")
plt.gca().set(xlabel=r"$\beta$", ylabel=r"$\log t$ of consensus", title=rf"{n} tokens on $S^2$", ylim=(0, end + 1))
plt.legend()
plt.savefig("consensus_time.png", dpi=200)
