"""What users see of the types: a type checker knows every public name, and finds mistakes in a script."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import attnflow

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
TEN_LINES = re.search(r"## Ten lines\n\n```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.S).group(1)
GOOD = (
    TEN_LINES
    + """
import math

import jax.numpy as jnp
import numpy as np

reveal_type(af.solve(field, tokens, until=40.0))
reveal_type(af.advance(field, tokens, 0.0, 1.0, af.Fixed(0.1)))
reveal_type(af.uniform(af.Sphere(3), n=8, seed=range(4)))
reveal_type(af.theory)
betas = np.array([1.0, 4.0])
sizes = af.Along("beta", [0.1, 0.2], labels=betas)
many = af.Attention(af.Along("beta", betas), encoding=af.encodings.Sinusoidal(sizes), mask=af.Causal(0.1))
for step in (1, 0.1, np.float32(0.1), np.asarray(0.1), jnp.asarray(0.1)):
    af.advance(many, tokens, 0.0, 1.0, af.Layers(step, af.layer_updates.ProjectRenormalise()))
af.solve(af.norms.Ngpt(many, 0.5), tokens, 1.0, method=af.Heun(0.01), noise=af.Brownian(0.1, seed=af.Along("seed", range(8))))
af.solve(many + af.Perceptron(np.eye(3)), tokens, 2.0, method=af.Alternate(0.1), save=af.saving.LogSpaced(10, first=0.5))
af.solve(af.Rescaled(many), tokens, 2, method=af.Adaptive(1e-8, 1e-10), stop=af.stopping.Consensus(1e-3), save=[1.0, 2.0])
af.solve_long(field, tokens, method=af.LongTime(1e-8, angle=0.01)).tree.merges
af.Attention(2, value=af.weights.Random((3, 3), seed=1, step=0.5, scale=0.1), normaliser=af.Sinkhorn(1e-8))
af.Attention(kernel=af.kernels.Polynomial(3, 0.5), normaliser=af.Unnormalised()), af.kernels.Gaussian(sizes)
af.solve(2 * field - many / 2, af.uniform(af.Product(af.Torus(2), af.Euclidean(1)), n=8), 1.0, method=af.Fixed(0.1))
af.weights.PerLayer(np.ones((2, 3, 3)), 0.5), af.Window(3, af.Along("slope", [0.1, 0.2])), af.norms.Mix(field, 0.5)
"""
)
BAD = """
import attnflow as af

tokens = af.uniform(af.Sphere(3), n=8)
field = af.Attention(beta=2.0)
af.Fixed("a")
af.solve(tokens, field, 1.0)
af.solve(field, tokens, 1.0, kep=())
af.Attention("2")
af.Attention(kernel="gaussian")
af.Attention(beta=2.0, mask="causal")
af.Attention(beta=2.0, mask=af.Causal)
af.Brownian(0.1, seeds=3)
af.Layers(0.1, "renormalise")
af.LongTime("1e-6")
af.uniform("sphere", n=8)
af.Attentoin(2.0)
af.theory.uniform.growth_rate(9.0, 3)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("types")


def checked(folder, *arguments):
    """What mypy says, run outside of the repository: attnflow is an installed package."""
    command = [sys.executable, "-m", "mypy", "--strict", "--no-pretty", "--cache-dir", folder / "cache", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder).stdout.splitlines()


@pytest.fixture(scope="module")
def findings(folder):
    """All lines about the two scripts."""
    (folder / "good.py").write_text(GOOD)
    (folder / "bad.py").write_text(BAD)
    return checked(folder, "good.py", "bad.py")


def test_a_script_has_no_errors_and_its_types_are_known(findings):
    mine = [line for line in findings if line.startswith("good.py")]
    assert [line for line in mine if "error" in line] == []
    known = [re.search(r'Revealed type is "([\w.]+)', line) for line in mine]
    assert [found.group(1).split(".")[-1] for found in known if found] == [
        "Trajectory",
        "Tokens",
        "Tokens",
        "ModuleType",
    ]


def test_every_mistake_in_a_script_is_found(findings):
    wrong = {int(line.split(":")[1]) for line in findings if line.startswith("bad.py") and "error" in line}
    calls = range(BAD.splitlines().index('af.Fixed("a")') + 1, len(BAD.splitlines()) + 1)
    assert sorted(wrong) == list(calls)


def test_the_stub_hides_no_errors_of_the_front_door(folder):
    """Beside a stub the module itself is not looked at, unless it is named."""
    said = checked(folder, "--config-file", ROOT / "pyproject.toml", attnflow.__file__)
    assert said[-1].startswith("Success"), said
