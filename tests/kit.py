"""What tests share, so that a process compiles a program once: sizes of systems, fields and flows in few programs."""

import equinox as eqx

import attnflow as af

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
