"""One sentence for every argument of the wrong kind, before any work."""

import diffrax
import jaxtyping
import numpy as np
import pytest

import attnflow as af
from attnflow.checks import ABOVE_ZERO, flag, generator, instance, number, reals, shown, whole
from attnflow.errors import InvalidInput
from attnflow.fields import Affine, Perceptron, Pieces, Relu
from attnflow.flows import Rk4
from attnflow.flows.saving import as_times
from attnflow.masks import AbstractMask

SPHERE = af.Sphere(3)


def message(call):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (af.Causal, "`mask` is the class Causal; write Causal()."),
        (af.Window, "`mask` is the class Window; give a mask such as Causal()."),
        (AbstractMask, "`mask` is the class AbstractMask; give a mask such as Causal()."),
        (af.Softmax, "`mask` is the class Softmax; give a mask such as Causal()."),
        ("causal", "`mask` is 'causal'; give a mask such as Causal()."),
        (None, "`mask` is None; give a mask such as Causal()."),
        (af.Softmax(), "`mask` is Softmax(); give a mask such as Causal()."),
    ],
)
def test_instance(value, words):
    assert message(lambda: instance("mask", value, AbstractMask, "a mask such as Causal()")) == words


def test_what_fits_comes_back():
    mask = af.Causal()
    assert instance("mask", mask, AbstractMask, "a mask") is mask
    assert instance("mask", None, AbstractMask | None, "a mask") is None
    assert whole("n", np.int32(3), 1) == 3
    assert type(whole("n", np.int32(3), 1)) is int
    assert flag("on", np.True_) is True
    assert number("x", np.float32(0.5)) == 0.5


@pytest.mark.parametrize("value", [0, -1, True, 2.0, "3", None, np.True_])
def test_whole(value):
    assert message(lambda: whole("n", value, 1)) == f"`n` is {value!r}; give a positive integer."


def test_bounds_of_whole_numbers():
    assert message(lambda: whole("n", 1, 2)) == "`n` is 1; give an integer of at least 2."


def test_values_are_shown_on_one_short_line():
    assert shown(np.eye(3)) == "array([[1., 0., 0.], [0., 1., 0.], [0., 0., 1.]])"
    assert shown(list(range(100))).endswith("...")
    assert len(shown("x" * 1000)) == 60
    assert "bits" in shown(10**5000)


def test_reals_do_not_alias():
    """A parameter does not change when the array that it was made from does."""
    given = np.ones(3)
    made = reals(given)
    given[0] = 7
    assert made[0] == 1


CONSTRUCTORS = [
    ("strict", lambda: af.Causal(0.1, 3)),
    ("slope", lambda: af.Causal("0.1")),
    ("causal", lambda: af.Window(3, 0.1, "no")),
    ("width", lambda: af.Window("2.5")),
    ("values", lambda: af.masks.Table([[0.0], [0.0, 1.0]])),
    ("base", lambda: af.encodings.Rotary("1e4")),
    ("size", lambda: af.encodings.Sinusoidal(True)),
    ("tol", lambda: af.Hardmax(True)),
    ("iterations", lambda: af.Sinkhorn(iterations=10.0)),
    ("values", lambda: af.weights.PerLayer([[1.0], [1.0, 2.0]])),
    ("step", lambda: af.weights.Interpolated(np.ones((2, 3, 3)), "0.1")),
    ("function", lambda: af.weights.Function(3)),
    ("shape", lambda: af.weights.Random(3)),
    ("shape", lambda: af.weights.Random((2.5, 3))),
    ("seed", lambda: af.weights.Random((3, 3), seed="0")),
    ("role", lambda: af.weights.Random((3, 3), role=3)),
    ("value", lambda: af.Attention(1.0, value=af.weights.Random)),
    ("activation", lambda: Perceptron(np.eye(3), activation=Relu)),
    ("activation", lambda: Perceptron(np.eye(3), activation="sigmoid")),
    ("common", lambda: af.Brownian(0.1, 3)),
    ("kappa", lambda: af.Brownian("0.1")),
    ("seed", lambda: af.Brownian(0.1, seed=True)),
    ("step", lambda: af.Fixed("0.1")),
    ("step", lambda: af.Heun(True)),
    ("update", lambda: af.Layers(0.1, "renormalise")),
    ("update", lambda: af.Layers(0.1, af.layer_updates.Project)),
    ("update", lambda: af.Alternate(0.1, update=af.layer_updates.Project)),
    ("symmetric", lambda: af.Alternate(0.1, "yes")),
    ("max_steps", lambda: af.Adaptive(max_steps=1e6)),
    ("solver", lambda: af.Adaptive(solver="tsit5")),
    ("solver", lambda: af.Adaptive(solver=diffrax.Tsit5)),
    ("rule", lambda: af.Fixed(0.1, "rk4")),
    ("rule", lambda: af.Fixed(0.1, Rk4)),
    ("times", lambda: Pieces([0.0, "a"], [1.0, 2.0])),
    ("matrix", lambda: Affine(Pieces)),
    ("count", lambda: af.saving.Evenly(True)),
    ("first", lambda: af.saving.LogSpaced(10, "0.1")),
    ("every", lambda: af.saving.EveryLayer(0)),
    ("times", lambda: af.saving.At(["a"])),
    ("times", lambda: af.saving.At(3.0)),
    ("save", lambda: as_times(af.saving.Evenly)),
    ("save", lambda: as_times("evenly")),
    ("spread", lambda: af.stopping.Consensus("1e-3")),
    ("speed", lambda: af.stopping.Still(True)),
    ("condition", lambda: af.stopping.When("frame.speed < 1")),
    ("description", lambda: af.stopping.When(lambda frame: frame.speed < 1, 3)),
    ("tol", lambda: af.LongTime("1e-6")),
    ("angle", lambda: af.LongTime(1e-6, "0.1")),
    ("frames", lambda: af.LongTime(frames=100.0)),
    ("sensitive", lambda: af.LongTime(sensitive="no")),
    ("space", lambda: af.Tokens(np.eye(3), space="sphere")),
    ("space", lambda: af.uniform(af.Sphere, n=3)),
    ("space", lambda: af.tokens.ring("sphere", n=3)),
    ("n", lambda: af.uniform(SPHERE, n=3.0)),
    ("seed", lambda: af.uniform(SPHERE, n=3, seed="3")),
    ("jitter", lambda: af.tokens.ring(SPHERE, n=3, jitter="0.1")),
    ("concentration", lambda: af.tokens.von_mises_fisher(SPHERE, n=3, concentration=True)),
    ("overlap", lambda: af.tokens.equiangular(SPHERE, n=3, overlap="0.1")),
    ("spread", lambda: af.tokens.clustered(SPHERE, centres=np.eye(3), n=3, spread="0.1")),
    ("centres", lambda: af.tokens.clustered(SPHERE, centres=[[1.0, 0, 0], [1.0]], n=3)),
    ("masses", lambda: af.tokens.clustered(SPHERE, centres=np.eye(3), n=3, masses=["1", "2", "3"])),
    ("radius", lambda: af.tokens.caps(SPHERE, centres=np.eye(3), n=3, radius="1")),
    ("beta", lambda: af.Attention(np.ma.masked_equal(2.0, 2.0))),
    ("dim", lambda: af.encodings.sinusoids(np.arange(3), 2.5)),
    ("turned", lambda: af.encodings.Rotary(turned=2.5)),
    ("degree", lambda: af.kernels.Polynomial(2.5)),
    ("tol", lambda: af.sums.Circle(float("nan"), 16)),
    ("tol", lambda: af.sums.Circle(-1.0, 16)),
    ("tol", lambda: af.sums.Harmonics(np.inf, 16, 3)),
    ("tol", lambda: af.sums.Cutoff(0.0)),
    ("degree", lambda: af.sums.Circle(1e-6, 16.0)),
    ("degree", lambda: af.sums.Harmonics(1e-6, 0, 3)),
    ("degree", lambda: af.sums.FastSphere(1e-6, -3)),
    ("d", lambda: af.sums.Harmonics(1e-6, 8, 1)),
    ("d", lambda: af.sums.Harmonics(1e-6, 8, 2.5)),
    ("chunk", lambda: af.sums.Harmonics(1e-6, 8, 3, chunk=0)),
    ("chunk", lambda: af.sums.Circle(1e-6, 8, chunk=1.5)),
    ("guarded", lambda: af.sums.Circle(1e-6, 8, guarded="no")),
    ("threads", lambda: af.sums.Cutoff(1e-6, threads=0.5)),
    ("threads", lambda: af.sums.FastSphere(1e-6, 8, threads=0)),
    ("exact", lambda: af.sums.Cutoff(1e-6, exact="tiled")),
    ("queries", lambda: af.sums.Tiled(2.5)),
    ("keys", lambda: af.sums.Tiled(8, 0)),
    ("copies", lambda: af.sums.Tiled(copies=0)),
    ("interpret", lambda: af.sums.Fused(1)),
]


@pytest.mark.parametrize(("argument", "call"), CONSTRUCTORS)
def test_constructors_name_the_argument(argument, call):
    assert message(call).startswith(f"`{argument}`")


def test_annotations_are_checked_where_asked(pytestconfig):
    """With `make shapes` a wrong type is an error of its own, unless a test waits for the refusal, as above."""
    checked = pytestconfig.getoption("jaxtyping_packages")
    with pytest.raises(jaxtyping.TypeCheckError if checked else InvalidInput):
        af.Attention("2")


def test_a_number_above_zero_with_a_largest_value_and_an_integer_between_two_say_their_range():
    assert number("share", 1, low=ABOVE_ZERO, high=1.0) == 1.0
    assert whole("k", np.int64(2), 1, 2) == 2
    with pytest.raises(InvalidInput, match=r"`share` is 0.0; give a number in \(0, 1\]"):
        number("share", 0, low=ABOVE_ZERO, high=1.0)
    with pytest.raises(InvalidInput, match="`k` is 3; give an integer from -2 to 2"):
        whole("k", 3, -2, 2)
    with pytest.raises(InvalidInput, match="`seed` is -1; give an integer of at least 0"):
        generator(-1)
