"""One schedule that steers three measures to targets of their own: the plan, its gates and how close it comes.

Each input is a cloud of tokens, each target a few atoms. One list of layers, the same for all inputs, carries each
cloud to its own target: attention tells the inputs apart, perceptrons move them.
"""

import os

import numpy as np

import attnflow as af

rng = np.random.default_rng(0)
n = 12 if os.environ.get("ATTNFLOW_SMALL") else 120
centres = rng.standard_normal((3, 3))
inputs = [af.from_array(centre + 0.8 * rng.standard_normal((n, 3)), normalise=True) for centre in centres]
targets = [af.from_array(rng.standard_normal((atoms, 3)), normalise=True) for atoms in (2, 3, 1)]

# %% [markdown]
# The plan is built, not trained. It says how many layers each of its phases has and what they cost.

# %%
plan = af.control.match_measures(inputs, targets)
print(plan)
print("W_2 before", plan.before, "after", plan.w2)
plan.plot().savefig("steer_measures.png")
