"""Iterated far past its depth, a weight-shared transformer keeps many clusters; without biases it goes to one point.

rxnmapper (ALBERT) applies one trained layer twelve times. Applied hundreds of times the layer is a dynamical system,
and its long-lived states of many clusters look like the metastability of attention.

Shown, with every ablation beside it: after hundreds of layers the tokens of the full layer have not collapsed;
attention with its norms alone collapses, and so do permuted weights, in far fewer layers; without all biases the full
layer reaches one point; and the norms alone, without attention and perceptron, glue more pairs of tokens than the full
layer does. So what holds the clusters apart are the biases, a fixed external field; nothing here shows metastability of
attention.

Not shown: a proof. A layer without its biases is off its training distribution, and an ablation is a hint. One network,
50 short reactions; the state at great depth depends on rounding (the iteration is chaotic), so that only means over
reactions are claimed.
"""

from attnflow.experiments import from_files

PAPERS = ("geshkovski2025perspective",)
__getattr__ = from_files(__name__)
