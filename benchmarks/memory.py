"""Peak memory of streaming 10,000 saved frames of 10,000 tokens to disk (2.4 GB of positions), and of one large field.

    python benchmarks/memory.py [--frames 10000] [--tokens 10000]

Frames do not depend on what moves the tokens, so the run uses a field that costs O(n): all are drawn to the mean.
Targets: under 2 GiB for the run, under 1 GiB for a field of 1,000 queries against 100,000 tokens. Each is measured in
a process of its own.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

FIELD = """
import attnflow as af
from attnflow.runs.lifecycle import peak_memory
mu = af.uniform(af.Sphere(3), n=100_000)
af.Attention(9.0).velocity(mu, at=mu.positions[:1000])
print(f"field of 1,000 queries against 100,000 tokens: {peak_memory() / 2**20:.0f} MiB")
"""

RUN = """
import sys, time
import jax.numpy as jnp
import attnflow as af
from attnflow.runs import ZarrSink
from attnflow.runs.lifecycle import peak_memory

class ToTheMean(af.AbstractField):
    def formula(self, t, query, mu):
        return jnp.broadcast_to(jnp.mean(mu.positions, axis=0, keepdims=True), query.points(mu).shape)

    def children(self, space):
        return ()

    def check_parameters(self, tokens):
        pass

    @property
    def laws(self):
        return af.fields.Laws(True, True, True, True)

frames, n, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
began = time.perf_counter()
flow = af.solve(
    ToTheMean(), af.uniform(af.Sphere(3), n=n), 1.0, method=af.Layers(1.0 / frames), save=af.saving.EveryLayer(),
    sink=ZarrSink(folder),
)
assert flow.positions.shape == (frames + 1, n, 3), flow.positions.shape
print(f"{frames} frames of {n} tokens: {peak_memory() / 2**20:.0f} MiB, {time.perf_counter() - began:.0f} s")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=10_000)
    parser.add_argument("--tokens", type=int, default=10_000)
    options = parser.parse_args()
    subprocess.run([sys.executable, "-c", FIELD], check=True)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        subprocess.run([sys.executable, "-c", RUN, str(options.frames), str(options.tokens), folder], check=True)


if __name__ == "__main__":
    main()
