"""What the makers of plugins return, checked against what that part of a specification needs."""

from typing import Any

from attnflow.errors import AttnflowError, InvalidInput
from attnflow.runs.plugins import words
from attnflow.runs.registry import NEEDED, REGISTRY


def make(kind: str, name: str, /, *positional: Any, **arguments: Any) -> Any:
    """The part `name`; where a plugin fails to make one, it is named in one sentence."""
    maker = words(kind)[name]
    if name in REGISTRY[kind]:
        return maker(*positional, **arguments)
    try:
        made = maker(*positional, **arguments)
    except AttnflowError:
        raise
    except Exception as error:
        raise InvalidInput(
            f"the {kind} {name!r} of a plugin cannot be made ({type(error).__name__}: {error}); correct its table, or "
            "the file."
        ) from error
    if not (isinstance(made, NEEDED[kind]) if kind in NEEDED else kind != "observable" or callable(made)):
        expected = NEEDED[kind].__name__ if kind in NEEDED else "function of (t, measure)"
        article = "an" if expected.startswith("A") else "a"
        raise InvalidInput(
            f"the plugin gives a {type(made).__name__} for the {kind} {name!r}; {article} {expected} is needed."
        )
    return made
