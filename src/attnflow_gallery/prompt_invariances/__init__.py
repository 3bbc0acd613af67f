"""Without places the next word ignores order, repetition and rotations; rotary and causal prompts keep less, exactly.

A prompt without positional encoding and without a mask is a measure. So its next-token distribution depends neither on
the order of the words nor on how often the prompt is repeated, and a rotation of the embedding changes nothing. With
rotary encoding (RoPE) the order matters, yet a common shift of all places does not. Under a causal mask the last token
of a prefix does not see what follows.

Shown: all five invariances at the end of a flow, for the read-outs that they hold for, to rounding that the flow has
amplified; and that each of them is lost where its condition is: order with added sinusoids, with rotary encoding and
with a causal mask; shifts with added sinusoids; the prefix without a mask. Not shown: other fields; learned weights.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2025perspective", "su2021roformer", "vaswani2017attention")
__getattr__ = from_files(__name__)
