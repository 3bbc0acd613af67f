"""Solvers of Diffrax inside `Adaptive`: they agree, leave no trace where a flow is cut, and others are refused."""

import functools
import itertools

import diffrax
import jax
import numpy as np
import optimistix
import pytest
from scipy.integrate import solve_ivp

import attnflow as af
from attnflow.errors import InvalidInput, InvalidSpec
from attnflow.flows import Ending
from attnflow.runs import execute, parse_spec
from tests.flows.fields import WORDS
from tests.kit import frames
from tests.marks import graded

TOKENS = af.uniform(af.Sphere(3), n=6, seed=0)
FIELD = af.Attention(4.0)
VALUES = np.random.default_rng(1).standard_normal((3, 3, 3))
JUMPING = af.Attention(2.0, value=af.weights.PerLayer(VALUES, 0.4))
SOLVERS = {
    "tsit5": diffrax.Tsit5(),
    "kvaerno5": diffrax.Kvaerno5(),
    "heun": diffrax.Heun(),
    "implicit-euler": diffrax.ImplicitEuler(),
    "half": diffrax.HalfSolver(diffrax.Midpoint()),
}
QUICK = ["tsit5", "kvaerno5", "heun"]


def adaptive(name, tol=1e-5):
    return af.Adaptive(tol, tol, solver=SOLVERS[name])


@functools.cache
def exact(jumps):
    """Eight frames of SciPy's DOP853 on the formulas in NumPy, afresh after every frame and every jump."""
    frames, x = np.linspace(0, 1.2, 8), TOKENS.positions.ravel()
    found = [x]
    for a, b in itertools.pairwise(sorted({*frames, *([0.4, 0.8] if jumps else [])})):
        value, beta = (VALUES[min(int((a + b) / 2 / 0.4), 2)], 2.0) if jumps else (np.eye(3), 4.0)

        def rate(_, y, value=value, beta=beta):
            x = y.reshape(-1, 3)
            weight = np.exp(beta * x @ x.T)
            drive = weight @ x @ value.T / weight.sum(axis=1, keepdims=True)
            return (drive - np.sum(drive * x, axis=1, keepdims=True) * x).ravel()

        x = solve_ivp(rate, (a, b), x, "DOP853", rtol=1e-11, atol=1e-13).y[:, -1]
        found += [x] if b in frames else []
    return np.reshape(found, (8, -1, 3))


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(n, marks=pytest.mark.slow) for n in ("implicit-euler", "half"))]
)
@graded("field", [FIELD, JUMPING], ids=["steady", "jumping"], slow=1)
def test_solvers_agree(name, field):
    """With SciPy's Dormand-Prince 8 at 1e-11, at saved times within steps and across jumps of the field.

    Errors of steps are at most 2 tol each and grow by less than e^2 (rates of the flow are below 1 here, of the jumping
    one below 3 over times of 0.4); frames of Kvaerno's method would be off by 4e-5 if they came from its dense output.
    """
    tol = 1e-3 if name == "implicit-euler" else 1e-5
    flow = af.solve(field, TOKENS, 1.2, save=7, method=adaptive(name, tol), keep=["positions"])
    error = np.abs(flow.positions.values - exact(field is JUMPING)).max()
    assert error < 2 * tol * np.exp(2) * flow.steps["accepted"]
    assert flow.steps["rejected"] <= 2 + flow.steps["accepted"] / 2


@pytest.mark.slow
def test_the_default_is_dormand_prince_8():
    default, given = (
        af.solve(JUMPING, TOKENS, 1.2, save=5, method=af.Adaptive(solver=solver), keep=["positions"])
        for solver in (None, diffrax.Dopri8())
    )
    # the first stage of a step is that of the last one, or is evaluated again at the retracted point: rounding
    np.testing.assert_allclose(default.positions.values, given.positions.values, atol=1e-13)
    assert default.steps == given.steps


@graded("name", ["tsit5", "heun", pytest.param("kvaerno5", marks=pytest.mark.slow)], slow=1)
def test_a_cut_leaves_no_trace(name):
    """A flow that is continued, and one that is cancelled in its middle, equal one that went through: bit by bit."""
    method, batch = adaptive(name, 1e-6), af.uniform(af.Sphere(3), n=6, seed=range(3))
    run = {"method": method, "chunk": 2, "keep": ["positions"]}
    whole = af.solve(JUMPING, batch, 1.5, save=6, **run)
    if name == "heun":  # the quickest to compile
        other = frames(JUMPING, batch, 1.5, save=6, method=method, chunk=1)
        assert np.array_equal(other, whole.positions.values)
    first = af.solve(JUMPING, batch, 0.75, save=3, **run)
    longer = first.continued(1.5, save=3)
    assert np.array_equal(longer.positions.values, whole.positions.values)
    seen = []
    cut = af.solve(JUMPING, batch, 1.5, save=6, **run, on_progress=seen.append, cancel=lambda: bool(seen))
    assert cut.outcome.ending is Ending.INTERRUPTED
    assert np.array_equal(cut.continued().positions.values, whole.positions.values)


def test_tolerances_of_root_finders():
    """Without its own it gets those of the steps; Diffrax's default one takes many more steps and is not used."""
    from attnflow.flows import Adaptive

    def finder(given):
        return Adaptive(1e-6, 1e-7, solver=given)._solver().root_finder

    for made in (finder(diffrax.Kvaerno5()), finder(diffrax.ImplicitEuler())):
        assert type(made) is optimistix.Chord
        assert (float(made.rtol), float(made.atol)) == (1e-6, 1e-7)
    newton = finder(diffrax.Kvaerno3(root_finder=diffrax.with_stepsize_controller_tols(optimistix.Newton)()))
    assert (type(newton), float(newton.rtol)) == (optimistix.Newton, 1e-6)
    own = diffrax.VeryChord(1e-3, 1e-4)
    assert finder(diffrax.Kvaerno5(root_finder=own)) is own


@pytest.mark.long
def test_reverse_mode_of_an_implicit_solver():
    """The gradient of `advance` against central differences, off by h^2 times a third derivative and by tol/h."""

    def loss(beta):
        return af.advance(af.Attention(beta), TOKENS, 0.0, 1.0, adaptive("kvaerno5", 1e-9)).positions[0, 0]

    both = af.in_float64(jax.jit(jax.value_and_grad(loss)))
    numeric = (both(2.0 + 1e-3)[0] - both(2.0 - 1e-3)[0]) / 2e-3
    assert abs(both(2.0)[1] - numeric) < 1e-5


REFUSED = {
    "euler": "Euler, which has no error estimate",
    "leapfrog-midpoint": "LeapfrogMidpoint, which keeps earlier positions",
    "reversible-heun": "ReversibleHeun, which keeps earlier positions",
    "semi-implicit-euler": "SemiImplicitEuler, which takes several terms",
    "ken-carp4": "KenCarp4, which takes several terms",
    "sil3": "Sil3, which takes several terms",
    "ito-milstein": "ItoMilstein, which takes several terms",
    "spa-rk": "SPaRK, which takes several terms",
    "quicsort": "QUICSORT, which takes several terms",
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_solvers_are_refused_by_name(name):
    with pytest.raises(InvalidInput, match=f"^`solver` is {REFUSED[name]}.*; give one such as diffrax.Tsit5\\(\\)\\.$"):
        af.Adaptive(solver=WORDS["solver"][name]())


def test_every_solver_of_diffrax_is_taken_or_refused():
    taken = set()
    for name, make in WORDS["solver"].items():
        if name == "half-solver":
            continue
        try:
            af.Adaptive(solver=make())
            taken.add(name)
        except InvalidInput as refused:
            message = str(refused)
            assert message.startswith(f"`solver` is {make.__name__}, which ")
    assert taken >= {"bosh3", "dopri5", "dopri8", "heun", "implicit-euler", "kvaerno3", "kvaerno4", "kvaerno5", "tsit5"}
    with pytest.raises(InvalidInput, match="HalfSolver, which keeps"):
        af.Adaptive(solver=diffrax.HalfSolver(diffrax.LeapfrogMidpoint()))


SPEC = """
name = "solver"
[tokens]
name = "uniform"
n = 6
space = { name = "sphere", dim = 3 }
[field]
name = "attention"
beta = 4.0
[solve]
until = 1.0
save = { name = "evenly", count = 3 }
method = { name = "adaptive", rtol = 1e-5, atol = 1e-5, solver = { name = "NAME" } }
"""


def test_a_specification_names_a_solver(tmp_path):
    _, flow = execute(parse_spec(SPEC.replace("NAME", "heun")), tmp_path / "run")
    same = af.solve(FIELD, TOKENS, 1.0, save=af.saving.Evenly(3), method=adaptive("heun"))
    assert np.array_equal(flow.positions.values, same.positions.values)
    table = parse_spec(SPEC.replace("NAME", "kvaerno5")).table["solve"]["method"]
    assert table["solver"] == {"name": "kvaerno5", "root_find_max_steps": 10}
    half = SPEC.replace('{ name = "NAME" }', '{ name = "half-solver", solver = { name = "midpoint" } }')
    assert isinstance(parse_spec(half).work.method.solver, diffrax.HalfSolver)
    with pytest.raises(InvalidInput, match="`solver` is Euler, which has no error estimate"):
        parse_spec(SPEC.replace("NAME", "euler"))
    with pytest.raises(InvalidSpec, match="`solve.method.solver.name` is 'tsti5'.*tsit5"):
        parse_spec(SPEC.replace("NAME", "tsti5"))
