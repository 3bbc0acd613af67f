"""A sweep: the number of clusters against beta and n, with standard errors over seeds.

A sweep does one function, or one specification, at all points of named axes and keeps every result. The same call
again does what is missing; more values extend it.
"""

import os

import attnflow as af

small = os.environ.get("ATTNFLOW_SMALL")
betas, sizes, seeds = ([1, 9], [8], 2) if small else ([1, 2, 4, 8, 16, 32, 64], [16, 64], 8)


def clusters(beta: float, n: int, seed: int) -> dict[str, float]:
    """Clusters at t = 30 of n iid tokens on the sphere."""
    flow = af.solve(af.Attention(beta), af.uniform(af.Sphere(3), n=n, seed=seed), 30.0, save=1, keep=["positions"])
    return {"clusters": float(af.observe.clusters(flow[-1], scale=0.1).count)}


# %% [markdown]
# The folder `own_sweep` is the sweep. Start the same script on other machines that see the folder and they share the
# work; on a cluster `attnflow sweep ... --on slurm` starts workers through Dask ([Sweeps](../sweeps.md)).

# %%
sweep = af.sweep(clusters, {"beta": betas, "n": sizes, "seed": range(seeds)}, "own_sweep")
print(sweep.mean(over="seed"))
sweep.plot("clusters", over="seed").savefig("own_sweep.png")
