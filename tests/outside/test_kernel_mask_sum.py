"""A kernel, a mask and a sum from outside the package, each in a file of its own."""

import itertools
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attnflow as af
from attnflow.errors import InvalidInput
from attnflow.kernels import Polynomial
from attnflow.runs import execute, load_spec, open_run, parse_spec, resume
from tests.cli.test_cli import attnflow
from tests.outside.kernel import Learned, Student
from tests.outside.mask import Forgetful
from tests.outside.sum import Squares

HERE = Path(__file__).parent
PLANE = af.uniform(af.Euclidean(2), n=40, seed=1)
SPEC = """
[tokens]
name = "uniform"
n = 12
space = { name = "euclidean", dim = 2 }
[field]
name = "attention"
kernel = { name = "student", beta = 3.0, power = [1.0, 2.0] }
mask = { name = "forgetful", power = 0.5 }
value = [[-0.2, 1.0], [-1.0, -0.2]]
[solve]
until = 2.0
chunk = 3
save = { name = "evenly", count = 8 }
"""


def plain(x, power=1.0, beta=3.0, forget=0.0):
    """Softmax attention with the kernel and the mask, in NumPy."""
    square = ((x[:, None] - x[None, :]) ** 2).sum(2)
    weights = (1 + beta * square) ** -power
    if forget:
        p = np.arange(len(x))
        weights = weights * np.tril(((1 + p[None, :]) / (1 + p[:, None])) ** forget)
    return weights @ x / weights.sum(axis=1, keepdims=True)


def test_the_kernel_and_the_mask_agree_with_numpy():
    x = PLANE.positions
    bare = af.Attention(kernel=Student(3.0, 2.0)).velocity(PLANE)
    np.testing.assert_allclose(bare, plain(x, 2.0), atol=1e-14)
    masked = af.Attention(kernel=Student(3.0), mask=Forgetful(0.7)).velocity(PLANE)
    np.testing.assert_allclose(masked, plain(x, forget=0.7), atol=1e-14)


@pytest.mark.long
def test_a_run_from_toml_with_the_plugins_is_resumed_bit_by_bit(tmp_path):
    plugins = [HERE / "kernel.py", HERE / "mask.py"]
    file = tmp_path / "mine.toml"
    file.write_text(SPEC)
    spec = load_spec(file, plugins=plugins)
    run, whole = execute(spec, tmp_path / "whole")
    assert whole.dims == ("power",)
    last = af.Attention(kernel=Student(3.0, 2.0), mask=Forgetful(0.5), value=np.array([[-0.2, 1.0], [-1.0, -0.2]]))
    alone = af.solve(last, af.uniform(af.Euclidean(2), n=12), 2.0, save=8)
    np.testing.assert_allclose(whole.positions.isel(power=1, time=-1), alone.positions.isel(time=-1), atol=1e-6)
    calls = itertools.count()
    cut, part = execute(spec, tmp_path / "cut", cancel=lambda: next(calls) > 3)
    assert part.outcome.ending.value == "interrupted"
    _, resumed = resume(cut.path, plugins=plugins)
    np.testing.assert_array_equal(resumed.positions, whole.positions)
    assert open_run(run.path, plugins=plugins).dims == ("power",)


@pytest.mark.long
def test_the_mask_gets_the_prefix_sums():
    """Softmax under a causal mask that is not the package's, by moments of prefixes: O(n) steps, the same numbers."""
    for d in (2, 3):
        tokens = af.uniform(af.Sphere(d), n=3000, seed=0)
        field = af.Attention(9.0, mask=Forgetful(0.4))
        made = field.prepare(tokens, tol=1e-8, flowing=True)
        assert isinstance(made.sum, af.sums.Circle if d == 2 else af.sums.Harmonics)
        some = np.arange(0, 3000, 75)
        exact = field.velocity(tokens, at=tokens.positions[some], place=tokens.place[some])
        assert np.abs(made.velocity(tokens)[some] - exact).max() < 1e-8
    strict = af.Attention(9.0, mask=Forgetful(0.4, strict=True))
    assert isinstance(strict.prepare(tokens, tol=1e-8).sum, af.sums.Tiled | af.sums.Dense)
    with pytest.raises(InvalidInput, match="does not support the strict mask Forgetful"):
        af.Attention(9.0, mask=Forgetful(strict=True), sum=af.sums.Harmonics(1e-8, 64, 3)).velocity(tokens)


@pytest.mark.slow
@pytest.mark.usefixtures("choices_of_a_cpu")
@pytest.mark.parametrize("space", [af.Sphere(3), af.Euclidean(3)], ids=str)
def test_the_sum_is_chosen_where_it_is_cheapest_and_agrees_with_tiles(space):
    tokens = af.uniform(space, n=2000, seed=0)
    field = af.Attention(kernel=Polynomial(2, 0.5), normaliser=af.Unnormalised())
    with af.sums.consider(Squares):
        choice = field.choice(tokens)
        assert isinstance(field.prepare(tokens).sum, Squares)
        assert "Squares    out: the sum Squares is for" in af.Attention(2.0).choice(tokens).explain()
    assert isinstance(choice.sum, Squares)
    assert "-> Squares" in choice.explain()
    fast, exact = (
        af.Attention(kernel=field.kernel, normaliser=field.normaliser, sum=one).velocity(tokens)
        for one in (choice.sum, af.sums.Tiled())
    )
    np.testing.assert_allclose(fast, exact, atol=1e-12 * np.abs(exact).max())
    with pytest.raises(InvalidInput, match="Squares is for Polynomial"):
        af.Attention(2.0, sum=Squares()).velocity(tokens)


QUADRATIC = """
[tokens]
name = "uniform"
n = 2000
space = { name = "sphere", dim = 3 }
[field]
name = "attention"
kernel = { name = "polynomial", degree = 2, offset = 0.5 }
normaliser = { name = "unnormalised" }
[solve]
until = 1.0
"""


@pytest.mark.usefixtures("choices_of_a_cpu")
def test_the_sum_of_a_plugin_is_considered_where_the_plugin_is_active_and_nowhere_else():
    def chosen(spec):
        return type(spec.work.field.prepare(spec.work.tokens).sum)

    before = parse_spec(QUADRATIC)
    found = chosen(before)
    mine = parse_spec(QUADRATIC, plugins=[HERE / "sum.py"])
    with mine.plugins.active():
        assert chosen(mine).__name__ == "Squares"
        with before.plugins.active():
            assert chosen(before) is found
    after = parse_spec(QUADRATIC)
    assert chosen(after) is found
    assert before.hash == after.hash != mine.hash
    names = [offer.name for offer in af.Attention(2.0).choice(PLANE).options]
    assert "Squares" not in names


def test_what_is_no_sum_is_not_considered(tmp_path):
    with pytest.raises(InvalidInput, match="give classes of sums"), af.sums.consider(Squares()):
        pass
    file = tmp_path / "wrong.py"
    file.write_text('import attnflow as af\naf.register("sum", "squares")(lambda: None)\n')
    with pytest.raises(InvalidInput, match="the sum 'squares' is .* give a class of sums"):
        parse_spec(QUADRATIC, plugins=[file])


@pytest.mark.slow
def test_a_learned_kernel_is_trained_through_the_flow():
    """Gradient descent on the network of a kernel, through `advance`: the loss goes down."""
    tokens = af.uniform(af.Sphere(3), n=10, seed=3)
    target = af.advance(af.Attention(4.0), tokens, 0.0, 0.5, af.Fixed(0.25)).positions
    network = af.in_float64(
        lambda: eqx.nn.MLP("scalar", "scalar", 4, 1, jnp.tanh, key=jax.random.key(0), dtype=float)
    )()
    kernel = Learned(network)

    @af.in_float64
    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def loss(kernel):
        end = af.advance(af.Attention(kernel=kernel), tokens, 0.0, 0.5, af.Fixed(0.25)).positions
        return jnp.sum((end - target) ** 2)

    losses = []
    for _ in range(3):
        value, slope = loss(kernel)
        losses.append(float(value))
        kernel = eqx.apply_updates(kernel, jax.tree.map(lambda g: -0.5 * g, slope))
    assert losses[2] < losses[1] < losses[0]


@pytest.mark.long
def test_the_command_line_knows_the_plugins(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(SPEC)
    lacking = attnflow("run", "mine.toml", "--out", "run", cwd=tmp_path)
    assert lacking.returncode != 0
    assert "if it comes from a plugin, give --plugin FILE" in " ".join(lacking.stderr.split())
    plugins = (word for name in ("kernel", "mask") for word in ("--plugin", str(HERE / f"{name}.py")))
    attnflow("run", "mine.toml", "--out", "run", *plugins, cwd=tmp_path, check=0)
    assert (tmp_path / "run" / "figures").exists()
