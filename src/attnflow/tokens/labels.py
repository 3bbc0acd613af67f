"""Labels of tokens: one text for each, for people. No number depends on them, and nothing compiled sees them."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from attnflow.checks import shown
from attnflow.errors import InvalidTokens
from attnflow.precision import is_traced

Nested: TypeAlias = tuple[Any, ...]
"""A text for each token, or a tuple of such tuples for each batch dimension."""
COORDINATE = "token_label"
"""What datasets call them."""


def as_token_labels(labels: Any, shape: tuple[int, ...], present: np.ndarray | None) -> Nested | None:
    """`labels` as tuples of texts, of the shape of all members or of one; absent rows have the empty text."""
    if labels is None:
        return None
    each = f"shape {shape[-1:]}" + (f" or {shape}" if len(shape) > 1 else "")
    wanted = f"give one text for each of the {shape[-1]} tokens, {each}."
    if is_traced(labels) or isinstance(labels, str) or not isinstance(labels, Sequence | np.ndarray):
        raise InvalidTokens(f"`labels` is {shown(labels)}; {wanted}")
    found = np.array(labels, dtype=object)
    if found.shape not in (shape, shape[-1:]):
        raise InvalidTokens(f"`labels` has shape {found.shape}; {wanted}")
    flat = found.ravel()
    strange = next((k for k, one in enumerate(flat) if not isinstance(one, str | int | np.integer)), None)
    if strange is not None:
        where = [int(k) for k in np.unravel_index(strange, found.shape)]
        raise InvalidTokens(f"labels{where} is {shown(flat[strange])}; every label is a text or a whole number.")
    texts = np.array([str(one) for one in flat], dtype=object).reshape(found.shape)
    if present is not None:
        texts = np.where(present, texts, "")
    return _nested(texts.tolist())


def label_array(labels: Nested | None) -> np.ndarray | None:
    """The labels as an array of texts, (*batch, token) or (token,)."""
    return None if labels is None else np.array(labels, dtype=np.str_)


def _nested(values: Any) -> Any:
    return tuple(map(_nested, values)) if isinstance(values, list) else values


def labels_beside(tokens: Any, members: Mapping[str, Any]) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """The labels as a coordinate of a dataset whose batch dimensions are those of `members`; none if there are none."""
    own = label_array(tokens.labels)
    if own is None or own.ndim == 1:
        return {} if own is None else {COORDINATE: (("token",), own)}
    order = sorted(range(len(tokens.dims)), key=lambda k: list(members).index(tokens.dims[k]))
    missing = [k for k, name in enumerate(members) if name not in tokens.dims]
    spread = np.expand_dims(own.transpose(*order, -1), missing)
    shape = (*map(len, members.values()), own.shape[-1])
    return {COORDINATE: ((*members, "token"), np.broadcast_to(spread, shape))}
