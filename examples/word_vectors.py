"""Which of my words end together: vectors from a file, their labels through clusters, merge tree and figures.

Each line of the file is a word and its vector. Here a file is made up: fifty words of five topics, with more noise
than topic.
"""

import os

import numpy as np

import attnflow as af

n, dim = (10, 6) if os.environ.get("ATTNFLOW_SMALL") else (50, 100)
rng = np.random.default_rng(0)  # in place of your own file, one line a word: "king 0.12 -0.03 ..."
topics = rng.standard_normal((5, dim))
rows = topics[np.arange(n) % 5] + 1.5 * rng.standard_normal((n, dim))
with open("words.txt", "w", encoding="utf-8") as file:
    file.writelines(f"{'ABCDE'[k % 5]}{k // 5} {' '.join(map(str, row))}\n" for k, row in enumerate(rows))

# %% [markdown]
# `from_file` keeps the words as labels. Everything that follows names tokens by them: clusters, the merge tree, the
# legend.

# %%
words = af.from_file("words.txt", normalise=True)
flow = af.solve(af.Attention(9.0), words, until=50.0)
found = af.observe.clusters(flow[-1], scale=flow.scale())
for mass, members in zip(found.masses, found.members, strict=True):
    print(f"{mass:.2f}", *members)

# %% [markdown]
# The flow to $t=50$ in one figure, and the tree of merges up to consensus, with words at its leaves.

# %%
flow.plot().savefig("word_vectors.png")
af.plots.draw_tree(af.solve_long(af.Attention(9.0), words)).savefig("word_tree.png")
