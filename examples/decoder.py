"""A decoder with ALiBi and rotary encoding: who leads which cluster.

Under a causal mask the first token rests, and early tokens gather later ones around them. `Causal(slope=...)` is
ALiBi: what is far back counts less.
"""

import os

import attnflow as af

n = 24 if os.environ.get("ATTNFLOW_SMALL") else 200
prompt = af.uniform(af.Sphere(4), n=n, seed=0)
field = af.Attention(16.0, mask=af.Causal(slope=0.02), encoding=af.encodings.Rotary())
flow = af.solve(field, prompt, until=40.0)

# %% [markdown]
# A leader is the first token of its cluster: it sees no other token of it.

# %%
clusters = af.observe.clusters(flow[-1], scale=0.25)
print(clusters)
for leader, members in zip(clusters.leaders, clusters.members, strict=True):  # a leader sees no other of its cluster
    if len(members) > 1:
        print(f"token {leader} leads {len(members) - 1} others, the first of them", *members[1:6])
flow.plot(figsize=(8, 5)).savefig("decoder.png")
