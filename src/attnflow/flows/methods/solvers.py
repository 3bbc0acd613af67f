"""The solvers of Diffrax, as `Adaptive` takes them. Diffrax is imported when one is given or needed."""

import dataclasses
import inspect
import re
import typing
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax

from attnflow.checks import instance
from attnflow.errors import InvalidInput


def solvers() -> dict[str, Callable[..., Any]]:
    """Every solver that Diffrax exports, by its name in specifications: "tsit5", "implicit-euler"."""
    import diffrax

    classes = [kind for _, kind in inspect.getmembers(diffrax, inspect.isclass)]
    return {
        re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", kind.__name__).lower(): kind
        for kind in classes
        if issubclass(kind, diffrax.AbstractSolver) and not kind.__name__.startswith("Abstract")
    }


def check_solver(solver: Any) -> None:
    """Refuse what is no solver of one ODE with an error estimate."""
    import diffrax

    instance("solver", solver, diffrax.AbstractSolver, "a solver of Diffrax such as diffrax.Tsit5()")
    terms = typing.get_origin(solver.term_structure) or solver.term_structure
    if not isinstance(terms, type) or issubclass(terms, diffrax.MultiTerm):
        why = "which takes several terms (noise, or an implicit and an explicit part), and a field is one"
    elif isinstance(solver, diffrax.ReversibleHeun | diffrax.LeapfrogMidpoint):
        why = "which keeps earlier positions that are not moved back onto the space with the tokens"
    elif not isinstance(solver, diffrax.AbstractAdaptiveSolver):
        why = "which has no error estimate to choose steps by (Fixed(step, rule) needs none)"
    else:
        return
    raise InvalidInput(f"`solver` is {type(solver).__name__}, {why}; give one such as diffrax.Tsit5().")


def inside(solver: Any, change: Callable[[Any], Any]) -> Any:
    """`solver`, or the one that it wraps, changed."""
    import diffrax

    if not isinstance(solver, diffrax.AbstractWrappedSolver):
        return change(solver)
    wrapper: Any = solver
    return dataclasses.replace(wrapper, solver=inside(solver.solver, change))


def as_plain_loop(solver: Any) -> Any:
    """An explicit Runge-Kutta method with its stages as a plain loop, which reverse mode does not pass."""
    import diffrax

    return dataclasses.replace(solver, scan_kind="lax") if isinstance(solver, diffrax.AbstractERK) else solver


def is_coarse(step: Any, order: int | None) -> bool:
    """Whether the dense output `step` is less accurate than a solver of this order (Kvaerno 4 and 5)."""
    import diffrax

    cubic = isinstance(step, diffrax.ThirdOrderHermitePolynomialInterpolation)
    known = 3 if cubic else 1 if isinstance(step, diffrax.LocalLinearInterpolation) else order
    return order is None or known is None or known < order


def with_tolerances(solver: Any, rtol: Any, atol: Any, norm: Callable[[Any], Any]) -> Any:
    """An implicit solver whose root finder has no tolerances of its own, with these; any other one as it is.

    Diffrax's default `VeryChord` gives up early here and takes 5 to 9 times the steps of `Chord`, which replaces it.
    """
    import diffrax

    if not isinstance(solver, diffrax.AbstractImplicitSolver):
        return solver
    import optimistix

    made: Any = solver
    finder = made.root_finder
    unset = diffrax.with_stepsize_controller_tols(optimistix.Chord)().rtol
    if not any(leaf is unset for leaf in jax.tree.leaves(finder)):
        return solver
    if isinstance(finder, diffrax.VeryChord):
        finder = optimistix.Chord(rtol, atol, norm=norm)
    else:
        finder = eqx.tree_at(lambda f: (f.rtol, f.atol, f.norm), finder, (rtol, atol, norm))
    return dataclasses.replace(made, root_finder=finder)
