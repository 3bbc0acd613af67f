"""64-bit mode without touching the user's JAX configuration.

`import attnflow` sets no flag. A function marked `@in_float64` runs in 64-bit mode; called on ordinary
numbers it gives NumPy float64 back, called inside somebody's `jit`, `vmap` or `grad` it stays traced.
Those transformations run in the caller's mode, so they are wrapped too: `af.in_float64(jax.grad(loss))(9.0)`.
"""

import contextlib
import functools
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

from attnflow.errors import InvalidInput

NOT_TRACEABLE = (
    jax.errors.TracerArrayConversionError,
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerIntegerConversionError,
)
"""What JAX raises where traced code needs numbers."""
_PACKAGE = Path(__file__).parent
P = ParamSpec("P")
R = TypeVar("R")


def is_traced(tree: Any) -> bool:
    """Whether some leaf of `tree` is being traced by a JAX transformation."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(tree))


def is_concrete(value: Any) -> bool:
    """Whether `value` has numbers that a check may look at."""
    return not isinstance(value, jax.core.Tracer)


def to_numpy(tree: Any) -> Any:
    """Every JAX array of `tree` as a NumPy array; other leaves as they are."""
    return jax.tree.map(lambda a: np.asarray(a) if isinstance(a, jax.Array) else a, tree)


@contextlib.contextmanager
def full_precision() -> Iterator[None]:
    """64-bit mode, and products of float32 matrices in float32 (devices would round their entries to ten bits)."""
    try:
        with jax.enable_x64(True), jax.default_matmul_precision("highest"):
            yield
    except NOT_TRACEABLE as error:
        raise InvalidInput(
            f"code that JAX traces asks for the value of an array{_place(error)}; write it with jax.numpy instead of "
            "NumPy, and with jnp.where instead of `if`."
        ) from error


def _place(error: BaseException) -> str:
    """Where outside of the packages an error comes from, in brackets; empty if that is not known."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if "site-packages" not in frame.filename and not Path(frame.filename).is_relative_to(_PACKAGE):
            return f" ({Path(frame.filename).name}, line {frame.lineno})"
    return ""


def in_float64(function: Callable[P, R]) -> Callable[P, R]:
    """Run `function` in 64-bit mode; give NumPy back unless the result is traced."""

    @functools.wraps(function)
    def inner(*args: P.args, **kwargs: P.kwargs) -> R:
        if not jax.config.read("jax_enable_x64") and is_traced((args, kwargs)):
            raise InvalidInput(
                f"`{function.__name__}` is being traced by a JAX transformation in 32-bit mode; wrap the outermost "
                "one, as in `attnflow.in_float64(jax.grad(loss))(9.0)`, or set `jax_enable_x64`."
            )
        with full_precision():
            result = function(*args, **kwargs)
            return result if is_traced(result) else to_numpy(result)

    return inner
