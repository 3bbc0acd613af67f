"""What tests share, so that a process compiles a program once: sizes of systems, and fields in one program."""

import equinox as eqx

import attnflow as af

SIZES = (4, 12, 40)
"""Numbers of tokens, in 2 or 3 dimensions where the test does not ask for others."""


@af.double
@eqx.filter_jit
def drive(field, mu, x=None, t=0.0, place=None):
    """`field.drive` in one program; operation by operation every one would be compiled for itself."""
    return field.drive(t, x, mu, place)
