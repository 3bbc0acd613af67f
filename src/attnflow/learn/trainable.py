"""Which arrays of a network are fitted, under which names they are stored, and the package that fits them."""

from typing import Any

import equinox as eqx
import jax

from attnflow.axes import Along
from attnflow.errors import MissingExtra
from attnflow.fields import AbstractWeight, Constant, Interpolated, PerLayer, Pieces
from attnflow.learn.classifier import Classifier


def trainable(network: Any) -> Any:
    """A tree of the shape of `network`, True at the arrays that are fitted: weights of its field, and a read-out.

    `network` is a `Classifier` or a field. `eqx.partition(network, trainable(network))` splits the arrays from times
    and steps, which must stay plain numbers under a gradient.
    """

    def mark(node: Any) -> Any:
        marks = jax.tree.map(lambda _: False, node)
        if isinstance(node, Constant) and not isinstance(node.value, Along):
            return eqx.tree_at(lambda w: w.value, marks, True)
        if isinstance(node, PerLayer | Pieces | Interpolated):
            return eqx.tree_at(lambda w: w.values, marks, True)
        return marks

    marks = jax.tree.map(mark, network, is_leaf=lambda node: isinstance(node, AbstractWeight))
    return eqx.tree_at(lambda c: (c.readout, c.bias), marks, (True, True)) if isinstance(network, Classifier) else marks


def named(weights: Any) -> dict[str, Any]:
    """The weights by the names that they have in a dataset."""
    return {
        "weight" + jax.tree_util.keystr(path).replace(".", "_"): leaf
        for path, leaf in jax.tree_util.tree_leaves_with_path(weights)
    }


def load_optax(what: str) -> Any:
    """Optax, or the sentence that says how to install it."""
    try:
        import optax
    except ImportError:
        raise MissingExtra(f"`{what}` needs Optax; install `attnflow[learn]`.") from None
    return optax
