"""What queries and keys are made of: Q x, K y and their places."""

from typing import Any

import equinox as eqx
from jaxtyping import Array, Float, Real

from attnflow import checks, describe
from attnflow.errors import InvalidInput
from attnflow.fields.encodings import AbstractEncoding, NoEncoding
from attnflow.fields.linear import Identity, as_linear_map
from attnflow.fields.maps import AbstractLinearMap


class Features(eqx.Module, describe.Inlined):
    """Q x of the points that listen and K y of those that are listened to, with an encoding of their places.

    Features are computed once per point; with several heads they have the head as first axis.
    """

    query: AbstractLinearMap
    key: AbstractLinearMap
    encoding: AbstractEncoding

    def __init__(self, query: Any = None, key: Any = None, encoding: AbstractEncoding | None = None):
        self.query = as_linear_map("query", query)
        self.key = as_linear_map("key", key)
        self.encoding = NoEncoding() if encoding is None else encoding
        checks.instance("encoding", self.encoding, AbstractEncoding, "an encoding such as Rotary()")

    @property
    def is_plain(self) -> bool:
        """Whether Q = K = I and places do not enter."""
        identities = isinstance(self.query, Identity) and isinstance(self.key, Identity)
        return identities and not self.encoding.uses_place

    @property
    def has_plain_keys(self) -> bool:
        """Whether the features of the tokens that are listened to are their positions: K = I, no encoding."""
        return isinstance(self.key, Identity) and not self.encoding.uses_place

    def of_queries(
        self, t: Any, x: Float[Array, "query dim"], place: Real[Array, " query"]
    ) -> Float[Array, "*head query feature"]:
        """Features of the points that listen."""
        return self.encoding.after(self.query(t, self.encoding.before(x, place)), place)

    def of_keys(
        self, t: Any, y: Float[Array, "key dim"], place: Real[Array, " key"]
    ) -> Float[Array, "*head key feature"]:
        """Features of the tokens that are listened to."""
        return self.encoding.after(self.key(t, self.encoding.before(y, place)), place)

    def check(self, dim: int, heads: int | None = None) -> None:
        """Refuse parameters that do not fit tokens of this dimension."""
        self.query.check(dim, heads)
        self.key.check(dim, heads)
        rows = [m.rows(dim) for m in (self.query, self.key)]
        if rows[0] != rows[1]:
            raise InvalidInput(
                f"`query` maps to dimension {rows[0]} and `key` to {rows[1]}; their images meet in a product, "
                "so give both the same number of rows."
            )
        self.encoding.check(rows[0])
