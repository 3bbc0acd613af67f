"""What tests share: flows in few programs, so that a process compiles each once; changes that end with a block."""

import contextlib

import equinox as eqx
import pytest

import attnflow as af
from tests.faults import Faults

SIZES = (4, 12, 40)
"""Numbers of tokens, in 2 or 3 dimensions where the test does not ask for others."""


@af.in_float64
@eqx.filter_jit
def drive(field, mu, x=None, t=0.0, place=None):
    """`field.drive` in one program; operation by operation every one would be compiled for itself."""
    return field.drive(mu, t, at=x, place=place)


def frames(field, tokens, until, save=1, **options):
    """Positions at the saved times of `solve`: speeds and energies, which are programs of their own, are left out."""
    return af.solve(field, tokens, until, save=save, keep=["positions"], **options).positions.values


def end(field, tokens, until, **options):
    """Positions at the time `until`. All steps of a method share one program (each number of steps of `advance` is one)."""
    return frames(field, tokens, until, **options)[..., -1, :, :]


@contextlib.contextmanager
def temporary_faults():
    """The seam of `tests/faults.py` for a block, at whose end every point is as before."""
    with pytest.MonkeyPatch.context() as patch:
        yield Faults(patch)


@contextlib.contextmanager
def environment(**variables):
    """Set environment variables for a block; None stands for a variable that is not set."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.delenv(name, raising=False) if value is None else patch.setenv(name, value)
        yield
