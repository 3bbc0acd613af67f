r"""What the last token of a causal prompt keeps of the others: measured, and the matrix exponential of theory.

With an ALiBi slope a decoder remembers the beginning and the end of a prompt and forgets a middle. The correlation of
the last token at time $t$ with token $j$ at the start is $[\exp(atW)]_{Nj}$ to first order in $\tfrac1N$, with the
weights $W$ of the mask and a rate $a$.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import attnflow as af

n, prompts, until, beta = (16, 400, 0.5, 1.0) if os.environ.get("ATTNFLOW_SMALL") else (64, 8_000, 1.0, 1.0)
slope = 1 / n
field = af.Attention(beta, normaliser=af.Unnormalised("grad"), mask=af.Causal(slope=slope, strict=True))
found = af.decoders.retrieval_profile(field, n=n, until=until, prompts=prompts, bins=8)

# %% [markdown]
# Theory needs the rate of degree 1 and the slope alone. `find_middle` says where the last token remembers least.

# %%
depth = float(af.theory.causal.rates(1, beta, 2, model="grad")) * until
expected = af.theory.causal.last_row_correlations(depth, n, slope * n)
middle = af.theory.causal.find_middle(depth, slope * n)
print(f"least is kept of the place {middle.place:.3f} of the prompt")
label = f"{prompts} prompts, 2 standard errors"
plt.errorbar(found.place, found.mean, 2 * found.standard_error, fmt="o", capsize=3, label=label)
plt.plot((np.arange(n - 1) + 0.5) / n, n * expected[:-1], "k--", lw=1, label="theory")
plt.axvline(middle.place, color="0.7", lw=1, label="the middle")
plt.gca().set(xlabel="place in the prompt", ylabel=r"$N\,E\langle x_N(t), x_j(0)\rangle$")
plt.legend()
plt.savefig("prompt_middle.png", dpi=150)
