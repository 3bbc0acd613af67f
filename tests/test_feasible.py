"""Work that cannot be done is refused before it starts; work that can be done is not."""

import warnings

import numpy as np
import pytest

import attnflow as af
from attnflow import feasible, learn
from attnflow.errors import InvalidInput, TooLarge
from attnflow.fields import Affine
from attnflow.flows import Heun, InMemory, Solve
from attnflow.meanfield import CircleBasis, ZonalBasis, circle_cells, evolve, uniform, zonal_cells
from tests.faults import environment

SPHERE, FIELD = af.Sphere(3), af.Attention(2.0)
TOKENS = af.uniform(SPHERE, n=4)
GIB = 2**30


@pytest.fixture(autouse=True)
def memory_of_this_machine(faults):
    """The function that measures it; all else is told that the machine is a laptop."""
    return faults.replace("memory of the machine", lambda: 16 * GIB)


def message(call):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidInput) as caught:
            call()
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 400
    return text


HUGE = [10**12, 10**400]
BUILDERS = [
    ("n", lambda n: af.uniform(SPHERE, n=n)),
    ("n", lambda n: af.tokens.ring(SPHERE, n=n)),
    ("n", lambda n: af.tokens.von_mises_fisher(SPHERE, n=n, concentration=1.0)),
    ("n", lambda n: af.tokens.orthonormal(SPHERE, n=n)),
    ("n", lambda n: af.tokens.simplex(SPHERE, n=n)),
    ("n", lambda n: af.tokens.clustered(SPHERE, centres=np.eye(3), n=n)),
    ("n", lambda n: af.tokens.caps(SPHERE, centres=np.eye(3), n=[1, 1, n], radius=0.1)),
    ("dim", lambda n: af.Sphere(n)),
    ("dim", lambda n: af.Euclidean(n)),
    ("circles", lambda n: af.spaces.Torus(n)),
    ("count", lambda n: af.saving.Evenly(n)),
    ("count", lambda n: af.saving.LogSpaced(n)),
    ("frames", lambda n: af.LongTime(frames=n)),
    ("shape", lambda n: af.weights.Random((n, 3))),
    ("iterations", lambda n: af.Sinkhorn(iterations=n)),
    ("degree", lambda n: CircleBasis(n)),
    ("degree", lambda n: ZonalBasis(3, n)),
    ("dim", lambda n: ZonalBasis(n, 8)),
    ("count", lambda n: circle_cells(n)),
    ("count", lambda n: zonal_cells(3, n)),
    ("n", lambda n: learn.interleaved_classes(n)),
    ("steps", lambda n: learn.fit(None, None, None, steps=n)),
    ("max_steps", lambda n: af.Adaptive(max_steps=n)),
]


@pytest.mark.parametrize("huge", HUGE)
@pytest.mark.parametrize(("argument", "build"), BUILDERS)
def test_builders_name_the_number_that_is_too_large(argument, build, huge):
    assert f"`{argument}`" in message(lambda: build(huge))


def test_the_message_has_what_is_needed_and_what_there_is():
    found = message(lambda: af.uniform(SPHERE, n=10**12))
    assert found == (
        "`n` is 1000000000000, which would take 4.47e+04 GiB of memory, and this machine has 16 GiB; "
        "give a smaller `n`."
    )
    assert "would take 1.49e+03 GiB" in message(lambda: learn.residual_network(10, 10**6, 10**4))


@pytest.mark.parametrize("method", [af.Fixed(1e-12), Heun(1e-12), af.Layers(1e-12), af.Fixed(5e-324 * 2**60)])
def test_steps_without_end_are_refused_with_the_time_that_they_take(method):
    found = message(lambda: af.solve(FIELD, TOKENS, 1.0, method=method))
    assert "steps, which take at least" in found
    assert "days at 100,000 steps a second" in found or "years" in found
    assert "steps" in message(lambda: af.advance(FIELD, TOKENS, 0.0, 1.0, method))


def test_jumps_without_end_are_refused():
    field = af.Attention(1.0, value=af.weights.Random((3, 3), step=1e-12))
    assert "`step` of a weight is 1e-12" in message(lambda: af.solve(field, TOKENS, 1.0))


def test_a_list_of_steps_must_fit():
    assert "a list of 9e+08 steps" in message(lambda: af.advance(FIELD, TOKENS, 0.0, 9.0, af.Fixed(1e-8)))


def test_tolerances_below_rounding_are_refused():
    assert "both below the rounding" in message(lambda: af.Adaptive(rtol=1e-30, atol=1e-30))
    for rtol, atol in ((1e-14, 1e-30), (1e-300, 1e-12), (1e-13, 1e-13)):
        af.Adaptive(rtol=rtol, atol=atol)
    with pytest.raises(InvalidInput, match="`tol`"):
        af.meanfield.evolve_cells(FIELD, circle_cells(64), np.full(64, 1 / 64), 1.0, tol=1e-20)


@pytest.mark.parametrize("until", [0.0, -1.0, np.nan, np.inf, "1", True, None, 1e-320, 10**400, [1.0]])
def test_times_that_mean_nothing(until):
    density = uniform(CircleBasis(8))
    calls = [
        lambda: af.solve(FIELD, TOKENS, until),
        lambda: evolve(FIELD, density, until),
        lambda: af.flow_map(FIELD, TOKENS, until),
    ]
    if until != np.inf:
        calls += [lambda: af.solve_long(FIELD, TOKENS, until), lambda: af.merge_times(FIELD, TOKENS, until=until)]
    for call in calls:
        assert message(call).startswith("`until` is")


def test_times_closer_than_floating_point_tells_apart():
    assert "saved times are" in message(lambda: af.solve(FIELD, TOKENS, 1e-307, save=10))
    assert len(Solve(FIELD, TOKENS, 1e-300, save=10).checked().times) == 11


@pytest.mark.slow
def test_frames_must_fit_in_memory_where_they_are_kept_there(faults):
    faults.replace("memory of the machine", lambda: GIB / 16)
    found = message(lambda: af.solve(FIELD, TOKENS, 1.0, save=10**6))
    assert found.startswith("what is saved at 1000001 times would take 13")
    assert "run folder" in found
    many = af.Attention(af.Along("beta", np.linspace(1, 2, 10**4)))
    assert "a flow of 2000000 coordinates" in message(lambda: af.solve(many, af.uniform(af.Sphere(2), n=100), 1.0))


def test_limits_can_be_lifted():
    with environment(ATTNFLOW_LIMITS="off"):
        assert af.Sphere(10**8).dim == 10**8
        assert af.saving.Evenly(10**12).count == 10**12
        af.Fixed(1e-12).check(1.0, FIELD)


class Told(Exception):
    pass


class Before(InMemory):
    """What a sink in memory says, without any work."""

    def begin(self, layout):
        super().begin(layout)
        raise Told


LEGAL = [
    lambda: af.solve(af.Attention(2.0, sum=af.sums.Tiled()), af.uniform(af.Sphere(2), n=10**5), 1.0, sink=Before()),
    lambda: af.solve(FIELD, af.uniform(SPHERE, n=8), 1.0, save=10**6, sink=Before()),
    lambda: af.solve(FIELD, af.uniform(af.Sphere(4096), n=8), 1.0, sink=Before()),
    lambda: af.solve(FIELD, TOKENS, 1e6, method=af.Fixed(1e-3), sink=Before()),
    lambda: af.solve(FIELD, TOKENS, 1e12, save=af.saving.LogSpaced(100), stop=af.stopping.Consensus(), sink=Before()),
    lambda: af.solve(Affine(np.eye(3)), TOKENS, 1e9, method=af.Exact(), sink=Before()),
]


@pytest.mark.parametrize("call", LEGAL)
def test_legal_work_is_not_refused(call):
    with pytest.raises(Told):
        call()


def test_ten_million_tokens_on_the_circle_are_legal():
    feasible.length("n", 10**7, 1, 2 * 2)
    feasible.require_memory(8 * 6 * 2 * 10**7, "a flow", "no")


def test_sizes_and_spans_as_people_read_them():
    assert [feasible.size(b) for b in (2**20, 3 * 2**29, 10**400)] == ["1 MiB", "1.5 GiB", "more than 9e+290 GiB"]
    assert [feasible.span(s) for s in (5, 600, 7200, 1e6, 1e12)] == ["5 s", "10 minutes", "2 hours", "12 days", "3.17e+04 years"]  # fmt: skip


def test_the_memory_of_a_machine_is_known(memory_of_this_machine):
    assert GIB < memory_of_this_machine() < 2**60


def test_a_huge_inverse_temperature():
    with pytest.raises(InvalidInput, match="above 1e\\+10, where the sum Circle needs too many degrees"):
        af.Attention(1e12, sum=af.sums.Circle(1e-8, 32)).check(af.uniform(af.Sphere(2), n=4))
    af.Attention(1e15).prepare(af.uniform(af.Sphere(2), n=4))
    assert "give a number in [-1e+15, 1e+15]" in message(lambda: af.Attention(1e300))
    assert issubclass(TooLarge, InvalidInput)
