"""Functions of a field and of tokens say so in one sentence when they are given something else."""

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from attnflow.checks import instance
from attnflow.fields.base import AbstractField
from attnflow.tokens import Measure, Tokens

P = ParamSpec("P")
R = TypeVar("R")
_TOKENS = (Tokens | Measure, "tokens, such as from_array(positions)")
_ROLES: dict[str, tuple[Any, str]] = {
    "field": (AbstractField, "a field such as Attention(2.0)"),
    "tokens": _TOKENS,
    "mu": _TOKENS,
    "nu": _TOKENS,
}


def checked_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Check the arguments of `function` that are called `field`, `tokens`, `mu` and `nu`."""
    names = [(k, name) for k, name in enumerate(inspect.signature(function).parameters) if name in _ROLES]

    @functools.wraps(function)
    def inner(*args: P.args, **kwargs: P.kwargs) -> R:
        for k, name in names:
            if k < len(args) or name in kwargs:
                instance(name, args[k] if k < len(args) else kwargs[name], *_ROLES[name])
        return function(*args, **kwargs)

    return inner
