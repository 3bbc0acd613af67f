"""A million tokens that are observed and not kept need the memory of a few frames."""

import subprocess
import sys

import pytest

CODE = """
import sys
import jax.numpy as jnp
import attnflow as af
from attnflow.runs.lifecycle import peak_memory

n, frames = 1_000_000, int(sys.argv[1])
tokens = af.uniform(af.Sphere(2), n=n, seed=0)
watch = {
    "order": lambda t, mu: jnp.linalg.norm(mu.masses @ mu.positions),
    "second": lambda t, mu: (mu.masses[:, None] * mu.positions).T @ mu.positions,
    "rank": lambda t, mu: af.observe.effective_rank(mu),
}
flow = af.solve(
    af.Attention(4.0), tokens, frames * 0.05, save=frames, method=af.Layers(0.05), observe=watch, keep=(), tol=1e-8
)
assert flow.dataset["second"].shape == (frames + 1, 2, 2)
assert "positions" not in flow.dataset
print(peak_memory())
"""


def peak(frames):
    done = subprocess.run([sys.executable, "-c", CODE, str(frames)], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1])


@pytest.mark.long
@pytest.mark.optimised
def test_memory_does_not_grow_with_the_number_of_frames():
    frame = 1_000_000 * 2 * 8
    few, many = peak(6), peak(22)
    # 16 kept frames would take 16 more; peaks of 16, 40 and 80 frames were 69, 66 and 70
    assert many - few < 8 * frame, (few / frame, many / frame)
