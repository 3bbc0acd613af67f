"""On shuffled text the tokens of a trained decoder collapse; those of trained encoders do not.

A text with its tokens in random order has the same words and no meaning. A network without training cannot tell the two
apart; a trained one does something else with each.

Shown, at the last state, without sinks: in SmolLM2, a decoder, the mean overlap without the ten largest coordinates is
higher on shuffled text than on text and the centred rank is lower, by more than in the same network with permuted and
with fresh weights. Only the last states do so: before them the centred rank is higher on shuffled text. In MiniLM and
rxnmapper, encoders, the centred rank does not fall.

Not shown: that attention does it, or that it is the clustering of the theory. Three networks, one a decoder; one
shuffle a text, at most 64 tokens; the first token of the decoder and special tokens stay in place. Nulls, texts and
orders are one draw each, which no salt changes. The quick version, which CI runs, has rxnmapper alone, and with it the
claim about encoders; the claims about the decoder are checked by `make long`.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2025perspective",)
__getattr__ = from_files(__name__)
